import FoundationEssentials
import GRDB
import Pacing
import Reachability

/// The tables of the history, as a sequence of migrations. A published migration never changes; a change is a new migration.
enum HistorySchema {
    /// The number of the last migration.
    static let version = 4
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
            let times = RecordedState.allCases.map { "\($0.name) INTEGER NOT NULL" }.joined(separator: ", ")
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
        migrator.registerMigration("2") { database in
            // The members of incidents, by their numbers in place of their texts: up to ten as rows, more as one encoded TargetSet.
            try database.execute(
                sql: """
                    CREATE TABLE member (
                        target INTEGER NOT NULL, began INTEGER NOT NULL, id TEXT NOT NULL, PRIMARY KEY (target, began, id)
                    ) WITHOUT ROWID;
                    CREATE TABLE members (id TEXT PRIMARY KEY, began INTEGER NOT NULL, targets BLOB NOT NULL);
                    INSERT OR IGNORE INTO member \(formerMembers);
                    DROP TABLE incident_target;
                    UPDATE meta SET value = 2 WHERE key = 'schema';
                    """)
        }
        migrator.registerMigration("3") { database in
            // The group and the labels of targets, as JSON. `kind` is that of an incident's subject; a `state` that is NULL follows from `ended`,
            // as in the rows of earlier schemas.
            try database.execute(
                sql: """
                    ALTER TABLE target ADD COLUMN target_group TEXT;
                    ALTER TABLE target ADD COLUMN labels TEXT;
                    ALTER TABLE incident ADD COLUMN type TEXT NOT NULL DEFAULT 'fault';
                    ALTER TABLE incident ADD COLUMN state TEXT;
                    ALTER TABLE incident ADD COLUMN merged_into TEXT;
                    UPDATE meta SET value = 3 WHERE key = 'schema';
                    """)
        }
        migrator.registerMigration("4") { database in
            // `response` is an encoded RoundTripHistogram of response times, as `rtt`; NULL in the rows of earlier schemas.
            try database.execute(
                sql: """
                    ALTER TABLE hour ADD COLUMN response BLOB;
                    ALTER TABLE day ADD COLUMN response BLOB;
                    ALTER TABLE incident ADD COLUMN severity TEXT;
                    UPDATE meta SET value = 4 WHERE key = 'schema';
                    """)
        }
        return migrator
    }

    /// The members of incidents in the schema 1.
    private static let formerMembers = """
        SELECT target.number AS target, incident_target.began, incident_target.id FROM incident_target
        JOIN target ON target.text = incident_target.target
        """

    /// Adds what a database of an earlier schema lacks as temporary tables and views, for a connection that cannot migrate it.
    static func completeForReading(_ database: Database) throws {
        // Another value of it would remove temporary tables.
        try database.execute(sql: "PRAGMA temp_store = MEMORY")
        if try !database.columns(in: "target").contains(where: { $0.name == "labels" }) {
            try database.execute(
                sql: "CREATE TEMP VIEW target AS SELECT *, NULL AS target_group, NULL AS labels FROM main.target")
        }
        if try database.tableExists("incident") {
            let known = Set(try database.columns(in: "incident").map(\.name))
            let missing = [("type", "'fault'"), ("state", "NULL"), ("merged_into", "NULL"), ("severity", "NULL")]
                .filter { !known.contains($0.0) }.map { ", \($0.1) AS \($0.0)" }.joined()
            if !missing.isEmpty {
                try database.execute(sql: "CREATE TEMP VIEW incident AS SELECT *\(missing) FROM main.incident")
            }
        }
        for table in ["hour", "day"] {
            guard try database.tableExists(table), try !database.columns(in: table).contains(where: { $0.name == "response" })
            else {
                continue
            }
            try database.execute(sql: "CREATE TEMP VIEW \(table) AS SELECT *, NULL AS response FROM main.\(table)")
        }
        guard try !database.tableExists("members"), try database.tableExists("incident_target") else { return }
        try database.execute(
            sql: """
                CREATE TEMP TABLE member AS \(formerMembers);
                CREATE TEMP TABLE members (id TEXT PRIMARY KEY, began INTEGER, targets BLOB);
                """)
    }

    /// The function of SQL that returns whether an encoded ``TargetSet`` contains a number.
    static var containsFunction: DatabaseFunction {
        DatabaseFunction("contains_target", argumentCount: 2, pure: true) { values in
            guard let data = Data.fromDatabaseValue(values[0]), let number = Int64.fromDatabaseValue(values[1])
            else { return false }
            return TargetSet(bytes: [UInt8](data))?.contains(Int(clamping: number)) ?? false
        }
    }

    /// The number of the block of a target in an hour.
    static func block(_ target: Int, hour: Int64) -> Int64 {
        hour.floorDivided(by: Self.hour).quotient &* blockFactor &+ Int64(target)
    }
}
