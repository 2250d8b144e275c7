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
