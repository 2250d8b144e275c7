// The handler of the second signal that asks a program to end. It ends the program at once, even if its main thread is busy,
// and kills a process group.
#define _GNU_SOURCE
#include "CProcess.h"
#include "end.h"

#include <signal.h>
#include <string.h>
#include <sys/types.h>

static pid_t group;

static void end(int number) {
    pid_t members = __atomic_load_n(&group, __ATOMIC_SEQ_CST);
    if (members > 0) kill(-members, SIGKILL);
    netwatch_end_by_signal(number);
}

void netwatch_end_at_signal(int number) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = end;
    sigfillset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

void netwatch_kill_at_end(int32_t process_group) { __atomic_store_n(&group, process_group, __ATOMIC_SEQ_CST); }
