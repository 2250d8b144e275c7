internal import CheckedDatabase
internal import EventLoop
internal import Foundation
internal import GRDB
internal import HTTPSession

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

/// The tables, as a sequence of migrations. A migration of a published version never changes; a change is a new migration.
enum JournalSchema {
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { database in
            // `number` is the order, and AUTOINCREMENT never reuses a number. An empty `handler` means none.
            try database.execute(
                sql: """
                    CREATE TABLE task (
                        number INTEGER PRIMARY KEY AUTOINCREMENT,
                        id TEXT NOT NULL UNIQUE,
                        intent BLOB NOT NULL,
                        handler TEXT NOT NULL,
                        context BLOB NOT NULL,
                        created INTEGER NOT NULL,
                        expires INTEGER NOT NULL,
                        state TEXT NOT NULL,
                        arrived BLOB
                    );
                    CREATE TABLE event (
                        number INTEGER PRIMARY KEY AUTOINCREMENT,
                        task TEXT NOT NULL UNIQUE REFERENCES task(id) ON DELETE CASCADE,
                        outcome BLOB NOT NULL
                    );
                    """)
        }
        // `place` is the URL at which the server continues an upload.
        migrator.registerMigration("2") { database in
            try database.execute(sql: "ALTER TABLE task ADD COLUMN place TEXT")
        }
        return migrator
    }
}

/// The directory and the journal of one identifier, which are open for this process alone.
struct OpenedJournal {
    let lock: DirectoryLock
    let journal: Journal
    /// The ended tasks in the order of their events, then the others in the order of their creation.
    let records: [TaskRecord]
    /// The new path of a journal that was damaged.
    let damagedJournal: String?

    /// Locks the directory and reads the journal. `checkCancellation` is called between the steps, and its error releases what is open.
    init(
        _ identifier: String, in directory: URL, checkCancellation: () throws(DurableSessionError) -> Void, didRead: () -> Void
    ) throws(DurableSessionError) {
        try checkCancellation()
        let lock = try DirectoryLock(directory.appendingPathComponent(identifier).path, identifier: identifier)
        do throws(DurableSessionError) {
            try checkCancellation()
            let path = "\(lock.path)/journal.sqlite"
            (journal, records, damagedJournal) = try Journal.open(path)
            SmallFile.syncDirectory(of: path)
            self.lock = lock
        } catch {
            lock.unlock()
            throw error
        }
        didRead()
        do throws(DurableSessionError) { try checkCancellation() } catch {
            close()
            throw error
        }
    }

    func close() {
        journal.close()
        lock.unlock()
    }
}
