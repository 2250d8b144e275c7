import CLinux
import Glibc

/// What the program is started with: its standard descriptors and what is done with SIGPIPE.
package enum OpenDescriptors {
    /// Whether whoever started us ignores SIGPIPE; what we start must find it as we did.
    private static let ignoredPipeSignal = netwatch_signal_is_ignored(SIGPIPE) != 0

    /// Ignores SIGPIPE, so that writing fails with EPIPE, and fills closed standard descriptors, so that no socket or file gets
    /// their numbers. They are filled the wrong way round: using them fails still.
    package static func prepare() {
        _ = ignoredPipeSignal
        netwatch_signal_ignore(SIGPIPE)
        for descriptor: Int32 in 0...2 where fcntl(descriptor, F_GETFD) < 0 {
            _ = open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY)
        }
    }

    /// Replaces the program by a command, which is searched for in PATH; returns only on failure, with its errno.
    package static func execute(_ command: [String]) -> Int32 {
        if !ignoredPipeSignal { netwatch_signal_default(SIGPIPE) }
        ProgramStart.restoreIgnoredCrashes()
        let arguments: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
        // Comes back only when it failed.
        defer { for argument in arguments { free(argument) } }
        execvp(command[0], arguments)
        return errno
    }

    package static func exit(_ code: Int32) -> Never { Glibc.exit(code) }
}
