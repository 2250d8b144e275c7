// A program's process as C alone knows it: the arguments that it was started with, and its end by a crash.
#ifndef NETWATCH_CPROCESS_H
#define NETWATCH_CPROCESS_H

#include <stdint.h>

// The arguments that the kernel handed over, the program's name first. Swift's CommandLine reads /proc/self/cmdline and is empty without
// /proc. The count is 0 where the C library passes no arguments to constructors.
int netwatch_argument_count(void);
char *const *netwatch_arguments(void);

// The path that this program was executed by (getauxval(3), AT_EXECFN), or NULL. Unlike argv[0], it is not a name that the caller made up.
const char *netwatch_executed_path(void);

// Reports crashes and SIGQUIT in place of Swift's backtracer from now on: a few lines on descriptor 2, then the process ends by the signal,
// at the latest half a second later.
void netwatch_report_crashes(void);

// Ignores again those of these signals that the program's starter ignores: for the program that takes this one's place by exec.
void netwatch_restore_ignored_crashes(void);

// From now on the signal kills the process group of netwatch_kill_at_end and ends this process by the signal. 0: no group.
void netwatch_end_at_signal(int number);
void netwatch_kill_at_end(int32_t process_group);

#endif
