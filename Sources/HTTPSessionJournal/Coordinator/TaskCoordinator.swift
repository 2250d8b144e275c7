internal import Dispatch
internal import EventLoop
internal import Foundation
internal import HTTPSession
internal import Logging

/// Connects the lifecycles of the tasks with the journal, the files, the session that transfers, and the receivers of events.
///
/// All work happens on one dispatch queue, which may wait for the disk.
// @unchecked: the mutable properties are in `state`, and every access of it checks that it is made on `queue`.
final class TaskCoordinator: @unchecked Sendable {
    /// The inputs that a test replaces.
    struct Environment: Sendable {
        /// Seconds since 1970.
        var clock: @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970) }
        /// Called before every step. `false` skips this step and all later ones, as if the process had been killed here.
        var mayStep: @Sendable () -> Bool = { true }
        /// The delay before a step is retried that the disk has refused.
        var delayAfterFailure = DispatchTimeInterval.seconds(10)
        /// Called on the queue when the journal has been read, before its tasks continue.
        var didReadJournal: @Sendable () -> Void = {}
    }

    struct Entry {
        var record: TaskRecord
        var lifecycle: TaskLifecycle
        /// The state in the journal. The lifecycle returns to it when a write fails.
        var writtenState: TaskLifecycle.State
        var transfer: TransferTask?
        /// The result of the transfer, when the disk has refused to record it.
        var pendingEvent: TaskLifecycle.Event?
        /// Whether the transfer ends because the disk refused to record that its request is about to be sent.
        var isPostponed = false
        /// Whether an earlier process had this task, and may have been killed.
        var isInherited = false
    }

    enum Phase {
        case open
        /// The phase that a test reaches by ``Environment/mayStep``: no further step is done, as after a kill.
        case dead
        case closing
        case closed
    }

    let identifier: String
    let damagedJournal: String?
    /// The handler names of tasks in the journal that are not registered.
    let unknownHandlers: Set<String>
    let manager: HTTPSessionManager
    let queue: DispatchQueue
    private let lock: DirectoryLock
    let journal: Journal
    private let registered: Locked<DurableHandlers>
    let limits: DurableLimits
    let environment: Environment
    let logger: Logger
    let deliveries = AsyncStream<Delivery>.makeStream()
    private var unguarded = State()

    /// The mutable state, which only ``queue`` uses.
    private struct State {
        var entries: [String: Entry] = [:]
        var owners: [UInt64: String] = [:]
        var eventQueue = EventQueue()
        var phase = Phase.open
        var closers: [@Sendable () -> Void] = []
    }

    // MARK: Opening

    typealias ManagerFactory = @Sendable (any EventMonitor) throws(DurableSessionError) -> HTTPSessionManager

    /// Opens an identifier on the coordinator's queue, and continues its tasks there.
    static func open(
        identifier: String, directory: URL, limits: DurableLimits, handlers: DurableHandlers, logger: Logger,
        environment: Environment, makeManager: @escaping ManagerFactory
    ) async throws(DurableSessionError) -> TaskCoordinator {
        let queue = DispatchQueue(label: "http-session-journal")
        let isCancelled = Locked(false)
        let result: Result<TaskCoordinator, DurableSessionError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                queue.async {
                    do throws(DurableSessionError) {
                        let opened = try OpenedJournal(identifier, in: directory) { () throws(DurableSessionError) in
                            guard isCancelled.withLock({ $0 }) else { return }
                            throw DurableSessionError(.cancelled, "the task that opened the durable session was canceled")
                        } didRead: {
                            environment.didReadJournal()
                        }
                        do throws(DurableSessionError) {
                            let coordinator = try TaskCoordinator(
                                identifier, opened, on: queue, limits: limits, handlers: handlers, logger: logger,
                                environment: environment, makeManager: makeManager)
                            continuation.resume(returning: .success(coordinator))
                        } catch {
                            opened.close()
                            throw error
                        }
                    } catch {
                        continuation.resume(returning: .failure(error))
                    }
                }
            }
        } onCancel: {
            isCancelled.withLock { $0 = true }
        }
        return try result.get()
    }

    private init(
        _ identifier: String, _ opened: OpenedJournal, on queue: DispatchQueue, limits: DurableLimits,
        handlers: DurableHandlers, logger: Logger, environment: Environment, makeManager: ManagerFactory
    ) throws(DurableSessionError) {
        self.identifier = identifier
        (self.limits, self.environment, self.logger) = (limits, environment, logger)
        registered = Locked(handlers)
        self.queue = queue
        (lock, journal, damagedJournal) = (opened.lock, opened.journal, opened.damagedJournal)
        unknownHandlers = Set(opened.records.compactMap(\.handler).filter { handlers.handler($0) == nil })
        let relay = EventRelay()
        manager = try makeManager(relay)
        relay.forward { [weak self] in self?.receive($0) }
        if let damagedJournal { logger.error("the journal was damaged and is now '\(damagedJournal)': its tasks are lost") }
        for name in unknownHandlers.sorted() {
            logger.warning("tasks of '\(identifier)' have a handler '\(name)', which is not registered")
        }
        start(opened.records)
        callHandlers()
    }

    private func start(_ records: [TaskRecord]) {
        for record in records {
            entries[record.id] = entry(of: record)
            entries[record.id]?.isInherited = true
            reattach(record.id)
        }
        deliveries.continuation.yield(.endOfEarlierEvents)
    }

    func entry(of record: TaskRecord) -> Entry {
        let isIdempotent = (try? record.intent.request().isIdempotent) ?? false
        let terms = record.intent.terms(expires: record.expires, isIdempotent: isIdempotent)
        return Entry(record: record, lifecycle: TaskLifecycle(terms, record.state), writtenState: record.state)
    }

    // MARK: State

    /// The handlers of events; none when the session is closed.
    var handlers: DurableHandlers { registered.withLock { $0 } }

    private var state: State {
        _read {
            dispatchPrecondition(condition: .onQueue(queue))
            yield unguarded
        }
        _modify {
            dispatchPrecondition(condition: .onQueue(queue))
            yield &unguarded
        }
    }

    /// The tasks by their identifiers.
    var entries: [String: Entry] {
        _read { yield state.entries }
        _modify { yield &state.entries }
    }

    /// The identifiers of the tasks by those of their transfers.
    var owners: [UInt64: String] {
        _read { yield state.owners }
        _modify { yield &state.owners }
    }

    /// The events that no handler receives.
    var eventQueue: EventQueue {
        _read { yield state.eventQueue }
        _modify { yield &state.eventQueue }
    }

    var phase: Phase {
        get { state.phase }
        set { state.phase = newValue }
    }

    // MARK: Lifecycles

    func reattach(_ id: String) {
        guard let entry = entries[id], entry.transfer == nil else { return }
        guard entry.pendingEvent == nil else {
            retryPendingEvent(id)
            return
        }
        handle(.reattached(diskState(of: entry.record)), id)
    }

    private func diskState(of record: TaskRecord) -> TaskLifecycle.DiskState {
        var found = TaskLifecycle.DiskState(hasUploadLocation: record.uploadLocation != nil)
        if let file = hiddenFile(of: record) { (found.hiddenFile, found.destination) = file.identities }
        if case .file(let path, let identity) = record.intent.body {
            found.isBodyUnchanged = HiddenFile.identity(path) == identity
        }
        return found
    }

    func hiddenFile(of record: TaskRecord) -> HiddenFile? {
        record.intent.destination.map { HiddenFile(of: record.id, for: $0) }
    }

    /// Handles an event and performs the actions that follow.
    ///
    /// - Returns: the reason if an action was not performed; it is performed later.
    @discardableResult
    func handle(_ event: TaskLifecycle.Event, _ id: String) -> DurableSessionError? {
        guard phase == .open || phase == .closing, var entry = entries[id] else { return TaskCoordinator.closed }
        let actions = entry.lifecycle.handle(event, now: environment.clock())
        entry.record.state = entry.lifecycle.state
        entries[id] = entry
        for action in actions {
            guard environment.mayStep() else {
                phase = .dead
                return TaskCoordinator.closed
            }
            do throws(DurableSessionError) { try perform(action, id, entry) } catch {
                revert(error, event, id)
                return error
            }
        }
        return nil
    }

    private func perform(_ action: TaskLifecycle.Action, _ id: String, _ entry: Entry) throws(DurableSessionError) {
        switch action {
        case .write:
            try journal.write(entry.lifecycle.state, of: id)
            entries[id]?.writtenState = entry.lifecycle.state
        case .transfer: transfer(entry.record)
        case .stop:
            guard let transfer = entry.transfer else {
                handle(.transferFailed(Failure(.cancelled, "the task was canceled")), id)
                return
            }
            transfer.cancel()
        case .place: place(entry.record)
        case .clean: hiddenFile(of: entry.record)?.clean(afterKill: entry.isInherited)
        case .deliver: deliver(id)
        case .remove:
            try journal.remove(id)
            entries[id] = nil
        }
    }

    /// Returns the lifecycle to the state in the journal after the disk has refused a step, and schedules a retry. The result of a transfer is
    /// kept, so that the transfer is not repeated.
    private func revert(_ error: DurableSessionError, _ event: TaskLifecycle.Event, _ id: String) {
        logger.error("a step of task \(id) is postponed: \(error)")
        guard var entry = entries[id] else { return }
        entry.record.state = entry.writtenState
        entry.lifecycle = TaskLifecycle(entry.lifecycle.terms, entry.writtenState)
        entries[id] = entry
        guard entry.transfer == nil else { return }
        switch event {
        case .transferred, .transferFailed:
            entries[id]?.pendingEvent = event
            later { $0.retryPendingEvent(id) }
        default: postpone(id)
        }
    }

    /// Retries the event that the disk has refused. It precedes every other event of the task, which must see its result.
    @discardableResult
    func retryPendingEvent(_ id: String) -> DurableSessionError? {
        guard let event = entries[id]?.pendingEvent else { return nil }
        entries[id]?.pendingEvent = nil
        return handle(event, id)
    }

    func postpone(_ id: String) {
        entries[id]?.isPostponed = false
        later { $0.reattach(id) }
    }

    private func later(_ body: @escaping @Sendable (TaskCoordinator) -> Void) {
        queue.asyncAfter(deadline: .now() + environment.delayAfterFailure) { [weak self] in self.map(body) }
    }

    private func place(_ record: TaskRecord) {
        do throws(HTTPSessionError) {
            try hiddenFile(of: record)?.place()
            handle(.placed, record.id)
        } catch {
            handle(.placementFailed(Failure(error)), record.id)
        }
    }

    // MARK: Closing

    /// Ends the transfers, not the tasks, which continue when the identifier is opened again.
    func close(_ done: @escaping @Sendable () -> Void) {
        queue.async { [self] in
            if phase == .closed { return done() }
            // The closer keeps this object, and with it the lock, until the session has been invalidated.
            state.closers.append { withExtendedLifetime(self) { done() } }
            if phase == .open { phase = .closing }
            deliveries.continuation.finish()
            dismissReaders()
            manager.invalidateAndCancel()
        }
    }

    func finishClosing() {
        journal.close()
        lock.unlock()
        phase = .closed
        let done = state.closers
        state.closers = []
        // Released outside of the lock, because what they capture is the user's.
        var former = DurableHandlers()
        registered.withLock { swap(&former, &$0) }
        withExtendedLifetime(former) {}
        for closer in done { closer() }
    }
}
