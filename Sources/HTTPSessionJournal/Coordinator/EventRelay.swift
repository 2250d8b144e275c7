internal import EventLoop
internal import HTTPSession

/// The monitor of the session that transfers, which exists before the coordinator that receives its events.
final class EventRelay: EventMonitor {
    // A value of its own holds the closure. A closure that is itself the generic value of the lock is wrapped once more at every access.
    // In the end, the stack does not hold the call through all wrappers.
    private struct Receiver: Sendable {
        var receive: (@Sendable (SessionEvent) -> Void)?
    }

    private let receiver = Locked(Receiver())

    func forward(to receive: @escaping @Sendable (SessionEvent) -> Void) { receiver.withLock { $0.receive = receive } }

    func handle(_ event: SessionEvent) { receiver.withLock { $0.receive }?(event) }
}
