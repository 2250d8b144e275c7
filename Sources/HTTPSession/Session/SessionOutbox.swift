internal import Dispatch
internal import EventLoop
internal import FoundationEssentials
internal import Pacing
internal import Synchronization

/// The output of a session's thread: it resumes the Swift tasks that await results, and delivers events to monitors and observers on the delivery
/// queue.
final class SessionOutbox: Sendable {
    /// The delivery queue. It is serial: events and callbacks run one after another.
    let queue: DispatchQueue
    private let telemetry: Telemetry
    /// Whether the session was made with monitors.
    private let hasMonitors: Bool
    private let monitors: Locked<Monitors>
    private let subscriptions = Locked(Subscriptions())
    /// The number of ``SessionEvents`` that receive events.
    private let subscriptionCount = Atomic(0)
    /// The results and events of a turn, handed over together at its end. To wake a thread costs more than most of a small request. A thread
    /// that is awake takes the next result without a wakeup.
    private let batch = Locked(Batch())
    /// The items that wait for later ones. The lock serializes handovers by the session's thread and by callers whose tasks never began, so that
    /// events keep their order.
    private let handover: Locked<Collected>

    /// Whether the session's thread is in another network namespace. Then every delivery passes through ``HomeThread``, those of callers too, so
    /// that events keep their order.
    private let isInOtherNamespace: Bool

    private let invalidation = Locked(Invalidation())

    private struct Invalidation: Sendable {
        /// The session that observers receive when it has ended.
        var session: (any AnyObject & Sendable)?
        /// Called after the observers.
        var closers: [@Sendable () -> Void] = []
        var isAnnounced = false
    }

    /// The monitors, until the session has ended.
    private struct Monitors: Sendable {
        var all: [any EventMonitor] = []
        /// The monitors that also receive results of callbacks and the session's end.
        var observers: [any SessionObserver] = []
    }

    private struct Subscriptions: Sendable {
        var buffers: [EventBuffer] = []
        var haveEnded = false
    }

    private struct Batch: Sendable {
        var results: [(task: TransferTask, result: Result<TransferResponse, HTTPSessionError>)] = []
        var events: [SessionEvent] = []
        var endings: [(task: TransferTask, ending: TransferTask.Ending)] = []
        /// The Swift tasks that have awaited the head of a stream's response.
        var awaiters: [TransferTask.Awaiters] = []
        /// The tasks whose handlers are released when the events are delivered.
        var handled: [TransferTask] = []

        var isEmpty: Bool { results.isEmpty && events.isEmpty }
        /// The tasks and responses, if all events are of successful tasks; `nil` otherwise. Their log lines and counters may wait.
        var successes: [(task: TransferTask, response: TransferResponse)]? {
            var successes: [(task: TransferTask, response: TransferResponse)] = []
            successes.reserveCapacity(events.count)
            for event in events {
                guard case .taskCompleted(let task, .success(let response)) = event else { return nil }
                successes.append((task, response))
            }
            return successes
        }
    }

    /// The deferred items: log lines and counters of successful tasks, and objects to be released.
    private struct Collected: Sendable {
        /// The successful tasks for the log and the counters; their events had no other receiver when they occurred.
        var successes: [Telemetry.Success] = []
        var objects: [any Sendable] = []
        /// The tasks whose handlers are to be released.
        var handled: [TransferTask] = []
        var delay: HandoverDelay
    }

    /// - Parameters:
    ///   - name: The name of the delivery queue.
    ///   - isInOtherNamespace: Whether the session's thread is in another network namespace.
    ///   - telemetry: The log and the counters.
    ///   - eventMonitors: The receivers of all events.
    ///   - delay: How long deferred items are collected, in nanoseconds.
    init(name: String, isInOtherNamespace: Bool, telemetry: Telemetry, eventMonitors: [any EventMonitor], delay: Int64) {
        queue = DispatchQueue(label: name)
        self.isInOtherNamespace = isInOtherNamespace
        self.telemetry = telemetry
        hasMonitors = !eventMonitors.isEmpty
        self.monitors = Locked(Monitors(all: eventMonitors, observers: eventMonitors.compactMap { $0 as? any SessionObserver }))
        handover = Locked(Collected(delay: HandoverDelay(duration: delay)))
    }

    /// Whether a monitor or a subscription receives the events that neither the log nor the counters need.
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

    /// Announces an event that only monitors and subscriptions receive.
    func detail(_ event: @autoclosure () -> SessionEvent) {
        if reportsDetails { announce(event()) }
    }

    /// Announces a report of a task's machine as an event.
    func announce(_ report: TaskMachine.Report, of task: TransferTask) {
        switch report {
        case .redirected(let head): announce(.redirected(task, head))
        case .challenged(let challenge): announce(.challenged(task, challenge))
        case .serverTrustChallenged(let challenge): announce(.serverTrustChallenged(task, challenge))
        case .clientCertificateChallenged(let challenge): announce(.clientCertificateChallenged(task, challenge))
        case .becameDownload(let destination):
            task.become(.download)
            announce(.becameDownload(task, destination))
        case .willRetry(let error): announce(.willRetry(task, error))
        case .waitingForConnectivity(let reason): announce(.waitingForConnectivity(task, reason))
        case .downloadContinued(let offset, let total): announce(.downloadContinued(task, offset: offset, total: total))
        case .uploadContinued(let offset, let total): announce(.uploadContinued(task, offset: offset, total: total))
        case .fileMoved(let destination): detail(.fileMoved(task, destination))
        case .fileMoveFailed(let error): announce(.fileMoveFailed(task, error))
        }
    }

    /// Completes a task: its result is set, and its awaiters are resumed, by the next ``flush()``.
    func complete(_ task: TransferTask, _ result: Result<TransferResponse, HTTPSessionError>) {
        batch.withLock { batch in
            batch.results.append((task, result))
            batch.events.append(.taskCompleted(task, result))
            if task.hasHandlers { batch.handled.append(task) }
        }
    }

    /// Resumes Swift tasks by the next ``flush()``, outside of libcurl.
    func resume(_ awaiters: TransferTask.Awaiters) {
        if !awaiters.isEmpty { batch.withLock { $0.awaiters.append(awaiters) } }
    }

    func flush() {
        var objects: [any Sendable] = []
        flush(releasing: &objects, now: nil)
    }

    /// Hands over the results and events of a turn, and the objects that it no longer needs. Objects of the user are released on the delivery queue:
    /// their deinitializers may call the session, which would deadlock under a lock or on the session's thread. Successful tasks without such
    /// objects (``TransferTask/mayHaveUserObjects``) may be released here.
    ///
    /// Results are set, and awaiters resumed, at once. Callbacks, monitors, subscriptions, errors and every event but that of a success are handed
    /// over at once too. The other items may wait for later ones (``HandoverDelay``).
    ///
    /// - Parameters:
    ///   - objects: The objects to release; empty afterwards.
    ///   - now: The time of the turn; `nil` to hand over everything at once.
    /// - Returns: The time at which the items that wait are due; `nil` if none wait.
    @discardableResult
    func flush(releasing objects: inout [any Sendable], now: Int64?) -> Int64? {
        let (awaiters, deadline) = handover.withLock { collected -> ([TransferTask.Awaiters], Int64?) in
            var current = Batch()
            batch.withLock { swap(&current, &$0) }
            var awaiters = current.awaiters
            for (task, result) in current.results {
                guard let (ending, waiting) = task.complete(result) else { continue }
                if ending.hasCallbacks { current.endings.append((task, ending)) }
                if !waiting.isEmpty { awaiters.append(waiting) }
            }
            let buffers = receivers
            if let now, !hasMonitors, buffers.isEmpty, current.endings.isEmpty, let successes = current.successes {
                collected.delay.add(successes.count + objects.count, now: now)
                for (task, response) in successes { collected.successes.append(telemetry.success(of: task, response)) }
                collected.objects += objects
                collected.handled += current.handled
                current = Batch()
                objects = []
                guard collected.delay.isDue(now: now) else { return (awaiters, collected.delay.deadline) }
            }
            guard !current.isEmpty || !objects.isEmpty || collected.delay.deadline != nil else { return (awaiters, nil) }
            let box = SendingBox((collected.successes, current, objects + collected.objects, collected.handled))
            (collected.successes, collected.objects, collected.handled) = ([], [], [])
            collected.delay.end()
            current = Batch()
            objects = []
            deliver { [self] in
                guard let (earlier, batch, _, handled) = box.take() else { return }
                telemetry.record(earlier)
                publish(batch, to: buffers)
                for task in handled + batch.handled { task.releaseHandlers() }
            }
            return (awaiters, nil)
        }
        if !awaiters.isEmpty { wake { for waiting in awaiters { waiting.resume() } } }
        return deadline
    }

    /// The sequences that receive the events that occur now.
    private var receivers: [EventBuffer] {
        subscriptionCount.load(ordering: .relaxed) > 0 ? subscriptions.withLock { $0.buffers } : []
    }

    private func publish(_ batch: Batch, to buffers: [EventBuffer]) {
        let monitors = hasMonitors ? self.monitors.withLock { $0 } : Monitors()
        var callbacks: [UInt64: EndCallbacks] = [:]
        for (task, ending) in batch.endings { callbacks[task.id] = ending.notify(task) }
        for event in batch.events {
            telemetry.handle(event)
            for monitor in monitors.all { monitor.handle(event) }
            for buffer in buffers { buffer.append(event) }
            event.notifyHandlers()
            guard !monitors.observers.isEmpty, case .taskCompleted(let task, let result) = event else { continue }
            report(task, result, callbacks[task.id], to: monitors.observers)
        }
    }

    /// Reports the end of a task to the observers, after its callbacks have run.
    private func report(
        _ task: TransferTask, _ result: Result<TransferResponse, HTTPSessionError>, _ callbacks: EndCallbacks?,
        to observers: [any SessionObserver]
    ) {
        let report = { @Sendable (serializations: [TransferTask.Serialization]) in
            for observer in observers { observer.taskDidComplete(task, result, serializations) }
        }
        if let callbacks { callbacks.notify(queue, report) } else { report([]) }
    }

    /// Runs `body` on the delivery queue, and releases it there.
    func deliver(_ body: @escaping @Sendable () -> Void) {
        guard isInOtherNamespace else { return queue.async(execute: body) }
        let box = SendingBox(body)
        HomeThread.relay { [queue] in
            queue.async { box.take()?() }
        }
    }

    /// Runs `body`, which resumes the Swift tasks that await a task.
    func wake(_ body: @escaping @Sendable () -> Void) {
        if isInOtherNamespace { HomeThread.relay(body) } else { body() }
    }

    /// Begins the invalidation: observers receive `session` when it has ended.
    func beginInvalidation(_ session: any AnyObject & Sendable) { invalidation.withLock { $0.session = session } }

    /// Calls `body` on the delivery queue when the session has ended and all receivers are notified; at once if that has happened before.
    func onInvalidation(_ body: @escaping @Sendable () -> Void) {
        let hasEnded = invalidation.withLock { invalidation in
            if !invalidation.isAnnounced { invalidation.closers.append(body) }
            return invalidation.isAnnounced
        }
        if hasEnded { body() }
    }

    /// Notifies the observers of the session's end, and releases all monitors.
    private func endMonitors(_ session: (any AnyObject & Sendable)?) {
        var former = Monitors()
        monitors.withLock { swap(&former, &$0) }
        if let session { for observer in former.observers { observer.sessionDidInvalidate(session) } }
    }

    func announceInvalidation() {
        announce(.sessionInvalidated)
        flush()
        let box = SendingBox(invalidation.withLock { $0.session.take() })
        deliver { [self] in
            let session = box.take() ?? nil
            endMonitors(session)
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

/// A value that is sent to a queue and released there: the sender keeps no reference to it.
final class SendingBox<Value>: Sendable {
    private let value: Mutex<Value?>

    init(_ value: consuming sending Value) { self.value = Mutex(consume value) }

    func take() -> sending Value? { value.withLock { $0.take() } }
}

/// How long deferred items are collected before they wake the delivery queue together. These are the log lines and counters of
/// successful tasks, and objects to be released.
struct HandoverDelay {
    /// The number of items that are handed over at once.
    static let maximumCount = 512
    /// The maximum time that an item waits, in nanoseconds; 0 for none.
    let duration: Int64
    private var count = 0
    /// The time at which the first item has to be handed over; `nil` without items.
    private(set) var deadline: Int64?

    init(duration: Int64) { self.duration = duration }

    /// Records further items.
    mutating func add(_ items: Int, now: Int64) {
        guard items > 0 else { return }
        count += items
        deadline = deadline ?? now.addingSaturated(duration)
    }

    func isDue(now: Int64) -> Bool { count >= HandoverDelay.maximumCount || deadline.map { $0 <= now } ?? false }

    /// Records that all items have been handed over.
    mutating func end() { (count, deadline) = (0, nil) }
}
