import EventLoop
import Glibc
import Reachability

/// The work on the thread of the database.
extension HistoryStore {
    /// A handler of an outcome.
    typealias Handler<Value> = @Sendable (Result<Value, StoreError>) -> Void

    /// The incidents and path events that wait for the database. After an error they wait for the next attempt.
    struct IncidentQueue: Sendable {
        /// The maximum number of path events that wait. The oldest are dropped beyond it; incidents never are.
        static let pathEventLimit = 1_000

        struct Waiting: Sendable {
            var incident: Incident
            /// The numbers of its targets.
            var members: TargetSet
            var completions: [@Sendable () -> Void]
        }

        /// The incidents by their identifiers: only the last state of each one.
        var incidents: [String: Waiting] = [:]
        var pathEvents: [(time: Int64, record: String)] = []

        /// Whether the last checkpoint failed. The next one does its work.
        var owesCheckpoint = false
    }

    /// Records an incident, or its new state. It is never dropped: after an error of the disk it is written when the disk works again.
    ///
    /// - Parameters:
    ///   - incident: the incident. A later state replaces an earlier one with the same identifier.
    ///   - members: the numbers of its targets, which join those of its earlier states. If there are none, they are those of
    ///     ``Incident/targets``.
    ///   - completion: called when the incident is on the disk (`synchronous=FULL`).
    func record(
        _ incident: Incident, of members: TargetSet = TargetSet(), completion: @escaping @Sendable () -> Void
    ) {
        guard !isClosed else { return }
        incidents.withLock { queue in
            var waiting =
                queue.incidents[incident.id] ?? IncidentQueue.Waiting(incident: incident, members: members, completions: [])
            waiting.incident = incident
            waiting.members.formUnion(members)
            waiting.completions.append(completion)
            queue.incidents[incident.id] = waiting
        }
        databaseThread.run { self.writeIncidents() }
    }

    /// Records a path event. - Parameter record: the keys of the record `path` as JSON.
    func record(pathEvent record: String, at time: Int64) {
        guard !isClosed else { return }
        incidents.withLock { queue in
            queue.pathEvents.append((time, record))
            if queue.pathEvents.count > IncidentQueue.pathEventLimit { queue.pathEvents.removeFirst() }
        }
        databaseThread.run { self.writePathEvents() }
    }

    /// Returns the numbers of targets, in their order. A key that the history does not know gets a new number. A target keeps its history
    /// by its key; changed names are kept. If the database cannot be written, the rows follow when it can.
    func register(_ targets: [TargetNames], completion: @escaping Handler<[Int]>) {
        guard !isClosed else { return completion(.failure(Self.closedError)) }
        databaseThread.run {
            do throws(StoreError) {
                try self.writePending()
                let numbers = try self.database.register(targets, from: self.pending.withLock { $0.firstNumber })
                self.didWrite()
                completion(.success(numbers))
            } catch {
                self.condition.set(.database, error)
                let numbers = [.inputOutput, .refused].contains(error.code) ? self.numbers(of: targets) : nil
                completion(numbers.map { .success($0) } ?? .failure(error))
            }
        }
    }

    /// Gives numbers to targets while the database cannot be written; `nil` if it cannot be read either.
    private func numbers(of targets: [TargetNames]) -> [Int]? {
        var known = try? database.targets()
        if known == nil, let reader = try? HistoryReader(directory) {
            known = try? reader.targets()
            reader.close()
        }
        guard let known else { return nil }
        return pending.withLock { $0.numbers(of: targets, known) }
    }

    /// Moves the turns so far into the database, and applies the retention.
    func checkpoint(completion: @escaping Handler<Void> = { _ in }) {
        guard !isClosed else { return completion(.failure(Self.closedError)) }
        logThread.run {
            self.writeTurns()
            let next = self.recorder.complete()
            self.databaseThread.run { completion(self.moveLogs(before: next)) }
        }
    }

    /// Removes the history after a time. The turns so far are moved into the database first.
    ///
    /// - Parameters:
    ///   - time: milliseconds since 1970.
    ///   - completion: called with the ledgers at that time. The keeper records no turn before.
    func withdraw(after time: Int64, completion: @escaping Handler<[Int: TargetLedger]>) {
        guard !isClosed else { return completion(.failure(Self.closedError)) }
        logThread.run {
            self.writeTurns()
            let next = self.recorder.complete()
            self.databaseThread.run {
                if case .failure(let error) = self.moveLogs(before: next) { return completion(.failure(error)) }
                do throws(StoreError) {
                    let ledgers = try self.database.withdraw(after: time, calendar: self.calendar.withLock { $0 })
                    self.logThread.run { self.recorder.continue(at: time) }
                    completion(.success(ledgers))
                } catch {
                    self.condition.set(.database, error)
                    completion(.failure(error))
                }
            }
        }
    }

    // MARK: Queries

    /// The maximum time of a query in nanoseconds.
    static let queryTime: Int64 = 2_000_000_000

    /// Runs a query on the thread of queries, which sees the turns in the logs too. A query that needs more than 2 seconds is interrupted
    /// (``StoreError/Code/timedOut``).
    func read<Value: Sendable>(
        _ query: @escaping @Sendable (HistoryReader) throws -> Value, completion: @escaping Handler<Value>
    ) {
        guard !isClosed else { return completion(.failure(Self.closedError)) }
        queryThread.run {
            do throws(StoreError) {
                let end = MonotonicClock.now() + Self.queryTime
                completion(.success(try self.openReader().run(until: end, query)))
            } catch {
                completion(.failure(error))
                if error.code == .timedOut { self.readLogs() }
            }
        }
    }

    /// Reads the turns in the logs after a query whose time was over, in steps between other queries, so that the next one has them.
    private func readLogs() {
        guard !isClosed else { return }
        queryThread.run {
            do throws(StoreError) {
                try self.openReader().run(until: MonotonicClock.now() + Self.queryTime) { _ in }
            } catch {
                if error.code == .timedOut { self.readLogs() }
            }
        }
    }

    /// Runs a query, and waits for its result.
    func read<Value: Sendable>(_ query: @escaping @Sendable (HistoryReader) throws -> Value) async throws(StoreError) -> Value {
        let result = await withCheckedContinuation { continuation in
            read(query) { continuation.resume(returning: $0) }
        }
        return try result.get()
    }

    private func openReader() throws(StoreError) -> HistoryReader {
        if let open = reader.withLock({ $0 }) { return open }
        let new = try HistoryReader(following: directory, calendar: calendar.withLock { $0 })
        reader.withLock { $0 = new }
        return new
    }

    /// Changes the retention. It is applied by the next checkpoint.
    func set(_ retention: Retention) { settings.withLock { $0.retention = retention } }

    /// Changes the days. They are used by the next checkpoint.
    func set(_ calendar: DayCalendar) { self.calendar.withLock { $0 = calendar } }

    // MARK: Only on the thread of the database

    /// Opens the database if it could not be opened before, and writes the rows that it did not take.
    func writePending() throws(StoreError) {
        if try database.openAgain(boot: BootIdentifier.current) {
            // The connection of the queries may take the file for one that never changes.
            queryThread.run {
                self.reader.withLock { reader in
                    reader?.close()
                    reader = nil
                }
            }
        }
        let rows = pending.withLock { $0 }
        guard !rows.isEmpty else { return }
        try database.write(.full) { try rows.write(to: $0) }
        // The logs of the former run may have targets without a row until they are moved.
        pending.withLock { $0 = PendingRows(firstNumber: rows.firstNumber) }
    }

    /// Tries again what failed.
    func retry() {
        writeIncidents()
        writePathEvents()
        guard !incidents.withLock({ $0.owesCheckpoint }) else { return checkpoint() }
        // Nothing waits, for example after a failed registration: a small write shows whether the database works again.
        do throws(StoreError) {
            let wall = condition.wall
            try writePending()
            try database.write { try HistoryDatabase.set("last_attempt", wall, $0) }
            didWrite()
        } catch { condition.set(.database, error) }
    }

    /// Writes what has waited for the database, and then reports that it works. After a failed checkpoint it works only when the
    /// checkpoint has succeeded.
    private func didWrite() {
        let (owesCheckpoint, hasIncidents, hasPathEvents) = incidents.withLock {
            ($0.owesCheckpoint, !$0.incidents.isEmpty, !$0.pathEvents.isEmpty)
        }
        guard !owesCheckpoint else { return }
        // Both come back to this method.
        if hasIncidents { return writeIncidents() }
        if hasPathEvents { return writePathEvents() }
        condition.set(.database, nil)
    }

    func writeIncidents() {
        let waiting = incidents.withLock { queue in
            defer { queue.incidents = [:] }
            return queue.incidents
        }
        guard !waiting.isEmpty else { return }
        do throws(StoreError) {
            try writePending()
            try database.write(.full) { database in
                for entry in waiting.values.sorted(by: { $0.incident.id < $1.incident.id }) {
                    try entry.incident.write(to: database, of: entry.members)
                }
            }
            didWrite()
            for entry in waiting.values { for completion in entry.completions { completion() } }
        } catch {
            // A newer state has come in the meantime, or it is still the last one.
            incidents.withLock { queue in
                queue.incidents.merge(waiting) { newer, older in
                    var members = older.members
                    members.formUnion(newer.members)
                    return IncidentQueue.Waiting(
                        incident: newer.incident, members: members, completions: older.completions + newer.completions)
                }
            }
            condition.set(.database, error)
        }
    }

    func writePathEvents() {
        let events = incidents.withLock { queue in
            defer { queue.pathEvents = [] }
            return queue.pathEvents
        }
        guard !events.isEmpty else { return }
        do throws(StoreError) {
            try writePending()
            try database.write(pathEvents: events)
            didWrite()
        } catch {
            incidents.withLock { queue in
                queue.pathEvents = (events + queue.pathEvents).suffix(IncidentQueue.pathEventLimit)
            }
            condition.set(.database, error)
        }
    }

    /// Moves the logs before a generation into the database, removes them, and applies the retention.
    @discardableResult
    func moveLogs(before next: UInt64, isClean: Bool = false) -> Result<Void, StoreError> {
        do throws(StoreError) {
            try writePending()
            let logs = directory.generations.filter { $0 < next }
            _ = try database.checkpoint(
                logs.map(directory.log), next: next, calendar: calendar.withLock { $0 }, stops: isClean, isClean: isClean)
            for log in logs { unlink(directory.log(log)) }
            recorder.didRemove(before: next)
            pending.withLock { $0.firstNumber = 0 }
            // The turns are in the database now, so the reader need not have them in memory.
            queryThread.run { self.reader.withLock { $0 }?.releaseTurns() }
            incidents.withLock { $0.owesCheckpoint = false }
            if let (wall, monotonic) = condition.clocks {
                let now = retentionClock.withLock { $0.read(wall: wall, monotonic: monotonic) }
                try database.apply(settings.withLock { $0.retention }, at: now)
            }
            didWrite()
            return .success(())
        } catch {
            incidents.withLock { $0.owesCheckpoint = true }
            condition.set(.database, error)
            return .failure(error)
        }
    }
}
