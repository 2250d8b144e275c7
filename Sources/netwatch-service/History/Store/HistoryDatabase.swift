import EventLoop
import FoundationEssentials
import GRDB
import Pacing
import Reachability

/// The connection that writes. One thread uses it.
final class HistoryDatabase: Sendable {
    let path: String
    private let directory: StateDirectory
    private let lock: StateLock
    /// The connection; `nil` while the database cannot be opened.
    private let connection = Locked<OpenHistory?>(nil)
    /// The number of path events that are kept.
    static let pathEventLimit = 10_000

    /// Creates the connection without opening the database.
    init(_ directory: StateDirectory, _ lock: StateLock) {
        (self.directory, self.lock, path) = (directory, lock, directory.database)
    }

    /// Opens the database, or creates it. - Returns: a line for each file that was set aside.
    func open(boot: String, time: Int64) throws(StoreError) -> [String] {
        let (queue, notes) = try HistoryFile.open(directory, boot: boot, time: time)
        connection.withLock { $0 = OpenHistory(queue, directory) }
        return notes
    }

    /// Opens the database if ``open(boot:time:)`` could not. - Returns: whether it was opened by this call.
    func openAgain(boot: String) throws(StoreError) -> Bool {
        guard connection.withLock({ $0 == nil }) else { return false }
        let queue = try HistoryFile.openAgain(directory, boot: boot)
        connection.withLock { $0 = OpenHistory(queue, directory) }
        return true
    }

    /// Returns the connection.
    ///
    /// - Throws: ``StoreError`` also if another program has removed, replaced or truncated a file of the database.
    func queue() throws(StoreError) -> DatabaseQueue {
        if let loss { throw loss }
        guard let open = connection.withLock({ $0 }) else { throw StoreError(.inputOutput, "\(path): cannot be opened") }
        return open.queue
    }

    /// The reason why nothing may be written: another program has removed, replaced or truncated a file of the open database, so that what is written
    /// is lost, or another process may have the directory. It may be read on any thread.
    var loss: StoreError? { lock.loss() ?? connection.withLock { $0?.loss() } }

    /// The durability of a transaction (`PRAGMA synchronous`).
    enum Durability: String {
        /// The transaction is on the disk when the method returns.
        case full = "FULL"
        /// A loss of power may take back the transaction, but the file stays consistent.
        case normal = "NORMAL"
    }

    /// Runs a transaction.
    func write<Value>(_ durability: Durability = .normal, _ body: (Database) throws -> Value) throws(StoreError) -> Value {
        do {
            return try queue().writeWithoutTransaction { database in
                try database.endRemainingTransaction()
                try database.execute(sql: "PRAGMA synchronous = \(durability.rawValue)")
                var value: Value?
                try database.inTransaction(.immediate) {
                    value = try body(database)
                    return .commit
                }
                guard let value else { preconditionFailure("a transaction without a value") }
                return value
            }
        } catch {
            throw HistoryFile.failure(error, path)
        }
    }

    func read<Value>(_ body: (Database) throws -> Value) throws(StoreError) -> Value {
        do { return try queue().readSnapshot(body) } catch { throw HistoryFile.failure(error, path) }
    }

    // MARK: Meta

    func number(_ key: String) throws(StoreError) -> Int64? { try read { try Self.number(key, $0) } }

    static func number(_ key: String, _ database: Database) throws -> Int64? {
        try Int64.fetchOne(database, sql: "SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?", arguments: [key])
    }

    func text(_ key: String) throws(StoreError) -> String? { try read { try Self.text(key, $0) } }

    static func text(_ key: String, _ database: Database) throws -> String? {
        try String.fetchOne(database, sql: "SELECT value FROM meta WHERE key = ?", arguments: [key])
    }

    static func set(_ key: String, _ value: some DatabaseValueConvertible, _ database: Database) throws {
        try database.execute(sql: "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", arguments: [key, value])
    }

    // MARK: Targets

    func targets() throws(StoreError) -> [HistoryStore.Target] { try read(Self.targets) }

    static func targets(_ database: Database) throws -> [HistoryStore.Target] {
        let rows = try Row.fetchAll(
            database, sql: "SELECT number, \(HistoryStore.TargetNames.columns) FROM target ORDER BY number")
        return rows.compactMap { row in
            guard let number = row.integer(0), 0..<Int64(TurnCoder.targetLimit) ~= number,
                let names = HistoryStore.TargetNames(row, from: 1)
            else { return nil }
            return HistoryStore.Target(number: Int(number), names: names)
        }
    }

    /// Returns the numbers of targets. Unknown keys get new numbers, at least `first`, and changed names are kept.
    func register(_ targets: [HistoryStore.TargetNames], from first: Int = 0) throws(StoreError) -> [Int] {
        try write(.full) { database in
            var next = max(try Self.nextNumber(database), Int64(first))
            let select = try database.cachedStatement(
                sql: "SELECT number, \(HistoryStore.TargetNames.columns) FROM target WHERE key = ?")
            return try targets.map { names in
                if let row = try Row.fetchOne(select, arguments: [names.key]), let number = row.integer(0) {
                    if HistoryStore.TargetNames(row, from: 1) != names { try names.write(number, to: database) }
                    return Int(clamping: number)
                }
                guard next < Int64(TurnCoder.targetLimit) else {
                    throw StoreError(.refused, "\(path): the history has \(next) targets, and no further ones are possible")
                }
                try names.write(next, to: database)
                next += 1
                return Int(next - 1)
            }
        }
    }

    /// The number after those of all targets, at most ``TurnCoder/targetLimit``.
    private static func nextNumber(_ database: Database) throws -> Int64 {
        let last = try Int64.fetchOne(database, sql: "SELECT max(number) FROM target") ?? -1
        return min(max(last, -1), Int64(TurnCoder.targetLimit) - 1) + 1
    }

    // MARK: Ledgers

    /// Reads the ledgers by the number of the target, and counts the damaged ones.
    static func entries(_ database: Database) throws -> (entries: [LedgerBook.Entry?], damaged: Int) {
        var entries = [LedgerBook.Entry?](repeating: nil, count: Int(try nextNumber(database)))
        var damaged = 0
        let rows = try Row.fetchCursor(database, sql: "SELECT target, data FROM ledger")
        while let row = try rows.next() {
            guard let number = row.integer(0), entries.indices.contains(Int(clamping: number)), let data = row.bytes(1),
                let (ledger, isActive) = TargetLedger.decode(data)
            else {
                damaged += 1
                continue
            }
            entries[Int(number)] = LedgerBook.Entry(ledger: ledger, isActive: isActive)
        }
        return (entries, damaged)
    }

    // MARK: Events

    func write(pathEvents: [(time: Int64, record: String)]) throws(StoreError) {
        try write { database in
            for (time, record) in pathEvents {
                try database.execute(sql: "INSERT INTO path_event (time, record) VALUES (?, ?)", arguments: [time, record])
            }
            try database.execute(
                sql: "DELETE FROM path_event WHERE id <= (SELECT max(id) FROM path_event) - \(Self.pathEventLimit)")
        }
    }

    /// Writes gaps. A gap that is already there is replaced.
    static func write(_ gaps: [HistoryGap], _ database: Database) throws {
        for gap in gaps {
            try database.execute(
                sql: "INSERT OR REPLACE INTO gap (began, ended, reason) VALUES (?, ?, ?)",
                arguments: [gap.period.lowerBound, gap.period.upperBound, gap.reason.rawValue])
        }
    }

    /// Reads the incidents that are open, the oldest first.
    static func openIncidents(_ database: Database) throws -> [Incident] {
        try Row.fetchAll(database, sql: "SELECT \(Incident.columns) FROM incident WHERE ended IS NULL ORDER BY began")
            .compactMap { Incident($0) }
    }

    /// Moves the write-ahead log into the database file. The file then has the mark of a service that has not stopped, also without its
    /// log. An error is not reported: the log has everything.
    func mergeWriteAheadLog() { try? queue().writeWithoutTransaction { _ = try $0.checkpoint(.passive) } }

    func close() { try? connection.withLock { $0 }?.queue.close() }
}

extension HistoryDatabase {
    /// The result of moving logs into the database.
    struct Checkpoint {
        /// The ledgers at the last turn, by the number of the target.
        var entries: [LedgerBook.Entry?]
        /// The time of the last turn in the logs; `nil` if they have none.
        var time: ClockReading?
        /// The boot of the last log.
        var boot: String?
        /// The number of damaged ledgers and blocks, which were left out.
        var damaged = 0
    }

    /// Moves the turns of logs into the database in one transaction.
    ///
    /// The transaction also writes the number of the first log that it does not contain, so a crash before or after it neither loses a
    /// turn nor doubles one. It is durable, because the logs are removed after it: one fsync(2) for each checkpoint.
    ///
    /// - Parameters:
    ///   - logs: the paths of the logs in the order of their generations.
    ///   - next: the generation of the first log that is not included.
    ///   - calendar: the days.
    ///   - stops: whether no target is monitored after the last turn.
    ///   - isClean: whether this is the last checkpoint of a regular stop.
    /// - Returns: the ledgers at the last turn.
    /// - Throws: ``StoreError``; the database and the logs are then unchanged.
    func checkpoint(
        _ logs: [String], next: UInt64, calendar: DayCalendar, stops: Bool = false, isClean: Bool = false
    ) throws(StoreError) -> Checkpoint {
        let identifier = try number("id")
        return try write(.full) { database in
            let (entries, damaged) = try Self.entries(database)
            var result = Checkpoint(entries: [], damaged: damaged)
            var book = LedgerBook(entries, calendar)
            for log in logs {
                let header = try TurnLogFile.read(log) { header, turn in
                    guard Int64(header.database) == identifier else { return false }
                    book.apply(turn)
                    return true
                }
                if let header, Int64(header.database) == identifier { result.boot = header.boot }
            }
            book.finish(stops: stops)
            result.damaged += try Self.write(book.output, database)
            let upsert = try database.cachedStatement(sql: "INSERT OR REPLACE INTO ledger (target, data) VALUES (?, ?)")
            for (target, entry) in book.entries.enumerated() {
                guard let entry else { continue }
                try upsert.execute(arguments: [target, Data(entry.ledger.bytes(isActive: entry.isActive))])
            }
            try Self.set("generation", Int64(clamping: next), database)
            if let time = book.time {
                try Self.set("last_alive", time.wall, database)
                try Self.set("last_monotonic", time.monotonic, database)
                try Self.set("last_boottime", time.bootTime, database)
            }
            if let boot = result.boot { try Self.set("boot_id", boot, database) }
            try Self.set("clean", isClean ? "1" : "0", database)
            (result.entries, result.time) = (book.entries, book.time)
            return result
        }
    }

    /// Writes blocks, hours, days and gaps. - Returns: the number of damaged blocks that were replaced.
    private static func write(_ output: LedgerBook.Output, _ database: Database) throws -> Int {
        try write(output.gaps, database)
        try write(output.hours, to: "hour", database)
        try write(output.days, to: "day", database)
        var damaged = 0
        let select = try database.cachedStatement(sql: "SELECT data FROM block WHERE number = ?")
        let insert = try database.cachedStatement(sql: "INSERT OR REPLACE INTO block (number, data) VALUES (?, ?)")
        // In the order of their numbers, which appends them to the file.
        let blocks = output.blocks.sorted { ($0.hour, $0.target) < ($1.hour, $1.target) }
        for block in blocks {
            let number = HistorySchema.block(block.target, hour: block.hour)
            var bytes = block.samples.block
            // An earlier checkpoint of the same hour has a block already.
            if let data = try Data.fetchOne(select, arguments: [number]) {
                do throws(SampleBlock.DamageError) {
                    bytes = SampleBlock(try SampleBlock(bytes: [UInt8](data)).samples().joined(with: bytes.samples()))
                } catch {
                    damaged += 1
                }
            }
            try insert.execute(arguments: [number, Data(bytes.bytes)])
        }
        return damaged
    }

    /// Writes summaries, and replaces those of an earlier checkpoint, in which the period had not ended.
    static func write(_ summaries: [LedgerBook.Summary], to table: String, _ database: Database) throws {
        let states = RecordedState.allCases
        let marks = Array(repeating: "?", count: states.count + 9).joined(separator: ", ")
        let insert = try database.cachedStatement(
            sql: """
                INSERT OR REPLACE INTO \(table)
                (t, target, until, \(states.map(\.name).joined(separator: ", ")), probes, lost, outages, continues_outage,
                rtt, response) VALUES (\(marks))
                """)
        let sorted = summaries.sorted { ($0.summary.period.lowerBound, $0.target) < ($1.summary.period.lowerBound, $1.target) }
        for entry in sorted {
            let (target, summary) = (entry.target, entry.summary)
            var (writer, responses) = (VarintWriter(), VarintWriter())
            summary.roundTrips.append(to: &writer)
            summary.responseTimes.append(to: &responses)
            var arguments: [any DatabaseValueConvertible] = [summary.period.lowerBound, target, summary.period.upperBound]
            for state in states { arguments.append(summary.times[state]) }
            arguments +=
                [
                    summary.probes, summary.lost, summary.outages, summary.continuesOutage, Data(writer.bytes),
                    Data(responses.bytes),
                ]
                as [any DatabaseValueConvertible]
            try insert.execute(arguments: StatementArguments(arguments))
        }
    }
}
