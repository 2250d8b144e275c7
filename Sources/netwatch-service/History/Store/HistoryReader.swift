import CheckedDatabase
import EventLoop
import FoundationEssentials
import GRDB
import Glibc
import Pacing
import Reachability

/// The queries of the history, on a connection that only reads. One thread uses a reader at a time.
///
/// The database has the turns until the last checkpoint, and a ``TurnFollower`` those of the logs.
final class HistoryReader: Sendable {
    private let queue: DatabaseQueue
    private let directory: StateDirectory
    private let follower: TurnFollower?
    private let deadline = Locked<Deadline?>(nil)
    private let limit = QueryTimeLimit()
    /// The time after which no query of this reader continues; `nil` if there is none.
    private let finalDeadline: Int64?

    /// The time in nanoseconds that the queries of a reader of another process' files have together.
    static let totalTime: Int64 = 300_000_000_000

    /// Opens the database of a history that has no logs.
    init(_ directory: StateDirectory) throws(StoreError) {
        (self.directory, follower, finalDeadline) = (directory, nil, nil)
        queue = try HistoryFile.openForReading(directory, limit)
    }

    /// Opens the history of a service that runs in this process. Each ``run(until:_:)`` sees the turns until then.
    ///
    /// - Parameters:
    ///   - directory: the state directory.
    ///   - calendar: the days of the service's time zone.
    ///   - totalTime: the time in nanoseconds that all queries of the reader have together; `nil` for no limit.
    /// - Throws: ``StoreError``.
    init(following directory: StateDirectory, calendar: DayCalendar, totalTime: Int64? = nil) throws(StoreError) {
        self.directory = directory
        finalDeadline = totalTime.map { MonotonicClock.now() + $0 }
        queue = try HistoryFile.openForReading(directory, limit)
        limit.set(finalDeadline)
        follower = TurnFollower(directory, calendar)
    }

    /// Opens the history of a service that is stopped, or that runs in another process. Nothing is written. A query ends with
    /// ``StoreError/Code/timedOut`` when the queries of the reader have taken longer than ``totalTime``.
    ///
    /// - Throws: ``StoreError`` with ``StoreError/Code/missing`` if the directory has no history.
    static func open(directory path: String, calendar: DayCalendar) throws(StoreError) -> HistoryReader {
        let reader = try HistoryReader(following: StateDirectory(path: path), calendar: calendar, totalTime: totalTime)
        do { try reader.run(until: nil) { _ in } } catch {
            reader.close()
            throw error
        }
        return reader
    }

    /// Returns the name of the zone that the service of a history has for its days; `nil` if the history has none.
    static func timeZone(of directory: StateDirectory) throws(StoreError) -> String? {
        let reader = try HistoryReader(directory)
        defer { reader.close() }
        return try reader.read { try HistoryDatabase.text("time_zone", $0) }
    }

    /// The attempts to read the database and the logs while no checkpoint moves turns from one to the other.
    private static let consistentAttempts = 5

    /// The turns of the logs; `nil` without logs.
    var overlay: LedgerBook? { follower?.book }

    /// Releases the memory of the turns that were read from the logs.
    func releaseTurns() { follower?.release() }

    func close() { try? queue.close() }

    // MARK: Time limit

    /// The time limit of a query.
    private struct Deadline: Sendable {
        var end: Int64
        /// The time after which the query is interrupted, or interrupted again.
        var interruption: Int64
        /// Whether the query knows. An interruption would then hit the end of its transaction, which must not fail.
        var isReported = false
    }

    /// The time between two interruptions in nanoseconds. An interrupted query ends its transaction in less time.
    private static let interruptionInterval: Int64 = 100_000_000

    /// Runs a query that is interrupted after a time (CLOCK_MONOTONIC, in nanoseconds); `nil` for no limit.
    ///
    /// The turns in the logs are read first. If that takes all of the time, the next query continues there.
    func run<Value>(until end: Int64?, _ query: (HistoryReader) throws -> Value) throws(StoreError) -> Value {
        deadline.withLock { $0 = end.map { Deadline(end: $0, interruption: $0) } }
        limit.set(end ?? finalDeadline)
        defer {
            deadline.withLock { $0 = nil }
            limit.set(finalDeadline)
        }
        do {
            guard let follower else { return try query(self) }
            // A checkpoint moves turns from the logs to the database. What was read meanwhile is read again.
            for _ in 1..<Self.consistentAttempts {
                try follower.advance(self)
                let value = try query(self)
                if try read(TurnFollower.generation) == follower.generation { return value }
            }
            try follower.advance(self)
            return try query(self)
        } catch { throw HistoryFile.failure(error, directory.database) }
    }

    /// Interrupts the present query if its deadline has passed. Any thread may call it.
    func interruptOverdueQuery() {
        // While the lock is held, no other query begins.
        deadline.withLock { deadline in
            let now = MonotonicClock.now()
            guard let current = deadline, !current.isReported, now > current.interruption else { return }
            deadline?.interruption = now.addingSaturated(Self.interruptionInterval)
            queue.interrupt()
        }
    }

    /// Throws if the deadline of the query has passed.
    func checkTime() throws {
        let isOver = deadline.withLock { deadline in
            guard let end = deadline?.end, MonotonicClock.now() > end else { return false }
            deadline?.isReported = true
            return true
        }
        if isOver { throw StoreError(.timedOut, "\(directory.database): the query needs too much time") }
    }

    func read<Value>(_ body: (Database) throws -> Value) throws(StoreError) -> Value {
        do { return try queue.readSnapshot(body) } catch { throw HistoryFile.failure(error, directory.database) }
    }

    /// Limits a time that a user wrote to the times that the history can have.
    static func limited(_ span: Range<Int64>) -> Range<Int64> {
        SampleBlock.limited(span.lowerBound)..<SampleBlock.limited(span.upperBound)
    }

    // MARK: Targets, gaps, path events

    /// All targets of the history, in the order of their numbers.
    func targets() throws(StoreError) -> [HistoryStore.Target] { try read(HistoryDatabase.targets) }

    /// The number of the target with a key; `nil` if the history has none.
    func number(ofTarget key: String) throws(StoreError) -> Int? {
        try read { database in
            let number = try Int64.fetchOne(
                database, sql: "SELECT CAST(number AS INTEGER) FROM target WHERE key = ?", arguments: [key])
            return number.flatMap { 0..<Int64(TurnCoder.targetLimit) ~= $0 ? Int($0) : nil }
        }
    }

    /// The time until which the history is recorded, in milliseconds since 1970; `nil` for an empty history.
    func lastAlive() throws(StoreError) -> Int64? {
        if let time = overlay?.time { return time.wall }
        return try read { try HistoryDatabase.number("last_alive", $0).map(SampleBlock.limited) }
    }

    /// The gaps that overlap a time, the oldest first. If there are more than `limit`, the last ones are returned.
    func gaps(_ span: Range<Int64>, limit: Int = 100_000) throws(StoreError) -> [HistoryGap] {
        let rows = try read { database in
            try Row.fetchAll(
                database, sql: "SELECT began, ended, reason FROM gap WHERE began < ? AND ended > ? ORDER BY began DESC LIMIT ?",
                arguments: [span.upperBound, span.lowerBound, limit])
        }
        var gaps = rows.reversed().compactMap { row -> HistoryGap? in
            guard let began = row.time(0), let ended = row.time(1), began <= ended,
                let reason = row.text(2).flatMap(HistoryGap.Reason.init)
            else { return nil }
            return HistoryGap(period: began..<ended, reason: reason)
        }
        gaps += (overlay?.output.gaps ?? []).filter { $0.period.overlaps(span) }
        return gaps
    }

    /// The times without a service or a recording until now (milliseconds since 1970); empty while turns are recorded, and for an empty history.
    ///
    /// - Parameters:
    ///   - now: the present time.
    ///   - start: the start of the service that asks; `nil` for the files of a service that may run or not.
    /// - Returns: the gaps, the oldest first.
    /// - Throws: ``StoreError`` if the database cannot be read.
    func gaps(until now: Int64, runningSince start: Int64? = nil) throws(StoreError) -> [HistoryGap] {
        guard let last = try lastAlive(), last < now else { return [] }
        let life = directory.lastLife
        if let start {
            // The present time is not recorded if no turn is: the disk is full.
            guard now - max(last, start) > Self.turnLimit else { return [] }
            return HistoryGap.sinceEnd(last, until: max(last, start), unrecordedUntil: life)
                + [HistoryGap(period: max(last, start)..<now, reason: .notRecorded)]
        }
        let isClean = try read { try HistoryDatabase.text("clean", $0) } == "1"
        if isClean, overlay?.time == nil {
            // A service that runs with a full disk has another sign of life each second.
            let isAlive = life.map { last < $0 && $0 <= now && now - $0 <= Self.turnLimit } ?? false
            return HistoryGap.sinceEnd(last, until: now, unrecordedUntil: isAlive ? now : life)
        }
        // Without a regular stop, the service may run, with a disk that is full. The next start knows the reason.
        return now - last > Self.turnLimit ? [HistoryGap(period: last..<now, reason: .notRecorded)] : []
    }

    /// The age of the last turn of a service that records, in milliseconds. It records one every 2 seconds.
    private static let turnLimit: Int64 = 5_000

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
                guard let time = row.time(0), let record = row.text(1) else { return nil }
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
    ///   - target: the number of a target that the incident affected; `nil` for all.
    ///   - limit: the maximum number of incidents.
    ///   - cursor: ``Page/next`` of the page before. A cursor of another form is ignored.
    /// - Returns: a page of incidents.
    /// - Throws: ``StoreError`` if the database cannot be read in time.
    func incidents(
        _ span: Range<Int64>, of target: Int? = nil, limit: Int = 1_000, after cursor: String? = nil
    ) throws(StoreError) -> Page<Incident> {
        let place = cursor.flatMap(Self.place)
        let rows = try read { database in
            let selection =
                target == nil
                ? ""
                : """
                AND (id IN (SELECT id FROM member WHERE target = :target)
                    OR EXISTS (SELECT 1 FROM members WHERE members.id = incident.id AND contains_target(members.targets, :target)))
                """
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
                        "limit": min(max(limit, 1), 100_001),
                    ] as [String: (any DatabaseValueConvertible)?])
                    + (target.map { StatementArguments(["target": $0]) } ?? []))
            var found: [(began: Int64, id: String, incident: Incident?)] = []
            while let row = try rows.next() {
                try checkTime()
                found.append((row.integer(1) ?? 0, row.text(0) ?? "", Incident(row)))
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
