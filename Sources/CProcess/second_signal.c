// The handler of the second signal that asks a program to end. It ends the program at once, even if its main thread is busy,
// and kills a process group.
#define _GNU_SOURCE
#include "CProcess.h"
#include "end.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static pid_t group;
static struct timespec first_time;
static int first_signal;

void netwatch_first_signal(int number) {
    if (first_signal != 0) return;
    clock_gettime(CLOCK_MONOTONIC, &first_time);
    __atomic_store_n(&first_signal, number, __ATOMIC_SEQ_CST);
}

// Whether the signal is the first one again: timeout(1) sends it to its child, and then to the process group of both.
static int is_repeated(int number) {
    if (number != __atomic_load_n(&first_signal, __ATOMIC_SEQ_CST)) return 0;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - first_time.tv_sec) * 1000 + (now.tv_nsec - first_time.tv_nsec) / 1000000 < 500;
}

static void end(int number) {
    if (is_repeated(number)) return;
    pid_t members = __atomic_load_n(&group, __ATOMIC_SEQ_CST);
    if (members > 0) kill(-members, SIGKILL);
    netwatch_end_by_signal(number);
}

void netwatch_end_at_signal(int number) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = end;
    action.sa_flags = SA_RESTART;
    sigfillset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

static struct timespec grace;

// Waits, and then receives the signals that all other threads block.
static void *await_end(void *unused) {
    (void)unused;
    sigset_t set;
    struct timespec remaining = grace;
    while (nanosleep(&remaining, &remaining) != 0) {}
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    for (;;) pause();
}

int netwatch_receive_signals_after(int milliseconds) {
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, former;
    grace.tv_sec = milliseconds / 1000;
    grace.tv_nsec = milliseconds % 1000 * 1000000L;
    sigfillset(&all);
    int failure = pthread_attr_init(&attributes);
    if (failure != 0) return failure;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &former);
    failure = pthread_create(&thread, &attributes, await_end, NULL);
    pthread_sigmask(SIG_SETMASK, &former, NULL);
    pthread_attr_destroy(&attributes);
    return failure;
}

void netwatch_kill_at_end(int32_t process_group) { __atomic_store_n(&group, process_group, __ATOMIC_SEQ_CST); }
