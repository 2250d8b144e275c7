// The parts of process control that need C: the program's arguments, its crash report, and its end by a signal.
#ifndef NETWATCH_CPROCESS_H
#define NETWATCH_CPROCESS_H

#include <signal.h>
#include <stdint.h>

// The program's arguments, its name first. Swift's CommandLine reads /proc/self/cmdline and is empty without /proc. The count
// is 0 if the C library passes no arguments to constructors.
int netwatch_argument_count(void);
char *const *netwatch_arguments(void);

// The path with which this program was executed (getauxval(3), AT_EXECFN), or NULL. Unlike argv[0], the caller cannot choose it
// freely.
const char *netwatch_executed_path(void);

// Replaces Swift's backtracer: on a crash or SIGQUIT, the process writes a few lines to descriptor 2 and ends by the signal, at
// most half a second later.
void netwatch_report_crashes(void);

// Ignores again the crash signals that were ignored at the program's start, before exec replaces this program by another one.
void netwatch_restore_ignored_crashes(void);

// Notes the first signal that asked the program to end, and the time. Further calls have no effect. Call it before netwatch_end_at_signal.
void netwatch_first_signal(int number);

// Installs a handler that kills the process group set by netwatch_kill_at_end (0: no group) and then ends this process by the
// signal. It ignores the first signal again within 500 ms.
void netwatch_end_at_signal(int number);

// Starts a thread that receives SIGINT, SIGTERM and SIGHUP after this time, with their handlers, while other threads block them.
// Returns 0 or an errno. Call it once.
int netwatch_receive_signals_after(int milliseconds);
void netwatch_kill_at_end(int32_t process_group);

// Starts a command, which is searched in PATH as execvp(3) does, also for a script without #!. `output` and `errors` become its
// descriptors 1 and 2; -1 leaves them as they are. It blocks the signals in `blocked`, and ignores those that this program ignores. Returns 0
// or an errno.
int netwatch_spawn_command(
    int32_t *process, char *const *arguments, int output, int errors, const sigset_t *blocked, int ignores_pipe_signal);

// Reads the next signal of a signal descriptor, or 0 if there is none. `is_of_kernel` is set to 1 if no process has sent it, as for Ctrl-C on a
// terminal.
int netwatch_next_signal(int descriptor, int *is_of_kernel);

#endif
