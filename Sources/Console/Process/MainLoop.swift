package import EventLoop
import Glibc
import Reachability

/// The wait of a program's main thread: for what other threads hand to it, for signals, for the readers of what it writes, and for what
/// else it watches.
package struct MainLoop {
    private let waker: Waker
    private let signals: Signals?

    /// `waker`: what other threads wake the main thread with.
    package init(_ waker: Waker, signals: Signals? = nil) {
        self.waker = waker
        self.signals = signals
    }

    /// Wakes the main thread.
    ///
    /// - Throws: ``Failure`` with code 71 where the system gives no descriptor.
    package static func makeWaker() throws(Failure) -> Waker {
        do { return try Waker() } catch { throw Failure(ExitCode.system, "\(error.call): \(errorText(error.errno))") }
    }

    /// What has ended a wait.
    package struct Turn {
        /// The signal that has come.
        package let signal: Int32?
        private let polling: Polling

        fileprivate init(_ polling: Polling, signal: Int32?) {
            self.polling = polling
            self.signal = signal
        }

        /// Writes as much as fits, if something does. - Returns: why the output takes no more.
        package func write(_ output: StandardOutput?, at place: Int?) -> StandardOutput.Outcome? {
            guard let output, polling.isReady(place) else { return nil }
            if polling.has(Int32(POLLNVAL), at: place) { return .failed(errno: EBADF) }
            // A terminal that hangs up, or a pipe without a reader. What is pending has nowhere to go.
            if polling.has(Int32(POLLERR | POLLHUP), at: place) { return .readerGone }
            let outcome = output.write()
            return outcome == .wrote ? nil : outcome
        }
    }

    /// Waits once, at most until the deadline (nanoseconds on the monotonic clock; `nil`: for ever). `watch` adds what else ends the wait.
    package func wait(until deadline: Int64?, _ watch: (inout Polling) -> Void = { _ in }) -> Turn {
        var polling = Polling()
        _ = polling.add(waker.descriptor, Int32(POLLIN))
        let signal = signals.map { polling.add($0.descriptor, Int32(POLLIN)) }
        watch(&polling)
        polling.wait(until: deadline)
        waker.acknowledge()
        return Turn(polling, signal: polling.isReady(signal) ? signals?.next() : nil)
    }
}

extension StandardOutput {
    /// Adds its descriptor: without anything to write, poll(2) still tells that the reader is gone.
    package func watch(_ polling: inout Polling) -> Int { polling.add(descriptor, pendingCount > 0 ? Int32(POLLOUT) : 0) }
}
