package import EventLoop
import Glibc
import Reachability

/// The wait of a program's main thread for wake-ups by other threads, for signals, for the readers of its output, and for further
/// descriptors.
package struct MainLoop {
    private let waker: Waker
    private let signals: Signals?

    /// Creates a loop. Other threads wake the main thread with `waker`.
    package init(_ waker: Waker, signals: Signals? = nil) {
        self.waker = waker
        self.signals = signals
    }

    /// Creates the waker with which other threads wake the main thread.
    ///
    /// - Throws: ``Failure`` with code 71 if the system has no descriptor left.
    package static func makeWaker() throws(Failure) -> Waker {
        do { return try Waker() } catch { throw Failure(systemCall: error.call, error.errno) }
    }

    /// The result of a wait.
    package struct Turn {
        /// The signal that arrived, if any.
        package let signal: Int32?
        private let polling: Polling

        fileprivate init(_ polling: Polling, signal: Int32?) {
            self.polling = polling
            self.signal = signal
        }

        /// Returns whether a further descriptor has an event. - Parameter place: the result of ``Polling/add(_:_:)``.
        package func isReady(_ place: Int?) -> Bool { polling.isReady(place) }

        /// Writes one chunk if the output is ready. - Returns: The reason why the output accepts no more, else `nil`.
        package func write(_ output: StandardOutput?, at place: Int?) -> StandardOutput.Outcome? {
            guard let output, polling.isReady(place) else { return nil }
            if polling.has(Int32(POLLNVAL), at: place) { return .failed(errno: EBADF) }
            // A terminal hung up, or a pipe has no reader: pending bytes cannot be written.
            if polling.has(Int32(POLLERR | POLLHUP), at: place) { return .readerGone }
            let outcome = output.write()
            return outcome == .wrote ? nil : outcome
        }
    }

    /// Waits once, at most until the deadline (nanoseconds on the monotonic clock; `nil` for no limit). `watch` adds further
    /// descriptors.
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
    /// Adds the descriptor. If nothing is pending, poll(2) still reports that the reader is gone.
    package func watch(_ polling: inout Polling) -> Int { polling.add(descriptor, pendingCount > 0 ? Int32(POLLOUT) : 0) }
}
