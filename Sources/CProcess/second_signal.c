// The second signal that asks a program to end: the program ends at once, whatever its main thread does, and takes along a process group.
#define _GNU_SOURCE
#include "CProcess.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static pid_t group;

static void end(int number) {
    struct sigaction action;
    sigset_t set;
    pid_t members = __atomic_load_n(&group, __ATOMIC_SEQ_CST);
    if (members > 0) kill(-members, SIGKILL);
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    sigaction(number, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), number);
    _exit(128 + number);
}

void netwatch_end_at_signal(int number) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = end;
    sigfillset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

void netwatch_kill_at_end(int32_t process_group) { __atomic_store_n(&group, process_group, __ATOMIC_SEQ_CST); }
