import CLinux
internal import CProcess
import Glibc

/// The program's standard descriptors and its disposition of SIGPIPE.
package enum OpenDescriptors {
    /// Whether SIGPIPE was ignored at the start. Programs that replace this one must inherit the same disposition.
    private static let ignoredPipeSignal = netwatch_signal_is_ignored(SIGPIPE) != 0

    /// Ignores SIGPIPE, so that writing fails with EPIPE. Opens closed standard descriptors, so that no socket or file gets
    /// their numbers. They are opened for the opposite direction, so using them still fails.
    package static func prepare() {
        _ = ignoredPipeSignal
        netwatch_signal_ignore(SIGPIPE)
        for descriptor: Int32 in 0...2 where fcntl(descriptor, F_GETFD) < 0 {
            _ = open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY)
        }
    }

    /// Replaces the program by a command, which is searched in PATH. Returns only on failure, with the errno.
    package static func execute(_ command: [String]) -> Int32 {
        if !ignoredPipeSignal { netwatch_signal_default(SIGPIPE) }
        ProgramStart.restoreIgnoredCrashes()
        let arguments: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
        // execvp(3) returns only if it failed.
        defer { for argument in arguments { free(argument) } }
        execvp(command[0], arguments)
        return errno
    }

    /// Starts a command beside this program; it is searched in PATH. It inherits the descriptors that programs inherit, and ignores the signals
    /// that this program ignores now, but for SIGPIPE.
    ///
    /// `output` and `errors` become its standard output and error; `nil` stands for those of this program. It blocks the signals in `blocked`, which are
    /// those that were blocked when this program was started.
    /// - Returns: The number of the process, or the errno.
    package static func start(
        _ command: [String], output: Int32?, errors: Int32?, blocking blocked: Signals.Mask
    ) -> (process: Int32, errno: Int32) {
        var (process, blocked): (Int32, sigset_t) = (0, blocked.set)
        let arguments: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        let failure = netwatch_spawn_command(
            &process, arguments, output ?? -1, errors ?? -1, &blocked, ignoredPipeSignal ? 1 : 0)
        return (process, failure)
    }

    package static func exit(_ code: Int32) -> Never { Glibc.exit(code) }
}
