package import GRDB
internal import EventLoop
internal import GRDBSQLite

/// The time limit of the queries of a connection. A query that runs longer ends with `SQLITE_INTERRUPT`.
package final class QueryTimeLimit: Sendable {
    private let end = Locked<Int64?>(nil)

    /// Creates a limit that is not set.
    package init() {}

    /// Sets the time at which queries end, or removes the limit with `nil` (CLOCK_MONOTONIC, in nanoseconds). Any thread may call it.
    package func set(_ time: Int64?) { end.withLock { $0 = time } }

    private var isOver: Bool { end.withLock { $0.map { MonotonicClock.now() > $0 } ?? false } }

    /// The virtual machine's instructions between two looks at the clock: less than a millisecond.
    private static let interval: Int32 = 10_000

    /// Installs the limit on a connection (sqlite3_progress_handler).
    fileprivate func install(on database: Database) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        sqlite3_progress_handler(
            database.sqliteConnection, Self.interval,
            { context in
                guard let context else { return 0 }
                return Unmanaged<QueryTimeLimit>.fromOpaque(context).takeUnretainedValue().isOver ? 1 : 0
            }, context)
    }
}

extension Configuration {
    /// Prepares connections for a file that others may have made: functions and virtual tables with side effects do not run in its schema, and queries
    /// have a time limit.
    package mutating func distrustSchema(_ limit: QueryTimeLimit) {
        // A connection keeps its configuration, and with it the limit.
        prepareDatabase { database in
            try database.execute(sql: "PRAGMA trusted_schema = OFF")
            limit.install(on: database)
        }
    }
}
