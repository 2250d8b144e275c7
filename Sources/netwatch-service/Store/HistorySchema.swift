import GRDB
import Pacing

/// The tables of the history, as a sequence of migrations. A published migration never changes; a change is a new migration.
enum HistorySchema {
    /// The number of the last migration.
    static let version = 1
    /// The factor of the hour in a block's number.
    static let blockFactor: Int64 = 1 << 20
    static let hour: Int64 = 3_600_000

    // Times are milliseconds since 1970. Keys begin with the time, so that a checkpoint appends its rows: with the target first, each
    // row would be written with its page of 4 KiB.
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { database in
            // `block` has an ordinary row number: a row without one would need a page of its own above 1,002 bytes.
            // `key` of a target is `id`, or `text` without an identifier.
            // `until` is the end of the period. `rtt` is an encoded RoundTripHistogram.
            let times = RecordedState.allCases.map { "\($0.column) INTEGER NOT NULL" }.joined(separator: ", ")
            let summary = """
                until INTEGER NOT NULL, \(times), probes INTEGER NOT NULL, lost INTEGER NOT NULL, outages INTEGER NOT NULL, \
                continues_outage INTEGER NOT NULL, rtt BLOB NOT NULL
                """
            try database.execute(
                sql: """
                    CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
                    CREATE TABLE target (number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, id TEXT, text TEXT NOT NULL, title TEXT NOT NULL);
                    CREATE TABLE ledger (target INTEGER PRIMARY KEY, data BLOB NOT NULL);
                    CREATE TABLE block (
                        number INTEGER PRIMARY KEY,
                        data BLOB NOT NULL,
                        hour INTEGER GENERATED ALWAYS AS ((number >> 20) * \(hour)) VIRTUAL,
                        target INTEGER GENERATED ALWAYS AS (number & 1048575) VIRTUAL
                    );
                    CREATE TABLE hour (
                        t INTEGER NOT NULL, target INTEGER NOT NULL, \(summary), PRIMARY KEY (t, target)
                    ) WITHOUT ROWID;
                    CREATE TABLE day (
                        t INTEGER NOT NULL, target INTEGER NOT NULL, \(summary), PRIMARY KEY (t, target)
                    ) WITHOUT ROWID;
                    CREATE TABLE incident (
                        id TEXT PRIMARY KEY, began INTEGER NOT NULL, ended INTEGER, scope TEXT NOT NULL, kind TEXT NOT NULL,
                        name TEXT, cause TEXT NOT NULL, target_count INTEGER NOT NULL, targets TEXT NOT NULL
                    ) WITHOUT ROWID;
                    CREATE INDEX incident_began ON incident (began, id);
                    CREATE INDEX incident_open ON incident (id) WHERE ended IS NULL;
                    CREATE TABLE incident_target (
                        target TEXT NOT NULL, began INTEGER NOT NULL, id TEXT NOT NULL, PRIMARY KEY (target, began, id)
                    ) WITHOUT ROWID;
                    CREATE TABLE gap (began INTEGER PRIMARY KEY, ended INTEGER NOT NULL, reason TEXT NOT NULL);
                    CREATE TABLE path_event (id INTEGER PRIMARY KEY AUTOINCREMENT, time INTEGER NOT NULL, record TEXT NOT NULL);
                    INSERT INTO meta VALUES ('schema', 1), ('id', random() & 0x7fffffff), ('generation', 0);
                    """)
        }
        return migrator
    }

    /// The number of the block of a target in an hour.
    static func block(_ target: Int, hour: Int64) -> Int64 {
        hour.floorDivided(by: Self.hour).quotient &* blockFactor &+ Int64(target)
    }
}

extension RecordedState {
    /// The column of the time in this state.
    var column: String {
        switch self {
        case .unknown: "unknown"
        case .up: "up"
        case .degraded: "degraded"
        case .down: "down"
        case .unreachable: "unreachable"
        case .maintenance: "maintenance"
        case .notRecorded: "not_recorded"
        }
    }
}
