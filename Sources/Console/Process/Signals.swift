import CLinux
internal import CProcess
import Glibc
import Reachability

/// The signals that ask the program to end, and others that it wants to hear of, as a descriptor to poll.
package struct Signals {
    package let descriptor: Int32

    /// Blocks SIGINT, SIGTERM and SIGHUP (unless nohup(1) has it ignored), and `others`, for this thread and those that it starts.
    package init(and others: [Int32] = []) throws(Failure) {
        var set = Self.endings
        for number in others { sigaddset(&set, number) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        descriptor = netwatch_signal_descriptor(&set)
        guard descriptor >= 0 else { throw Failure(ExitCode.system, "signalfd: \(errorText(errno))") }
        // An ignored signal never gets to the descriptor.
        Self.heed()
    }

    /// Has SIGINT and SIGTERM end the program: a shell without job control starts background jobs with SIGINT ignored.
    ///
    /// - Returns: those that were ignored, which what is run in place of the program has to find so.
    @discardableResult
    package static func heed() -> [Int32] {
        let ignored = [SIGINT, SIGTERM].filter { netwatch_signal_is_ignored($0) != 0 }
        for number in ignored { netwatch_signal_default(number) }
        return ignored
    }

    /// Ignores these, as before ``heed()``.
    package static func ignore(_ numbers: [Int32]) {
        for number in numbers { netwatch_signal_ignore(number) }
    }

    /// The next signal that came.
    package func next() -> Int32? {
        let number = netwatch_read_signal(descriptor)
        return number > 0 ? number : nil
    }

    /// From now on the signals end the program at once, also while its main thread is busy, and kill the group of
    /// ``killAtEnd(processGroup:)``.
    package func release() {
        var set = Self.endings
        for number in [SIGINT, SIGTERM, SIGHUP] where sigismember(&set, number) == 1 { netwatch_end_at_signal(number) }
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
    }

    /// Sets the process group that a signal kills when it ends the program after ``release()``; `nil`: none.
    package static func killAtEnd(processGroup: Int32?) { netwatch_kill_at_end(processGroup ?? 0) }

    /// Whether the signal asks the program to end.
    package static func isEnding(_ number: Int32) -> Bool { [SIGINT, SIGTERM, SIGHUP].contains(number) }

    private static var endings: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGINT)
        sigaddset(&set, SIGTERM)
        if netwatch_signal_is_ignored(SIGHUP) == 0 { sigaddset(&set, SIGHUP) }
        return set
    }

    /// Ends the program as by this signal, so that a shell sees 128 + its number.
    package static func end(by number: Int32) -> Never {
        netwatch_signal_default(number)
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, number)
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
        raise(number)
        _exit(128 + number)
    }
}
