internal import Dispatch
internal import EventLoop
internal import FoundationEssentials
internal import Synchronization

/// What leaves a session's thread: results to those who wait, events to monitors and observers, on the delivery queue.
final class SessionOutbox: Sendable {
    /// Serial: events and callbacks come one after another.
    let queue: DispatchQueue
    private let monitors: [any EventMonitor]
    /// The monitors that also receive results of callbacks and the session's end.
    private let observers: [any SessionObserver]
    private let subscriptions = Locked(Subscriptions())
    /// How many ``SessionEvents`` receive events.
    private let subscriptionCount = Atomic(0)
    /// Collected in a turn, and handed over at its end in one piece: waking whoever waits costs more than most of a small request, and
    /// one that is awake takes the next without.
    private let batch = Locked(Batch())
    /// Whoever hands over, the session's thread or a caller whose task never began: one after the other, so that what happened first is
    /// told first.
    private let handover = Locked(())

    /// The session's thread is in another namespace. What it has for others, and what callers have in its place, then goes one way: what
    /// happened first is told first.
    private let isElsewhere: Bool

    private let invalidation = Locked(Invalidation())

    private struct Invalidation: Sendable {
        /// The session that observers receive, kept until then.
        var session: HTTPSessionManager?
        /// Called when they have been told.
        var closers: [@Sendable () -> Void] = []
        var isAnnounced = false
    }

    private struct Subscriptions: Sendable {
        var buffers: [EventBuffer] = []
        var haveEnded = false
    }

    private struct Batch: Sendable {
        var results: [(task: TransferTask, result: Result<TransferResponse, HTTPSessionError>)] = []
        var events: [SessionEvent] = []
        var endings: [(task: TransferTask, ending: TransferTask.Ending)] = []

        var isEmpty: Bool { results.isEmpty && events.isEmpty }
    }

    init(name: String, isElsewhere: Bool, telemetry: Telemetry, monitors: [any EventMonitor]) {
        queue = DispatchQueue(label: name)
        self.isElsewhere = isElsewhere
        hasMonitors = !monitors.isEmpty
        self.monitors = [telemetry] + monitors
        observers = monitors.compactMap { $0 as? any SessionObserver }
    }

    private let hasMonitors: Bool

    /// Whether somebody receives the events that neither the log nor the counters need.
    var reportsDetails: Bool { hasMonitors || subscriptionCount.load(ordering: .relaxed) > 0 }

    // MARK: Events as a sequence

    func subscribe() -> EventBuffer {
        let buffer = EventBuffer()
        let haveEnded = subscriptions.withLock { subscriptions in
            if !subscriptions.haveEnded { subscriptions.buffers.append(buffer) }
            return subscriptions.haveEnded
        }
        if haveEnded { buffer.finish() } else { subscriptionCount.add(1, ordering: .relaxed) }
        return buffer
    }

    func unsubscribe(_ buffer: EventBuffer) {
        let wasSubscribed = subscriptions.withLock { subscriptions in
            guard let index = subscriptions.buffers.firstIndex(where: { $0 === buffer }) else { return false }
            subscriptions.buffers.remove(at: index)
            return true
        }
        if wasSubscribed { subscriptionCount.subtract(1, ordering: .relaxed) }
    }

    private func endSubscriptions() {
        var buffers: [EventBuffer] = []
        subscriptions.withLock { subscriptions in
            subscriptions.haveEnded = true
            swap(&buffers, &subscriptions.buffers)
        }
        for buffer in buffers { buffer.finish() }
    }

    func announce(_ event: SessionEvent) {
        batch.withLock { $0.events.append(event) }
    }

    /// An event that only monitors hear of.
    func detail(_ event: @autoclosure () -> SessionEvent) {
        if reportsDetails { announce(event()) }
    }

    /// The task has ended: it, and who waits for it, hear of it with the next ``flush()``.
    func complete(_ task: TransferTask, _ result: Result<TransferResponse, HTTPSessionError>) {
        batch.withLock { batch in
            batch.results.append((task, result))
            batch.events.append(.taskCompleted(task, result))
        }
    }

    func flush() {
        var nothing: [any Sendable] = []
        flush(lettingGo: &nothing)
    }

    /// Hands over what the turn brought, and what it has done with. All of it is let go of on the delivery queue: the user's objects that
    /// end with it may ask the session, which a lock or the session's own thread would wait for in vain.
    func flush(lettingGo spent: inout [any Sendable]) {
        let awaiters = handover.withLock { _ -> [TransferTask.Awaiters] in
            var told = Batch()
            batch.withLock { swap(&told, &$0) }
            guard !told.isEmpty || !spent.isEmpty else { return [] }
            var awaiters: [TransferTask.Awaiters] = []
            for (task, result) in told.results {
                guard let (ending, waiting) = task.complete(result) else { continue }
                told.endings.append((task, ending))
                if !waiting.isEmpty { awaiters.append(waiting) }
            }
            let news = Parcel((told, spent))
            told = Batch()
            spent = []
            deliver { [self] in
                if let (told, _) = news.take() { tell(told) }
            }
            return awaiters
        }
        if !awaiters.isEmpty { wake { for waiting in awaiters { waiting.resume() } } }
    }

    private func tell(_ told: Batch) {
        var callbacks: [UInt64: EndCallbacks] = [:]
        for (task, ending) in told.endings { callbacks[task.id] = ending.tell(task) }
        let buffers = subscriptionCount.load(ordering: .relaxed) > 0 ? subscriptions.withLock { $0.buffers } : []
        for event in told.events {
            for monitor in monitors { monitor.handle(event) }
            for buffer in buffers { buffer.append(event) }
            event.notifyHandlers()
            guard !observers.isEmpty, case .taskCompleted(let task, let result) = event else { continue }
            report(task, result, callbacks[task.id])
        }
    }

    /// Reports the end of a task to the observers, after its callbacks have run.
    private func report(
        _ task: TransferTask, _ result: Result<TransferResponse, HTTPSessionError>, _ callbacks: EndCallbacks?
    ) {
        let report = { @Sendable [observers] (serializations: [TransferTask.Serialization]) in
            for observer in observers { observer.taskDidComplete(task, result, serializations) }
        }
        if let callbacks { callbacks.notify(queue, report) } else { report([]) }
    }

    /// Runs `body` on the delivery queue, and lets go of it there.
    func deliver(_ body: @escaping @Sendable () -> Void) {
        guard isElsewhere else { return queue.async(execute: body) }
        let parcel = Parcel(body)
        HomeThread.relay { [queue] in
            queue.async { parcel.take()?() }
        }
    }

    /// Runs `body`, which wakes those who wait for a task.
    func wake(_ body: @escaping @Sendable () -> Void) {
        if isElsewhere { HomeThread.relay(body) } else { body() }
    }

    /// The session's end begins: observers receive the session when it has ended.
    func invalidationBegins(_ session: HTTPSessionManager) { invalidation.withLock { $0.session = session } }

    /// Calls `body` when the session has ended and all have heard of it, on the delivery queue; at once if that was before.
    func onInvalidation(_ body: @escaping @Sendable () -> Void) {
        let isOver = invalidation.withLock { invalidation in
            if !invalidation.isAnnounced { invalidation.closers.append(body) }
            return invalidation.isAnnounced
        }
        if isOver { body() }
    }

    func announceInvalidation() {
        announce(.sessionInvalidated)
        flush()
        let parcel = Parcel(invalidation.withLock { $0.session.take() })
        deliver { [self] in
            let session = parcel.take() ?? nil
            if let session { for observer in observers { observer.sessionDidInvalidate(session) } }
            endSubscriptions()
            var closers: [@Sendable () -> Void] = []
            invalidation.withLock { invalidation in
                invalidation.isAnnounced = true
                swap(&closers, &invalidation.closers)
            }
            for closer in closers { closer() }
        }
    }
}
