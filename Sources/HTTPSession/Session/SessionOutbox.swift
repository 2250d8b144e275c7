internal import Dispatch
internal import EventLoop
internal import Foundation

/// What leaves a session's thread: results to those who wait, events to monitors and observers, on the delivery queue.
final class SessionOutbox: Sendable {
    /// Serial: events and callbacks come one after another.
    let queue: DispatchQueue
    private let monitors: [any EventMonitor]
    private let postsNotifications: Bool
    /// Collected in a turn, and handed over at its end in one piece: waking whoever waits costs more than most of a small request, and
    /// one that is awake takes the next without.
    private let batch = Locked(Batch())

    private struct Batch: Sendable {
        var results: [(task: TransferTask, result: Result<TransferResponse, HTTPSessionError>)] = []
        var events: [SessionEvent] = []
    }
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
        batch.withLock { $0.events.append(event) }
    }

    /// The task has ended: it, and who waits for it, hear of it with the next ``flush()``.
    func complete(_ task: TransferTask, _ result: Result<TransferResponse, HTTPSessionError>) {
        batch.withLock { batch in
            batch.results.append((task, result))
            if hasListeners { batch.events.append(.taskCompleted(task, result)) }
        }
    }

    /// Hands over what the turn brought.
    func flush() {
        let (results, events) = batch.withLock { batch in
            defer { batch = Batch() }
            return (batch.results, batch.events)
        }
        if !results.isEmpty {
            registry.withLock { registry in for (task, _) in results { registry[task.id] = nil } }
            for (task, result) in results {
                let completions = task.complete(result)
                if !completions.isEmpty { queue.async { for completion in completions { completion(result) } } }
            }
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
