// The end of the process by a signal, for the handlers of this target.
#ifndef NETWATCH_CPROCESS_END_H
#define NETWATCH_CPROCESS_END_H

// Ends the process by the signal as if nothing handled it. Async-signal-safe.
__attribute__((visibility("hidden"))) _Noreturn void netwatch_end_by_signal(int number);

#endif
