import CLinux
import Console
import Glibc
import Reachability
import EventLoop

/// What the monitor's thread hands to the main thread: records in a bounded queue, and an eventfd that wakes poll(2).
final class Inbox: Sendable {
    private struct State {
        var queue: RecordQueue
        var hasEnded = false
    }

    /// Readable while there may be something to take.
    let descriptor: Int32
    private let state: Locked<State>

    /// An inbox that holds `limit` bytes of records before newer ones replace older ones.
    ///
    /// - Throws: ``Failure`` with code 71 where the system gives no descriptor.
    init(limit: Int = 1 << 20) throws(Failure) {
        descriptor = eventfd(0, netwatch_EFD_FLAGS)
        guard descriptor >= 0 else { throw Failure(ExitCode.system, "eventfd: \(errorText(errno))") }
        state = Locked(State(queue: RecordQueue(limit: limit)))
    }

    deinit { close(descriptor) }

    /// Called on the monitor's thread; never blocks for longer than a record's copy takes.
    func put(_ event: MonitorEvent) {
        state.withLock { state in
            if case .ended = event { state.hasEnded = true } else { state.queue.push(Record(event: event)) }
        }
        eventfd_write(descriptor, 1)
    }

    func take() -> Record? { state.withLock { $0.queue.take() } }

    /// Whether the monitor said its last word and all of it was taken.
    var isFinished: Bool { state.withLock { $0.hasEnded && $0.queue.isEmpty } }

    /// Makes `descriptor` unreadable until the next `put`.
    func clearWakeUp() {
        var count: eventfd_t = 0
        eventfd_read(descriptor, &count)
    }
}
