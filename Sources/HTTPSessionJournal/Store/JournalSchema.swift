internal import GRDB

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
