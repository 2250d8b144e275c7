import GRDB

extension HistoryDatabase {
    /// The maximum number of rows that a call removes for their age, and in each step for the size. The next checkpoint continues.
    private static let rowLimit = 50_000
    private static let sizeSteps = 50
    private static let sizeRows = 5_000
    private static let day: Int64 = 86_400_000

    /// Removes what is older than the retention allows. If the file is still too large, the finest and oldest data are removed first:
    /// blocks of samples, then hours, then days, then incidents with gaps.
    ///
    /// - Parameter now: milliseconds since 1970.
    func apply(_ retention: Retention, at now: Int64) throws(StoreError) {
        try removeOld(retention, at: now)
        var remaining = Self.sizeSteps
        while remaining > 0, try excess(over: retention.size) > 0 {
            remaining -= 1
            // What is deleted is free inside of the file, until the vacuum gives it back.
            if try freePages() >= 256 {
                try vacuum(pages: 2_048)
            } else if try !removeOldest() {
                try vacuum(pages: 2_048)
                return
            }
        }
    }

    private func removeOld(_ retention: Retention, at now: Int64) throws(StoreError) {
        func start(_ days: Int) -> Int64 { now - Int64(days) * Self.day }
        let (samples, hours, days) = (start(retention.samples), start(retention.hours), start(retention.days))
        try write { database in
            try database.execute(
                sql: """
                    DELETE FROM block WHERE number IN
                    (SELECT number FROM block WHERE number < ? ORDER BY number LIMIT \(Self.rowLimit))
                    """, arguments: [HistorySchema.block(0, hour: samples - HistorySchema.hour)])
            for (table, time) in [("hour", hours - HistorySchema.hour), ("day", days - Self.day)] {
                try database.execute(
                    sql: """
                        DELETE FROM \(table) WHERE (t, target) IN
                        (SELECT t, target FROM \(table) WHERE t < ? ORDER BY t LIMIT \(Self.rowLimit))
                        """, arguments: [time])
            }
            try Self.removeIncidents("ended < \(days)", database)
            try database.execute(sql: "DELETE FROM gap WHERE ended < ?", arguments: [days])
            try database.execute(sql: "DELETE FROM path_event WHERE time < ?", arguments: [days])
        }
    }

    private static func removeIncidents(_ condition: String, _ database: Database) throws {
        let selection = "SELECT id FROM incident WHERE \(condition) ORDER BY began LIMIT \(sizeRows)"
        try database.execute(
            sql: """
                DELETE FROM incident_target WHERE (target, began, id) IN (
                    SELECT incident_target.target, incident_target.began, incident_target.id FROM incident_target
                    JOIN (\(selection)) AS old ON old.id = incident_target.id
                );
                DELETE FROM incident WHERE id IN (\(selection));
                """)
    }

    /// Removes the oldest rows of the finest data. The last hour and the last day of a table are kept.
    ///
    /// - Returns: whether a row was removed.
    private func removeOldest() throws(StoreError) -> Bool {
        try write { database in
            try database.execute(
                sql: """
                    DELETE FROM block WHERE number IN (
                        SELECT number FROM block WHERE number < (SELECT max(number) >> 20 << 20 FROM block)
                        ORDER BY number LIMIT \(Self.sizeRows)
                    )
                    """)
            if database.changesCount > 0 { return true }
            for table in ["hour", "day"] {
                try database.execute(
                    sql: """
                        DELETE FROM \(table) WHERE (t, target) IN (
                            SELECT t, target FROM \(table) WHERE t < (SELECT max(t) FROM \(table))
                            ORDER BY t LIMIT \(Self.sizeRows)
                        )
                        """)
                if database.changesCount > 0 { return true }
            }
            try database.execute(
                sql: "DELETE FROM path_event WHERE id IN (SELECT id FROM path_event ORDER BY id LIMIT \(Self.sizeRows))")
            if database.changesCount > 0 { return true }
            try Self.removeIncidents("ended IS NOT NULL", database)
            return database.changesCount > 0
        }
    }

    /// The bytes by which the file is too large.
    private func excess(over size: Int64) throws(StoreError) -> Int64 {
        try read { database in
            let pages = try Int64.fetchOne(database, sql: "PRAGMA page_count") ?? 0
            let bytes = try Int64.fetchOne(database, sql: "PRAGMA page_size") ?? 0
            return pages * bytes - size
        }
    }

    private func freePages() throws(StoreError) -> Int64 {
        try read { try Int64.fetchOne($0, sql: "PRAGMA freelist_count") ?? 0 }
    }

    /// Gives free pages at the end of the file back to the file system.
    private func vacuum(pages: Int) throws(StoreError) {
        do {
            try queue.writeWithoutTransaction { database in
                // Each row of the result is a page.
                let rows = try Row.fetchCursor(database, sql: "PRAGMA incremental_vacuum(\(pages))")
                while try rows.next() != nil {}
            }
        } catch {
            throw HistoryFile.failure(error, queue.path)
        }
    }
}
