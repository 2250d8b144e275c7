import Console
import Reachability
import EventLoop

/// What the monitor's thread hands to the main thread: records in a bounded queue.
final class Inbox: Sendable {
    private struct State {
        var queue: RecordQueue
        var hasEnded = false
    }

    /// Wakes the main thread when there may be something to take.
    let waker: Waker
    private let state: Locked<State>

    /// An inbox that holds `limit` bytes of records before newer ones replace older ones.
    ///
    /// - Throws: ``Failure`` with code 71 where the system gives no descriptor.
    init(limit: Int = 1 << 20) throws(Failure) {
        waker = try MainLoop.makeWaker()
        state = Locked(State(queue: RecordQueue(limit: limit)))
    }

    /// Called on the monitor's thread; never blocks for longer than a record's copy takes.
    func put(_ event: MonitorEvent) {
        state.withLock { state in
            if case .ended = event { state.hasEnded = true } else { state.queue.push(Record(event: event)) }
        }
        waker.wake()
    }

    func take() -> Record? { state.withLock { $0.queue.take() } }

    /// Whether the monitor said its last word and all of it was taken.
    var isFinished: Bool { state.withLock { $0.hasEnded && $0.queue.isEmpty } }
}
