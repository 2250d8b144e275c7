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
    private static func limited(_ span: Range<Int64>) -> Range<Int64> {
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

extension HistoryReader {
    /// The numbers of the targets of the incidents that overlap a time, by the identifiers of the incidents.
    ///
    /// - Parameter span: the time in milliseconds since 1970.
    /// - Returns: the numbers; an incident without known targets is missing.
    /// - Throws: ``StoreError`` if the database cannot be read in time.
    func members(_ span: Range<Int64>) throws(StoreError) -> [String: TargetSet] {
        try read { database in
            var members: [String: TargetSet] = [:]
            func forRows(_ table: String, _ column: String, _ body: (String, Row) -> Void) throws {
                let rows = try Row.fetchCursor(
                    database,
                    sql: """
                        SELECT \(table).id, \(table).\(column) FROM \(table) JOIN incident ON incident.id = \(table).id
                        WHERE incident.began < ? AND (incident.ended IS NULL OR incident.ended >= ?)
                        """, arguments: [span.upperBound, span.lowerBound])
                while let row = try rows.next() {
                    try checkTime()
                    if let id = row.text(0) { body(id, row) }
                }
            }
            try forRows("member", "target") { id, row in
                // A damaged number would need memory for all smaller ones.
                guard let number = row.integer(1), 0..<Int64(TurnCoder.targetLimit) ~= number else { return }
                members[id, default: TargetSet()].insert(Int(number))
            }
            try forRows("members", "targets") { id, row in
                guard let data = row.bytes(1), let set = TargetSet(bytes: data) else { return }
                members[id, default: TargetSet()].formUnion(set)
            }
            return members
        }
    }
}

extension HistoryReader {
    /// The samples of a target, the oldest first.
    ///
    /// - Parameters:
    ///   - target: the number of the target.
    ///   - span: the time in milliseconds since 1970.
    ///   - limit: the maximum number of samples.
    ///   - cursor: ``Page/next`` of the page before. A cursor of another form is ignored.
    ///   - hasChanges: whether changes of the state without a result are included, as by a maintenance window or a lost link.
    /// - Returns: a page of samples.
    /// - Throws: ``StoreError`` if the database cannot be read in time.
    func samples(
        of target: Int, _ span: Range<Int64>, limit: Int = 10_000, after cursor: String? = nil, hasChanges: Bool = false
    ) throws(StoreError) -> Page<Sample> {
        let span = Self.limited(span)
        guard !span.isEmpty, 0..<TurnCoder.targetLimit ~= target else { return Page(elements: []) }
        let limit = min(max(limit, 1), SampleBlock.limit)
        // A cursor is a time, and the number of samples of that time that were already returned.
        let parts = (cursor ?? "").split(separator: "-").compactMap { Int64($0) }
        let (start, skipped) =
            parts.count == 2 && parts[1] >= 0 ? (max(span.lowerBound, parts[0]), parts[1]) : (span.lowerBound, 0)
        guard start < span.upperBound else { return Page(elements: []) }
        let wanted = start..<span.upperBound
        var found = try committed(target, wanted, limit: limit + Int(min(skipped, Int64(SampleBlock.limit))), hasChanges)
        for block in overlay?.blocks(of: target) ?? [] {
            found += block.samples.samples.filter { ($0.isResult || hasChanges) && wanted.contains($0.time) }
        }
        found.sort { $0.time < $1.time }
        found = Array(found.dropFirst(Int(clamping: parts.count == 2 && start == parts[0] ? skipped : 0)))
        guard found.count > limit else { return Page(elements: found) }
        let page = Array(found.prefix(limit))
        let time = page[limit - 1].time
        let same = page.reversed().prefix { $0.time == time }.count + (start == time ? Int(clamping: skipped) : 0)
        return Page(elements: page, next: "\(time)-\(same)")
    }

    /// Reads blocks, an hour at a time, until more samples than the limit are found.
    private func committed(
        _ target: Int, _ span: Range<Int64>, limit: Int, _ hasChanges: Bool
    ) throws(StoreError) -> [Sample] {
        try read { database in
            var found: [Sample] = []
            let bounds = try Row.fetchOne(database, sql: "SELECT min(hour), max(hour) FROM block")
            guard let first = bounds?.integer(0), let last = bounds?.integer(1) else { return [] }
            let statement = try database.makeStatement(sql: "SELECT data FROM block WHERE number = ?")
            let following = try database.makeStatement(sql: "SELECT min(number) >> 20 FROM block WHERE number > ?")
            var hour = TargetLedger.hour(containing: SampleBlock.limited(max(span.lowerBound, first))).lowerBound
            let end = min(span.upperBound, SampleBlock.limited(last) + 1)
            while hour < end, found.count <= limit {
                try checkTime()
                let number = HistorySchema.block(target, hour: hour)
                hour += HistorySchema.hour
                if let data = try Data.fetchOne(statement, arguments: [number]) {
                    let samples = try? SampleBlock(bytes: [UInt8](data)).samples()
                    found += (samples ?? []).filter { ($0.isResult || hasChanges) && span.contains($0.time) }
                } else if let next = try Int64.fetchOne(following, arguments: [number]) {
                    // The hours without any block are passed over.
                    hour = max(hour, SampleBlock.limited(next &* HistorySchema.hour))
                }
            }
            return found
        }
    }
}

extension HistoryReader {
    /// The kind of the summaries.
    enum Resolution: String, Hashable, Sendable {
        case hour
        case day
    }

    /// The summaries of a target that overlap a time, the oldest first. The last one can be of a period that has not ended.
    func summaries(_ resolution: Resolution, of target: Int, _ span: Range<Int64>) throws(StoreError) -> [PeriodSummary] {
        let span = Self.limited(span)
        // A day can begin 25 hours before the time.
        let margin = resolution == .hour ? HistorySchema.hour : 2 * 86_400_000
        var found = try read { database in
            var found: [PeriodSummary] = []
            let rows = try SummaryRows(
                database, resolution.rawValue, from: span.lowerBound - margin, until: span.upperBound, target: target)
            while let (_, summary) = try rows.next() {
                try checkTime()
                if summary.period.overlaps(span) { found.append(summary) }
            }
            return found
        }
        guard let overlay else { return found }
        let ended = resolution == .hour ? overlay.output.hours : overlay.output.days
        found += ended.filter { $0.target == target && $0.summary.period.overlaps(span) }.map(\.summary)
        if overlay.entries.indices.contains(target), let ledger = overlay.entries[target]?.ledger {
            let current = resolution == .hour ? ledger.currentHour : ledger.currentDay
            if current.times.total > 0, current.period.overlaps(span) { found.append(current) }
        }
        return found
    }

    /// The summary of each target over a time, by the number of the target.
    ///
    /// The states of each target sum to the length of the time: what no summary covers was not recorded. An hour that is partly in the
    /// time counts by its samples. If they were removed, it counts with the same part of its states and results.
    ///
    /// - Parameters:
    ///   - span: the time in milliseconds since 1970.
    ///   - target: the only target; `nil` for all.
    ///   - hasRoundTrips: whether the distributions of round trips and response times are wanted. Without them the query needs half of the time.
    /// - Returns: the summaries by the number of the target.
    /// - Throws: ``StoreError`` if the database cannot be read in time.
    func summaries(_ span: Range<Int64>, of target: Int? = nil, hasRoundTrips: Bool = true) throws(StoreError) -> [Int:
        PeriodSummary]
    {
        let span = Self.limited(span)
        var sums: [Int: SpanSum] = [:]
        if let target { sums[target] = SpanSum(span) } else { for known in try targets() { sums[known.number] = SpanSum(span) } }
        let days = try daysInside(span)
        let ledgers = try current()
        for hour in Self.partialHours(of: span) where days.map({ !$0.overlaps(hour) }) ?? true {
            try forTimelines(of: target, in: hour, ledgers) { number, timeline in
                sums[number]?.add(timeline, in: hour.clamped(to: span))
            }
        }
        try read { database in
            func add(_ table: String, _ start: Int64, _ end: Int64) throws {
                let rows = try SummaryRows(
                    database, table, from: start, until: end, target: target, hasRoundTrips: hasRoundTrips)
                while let (number, summary) = try rows.next() {
                    try checkTime()
                    sums[number]?.add(summary)
                }
            }
            let first = span.lowerBound - HistorySchema.hour + 1
            guard let days else { return try add("hour", first, span.upperBound) }
            try add("hour", first, days.lowerBound)
            try add("day", days.lowerBound, days.upperBound)
            try add("hour", days.upperBound, span.upperBound)
        }
        for entry in overlay?.output.days ?? [] where days?.contains(entry.summary.period.lowerBound) == true {
            sums[entry.target]?.add(entry.summary)
        }
        for entry in overlay?.output.hours ?? [] where days?.contains(entry.summary.period.lowerBound) != true {
            sums[entry.target]?.add(entry.summary)
        }
        for (number, ledger) in ledgers.enumerated() {
            guard let ledger else { continue }
            // A target that is no longer monitored can have a day that never ends.
            let isInDays = days?.contains(ledger.currentDay.period.lowerBound) == true
            if isInDays { sums[number]?.add(ledger.currentDay) }
            if days?.contains(ledger.currentHour.period.lowerBound) != true { sums[number]?.add(ledger.currentHour) }
        }
        return sums.mapValues { $0.completed }
    }

    /// Returns the hours that are partly in a time: at most two.
    private static func partialHours(of span: Range<Int64>) -> [Range<Int64>] {
        guard !span.isEmpty else { return [] }
        let first = TargetLedger.hour(containing: span.lowerBound)
        let last = TargetLedger.hour(containing: span.upperBound)
        var hours: [Range<Int64>] = []
        if first.lowerBound < span.lowerBound || first.upperBound > span.upperBound { hours.append(first) }
        if last != first, last.lowerBound < span.upperBound { hours.append(last) }
        return hours
    }

    /// Returns whether an hour begins with an outage that was counted before, by the number of the target, as far as it is known.
    private func continuedOutages(
        of target: Int?, in hour: Range<Int64>, _ ledgers: [TargetLedger?]
    ) throws(StoreError) -> [Int: Bool] {
        var continued = try read { database in
            var continued: [Int: Bool] = [:]
            let rows = try SummaryRows(
                database, Resolution.hour.rawValue, from: hour.lowerBound, until: hour.lowerBound + 1, target: target,
                hasRoundTrips: false)
            while let (number, summary) = try rows.next() { continued[number] = summary.continuesOutage }
            return continued
        }
        for entry in overlay?.output.hours ?? [] where entry.summary.period == hour {
            continued[entry.target] = entry.summary.continuesOutage
        }
        for (number, ledger) in ledgers.enumerated() {
            if let ledger, ledger.currentHour.period == hour { continued[number] = ledger.currentHour.continuesOutage }
        }
        return continued
    }

    /// Calls `body` with the timeline of each target that has samples of an hour.
    private func forTimelines(
        of target: Int?, in hour: Range<Int64>, _ ledgers: [TargetLedger?], _ body: (Int, HourTimeline) -> Void
    ) throws(StoreError) {
        let recent = Dictionary(grouping: overlay?.blocks(of: target, hour: hour.lowerBound) ?? [], by: \.target)
        let continued = try continuedOutages(of: target, in: hour, ledgers)
        func use(_ number: Int, _ bytes: [UInt8]?) {
            var samples: [Sample] = []
            // The samples of a damaged block are replaced by the summary of the hour.
            if let bytes {
                guard let decoded = try? SampleBlock(bytes: bytes).samples() else { return }
                samples = decoded
            }
            for block in recent[number] ?? [] { samples = samples.joined(with: block.samples.samples) }
            let ledger = ledgers.indices.contains(number) ? ledgers[number] : nil
            let end = ledger.map { $0.currentHour.period == hour ? $0.end : hour.upperBound } ?? hour.upperBound
            var timeline = HourTimeline(hour: hour, samples: samples, end: end, outageLimit: ledger?.outages.limit ?? 0)
            timeline.continuesOutage = continued[number] ?? true
            body(number, timeline)
        }
        let numbers = try read { database in
            var numbers: Set<Int> = []
            let first = HistorySchema.block(target ?? 0, hour: hour.lowerBound)
            let last = target == nil ? HistorySchema.block(0, hour: hour.upperBound) - 1 : first
            let rows = try Row.fetchCursor(
                database, sql: "SELECT target, data FROM block WHERE number BETWEEN ? AND ?", arguments: [first, last])
            while let row = try rows.next() {
                try checkTime()
                guard let number = row.integer(0), let data = row.bytes(1) else { continue }
                numbers.insert(Int(number))
                use(Int(number), data)
            }
            return numbers
        }
        for number in recent.keys where !numbers.contains(number) { use(number, nil) }
    }

    /// Returns the time of the complete days inside of a time, whose summaries replace those of their hours; `nil` for none.
    ///
    /// In zones with an offset of half an hour, an hour belongs to two days. There, and for days without hours, days are used only
    /// before the first hour that is kept.
    private func daysInside(_ span: Range<Int64>) throws(StoreError) -> Range<Int64>? {
        try read { database in
            let row = try Row.fetchOne(
                database,
                sql: """
                    SELECT min(t), max(until), max(t % \(HistorySchema.hour)), max(until % \(HistorySchema.hour)) FROM day
                    WHERE t >= ? AND t < ? AND until <= ?
                    """, arguments: [span.lowerBound, span.upperBound, span.upperBound])
            guard let row, let start = row.time(0), let end = row.time(1), start < end else { return nil }
            if row.integer(2) == 0, row.integer(3) == 0 { return start..<end }
            guard let hour = try Int64.fetchOne(database, sql: "SELECT min(t) FROM hour"), hour > start else { return nil }
            let last = try Int64.fetchOne(
                database, sql: "SELECT max(until) FROM day WHERE t >= ? AND until <= ?", arguments: [start, min(hour, end)])
            return last.flatMap { start <= $0 ? start..<$0 : nil }
        }
    }

    /// Returns the ledgers by the number of the target. Those of targets that are no longer monitored are of the last checkpoint.
    private func current() throws(StoreError) -> [TargetLedger?] {
        if let overlay { return overlay.entries.map { $0?.ledger } }
        return try read { try HistoryDatabase.entries($0).entries.map { $0?.ledger } }
    }

    /// The cells of a bar of all targets: 16 bytes for each cell.
    struct BarTable: Sendable {
        /// The number of cells of a bar.
        let count: Int
        // The cells of the first target, then those of the second one.
        fileprivate var cells: [BarCell]

        /// The cells of a target, the oldest first. A target that is not in the history has empty cells.
        subscript(target: Int) -> ArraySlice<BarCell> {
            guard target >= 0, (target + 1) * count <= cells.count else {
                return Array(repeating: BarCell(), count: count)[...]
            }
            return cells[target * count..<(target + 1) * count]
        }
    }

    /// Returns the bars of all targets, from the summaries that begin in each cell.
    ///
    /// One pass over the rows keeps the times of one cell in memory: 0.6 MB for 10,000 targets. The current hour and day are not
    /// included.
    ///
    /// - Parameters:
    ///   - cells: the limits of the cells, the oldest first, without overlaps.
    ///   - resolution: the summaries: days for the cells of 90 days, otherwise hours.
    /// - Returns: the cells of all targets.
    /// - Throws: ``StoreError`` if the database cannot be read in time.
    func bars(_ cells: [Range<Int64>], _ resolution: Resolution) throws(StoreError) -> BarTable {
        let targets = (try self.targets().last?.number ?? -1) + 1
        return try read { database in
            var table = BarTable(count: cells.count, cells: Array(repeating: BarCell(), count: targets * cells.count))
            let states = RecordedState.allCases.map(\.name).joined(separator: ", ")
            let statement = try database.makeStatement(
                sql: "SELECT target, \(states) FROM \(resolution.rawValue) WHERE t >= ? AND t < ?")
            var times = [StateTimes](repeating: StateTimes(), count: targets)
            let ended = (resolution == .hour ? overlay?.output.hours : overlay?.output.days) ?? []
            for (index, cell) in cells.enumerated() {
                for target in times.indices { times[target] = StateTimes() }
                let rows = try Row.fetchCursor(statement, arguments: [cell.lowerBound, cell.upperBound])
                while let row = try rows.next() {
                    try checkTime()
                    let target = Int(clamping: row.integer(0) ?? -1)
                    guard times.indices.contains(target) else { continue }
                    for state in RecordedState.allCases {
                        let time = row.integer(1 + Int(state.rawValue)) ?? 0
                        times[target][state] += min(max(time, 0), 1 << 40)
                    }
                }
                for entry in ended where cell.contains(entry.summary.period.lowerBound) && times.indices.contains(entry.target) {
                    times[entry.target] = times[entry.target] + entry.summary.times
                }
                for target in times.indices { table.cells[target * cells.count + index] = BarCell(times[target]) }
            }
            return table
        }
    }
}
