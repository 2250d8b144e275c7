import EventLoop
import FoundationEssentials
import GRDB
import Glibc
import Pacing
import Reachability

/// The queries of the history, on a connection that only reads. One thread uses a reader at a time.
///
/// The database has the turns until the last checkpoint. A reader of a stopped service (``open(directory:calendar:)``) adds those of the
/// logs. In a running service, the keeper's own ledgers have the later time, and are passed to ``summaries(_:of:adding:)``.
final class HistoryReader: Sendable {
    private let queue: DatabaseQueue
    private let directory: StateDirectory
    /// The turns of the logs at the time of opening; `nil` in a running service.
    let overlay: LedgerBook?
    private let deadline = Locked<Int64?>(nil)

    private init(_ queue: DatabaseQueue, _ directory: StateDirectory, _ overlay: LedgerBook?) {
        (self.queue, self.directory, self.overlay) = (queue, directory, overlay)
    }

    /// Opens the history of a running service, in its own process.
    init(_ directory: StateDirectory) throws(StoreError) {
        (self.directory, overlay) = (directory, nil)
        queue = try HistoryFile.openForReading(directory)
    }

    /// Opens the history of a service that is stopped, or that runs in another process. Nothing is written.
    ///
    /// - Throws: ``StoreError`` with ``StoreError/Code/missing`` if the directory has no history.
    static func open(directory path: String, calendar: DayCalendar) throws(StoreError) -> HistoryReader {
        let directory = StateDirectory(path: path)
        let queue = try HistoryFile.openForReading(directory)
        do {
            var overlay = LedgerBook([], calendar)
            // A checkpoint of the running service moves turns from the logs to the database. What was read meanwhile is read again.
            for _ in 0..<consistentAttempts {
                let generation = try queue.read(Self.generation)
                overlay = try queue.read { try replay(directory, $0, calendar) }
                if try queue.read(Self.generation) == generation { break }
            }
            return HistoryReader(queue, directory, overlay)
        } catch {
            try? queue.close()
            throw HistoryFile.failure(error, directory.database)
        }
    }

    /// The attempts to read the database and the logs while no checkpoint moves turns from one to the other.
    static let consistentAttempts = 5

    /// Reads the first generation of a log whose turns are not in the database.
    static func generation(_ database: Database) throws -> UInt64 {
        UInt64(clamping: try Int64.fetchOne(database, sql: "SELECT value FROM meta WHERE key = 'generation'") ?? 0)
    }

    /// Applies the turns of the logs to the ledgers of the database.
    private static func replay(_ directory: StateDirectory, _ database: Database, _ calendar: DayCalendar) throws -> LedgerBook {
        let first = try generation(database)
        let identifier = try Int64.fetchOne(database, sql: "SELECT value FROM meta WHERE key = 'id'") ?? 0
        var book = LedgerBook(try HistoryDatabase.entries(database).entries, calendar)
        for log in directory.generations where log >= first {
            // A log that cannot be read is left out.
            _ = try? TurnLogFile.read(directory.log(log)) { header, turn in
                guard Int64(header.database) == identifier else { return false }
                book.apply(turn)
                return true
            }
        }
        book.finish(stops: true)
        return book
    }

    func close() { try? queue.close() }

    // MARK: Time limit

    /// Runs a query that is interrupted after a time (CLOCK_MONOTONIC, in nanoseconds).
    func run<Value>(until end: Int64, _ query: (HistoryReader) throws -> Value) throws(StoreError) -> Value {
        deadline.withLock { $0 = end }
        defer { deadline.withLock { $0 = nil } }
        do { return try query(self) } catch { throw HistoryFile.failure(error, directory.database) }
    }

    /// Interrupts the present query if its time is over. Any thread may call it.
    func interruptOverdueQuery() {
        // While the lock is held, no other query begins.
        deadline.withLock { deadline in
            guard let end = deadline, MonotonicClock.now() > end else { return }
            queue.interrupt()
        }
    }

    /// Throws if the time of the query is over.
    func checkTime() throws {
        guard let end = deadline.withLock({ $0 }), MonotonicClock.now() > end else { return }
        throw StoreError(.timedOut, "\(directory.database): the query needs too much time")
    }

    func read<Value>(_ body: (Database) throws -> Value) throws(StoreError) -> Value {
        do { return try queue.read(body) } catch { throw HistoryFile.failure(error, directory.database) }
    }

    /// Reads the samples of a target in the logs. The logs are read while they are written; a turn that is not complete ends them.
    ///
    /// A log that a checkpoint has removed is left out. The caller compares the generation before and after.
    func recentOfLogs(_ target: Int, since generation: UInt64) throws(StoreError) -> [Sample] {
        var found: [Sample] = []
        do {
            for log in directory.generations where log >= generation && access(directory.log(log), F_OK) == 0 {
                try TurnLogFile.read(directory.log(log)) { _, turn in
                    try checkTime()
                    for case .sample(target, let sample) in turn.events { found.append(sample) }
                    return true
                }
            }
            return found
        } catch {
            throw HistoryFile.failure(error, directory.database)
        }
    }

    /// Limits a time that a user wrote to the times that the history can have.
    static func limited(_ span: Range<Int64>) -> Range<Int64> {
        SampleBlock.limited(span.lowerBound)..<SampleBlock.limited(span.upperBound)
    }

    // MARK: Targets, gaps, path events

    /// All targets of the history, in the order of their numbers.
    func targets() throws(StoreError) -> [HistoryStore.Target] { try read(HistoryDatabase.targets) }

    /// The time until which the history is recorded, in milliseconds since 1970; `nil` for an empty history.
    func lastAlive() throws(StoreError) -> Int64? {
        if let time = overlay?.time { return time.wall }
        return try read { try Int64.fetchOne($0, sql: "SELECT value FROM meta WHERE key = 'last_alive'") }
    }

    /// The gaps that overlap a time, the oldest first. At most `limit` are returned.
    func gaps(_ span: Range<Int64>, limit: Int = 10_000) throws(StoreError) -> [HistoryGap] {
        let rows = try read { database in
            try Row.fetchAll(
                database, sql: "SELECT began, ended, reason FROM gap WHERE began < ? AND ended > ? ORDER BY began LIMIT ?",
                arguments: [span.upperBound, span.lowerBound, limit])
        }
        var gaps = rows.compactMap { row -> HistoryGap? in
            guard let began = row[0] as Int64?, let ended = row[1] as Int64?, began <= ended,
                let reason = (row[2] as String?).flatMap(HistoryGap.Reason.init)
            else { return nil }
            return HistoryGap(period: began..<ended, reason: reason)
        }
        gaps += (overlay?.output.gaps ?? []).filter { $0.period.overlaps(span) }
        return gaps
    }

    /// A path event: the keys of the record `path` as JSON.
    struct PathEvent: Hashable, Sendable {
        /// The time in milliseconds since 1970.
        var time: Int64
        var record: String
    }

    /// The path events of a time, the oldest first. If there are more than `limit`, the last ones are returned.
    func pathEvents(_ span: Range<Int64>, limit: Int = 1_000) throws(StoreError) -> [PathEvent] {
        try read { database in
            try Row.fetchAll(
                database, sql: "SELECT time, record FROM path_event WHERE time >= ? AND time < ? ORDER BY id DESC LIMIT ?",
                arguments: [span.lowerBound, span.upperBound, limit]
            ).reversed().compactMap { row in
                guard let time = row[0] as Int64?, let record = row[1] as String? else { return nil }
                return PathEvent(time: time, record: record)
            }
        }
    }

    // MARK: Incidents

    /// A part of a result, and the place at which the next part begins.
    struct Page<Element: Sendable>: Sendable {
        var elements: [Element]
        /// The cursor of the next page; `nil` if there is none.
        var next: String?
    }

    /// The incidents that overlap a time, the newest first.
    ///
    /// - Parameters:
    ///   - span: the time in milliseconds since 1970.
    ///   - target: the text of a target that the incident lists or is about; `nil` for all.
    ///   - limit: the maximum number of incidents.
    ///   - cursor: ``Page/next`` of the page before. A cursor of another form is ignored.
    /// - Returns: a page of incidents.
    /// - Throws: ``StoreError`` if the database cannot be read in time.
    func incidents(
        _ span: Range<Int64>, of target: String? = nil, limit: Int = 1_000, after cursor: String? = nil
    ) throws(StoreError) -> Page<Incident> {
        let place = cursor.flatMap(Self.place)
        let rows = try read { database in
            let selection = target == nil ? "" : "AND id IN (SELECT id FROM incident_target WHERE target = :target)"
            let rows = try Row.fetchCursor(
                database,
                sql: """
                    SELECT \(Incident.columns) FROM incident
                    WHERE began < :until AND (ended IS NULL OR ended >= :since)
                    AND (began, id) < (:began, :id) \(selection)
                    ORDER BY began DESC, id DESC LIMIT :limit
                    """,
                arguments: StatementArguments(
                    [
                        "until": span.upperBound, "since": span.lowerBound, "began": place?.began ?? .max, "id": place?.id ?? "",
                        "limit": min(max(limit, 1), 100_000),
                    ] as [String: (any DatabaseValueConvertible)?])
                    + (target.map { StatementArguments(["target": $0]) } ?? []))
            var found: [(began: Int64, id: String, incident: Incident?)] = []
            while let row = try rows.next() {
                try checkTime()
                found.append(((row[1] as Int64?) ?? 0, (row[0] as String?) ?? "", Incident(row)))
            }
            return found
        }
        let last = rows.count >= max(limit, 1) ? rows.last : nil
        return Page(elements: rows.compactMap(\.incident), next: last.map { "\($0.began)-\($0.id)" })
    }

    private static func place(_ cursor: String) -> (began: Int64, id: String)? {
        // A time before 1970 begins with the sign.
        guard let end = cursor.dropFirst().firstIndex(of: "-"), let began = Int64(cursor[..<end]) else { return nil }
        return (began, String(cursor[cursor.index(after: end)...]))
    }
}
