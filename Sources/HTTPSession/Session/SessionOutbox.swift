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
    /// Whoever hands over, the session's thread or a caller whose task never began: one after the other, so that what happened first is
    /// told first.
    private let handover = Locked(())

    private let invalidated = Locked<HTTPSessionManager?>(nil)

    private struct Batch: Sendable {
        var results: [(task: TransferTask, result: Result<TransferResponse, HTTPSessionError>)] = []
        var events: [SessionEvent] = []
    }

    init(name: String, telemetry: Telemetry, monitors: [any EventMonitor], postsNotifications: Bool) {
        queue = DispatchQueue(label: name)
        tellsEverything = !monitors.isEmpty
        self.monitors = [telemetry] + monitors
        self.postsNotifications = postsNotifications
    }

    /// The log, the counters and the notifications know the beginning and the end of tasks only: the rest is made for monitors.
    let tellsEverything: Bool

    func announce(_ event: SessionEvent) {
        batch.withLock { $0.events.append(event) }
    }

    /// An event that only monitors hear of.
    func detail(_ event: @autoclosure () -> SessionEvent) {
        if tellsEverything { announce(event()) }
    }

    /// The task has ended: it, and who waits for it, hear of it with the next ``flush()``.
    func complete(_ task: TransferTask, _ result: Result<TransferResponse, HTTPSessionError>) {
        batch.withLock { batch in
            batch.results.append((task, result))
            batch.events.append(.taskCompleted(task, result))
        }
    }

    /// Hands over what the turn brought.
    func flush() {
        // Released behind the lock: with the last of its tasks a session ends, which takes its thread's last turn.
        let told = handover.withLock { _ in
            let told = batch.withLock { batch in
                defer { batch = Batch() }
                return batch
            }
            handOver(told)
            return told
        }
        withExtendedLifetime(told) {}
    }

    private func handOver(_ batch: Batch) {
        for (task, result) in batch.results {
            let completions = task.complete(result)
            if !completions.isEmpty { queue.async { for completion in completions { completion(result) } } }
        }
        guard !batch.events.isEmpty else { return }
        queue.async { [monitors, postsNotifications, events = batch.events] in
            for event in events {
                for monitor in monitors { monitor.handle(event) }
                if postsNotifications { SessionNotifications.post(event) }
            }
        }
    }

    /// The manager that observers are told of, kept until they are.
    func invalidationComes(to manager: HTTPSessionManager) { invalidated.withLock { $0 = manager } }

    func announceInvalidation() {
        announce(.sessionInvalidated)
        flush()
        let manager = invalidated.withLock { manager in
            defer { manager = nil }
            return manager
        }
        guard let manager, postsNotifications else { return }
        queue.async { SessionNotifications.postInvalidation(of: manager) }
    }
}
