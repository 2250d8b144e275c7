internal import GRDB

/// The tables, as versions made them one after another. What has been released is not changed any more: another version follows.
enum JournalSchema {
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { database in
            // `number` gives the order, and is not given twice.
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
        // Where an upload goes on.
        migrator.registerMigration("2") { database in
            try database.execute(sql: "ALTER TABLE task ADD COLUMN place TEXT")
        }
        return migrator
    }
}
