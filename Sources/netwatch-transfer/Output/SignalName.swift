/// The names of signals (signal(7)), for people.
enum SignalName {
    /// The names of the numbers that Linux has on x86 and ARM, from 1 on.
    private static let names = [
        "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1", "SIGSEGV",
        "SIGUSR2",
        "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG",
        "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO", "SIGPWR", "SIGSYS",
    ]

    /// Returns the name; for a real-time signal its number.
    static func text(_ number: Int32) -> String {
        (1...Int32(names.count)).contains(number) ? names[Int(number) - 1] : "SIG\(number)"
    }
}
