internal import EventLoop
internal import HTTPSession

/// The monitor of the session that transfers, which exists before the coordinator that receives its events.
final class EventRelay: EventMonitor {
    // In a value of its own: a closure that is itself the generic value of the lock is wrapped once more at every access, until the stack
    // does not hold the call through all of its wrappers.
    private struct Receiver: Sendable {
        var receive: (@Sendable (SessionEvent) -> Void)?
    }

    private let receiver = Locked(Receiver())

    func forward(to receive: @escaping @Sendable (SessionEvent) -> Void) { receiver.withLock { $0.receive = receive } }

    func handle(_ event: SessionEvent) { receiver.withLock { $0.receive }?(event) }
}
