internal import CheckedDatabase
internal import EventLoop
internal import Foundation
internal import GRDB

/// The tasks and events of one identifier, in SQLite. Each method is one transaction, which is on the disk when the method returns.
final class Journal: Sendable {
    let database: DatabaseQueue

    private init(_ database: DatabaseQueue) { self.database = database }

    // MARK: Opening

    private enum OpeningError: Error {
        case damaged(String)
    }

    /// The time in nanoseconds after which the opening of a journal is given up.
    private static let openingTime: Int64 = 60_000_000_000

    /// Opens the journal, or creates it. A damaged journal is renamed, and a new one replaces it. The caller holds the directory's lock
    /// (``DirectoryLock``).
    static func open(_ path: String) throws(DurableSessionError) -> (Journal, records: [TaskRecord], damagedJournal: String?) {
        do {
            let (journal, records) = try opened(path)
            return (journal, records, nil)
        } catch OpeningError.damaged {
            let damagedJournal = try JournalFile.renameDamaged(path)
            do {
                let (journal, records) = try opened(path)
                return (journal, records, damagedJournal)
            } catch {
                throw failure(error, path)
            }
        } catch let error as DurableSessionError {
            throw error
        } catch {
            throw failure(error, path)
        }
    }

    private static func failure(_ error: any Error, _ path: String) -> DurableSessionError {
        if case DatabaseSchema.Mismatch.newer = error {
            return DurableSessionError(.journalIsNewer, "'\(path)' has been written by a later version of this library")
        }
        return DurableSessionError(.journalFailed, "'\(path)': \(text(of: error))", underlying: error)
    }

    private static func text(of error: any Error) -> String {
        (error as? DatabaseError).map { "\($0.extendedResultCode): \($0.message ?? "")" } ?? "\(error)"
    }

    private static func opened(_ path: String) throws -> (Journal, [TaskRecord]) {
        try JournalFile.create(path)
        do {
            let limit = QueryTimeLimit()
            limit.set(MonotonicClock.now() + openingTime)
            defer { limit.set(nil) }
            let database = try DatabaseQueue(path: path, configuration: configuration(limit))
            let migrator = JournalSchema.migrator
            try database.read { database in
                try DatabaseSchema.check(database, migrator)
                let damage = try String.fetchOne(database, sql: "PRAGMA quick_check(1)")
                if damage != "ok" { throw OpeningError.damaged(damage ?? "") }
            }
            try migrator.migrate(database)
            let records = try database.read { try Row.fetchAll($0, sql: selection).map { try TaskRecord($0) } }
            return (Journal(database), records)
        } catch let error as DatabaseError where [.SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_ERROR].contains(error.resultCode) {
            // SQLITE_ERROR here means that the tables are not those of the migrations.
            throw OpeningError.damaged(error.message ?? "")
        } catch DatabaseSchema.Mismatch.foreign(let reason) {
            throw OpeningError.damaged(reason)
        } catch let error as DecodingError {
            throw OpeningError.damaged("\(error)")
        }
    }

    private static func configuration(_ limit: QueryTimeLimit) -> Configuration {
        var configuration = Configuration()
        configuration.label = "HTTPSessionJournal"
        configuration.distrustSchema(limit)
        configuration.prepareDatabase { database in
            // No other process has it open, so the index of the write-ahead log needs no shared memory: on a full disk that memory
            // raises SIGBUS.
            try database.execute(sql: "PRAGMA locking_mode = EXCLUSIVE")
            try database.execute(sql: "PRAGMA journal_mode = WAL")
            // A transaction is on the disk when it returns, not only after the next checkpoint.
            try database.execute(sql: "PRAGMA synchronous = FULL")
        }
        return configuration
    }

    // MARK: Transactions

    private static let selection = """
        SELECT id, intent, handler, context, created, expires, state, arrived, place, outcome
        FROM task LEFT JOIN event ON event.task = task.id
        ORDER BY event.number IS NULL, event.number, task.number
        """

    func insert(_ record: TaskRecord) throws(DurableSessionError) {
        try write { database in
            try database.execute(
                sql: "INSERT INTO task (id, intent, handler, context, created, expires, state) VALUES (?, ?, ?, ?, ?, ?, ?)",
                arguments: [
                    record.id, try record.intent.encoded(), record.handler ?? "", record.context, record.created, record.expires,
                    "waiting",
                ])
        }
    }

    /// Writes a task's state, and inserts its event if the state is `ended`.
    func write(_ state: TaskLifecycle.State, of id: String) throws(DurableSessionError) {
        try write { database in
            var arrived: Data?
            if case .arrived(let file, let response) = state { arrived = try Arrival(mark: file, answer: response).encoded() }
            try database.execute(
                sql: "UPDATE task SET state = ?, arrived = ? WHERE id = ?", arguments: [state.name, arrived, id])
            if case .ended(let outcome) = state {
                try database.execute(
                    sql: "INSERT INTO event (task, outcome) VALUES (?, ?)", arguments: [id, try outcome.encoded()])
            }
        }
    }

    func write(uploadLocation: URL, of id: String) throws(DurableSessionError) {
        try write { database in
            try database.execute(
                sql: "UPDATE task SET place = ? WHERE id = ?", arguments: [uploadLocation.absoluteString, id])
        }
    }

    /// Removes a task and its event.
    func remove(_ id: String) throws(DurableSessionError) {
        try write { try $0.execute(sql: "DELETE FROM task WHERE id = ?", arguments: [id]) }
    }

    func close() { try? database.close() }

    private func write(_ body: (Database) throws -> Void) throws(DurableSessionError) {
        do { try database.write(body) } catch {
            throw DurableSessionError(.journalFailed, "'\(database.path)': \(Journal.text(of: error))", underlying: error)
        }
    }
}
