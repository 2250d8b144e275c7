import CheckedDatabase
import EventLoop
import FoundationEssentials
import GRDB
import Glibc

/// The opening of the database file: creation, migration, and the setting aside of a damaged file.
enum HistoryFile {
    /// A larger file is checked completely only after the machine ended without a regular stop of the service: reading it would delay
    /// each start by seconds.
    static let checkedSize = 256 << 20

    private enum OpeningError: Error {
        case empty
        case damaged(String)
    }

    /// The time in nanoseconds after which the check of a schema is given up.
    private static let checkTime: Int64 = 60_000_000_000

    /// Opens the database for writing, or creates it. The caller holds the directory's lock.
    ///
    /// A damaged database is renamed with its logs, and a new one begins. No other user may read the files.
    static func open(_ directory: StateDirectory, boot: String, time: Int64) throws(StoreError) -> (
        queue: DatabaseQueue, notes: [String]
    ) {
        let path = directory.database
        var notes: [String] = []
        for file in directory.databaseFiles {
            try file.requireRegularOrMissing()
            try file.makePrivate()
        }
        let hasLog = StateFile("\(path)-wal").kind != .missing
        if try StateFile("\(path)-wal").isDamagedWriteAheadLog() {
            let damaged = try directory.setAside("\(path)-wal", time: time)
            notes.append("\(path)-wal: damaged; it is now \(damaged), and the last changes of the history may be missing")
        }
        // A service that was killed between the creation of the file and its first write leaves it empty too.
        if StateFile(path).kind == .regular, StateFile(path).size == 0 { notes.append("\(path): empty; a new history begins") }
        do {
            let queue = try opened(path, boot: boot)
            if !hasLog, try queue.readSnapshot({ try HistoryDatabase.text("clean", $0) }) == "0" {
                notes.append(
                    "\(path)-wal: missing after a stop that was not regular; the last changes of the history may be missing")
            }
            return (queue, notes)
        } catch OpeningError.damaged(let reason) {
            let damaged = try directory.setAside(path, time: time)
            // The logs number the targets of the damaged database.
            for generation in directory.generations { _ = try directory.setAside(directory.log(generation), time: time) }
            do {
                notes.append("\(path): damaged (\(reason)); it is now \(damaged), and a new history begins")
                return (try opened(path, boot: boot), notes)
            } catch {
                throw failure(error, path)
            }
        } catch {
            throw failure(error, path)
        }
    }

    /// Opens the database of a service that could not open it when it started. A damaged one is not set aside, because the service has
    /// its numbers of the targets.
    static func openAgain(_ directory: StateDirectory, boot: String) throws(StoreError) -> DatabaseQueue {
        for file in directory.databaseFiles { try file.requireRegularOrMissing() }
        do { return try opened(directory.database, boot: boot) } catch { throw failure(error, directory.database) }
    }

    private static func opened(_ path: String, boot: String) throws -> DatabaseQueue {
        // SQLite creates its files with the permissions of the database.
        let new = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard new >= 0 || errno == EEXIST else { throw StoreError(.inputOutput, "\(path): \(SystemText.of(errno))") }
        if new >= 0 { close(new) }
        do {
            let limit = QueryTimeLimit()
            let queue = try DatabaseQueue(path: path, configuration: configuration(limit))
            do {
                let migrator = HistorySchema.migrator
                limit.set(MonotonicClock.now() + checkTime)
                try queue.readSnapshot { try DatabaseSchema.check($0, migrator) }
                // The rest takes as long as the file and the disk need.
                limit.set(nil)
                try queue.readSnapshot { database in
                    guard try isSuspect(database, path, boot: boot) else { return }
                    let damage = try String.fetchOne(database, sql: "PRAGMA quick_check(1)")
                    if damage != "ok" { throw OpeningError.damaged(damage ?? "no database") }
                }
                try migrator.migrate(queue)
                return queue
            } catch {
                try? queue.close()
                throw error
            }
        } catch let error as DatabaseError where isDamage(error) {
            throw OpeningError.damaged(error.message ?? "\(error.resultCode)")
        } catch DatabaseSchema.Mismatch.foreign(let reason) {
            throw OpeningError.damaged(reason)
        }
    }

    /// Whether the complete file is to be checked.
    private static func isSuspect(_ database: Database, _ path: String, boot: String) throws -> Bool {
        guard try database.tableExists("meta") else { return true }
        var status = stat()
        guard stat(path, &status) == 0, status.st_size > checkedSize else { return true }
        let isClean = try String.fetchOne(database, sql: "SELECT value FROM meta WHERE key = 'clean'") == "1"
        let lastBoot = try String.fetchOne(database, sql: "SELECT value FROM meta WHERE key = 'boot_id'")
        return !isClean && lastBoot != boot
    }

    /// Whether an error shows that the file is damaged. SQLITE_ERROR means that the tables are not those of the migrations.
    static func isDamage(_ error: DatabaseError) -> Bool {
        [.SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_ERROR].contains(error.resultCode)
    }

    private static func configuration(_ limit: QueryTimeLimit) -> GRDB.Configuration {
        var configuration = GRDB.Configuration.history(limit)
        configuration.label = "history"
        configuration.prepareDatabase { database in
            // It has an effect on a new file only, before the first table.
            try database.execute(sql: "PRAGMA auto_vacuum = INCREMENTAL")
            try database.execute(sql: "PRAGMA journal_mode = WAL")
            try database.execute(sql: "PRAGMA synchronous = NORMAL")
            // A checkpoint of 10,000 targets leaves a large log behind.
            try database.execute(sql: "PRAGMA journal_size_limit = \(4 << 20)")
        }
        return configuration
    }

    /// Opens the database for reading only. It may be open in another process, or belong to a directory without write permission.
    ///
    /// - Parameters:
    ///   - directory: the state directory.
    ///   - limit: the time limit of the queries. The check of the file has one of its own.
    /// - Returns: the connection.
    /// - Throws: ``StoreError``.
    static func openForReading(_ directory: StateDirectory, _ limit: QueryTimeLimit) throws(StoreError) -> DatabaseQueue {
        let path = directory.database
        guard StateFile(path).kind != .missing else { throw StoreError(.missing, "\(path): no history") }
        // The logs are found by reading the directory.
        for place in [directory.path] + directory.databaseFiles.map(\.path) where access(place, R_OK) != 0 && errno == EACCES {
            throw StateFile.failure(place, EACCES)
        }
        for file in directory.databaseFiles {
            if case .other(let kind) = file.kind {
                throw StoreError(.missing, "\(file.path): no history: it is \(kind), not a file")
            }
        }
        var configuration = GRDB.Configuration.history(limit)
        configuration.label = "history queries"
        limit.set(MonotonicClock.now() + checkTime)
        defer { limit.set(nil) }
        configuration.readonly = true
        do {
            return try checked(path, configuration)
        } catch let error as DatabaseError
            where StateFile("\(path)-wal").size == 0
            && [
                .SQLITE_CANTOPEN, .SQLITE_READONLY, .SQLITE_IOERR, .SQLITE_FULL,
            ].contains(error.resultCode)
        {
            // Without its write-ahead log the file is complete, but SQLite would create the log in a directory that it may not write to,
            // or on a disk that is full.
            let name = path.utf8.map { byte -> String in
                let isPlain =
                    byte == 47 || byte == 45 || byte == 46 || byte == 95
                    || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte
                    || UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte
                return isPlain ? String(UnicodeScalar(byte)) : "%" + String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
            }.joined()
            do { return try checked("file:\(name)?immutable=1", configuration) } catch { throw failure(error, path) }
        } catch {
            throw failure(error, path)
        }
    }

    private static func checked(_ path: String, _ configuration: GRDB.Configuration) throws -> DatabaseQueue {
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        try queue.readSnapshot { database in
            if try Int.fetchOne(database, sql: "PRAGMA page_count") == 0 { throw OpeningError.empty }
            try DatabaseSchema.check(database, HistorySchema.migrator)
            guard try database.tableExists("meta") else { throw OpeningError.damaged("no table meta") }
        }
        try queue.writeWithoutTransaction { try HistorySchema.completeForReading($0) }
        return queue
    }

    /// Returns the error of the store for one of SQLite.
    static func failure(_ error: any Error, _ path: String) -> StoreError {
        switch error {
        case let error as StoreError: error
        case DatabaseSchema.Mismatch.newer:
            StoreError(.newer, "\(path): written by a later version of netwatch; install that version, or choose another --state")
        case OpeningError.empty: StoreError(.missing, "\(path): no history: the database is empty")
        case OpeningError.damaged(let reason), DatabaseSchema.Mismatch.foreign(let reason):
            StoreError(.inputOutput, "\(path): damaged (\(reason))")
        case let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT:
            StoreError(.timedOut, "\(path): the query needs too much time")
        case let error as DatabaseError where [.SQLITE_CANTOPEN, .SQLITE_PERM].contains(error.resultCode):
            StoreError(.refused, "\(path): \(text(of: error))")
        case let error as DatabaseError: StoreError(.inputOutput, "\(path): \(text(of: error))")
        default: StoreError(.inputOutput, "\(path): \(error)")
        }
    }

    private static func text(of error: DatabaseError) -> String {
        switch error.resultCode {
        case .SQLITE_FULL: "the disk is full"
        case .SQLITE_IOERR where error.extendedResultCode == .SQLITE_IOERR_SHMSIZE: "the disk is full"
        case .SQLITE_IOERR: "input/output error (\(error.extendedResultCode.rawValue))"
        case .SQLITE_READONLY: "cannot be written"
        case .SQLITE_BUSY, .SQLITE_LOCKED: "another program has it locked"
        default: error.message ?? "\(error.resultCode)"
        }
    }
}
