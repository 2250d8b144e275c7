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

    private struct Entry {
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

    private enum Phase {
        case open
        /// The phase that a test reaches by ``Environment/mayStep``: no further step is done, as after a kill.
        case dead
        case closing
        case closed
    }

    private let identifier: String
    let damagedJournal: String?
    /// The handler names of tasks in the journal that are not registered.
    let unknownHandlers: Set<String>
    private let manager: HTTPSessionManager
    private let queue: DispatchQueue
    private let lock: DirectoryLock
    let journal: Journal
    private let registered: Locked<DurableHandlers>
    private let limits: DurableLimits
    private let environment: Environment
    private let logger: Logger
    private let deliveries = AsyncStream<Delivery>.makeStream()
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

    private func entry(of record: TaskRecord) -> Entry {
        let isIdempotent = (try? record.intent.request().isIdempotent) ?? false
        let terms = record.intent.terms(expires: record.expires, isIdempotent: isIdempotent)
        return Entry(record: record, lifecycle: TaskLifecycle(terms, record.state), writtenState: record.state)
    }

    // MARK: State

    /// The handlers of events; none when the session is closed.
    private var handlers: DurableHandlers { registered.withLock { $0 } }

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
    private var entries: [String: Entry] {
        _read { yield state.entries }
        _modify { yield &state.entries }
    }

    /// The identifiers of the tasks by those of their transfers.
    private var owners: [UInt64: String] {
        _read { yield state.owners }
        _modify { yield &state.owners }
    }

    /// The events that no handler receives.
    var eventQueue: EventQueue {
        _read { yield state.eventQueue }
        _modify { yield &state.eventQueue }
    }

    private var phase: Phase {
        get { state.phase }
        set { state.phase = newValue }
    }

    // MARK: Lifecycles

    private func reattach(_ id: String) {
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

    private func hiddenFile(of record: TaskRecord) -> HiddenFile? {
        record.intent.destination.map { HiddenFile(of: record.id, for: $0) }
    }

    /// Handles an event and performs the actions that follow.
    ///
    /// - Returns: the reason if an action was not performed; it is performed later.
    @discardableResult
    private func handle(_ event: TaskLifecycle.Event, _ id: String) -> DurableSessionError? {
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
    private func retryPendingEvent(_ id: String) -> DurableSessionError? {
        guard let event = entries[id]?.pendingEvent else { return nil }
        entries[id]?.pendingEvent = nil
        return handle(event, id)
    }

    private func postpone(_ id: String) {
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
            manager.cancel()
        }
    }

    private func finishClosing() {
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

    // MARK: - The requests of the program: new tasks, snapshots, cancellations and acknowledgements

    static let closed = DurableSessionError(.closed, "the durable session has been closed")

    func onQueue<Value: Sendable>(
        _ body: @escaping @Sendable (TaskCoordinator) throws(DurableSessionError) -> Value
    ) async throws(DurableSessionError) -> Value {
        let result: Result<Value, DurableSessionError> = await withCheckedContinuation { continuation in
            queue.async { [self] in
                guard phase == .open else { return continuation.resume(returning: .failure(TaskCoordinator.closed)) }
                do throws(DurableSessionError) { continuation.resume(returning: .success(try body(self))) } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
        }
        return try result.get()
    }

    func add(
        _ request: TransferRequest, to destination: DownloadDestination?, uploadProtocol: UploadProtocol?, handler: String?,
        context: Data, writesSecrets: Bool
    ) async throws(DurableSessionError) -> DurableTaskInfo {
        // The journal stores the absence of a name as an empty one.
        if let handler, handler.isEmpty || handlers.handler(handler) == nil {
            throw DurableSessionError(.unknownHandler, "no handler is registered as '\(handler)'")
        }
        guard context.count <= limits.contextBytes else {
            throw DurableSessionError(.limitReached, "the context has \(context.count) bytes, of at most \(limits.contextBytes)")
        }
        return try await onQueue { coordinator throws(DurableSessionError) in
            let intent = try Intent(request, to: destination, uploadProtocol: uploadProtocol, writesSecrets: writesSecrets) {
                (path) throws(DurableSessionError) in
                guard let identity = HiddenFile.identity(path) else {
                    throw DurableSessionError(.invalidTask, "'\(path)' is not a regular file that can be read")
                }
                return identity
            }
            let now = coordinator.environment.clock()
            let time = (request.options.resourceTimeout ?? coordinator.limits.expiry).components.seconds
            return try coordinator.add(
                TaskRecord(
                    id: TaskCoordinator.newID(), intent: intent, handler: handler, context: context, created: now,
                    expires: now + max(1, min(time, 365 * 24 * 3600))))
        }
    }

    private func add(_ record: TaskRecord) throws(DurableSessionError) -> DurableTaskInfo {
        guard entries.count < limits.tasks else {
            throw DurableSessionError(.limitReached, "the journal has \(entries.count) tasks, of at most \(limits.tasks)")
        }
        let size = (try? record.intent.encoded().count) ?? .max
        guard size <= limits.requestBytes else {
            throw DurableSessionError(.limitReached, "the request takes \(size) bytes, of at most \(limits.requestBytes)")
        }
        guard environment.mayStep() else {
            phase = .dead
            throw TaskCoordinator.closed
        }
        try journal.insert(record)
        entries[record.id] = entry(of: record)
        reattach(record.id)
        return snapshot(record.id) ?? DurableTaskInfo(record, transferTask: nil)
    }

    /// A random identifier of 128 bits, in hexadecimal digits.
    private static func newID() -> String {
        (0..<2).map { _ in
            let digits = String(UInt64.random(in: 0 ... .max), radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    private func snapshot(_ id: String) -> DurableTaskInfo? {
        entries[id].map { DurableTaskInfo($0.record, transferTask: $0.transfer) }
    }

    func tasks() async throws(DurableSessionError) -> [DurableTaskInfo] {
        try await onQueue { coordinator throws(DurableSessionError) in
            coordinator.entries.keys.compactMap { coordinator.snapshot($0) }.sorted { ($0.created, $0.id) < ($1.created, $1.id) }
        }
    }

    func pendingEvents() async throws(DurableSessionError) -> [DurableEvent] {
        try await onQueue { coordinator throws(DurableSessionError) in
            coordinator.entries.values.compactMap { coordinator.event(of: $0) }
        }
    }

    /// The URLs at which servers continue uploads, as far as the servers have announced them.
    func uploadLocations() async throws(DurableSessionError) -> [URL] {
        try await onQueue { coordinator throws(DurableSessionError) in
            coordinator.entries.values.compactMap(\.record.uploadLocation)
        }
    }

    func cancel(_ id: String) async throws(DurableSessionError) {
        try await onQueue { coordinator throws(DurableSessionError) in
            guard coordinator.entries[id] != nil else { throw DurableSessionError(.unknownTask, "there is no task \(id)") }
            if let error = coordinator.retryPendingEvent(id) ?? coordinator.handle(.cancel, id) { throw error }
        }
    }

    func acknowledge(_ id: String) async throws(DurableSessionError) {
        try await onQueue { coordinator throws(DurableSessionError) in
            guard case .ended? = coordinator.entries[id]?.record.state else {
                throw DurableSessionError(.unknownTask, "there is no event of a task \(id)")
            }
            if let error = coordinator.handle(.acknowledge, id) { throw error }
        }
    }

    // MARK: - The transfers that the session makes for the tasks

    private func transfer(_ record: TaskRecord) {
        let task: TransferTask
        do throws(DurableSessionError) {
            var request = try record.intent.request()
            request.options.resourceTimeout = .seconds(max(1, min(record.expires - environment.clock(), 365 * 24 * 3600)))
            task = makeTask(request, record)
        } catch {
            handle(.transferFailed(Failure(.invalidRequest, error.reason)), record.id)
            return
        }
        owners[task.id] = record.id
        entries[record.id]?.transfer = task
        task.resume()
    }

    private func makeTask(_ request: TransferRequest, _ record: TaskRecord) -> TransferTask {
        // The response to an upload's first request may announce the upload's location. The next request is sent when the journal has that
        // location. Otherwise the server could have the complete upload while no later process knows its location.
        let needsApproval = entries[record.id]?.lifecycle.terms.isRepeatable == false || record.intent.uploadProtocol != nil
        let sendApproval = needsApproval ? sendApproval(of: record.id) : nil
        if let file = hiddenFile(of: record) {
            return manager.task(request, for: .download(file.download), sendApproval: sendApproval)
        }
        guard let uploadProtocol = record.intent.uploadProtocol else {
            return manager.task(request, for: .upload, sendApproval: sendApproval)
        }
        let location = UploadLocation(known: record.uploadLocation) { [weak self, id = record.id] location in
            guard let self else { return }
            HomeThread.run { self.queue.async { self.record(location, id) } }
        }
        return manager.task(request, for: .resumableUpload(uploadProtocol, location: location), sendApproval: sendApproval)
    }

    /// Records in the journal that a request which must not be repeated is about to be sent, and revokes that if it was not sent.
    private func sendApproval(of id: String) -> SendApproval {
        let attempts = Locked(0)
        return SendApproval(
            approve: { [weak self] in
                attempts.withLock { $0 += 1 }
                guard let self else { throw TaskCoordinator.closed }
                try await onQueue { coordinator throws(DurableSessionError) in
                    let error = coordinator.handle(.requestWillBeSent, id)
                    coordinator.entries[id]?.isPostponed = error != nil
                    if let error { throw error }
                }
            },
            wasNotSent: { [weak self] in
                guard let self else { return }
                let last = attempts.withLock { $0 }
                HomeThread.run {
                    self.queue.async {
                        // Another attempt may have begun meanwhile.
                        if attempts.withLock({ $0 }) == last { self.handle(.requestWasNotSent, id) }
                    }
                }
            })
    }

    private func record(_ location: URL, _ id: String) {
        guard phase == .open || phase == .closing, entries[id]?.transfer != nil, entries[id]?.record.uploadLocation != location
        else { return }
        guard environment.mayStep() else {
            phase = .dead
            return
        }
        do throws(DurableSessionError) {
            try journal.write(uploadLocation: location, of: id)
            entries[id]?.record.uploadLocation = location
        } catch {
            logger.error("the location of upload \(id) is not recorded: \(error)")
        }
    }

    private func receive(_ event: SessionEvent) {
        switch event {
        case .taskCompleted(let task, let result): queue.async { self.complete(task, result) }
        case .sessionInvalidated: queue.async { self.finishClosing() }
        default: break
        }
    }

    private func complete(_ task: TransferTask, _ result: Result<TransferResponse, HTTPSessionError>) {
        guard let id = owners.removeValue(forKey: task.id), let record = entries[id]?.record else { return }
        entries[id]?.transfer = nil
        switch result {
        case .success(let response):
            guard (200...299).contains(response.statusCode) else {
                var failure = Failure(.unacceptableStatus, "the server answered \(response.statusCode)")
                failure.statusCode = response.statusCode
                handle(.transferFailed(failure), id)
                return
            }
            let final = FinalResponse(
                statusCode: response.statusCode, url: response.url,
                body: Data(response.data.prefix(limits.responseBodyBytes)))
            let file = hiddenFile(of: record)
            file?.sync()
            handle(.transferred(final, hiddenFile: file.flatMap { HiddenFile.identity($0.path) }), id)
        // Closing the session ends its transfers. The tasks continue in another process.
        case .failure where phase == .closing: break
        case .failure(let error) where entries[id]?.isPostponed == true && error.code != .cancelled: postpone(id)
        case .failure(let error): handle(.transferFailed(Failure(error)), id)
        }
    }

    // MARK: - Delivery of events: to the registered handler that a task names, or else to the iterators over its events

    enum Delivery: Sendable {
        case event(String)
        /// The events of earlier processes precede this one.
        case endOfEarlierEvents
    }

    private func deliver(_ id: String) {
        guard let entry = entries[id] else { return }
        if handlers.handler(entry.record.handler) != nil {
            deliveries.continuation.yield(.event(id))
        } else {
            eventQueue.append(id)
            serveReaders()
        }
    }

    /// Calls the handlers, one after another.
    private func callHandlers() {
        Task { [weak self, stream = deliveries.stream] in
            for await delivery in stream {
                switch delivery {
                case .event(let id):
                    guard let event = await self?.event(id), let handler = self?.handlers.handler(event.task.handler) else {
                        continue
                    }
                    await handler(event)
                case .endOfEarlierEvents: await self?.handlers.didFinishEvents?()
                }
            }
        }
    }

    private func event(_ id: String) async -> DurableEvent? {
        try? await onQueue { coordinator throws(DurableSessionError) in
            coordinator.entries[id].flatMap { coordinator.event(of: $0) }
        }
    }

    private func event(of entry: Entry) -> DurableEvent? {
        guard case .ended(let outcome) = entry.record.state else { return nil }
        return DurableEvent(DurableTaskInfo(entry.record, transferTask: nil), DurableEvent.Outcome(outcome), of: self)
    }

    // MARK: Iterators

    /// Whether a call of `next()` has been canceled. The cancellation may come before the queue knows the call.
    private final class Cancellation: Sendable {
        let isCancelled = Locked(false)
    }

    /// The next event for an iterator; `nil` if the session is closed or the calling task is canceled.
    func nextEvent() async -> DurableEvent? {
        let cancellation = Cancellation()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                queue.async { [self] in
                    // Checked on the queue: the handler below removes a reader that it finds, and this one comes too late for it.
                    guard phase == .open, !cancellation.isCancelled.withLock({ $0 }) else {
                        return continuation.resume(returning: nil)
                    }
                    eventQueue.add(.init(id: ObjectIdentifier(cancellation), continuation: continuation))
                    serveReaders()
                }
            }
        } onCancel: {
            cancellation.isCancelled.withLock { $0 = true }
            queue.async { [self] in
                // A reader that has received its event keeps it: the event is in use, and is not lost.
                eventQueue.removeReader(ObjectIdentifier(cancellation))?.continuation.resume(returning: nil)
            }
        }
    }

    private func serveReaders() {
        while !eventQueue.readers.isEmpty, let id = eventQueue.popFirst() {
            // An event that was acknowledged by its identifier is no longer in the journal.
            guard let event = entries[id].flatMap({ event(of: $0) }) else { continue }
            eventQueue.popFirstReader()?.continuation.resume(returning: event)
        }
    }

    private func dismissReaders() {
        while let reader = eventQueue.popFirstReader() { reader.continuation.resume(returning: nil) }
    }
}

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

/// The events that no handler receives, in their order of delivery, and the iterators that wait for one.
///
/// The queue holds identifiers only: the journal keeps the events, so that a slow reader costs little memory.
struct EventQueue {
    /// One call of `next()` that is suspended.
    struct Reader {
        let id: ObjectIdentifier
        let continuation: CheckedContinuation<DurableEvent?, Never>
    }

    // Those before `start` have been taken.
    private var ids: [String] = []
    private var start = 0
    private var queued: Set<String> = []
    private(set) var readers: [Reader] = []

    /// Adds an event at the end, unless it is in the queue already.
    mutating func append(_ id: String) {
        if queued.insert(id).inserted { ids.append(id) }
    }

    /// Removes and returns the first event.
    mutating func popFirst() -> String? {
        guard start < ids.count else { return nil }
        let id = ids[start]
        start += 1
        queued.remove(id)
        // Removing the front of an array moves all elements: that is done once for many.
        if start == ids.count || start >= 1_000 {
            ids.removeFirst(start)
            start = 0
        }
        return id
    }

    mutating func add(_ reader: Reader) { readers.append(reader) }

    /// Removes and returns the reader that has waited longest.
    mutating func popFirstReader() -> Reader? { readers.isEmpty ? nil : readers.removeFirst() }

    /// Removes and returns a reader, unless it has received an event already.
    mutating func removeReader(_ id: ObjectIdentifier) -> Reader? {
        readers.firstIndex { $0.id == id }.map { readers.remove(at: $0) }
    }
}
