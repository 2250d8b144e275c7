internal import EventLoop
internal import HTTPSession

/// Hears a session's events before there is somebody to tell them to.
final class EventRelay: EventMonitor {
    // In a value of its own: a closure that is itself the generic value of the lock is wrapped once more whenever it is looked at, until the
    // stack does not hold the call through all of its wrappers.
    private struct Hearer: Sendable {
        var hear: (@Sendable (SessionEvent) -> Void)?
    }

    private let hearer = Locked(Hearer())

    func tell(_ hear: @escaping @Sendable (SessionEvent) -> Void) { hearer.withLock { $0.hear = hear } }

    func handle(_ event: SessionEvent) { hearer.withLock { $0.hear }?(event) }
}
