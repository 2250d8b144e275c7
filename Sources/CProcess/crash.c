// The crash report of a program: a short backtrace, after which the signal ends the process.
//
// Swift's backtracer (6.3) does not suit a program on a server. It reports a signal from kill(1) as a crash and lets the
// program continue. On a terminal it asks a question. It needs a second program, which a machine without the toolchain lacks.
// It reads SWIFT_BACKTRACE before main, so a program can only execute itself again without it, or replace its handlers, as this
// file does. That saves one exec at each start, and reports crashes even if nothing but the program is installed.
//
// Every function that the handler calls is async-signal-safe (man 7 signal-safety), except backtrace(3) and dladdr(3). These
// two may wait for a lock of the dynamic linker, or crash again in a corrupted stack. A timer or the second call of the handler
// then ends the process.
#define _GNU_SOURCE
#include "CProcess.h"
#include "end.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#if !defined(__has_feature)
#define __has_feature(feature) 0
#endif

// The thread that reports, and the signal that it reports. Only the first crash is reported.
static pid_t reporter;
static volatile sig_atomic_t crash;
// An alternate signal stack for the main thread, used after a stack overflow. On other threads the kernel ends the process
// without a report.
static char spare_stack[1 << 16];

static const struct { int number; const char *name; } crashes[] = {
    {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"}, {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"},
    {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGSEGV, "SIGSEGV"},
};

static void give_up(int number) {
    (void)number;
    netwatch_end_by_signal(crash);
}

// One line of the report, written by one write(2).
struct line {
    char text[400];
    size_t count;
};

static void add(struct line *line, const char *text) {
    while (*text && line->count < sizeof line->text - 1) line->text[line->count++] = *text++;
}

static void add_number(struct line *line, uint64_t number, unsigned base) {
    char digits[24];
    int first = sizeof digits - 1;
    digits[first] = 0;
    do {
        digits[--first] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number);
    if (base == 16) add(line, "0x");
    add(line, digits + first);
}

static void finish(struct line *line) {
    line->text[line->count++] = '\n';
    ssize_t written = write(2, line->text, line->count);
    (void)written;
    line->count = 0;
}

static uintptr_t crashed_instruction(void *context) {
#if defined(__x86_64__)
    return (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)((ucontext_t *)context)->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

static void write_headline(int number, const siginfo_t *info) {
    struct line line = {.count = 0};
    char thread[17] = "";
    // The terminal's cursor may be at the end of a progress line.
    if (isatty(2)) add(&line, "\n");
    add(&line, number == SIGQUIT ? "netwatch: quit: " : "netwatch: crashed: ");
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        if (crashes[i].number == number) add(&line, crashes[i].name);
    if (info->si_code <= 0) {
        // Sent by kill(2), or by abort(3) and similar functions.
        if (info->si_pid != getpid()) {
            add(&line, " from process ");
            add_number(&line, (uint64_t)info->si_pid, 10);
        }
    } else if (number == SIGSEGV || number == SIGBUS) {
        add(&line, " at address ");
        add_number(&line, (uint64_t)(uintptr_t)info->si_addr, 16);
    }
    prctl(PR_GET_NAME, thread, 0, 0, 0);
    add(&line, " in thread ");
    add(&line, thread);
    finish(&line);
}

static void write_backtrace(void *context) {
    void *frames[32];
    int count = backtrace(frames, sizeof frames / sizeof *frames), first = 0;
    uintptr_t instruction = crashed_instruction(context);
    // The frames of the handler itself come first.
    for (int i = 0; i < count; i++)
        if ((uintptr_t)frames[i] == instruction) first = i;
    for (int i = first; i < count; i++) {
        struct line line = {.count = 0};
        Dl_info where;
        add(&line, "  ");
        if (dladdr(frames[i], &where) && where.dli_fname) {
            add(&line, where.dli_fname);
            add(&line, "+");
            add_number(&line, (uintptr_t)frames[i] - (uintptr_t)where.dli_fbase, 16);
            if (where.dli_sname) {
                add(&line, " ");
                add(&line, where.dli_sname);
            }
        } else {
            add_number(&line, (uintptr_t)frames[i], 16);
        }
        finish(&line);
    }
}

static void report(int number, siginfo_t *info, void *context) {
    pid_t thread = (pid_t)syscall(SYS_gettid), other = 0;
    if (!__atomic_compare_exchange_n(&reporter, &other, thread, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        if (other == thread) netwatch_end_by_signal(crash);
        // The first thread ends the process.
        for (;;) pause();
    }
    crash = number;
    struct sigaction action;
    struct itimerval limit = {{0, 0}, {0, 500000}};
    sigset_t set;
    memset(&action, 0, sizeof action);
    action.sa_handler = give_up;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGALRM, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    setitimer(ITIMER_REAL, &limit, NULL);
    write_headline(number, info);
    write_backtrace(context);
    netwatch_end_by_signal(crash);
}

// Whether each signal was ignored at the program's start, in the order of `crashes`.
static int ignored[sizeof crashes / sizeof *crashes];

void netwatch_report_crashes(void) {
    // The sanitizers write their own reports.
    if (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer)) return;
    void *frame;
    stack_t stack = {.ss_sp = spare_stack, .ss_size = sizeof spare_stack};
    struct sigaction action, before;
    // The first call loads libgcc_s, which allocates memory.
    backtrace(&frame, 1);
    sigaltstack(&stack, NULL);
    memset(&action, 0, sizeof action);
    action.sa_sigaction = report;
    // SA_NODEFER: if the report itself crashes, the handler is called again and ends the process with the first signal.
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    // A shell without job control starts background jobs with SIGQUIT ignored, but a SIGQUIT from kill(1) must end the program.
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) {
        ignored[i] = sigaction(crashes[i].number, NULL, &before) == 0 && before.sa_handler == SIG_IGN;
        sigaction(crashes[i].number, &action, NULL);
    }
}

void netwatch_restore_ignored_crashes(void) {
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        if (ignored[i]) signal(crashes[i].number, SIG_IGN);
}
