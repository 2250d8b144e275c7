internal import Dispatch
internal import EventLoop
internal import Foundation
internal import HTTPSession
internal import Logging

/// Joins the lives of the tasks to the journal, the files, the session and the handlers. Everything is done on one queue, which may wait for
/// the disk.
// @unchecked: what changes is in `state`, and every access of it checks that it is made on `queue`.
final class Keeper: @unchecked Sendable {
    /// What a keeper is told, apart from what it is to do.
    struct Surroundings: Sendable {
        /// Seconds since 1970.
        var clock: @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970) }
        /// Asked before every step; `false`: it is not done, and nothing after it, as if the process had been killed here.
        var mayStep: @Sendable () -> Bool = { true }
        /// After a step that the disk refused.
        var delayAfterFailure = DispatchTimeInterval.seconds(10)
    }

    struct Entry {
        var record: TaskRecord
        var life: TaskLife
        /// What the journal says: the life begins again there when it could not be written.
        var written: TaskLife.State
        var transfer: TransferTask?
        /// What its transfer brought, and the disk has not taken yet.
        var pending: TaskLife.Event?
        /// Its transfer ends because the disk has refused what had to be written before.
        var isPostponed = false
        /// Another process has had it, and may have been killed.
        var isInherited = false
    }

    enum Phase {
        case open
        /// As if it had been killed.
        case dead
        case closing
        case closed
    }

    let identifier: String
    let setAside: String?
    /// Of tasks in the journal, without a handler.
    let unknownHandlers: Set<String>
    let manager: HTTPSessionManager
    let queue: DispatchQueue
    private let lock: DirectoryLock
    let journal: Journal
    let handlers: DurableHandlers
    let limits: DurableLimits
    let surroundings: Surroundings
    let logger: Logger
    private let deliveries = AsyncStream<Delivery>.makeStream()
    private var unguarded = State()

    /// What changes. Only on ``queue``.
    private struct State {
        var entries: [String: Entry] = [:]
        var owners: [UInt64: String] = [:]
        var phase = Phase.open
        var closers: [@Sendable () -> Void] = []
    }

    private enum Delivery: Sendable {
        case event(String)
        /// All events of earlier processes stand before this one.
        case former
    }

    init(
        identifier: String, directory: URL, limits: DurableLimits, handlers: DurableHandlers, logger: Logger,
        surroundings: Surroundings, manager: (any EventMonitor) throws(DurableSessionError) -> HTTPSessionManager
    ) throws(DurableSessionError) {
        self.identifier = identifier
        (self.limits, self.handlers, self.surroundings, self.logger) = (limits, handlers, surroundings, logger)
        queue = DispatchQueue(label: "http-session-journal")
        lock = try DirectoryLock(directory.appendingPathComponent(identifier).path, identifier: identifier)
        let records: [TaskRecord]
        (journal, records, setAside) = try Journal.open("\(lock.path)/journal.sqlite")
        SmallFile.syncDirectory(of: "\(lock.path)/journal.sqlite")
        unknownHandlers = Set(records.map(\.handler)).subtracting(handlers.names)
        let relay = EventRelay()
        self.manager = try manager(relay)
        relay.tell { [weak self] in self?.heard($0) }
        if let setAside { logger.error("the journal was damaged, and is now '\(setAside)': its tasks are not known any more") }
        for name in unknownHandlers.sorted() { logger.warning("tasks of '\(identifier)' wait for a handler '\(name)'") }
        queue.sync { start(records) }
        deliver()
    }

    private func start(_ records: [TaskRecord]) {
        for record in records {
            entries[record.id] = entry(of: record)
            entries[record.id]?.isInherited = true
            reattach(record.id)
        }
        deliveries.continuation.yield(.former)
    }

    func entry(of record: TaskRecord) -> Entry {
        let isIdempotent = (try? record.intent.request().isIdempotent) ?? false
        let terms = record.intent.terms(expires: record.expires, isIdempotent: isIdempotent)
        return Entry(record: record, life: TaskLife(terms, record.state), written: record.state)
    }

    // MARK: State

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

    /// Whose the session's tasks are.
    var owners: [UInt64: String] {
        _read { yield state.owners }
        _modify { yield &state.owners }
    }

    var phase: Phase {
        get { state.phase }
        set { state.phase = newValue }
    }

    // MARK: Lives

    func reattach(_ id: String) {
        guard let entry = entries[id], entry.transfer == nil else { return }
        guard entry.pending == nil else {
            settle(id)
            return
        }
        handle(.reattached(around(entry.record)), id)
    }

    private func around(_ record: TaskRecord) -> TaskLife.Surroundings {
        var around = TaskLife.Surroundings(hasPlace: record.place != nil)
        if let file = hiddenFile(of: record) { (around.hidden, around.destination) = file.surroundings }
        if case .file(let path, let mark) = record.intent.body { around.bodyIsSame = HiddenFile.mark(path) == mark }
        return around
    }

    func hiddenFile(of record: TaskRecord) -> HiddenFile? {
        record.intent.destination.map { HiddenFile(of: record.id, for: $0) }
    }

    /// - Returns: why not everything was done that follows; what is missing follows later.
    @discardableResult
    func handle(_ event: TaskLife.Event, _ id: String) -> DurableSessionError? {
        guard phase == .open || phase == .closing, var entry = entries[id] else { return Keeper.closed }
        let actions = entry.life.handle(event, now: surroundings.clock())
        entry.record.state = entry.life.state
        entries[id] = entry
        for action in actions {
            guard surroundings.mayStep() else {
                phase = .dead
                return Keeper.closed
            }
            do throws(DurableSessionError) { try perform(action, id, entry) } catch {
                refused(error, event, id)
                return error
            }
        }
        return nil
    }

    private func perform(_ action: TaskLife.Action, _ id: String, _ entry: Entry) throws(DurableSessionError) {
        switch action {
        case .write:
            try journal.write(entry.life.state, of: id)
            entries[id]?.written = entry.life.state
        case .transfer: transfer(entry.record)
        case .stop:
            guard let transfer = entry.transfer else {
                handle(.transferFailed(Failure(.cancelled, "the task was cancelled")), id)
                return
            }
            transfer.cancel()
        case .place: place(entry.record)
        case .clean: hiddenFile(of: entry.record)?.clean(afterKill: entry.isInherited)
        case .deliver: deliveries.continuation.yield(.event(id))
        case .remove:
            try journal.remove(id)
            entries[id] = nil
        }
    }

    /// The disk has refused a step: the life goes on from what is written, and is looked at again later. What the network has said is not
    /// asked for anew.
    private func refused(_ error: DurableSessionError, _ event: TaskLife.Event, _ id: String) {
        logger.error("a step of task \(id) is postponed: \(error)")
        guard var entry = entries[id] else { return }
        entry.record.state = entry.written
        entry.life = TaskLife(entry.life.terms, entry.written)
        entries[id] = entry
        guard entry.transfer == nil else { return }
        switch event {
        case .transferred, .transferFailed:
            entries[id]?.pending = event
            later { $0.settle(id) }
        default: postpone(id)
        }
    }

    /// Tries again what the disk has refused: before anything else, which would not know of it.
    @discardableResult
    func settle(_ id: String) -> DurableSessionError? {
        guard let event = entries[id]?.pending else { return nil }
        entries[id]?.pending = nil
        return handle(event, id)
    }

    func postpone(_ id: String) {
        entries[id]?.isPostponed = false
        later { $0.reattach(id) }
    }

    private func later(_ body: @escaping @Sendable (Keeper) -> Void) {
        queue.asyncAfter(deadline: .now() + surroundings.delayAfterFailure) { [weak self] in self.map(body) }
    }

    private func place(_ record: TaskRecord) {
        do throws(HTTPSessionError) {
            try hiddenFile(of: record)?.place()
            handle(.placed, record.id)
        } catch {
            handle(.notPlaced(Failure(error)), record.id)
        }
    }

    // MARK: Events

    /// Hands the events to the handlers, one after another.
    private func deliver() {
        Task { [weak self, stream = deliveries.stream, handlers] in
            for await delivery in stream {
                switch delivery {
                case .event(let id):
                    guard let event = await self?.event(id), let handler = handlers.handlers[event.task.handler] else { continue }
                    await handler(event)
                case .former: await handlers.didFinishEvents?()
                }
            }
        }
    }

    private func event(_ id: String) async -> DurableEvent? {
        try? await onQueue { keeper throws(DurableSessionError) in keeper.entries[id].flatMap { keeper.event(of: $0) } }
    }

    func event(of entry: Entry) -> DurableEvent? {
        guard case .ended(let outcome) = entry.record.state else { return nil }
        return DurableEvent(
            task: DurableTask(entry.record, transfer: nil), outcome: DurableEvent.Outcome(outcome), keeper: self)
    }

    // MARK: The end

    /// Ends the transfers, not the tasks: they go on when the identifier is opened again.
    func close(_ done: @escaping @Sendable () -> Void) {
        queue.async { [self] in
            if phase == .closed { return done() }
            // Until then the lock is held by what is held here.
            state.closers.append { withExtendedLifetime(self) { done() } }
            if phase == .open { phase = .closing }
            deliveries.continuation.finish()
            manager.invalidateAndCancel()
        }
    }

    func finishClosing() {
        journal.close()
        lock.unlock()
        phase = .closed
        let done = state.closers
        state.closers = []
        for closer in done { closer() }
    }
}
