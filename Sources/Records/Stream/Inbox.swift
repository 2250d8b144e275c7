package import Console
import Glibc
import Reachability
package import EventLoop

/// The bounded queue of records from the monitor's thread to the main thread.
package final class Inbox: Sendable {
    private struct State {
        var queue: RecordQueue
        var hasEnded = false
    }

    /// The waker that wakes the main thread when a record may be available.
    package let waker: Waker
    private let state: Locked<State>

    /// Creates an inbox. Above `limit` bytes of records, newer records replace older ones.
    ///
    /// - Throws: ``Failure`` with code 71 if the system has no descriptor left.
    package init(limit: Int = 1 << 20) throws(Failure) {
        waker = try MainLoop.makeWaker()
        state = Locked(State(queue: RecordQueue(limit: limit)))
    }

    /// Adds a record, which has no number yet. It blocks at most for the time of copying one record.
    package func put(_ record: Record) {
        let mustWake = state.withLock { state in
            if case .ended = record.event {
                state.hasEnded = true
                return true
            }
            // The reader takes records until none is left, or until its output is full, which wakes it too.
            let isFirst = state.queue.isEmpty
            state.queue.push(record)
            return isFirst
        }
        if mustWake { waker.wake() }
    }

    package func take() -> Record? { state.withLock { $0.queue.take() } }

    /// Whether the monitor has ended and all records were taken.
    package var isFinished: Bool { state.withLock { $0.hasEnded && $0.queue.isEmpty } }
}
