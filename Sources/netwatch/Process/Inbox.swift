import Console
import Glibc
import Reachability
import EventLoop

/// The bounded queue of records from the monitor's thread to the main thread.
final class Inbox: Sendable {
    private struct State {
        var queue: RecordQueue
        var hasEnded = false
        /// The number of records that were taken since the last rest.
        var taken = 0
        /// Whether the reader looks for records without being woken.
        var isResting = false
    }

    /// The number of records from which the reader rests before it waits.
    private static let busyCount = 32

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
            let isFirst = state.queue.isEmpty && !state.isResting
            state.queue.push(Record(event: event))
            return isFirst
        }
        if mustWake { waker.wake() }
    }

    func take() -> Record? {
        state.withLock { state in
            let record = state.queue.take()
            if record != nil { state.taken += 1 }
            return record
        }
    }

    /// Sleeps for a millisecond if the reader has taken many records since the last call. To be woken for each of 100,000 results
    /// costs more than to handle them. Called when no record is left.
    ///
    /// - Returns: whether there may be new records.
    func rest() -> Bool {
        let isBusy = state.withLock { state in
            state.isResting = state.taken >= Self.busyCount
            state.taken = 0
            return state.isResting
        }
        guard isBusy else { return false }
        usleep(1_000)
        state.withLock { $0.isResting = false }
        return true
    }

    /// Whether the monitor has ended and all records were taken.
    var isFinished: Bool { state.withLock { $0.hasEnded && $0.queue.isEmpty } }
}
