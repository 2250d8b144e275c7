internal import Dispatch
internal import EventLoop
internal import FoundationEssentials

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

    /// The session's thread is in another namespace. What it has for others, and what callers have in its place, then goes one way: what
    /// happened first is told first.
    private let isElsewhere: Bool

    private let invalidation = Locked(Invalidation())

    private struct Invalidation: Sendable {
        /// Tells observers, and keeps what it tells them of until it has.
        var post: (@Sendable () -> Void)?
        /// Called when they have been told.
        var closers: [@Sendable () -> Void] = []
        var isAnnounced = false
    }

    private struct Batch: Sendable {
        var results: [(task: TransferTask, result: Result<TransferResponse, HTTPSessionError>)] = []
        var events: [SessionEvent] = []
        var endings: [(task: TransferTask, ending: TransferTask.Ending)] = []

        var isEmpty: Bool { results.isEmpty && events.isEmpty }
    }

    init(name: String, isElsewhere: Bool, telemetry: Telemetry, monitors: [any EventMonitor], postsNotifications: Bool) {
        queue = DispatchQueue(label: name)
        self.isElsewhere = isElsewhere
        tellsEverything = !monitors.isEmpty
        self.monitors = [telemetry] + monitors
        self.postsNotifications = postsNotifications
    }

    /// Whether there are monitors: what neither the log nor the counters nor the notifications tell of is made for them alone.
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
        for event in told.events {
            for monitor in monitors { monitor.handle(event) }
            event.tellHandlers()
            guard postsNotifications else { continue }
            if case .taskCompleted(let task, _) = event, let callbacks = callbacks[task.id] {
                callbacks.notify(queue) { SessionNotifications.post(event, $0) }
            } else {
                SessionNotifications.post(event)
            }
        }
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

    /// The session's end begins: `post` tells observers when it is over.
    func invalidationComes(_ post: @escaping @Sendable () -> Void) { invalidation.withLock { $0.post = post } }

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
        let parcel = Parcel(invalidation.withLock { $0.post.take() })
        deliver { [self] in
            if let post = parcel.take() ?? nil, postsNotifications { post() }
            var closers: [@Sendable () -> Void] = []
            invalidation.withLock { invalidation in
                invalidation.isAnnounced = true
                swap(&closers, &invalidation.closers)
            }
            for closer in closers { closer() }
        }
    }
}
