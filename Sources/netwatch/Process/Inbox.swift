import Console
import Glibc
import Reachability
import EventLoop

/// The bounded queue of records from the monitor's thread to the main thread.
final class Inbox: Sendable {
    private struct State {
        var queue: RecordQueue
        var hasEnded = false
    }

    /// The waker that wakes the main thread when a record may be available.
    let waker: Waker
    private let state: Locked<State>

    /// Creates an inbox. Above `limit` bytes of records, newer records replace older ones.
    ///
    /// - Throws: ``Failure`` with code 71 if the system has no descriptor left.
    init(limit: Int = 1 << 20) throws(Failure) {
        waker = try MainLoop.makeWaker()
        state = Locked(State(queue: RecordQueue(limit: limit)))
    }

    /// Adds an event. Called on the monitor's thread; it blocks at most for the time of copying one record.
    func put(_ event: MonitorEvent) {
        let mustWake = state.withLock { state in
            if case .ended = event {
                state.hasEnded = true
                return true
            }
            // The reader takes records until none is left, or until its output is full, which wakes it too.
            let isFirst = state.queue.isEmpty
            state.queue.push(Record(event: event))
            return isFirst
        }
        if mustWake { waker.wake() }
    }

    func take() -> Record? { state.withLock { $0.queue.take() } }

    /// Whether the monitor has ended and all records were taken.
    var isFinished: Bool { state.withLock { $0.hasEnded && $0.queue.isEmpty } }
}
