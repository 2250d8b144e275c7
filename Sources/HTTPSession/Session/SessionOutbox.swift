internal import Dispatch
internal import EventLoop
internal import Foundation

/// What leaves a session's thread: results to those who wait, events to monitors and observers, on the delivery queue.
final class SessionOutbox: Sendable {
    /// Serial: events and callbacks come one after another.
    let queue: DispatchQueue
    private let monitors: [any EventMonitor]
    private let postsNotifications: Bool
    /// Collected in a turn, and handed over at its end in one piece.
    private let batch = Locked<[SessionEvent]>([])
    private let registry = Locked<[UInt64: TransferTask]>([:])

    init(name: String, monitors: [any EventMonitor], postsNotifications: Bool) {
        queue = DispatchQueue(label: name)
        self.monitors = monitors
        self.postsNotifications = postsNotifications
    }

    var tasks: [TransferTask] { registry.withLock { Array($0.values) } }
    func register(_ task: TransferTask) { registry.withLock { $0[task.id] = task } }

    private var hasListeners: Bool { postsNotifications || !monitors.isEmpty }

    func announce(_ event: @autoclosure () -> SessionEvent) {
        guard hasListeners else { return }
        let event = event()
        batch.withLock { $0.append(event) }
    }

    func complete(_ task: TransferTask, _ result: Result<TransferResponse, HTTPSessionError>) {
        let completions = task.complete(result)
        registry.withLock { $0[task.id] = nil }
        if !completions.isEmpty {
            queue.async { for completion in completions { completion(result) } }
        }
        announce(.taskCompleted(task, result))
    }

    /// Hands over what the turn brought.
    func flush() {
        guard hasListeners else { return }
        let events = batch.withLock { batch in
            defer { batch = [] }
            return batch
        }
        guard !events.isEmpty else { return }
        queue.async { [monitors, postsNotifications] in
            for event in events {
                for monitor in monitors { monitor.handle(event) }
                if postsNotifications { SessionNotifications.post(event) }
            }
        }
    }

    func announceInvalidation() {
        announce(.sessionInvalidated)
        flush()
    }
}
