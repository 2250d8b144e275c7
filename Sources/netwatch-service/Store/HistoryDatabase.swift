import FoundationEssentials
import GRDB
import Pacing
import Reachability

/// The connection that writes. One thread uses it.
final class HistoryDatabase: Sendable {
    let queue: DatabaseQueue
    private let path: String
    /// The number of path events that are kept.
    static let pathEventLimit = 10_000

    init(_ queue: DatabaseQueue, path: String) { (self.queue, self.path) = (queue, path) }

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
            return try queue.writeWithoutTransaction { database in
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
        do { return try queue.readSnapshot(body) } catch { throw HistoryFile.failure(error, path) }
    }

    // MARK: Meta

    func number(_ key: String) throws(StoreError) -> Int64? {
        try read { try Int64.fetchOne($0, sql: "SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?", arguments: [key]) }
    }

    func text(_ key: String) throws(StoreError) -> String? {
        try read { try String.fetchOne($0, sql: "SELECT value FROM meta WHERE key = ?", arguments: [key]) }
    }

    static func set(_ key: String, _ value: some DatabaseValueConvertible, _ database: Database) throws {
        try database.execute(sql: "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", arguments: [key, value])
    }

    // MARK: Targets

    func targets() throws(StoreError) -> [HistoryStore.Target] { try read(Self.targets) }

    static func targets(_ database: Database) throws -> [HistoryStore.Target] {
        try Row.fetchAll(database, sql: "SELECT number, id, text, title FROM target ORDER BY number").compactMap { row in
            guard let number = row[0] as Int64?, 0..<Int64(TurnCoder.targetLimit) ~= number, let text = row[2] as String?,
                let title = row[3] as String?
            else { return nil }
            let names = HistoryStore.TargetNames(id: row[1] as String?, text: text, title: title)
            return HistoryStore.Target(number: Int(number), names: names)
        }
    }

    /// Returns the numbers of targets. Unknown keys get new numbers, and changed names are kept.
    func register(_ targets: [HistoryStore.TargetNames]) throws(StoreError) -> [Int] {
        try write(.full) { database in
            var next = try Int64.fetchOne(database, sql: "SELECT ifnull(max(number) + 1, 0) FROM target") ?? 0
            let select = try database.cachedStatement(sql: "SELECT number, id, text, title FROM target WHERE key = ?")
            return try targets.map { names in
                if let row = try Row.fetchOne(select, arguments: [names.key]), let number = row[0] as Int64? {
                    if row[1] as String? != names.id || row[2] as String? != names.text || row[3] as String? != names.title {
                        try database.execute(
                            sql: "UPDATE target SET id = ?, text = ?, title = ? WHERE number = ?",
                            arguments: [names.id, names.text, names.title, number])
                    }
                    return Int(clamping: number)
                }
                guard next < Int64(TurnCoder.targetLimit) else {
                    throw StoreError(.refused, "\(path): the history has \(next) targets, and no further ones are possible")
                }
                try database.execute(
                    sql: "INSERT INTO target (number, key, id, text, title) VALUES (?, ?, ?, ?, ?)",
                    arguments: [next, names.key, names.id, names.text, names.title])
                next += 1
                return Int(next - 1)
            }
        }
    }

    // MARK: Ledgers

    /// Reads the ledgers by the number of the target, and counts the damaged ones.
    static func entries(_ database: Database) throws -> (entries: [LedgerBook.Entry?], damaged: Int) {
        let count = try Int64.fetchOne(database, sql: "SELECT ifnull(max(number) + 1, 0) FROM target") ?? 0
        var entries = [LedgerBook.Entry?](repeating: nil, count: Int(min(max(count, 0), Int64(TurnCoder.targetLimit))))
        var damaged = 0
        let rows = try Row.fetchCursor(database, sql: "SELECT target, data FROM ledger")
        while let row = try rows.next() {
            guard let number = row[0] as Int64?, entries.indices.contains(Int(clamping: number)), let data = row[1] as Data?,
                let (ledger, isActive) = TargetLedger.decode([UInt8](data))
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

    /// Ends the incidents that are open, at a time. - Returns: the incidents as they were.
    func closeIncidents(at time: Int64) throws(StoreError) -> [Incident] {
        try write(.full) { database in
            let open = try Row.fetchAll(
                database, sql: "SELECT \(Incident.columns) FROM incident WHERE ended IS NULL ORDER BY began")
            try database.execute(sql: "UPDATE incident SET ended = max(began, ?) WHERE ended IS NULL", arguments: [time])
            return open.compactMap { Incident($0) }
        }
    }

    func close() { try? queue.close() }
}
