// Ends the process by a signal, for the signal handlers of this target.
#ifndef NETWATCH_CPROCESS_END_H
#define NETWATCH_CPROCESS_END_H

// Ends the process by the signal, with the signal's default action. Async-signal-safe.
__attribute__((visibility("hidden"))) _Noreturn void netwatch_end_by_signal(int number);

#endif
