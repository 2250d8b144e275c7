import GRDB

extension HistoryDatabase {
    /// The maximum number of rows that a call removes for their age, and in each step for the size. The next checkpoint continues.
    private static let rowLimit = 50_000
    private static let sizeSteps = 50
    private static let sizeRows: Int64 = 5_000
    /// The maximum number of pages that a call gives back: 64 MiB.
    private static let vacuumPages: Int64 = 16_384
    private static let day: Int64 = 86_400_000

    /// Removes what is older than the retention allows. If the file is still too large, the finest and oldest data are removed first:
    /// blocks of samples, then hours, days, changes of the path, and incidents that are over. Gaps are removed for their age alone.
    ///
    /// - Parameters:
    ///   - retention: the limits.
    ///   - now: milliseconds since 1970.
    /// - Throws: ``StoreError`` if the database cannot be written.
    func apply(_ retention: Retention, at now: Int64) throws(StoreError) {
        try removeOld(retention, at: now)
        for _ in 0..<Self.sizeSteps {
            let excess = try usage().used - retention.size
            guard excess > 0, try removeOldest(about: excess) else { break }
        }
        // Deleted rows leave free pages in the file. New rows use them, but a file above the limit gives them back.
        let (used, free, page) = try usage()
        let excess = used + free - retention.size
        if excess > 0, free > 0 { try vacuum(pages: min((excess + page - 1) / page, Self.vacuumPages)) }
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
                DELETE FROM member WHERE id IN (\(selection));
                DELETE FROM members WHERE id IN (\(selection));
                DELETE FROM incident WHERE id IN (\(selection));
                """)
    }

    /// Removes the oldest rows of the finest data. The last hour and the last day of a table
    /// are kept.
    ///
    /// - Parameter bytes: the size of the data to remove. A block has about 600 bytes, another row at least 50.
    /// - Returns: whether a row was removed.
    /// - Throws: ``StoreError`` if the database cannot be written.
    private func removeOldest(about bytes: Int64) throws(StoreError) -> Bool {
        let (blocks, rows) = (min(bytes / 600 + 50, Self.sizeRows), min(bytes / 50 + 50, Self.sizeRows))
        return try write { database in
            try database.execute(
                sql: """
                    DELETE FROM block WHERE number IN (
                        SELECT number FROM block WHERE number < (SELECT max(number) >> 20 << 20 FROM block)
                        ORDER BY number LIMIT \(blocks)
                    )
                    """)
            if database.changesCount > 0 { return true }
            for table in ["hour", "day"] {
                try database.execute(
                    sql: """
                        DELETE FROM \(table) WHERE (t, target) IN (
                            SELECT t, target FROM \(table) WHERE t < (SELECT max(t) FROM \(table))
                            ORDER BY t LIMIT \(rows)
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

    /// The bytes of the file that have data, and those that are free; and the bytes of a page.
    private func usage() throws(StoreError) -> (used: Int64, free: Int64, page: Int64) {
        try read { database in
            let page = try Int64.fetchOne(database, sql: "PRAGMA page_size") ?? 4_096
            let pages = try Int64.fetchOne(database, sql: "PRAGMA page_count") ?? 0
            let free = try Int64.fetchOne(database, sql: "PRAGMA freelist_count") ?? 0
            return ((pages - free) * page, free * page, page)
        }
    }

    /// Gives free pages at the end of the file back to the file system.
    private func vacuum(pages: Int64) throws(StoreError) {
        do {
            try queue().writeWithoutTransaction { database in
                try database.endRemainingTransaction()
                // Each row of the result is a page.
                let rows = try Row.fetchCursor(database, sql: "PRAGMA incremental_vacuum(\(pages))")
                while try rows.next() != nil {}
            }
        } catch {
            throw HistoryFile.failure(error, path)
        }
    }
}
