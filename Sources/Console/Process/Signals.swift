import CLinux
internal import CProcess
import Glibc
import Reachability

/// A pollable descriptor for the signals that ask the program to end, and for further signals.
package struct Signals {
    package let descriptor: Int32

    /// The signals that a thread has blocked.
    package struct Mask {
        let set: sigset_t

        /// Reads those of the calling thread.
        package static var current: Mask {
            var set = sigset_t()
            sigemptyset(&set)
            pthread_sigmask(SIG_BLOCK, nil, &set)
            return Mask(set: set)
        }

        /// Blocks these signals, and no others, for the calling thread.
        package func restore() {
            var set = set
            pthread_sigmask(SIG_SETMASK, &set, nil)
        }
    }

    /// Blocks SIGINT, SIGTERM, SIGHUP (unless it is ignored, as by nohup(1)) and `others` for this thread and the threads that it
    /// starts.
    package init(and others: [Int32] = []) throws(Failure) {
        var set = Self.endings
        for number in others { sigaddset(&set, number) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        descriptor = netwatch_signal_descriptor(&set)
        guard descriptor >= 0 else { throw Failure(ExitCode.system, "signalfd: \(errorText(errno))") }
        // Ignored signals are never queued for the descriptor.
        Self.resetIgnored()
    }

    /// Blocks a signal for this thread and the programs that replace this one, so that it waits for ``init(and:)``.
    package static func block(_ number: Int32) {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, number)
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Restores the default action of SIGINT and SIGTERM: a shell without job control starts background jobs with SIGINT ignored.
    ///
    /// - Returns: The signals that were ignored. A program that replaces this one must inherit them as ignored.
    @discardableResult
    package static func resetIgnored() -> [Int32] {
        let ignored = [SIGINT, SIGTERM].filter { netwatch_signal_is_ignored($0) != 0 }
        for number in ignored { netwatch_signal_default(number) }
        return ignored
    }

    /// Ignores the signals again, as before ``resetIgnored()``.
    package static func ignore(_ numbers: [Int32]) {
        for number in numbers { netwatch_signal_ignore(number) }
    }

    /// Returns the next signal that arrived.
    package func next() -> Int32? {
        let number = netwatch_read_signal(descriptor)
        return number > 0 ? number : nil
    }

    /// Returns the next signal that arrived, and whether a process has sent it: the terminal sends its signals to all processes of
    /// its foreground group itself.
    package func nextWithSender() -> (number: Int32, isOfProcess: Bool)? {
        var isOfKernel: Int32 = 0
        let number = netwatch_next_signal(descriptor, &isOfKernel)
        return number > 0 ? (number, isOfKernel == 0) : nil
    }

    /// Unblocks the ending signals after the first one, `number`. From now on they end the program at once, even if its main thread is busy, and kill
    /// the process group of ``killAtEnd(processGroup:)``. The same signal counts once within 500 ms: timeout(1) sends it twice.
    package func unblock(after number: Int32) {
        install(after: number)
        var set = Self.endings
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
    }

    /// Lets the ending signals end the program from this time on, even if its main thread is busy. Until then they wait for
    /// ``unblock(after:)``. Call it once.
    package func unblock(after number: Int32, milliseconds: Int32) {
        install(after: number)
        // Without another thread, a signal must end the program now.
        if netwatch_receive_signals_after(milliseconds) != 0 { unblock(after: number) }
    }

    private func install(after number: Int32) {
        netwatch_first_signal(number)
        var set = Self.endings
        for number in [SIGINT, SIGTERM, SIGHUP] where sigismember(&set, number) == 1 { netwatch_end_at_signal(number) }
    }

    /// Sets the process group that is killed when a signal ends the program after ``unblock(after:)``; `nil` for none.
    package static func killAtEnd(processGroup: Int32?) { netwatch_kill_at_end(processGroup ?? 0) }

    /// Returns whether the signal asks the program to end.
    package static func isEnding(_ number: Int32) -> Bool { [SIGINT, SIGTERM, SIGHUP].contains(number) }

    private static var endings: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGINT)
        sigaddset(&set, SIGTERM)
        if netwatch_signal_is_ignored(SIGHUP) == 0 { sigaddset(&set, SIGHUP) }
        return set
    }

    /// Ends the program by this signal, so that a shell reports 128 + its number.
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
