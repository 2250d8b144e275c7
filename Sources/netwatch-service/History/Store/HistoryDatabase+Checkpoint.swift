import FoundationEssentials
import GRDB
import Pacing

extension HistoryDatabase {
    /// The result of moving logs into the database.
    struct Checkpoint {
        /// The ledgers at the last turn, by the number of the target.
        var entries: [LedgerBook.Entry?]
        /// The time of the last turn in the logs; `nil` if they have none.
        var time: ClockReading?
        /// The boot of the last log.
        var boot: String?
        /// The number of damaged ledgers and blocks, which were left out.
        var damaged = 0
    }

    /// Moves the turns of logs into the database in one transaction.
    ///
    /// The transaction also writes the number of the first log that it does not contain, so a crash before or after it neither loses a
    /// turn nor doubles one. It is durable, because the logs are removed after it: one fsync(2) for each checkpoint.
    ///
    /// - Parameters:
    ///   - logs: the paths of the logs in the order of their generations.
    ///   - next: the generation of the first log that is not included.
    ///   - calendar: the days.
    ///   - stops: whether no target is monitored after the last turn.
    ///   - isClean: whether this is the last checkpoint of a regular stop.
    /// - Returns: the ledgers at the last turn.
    /// - Throws: ``StoreError``; the database and the logs are then unchanged.
    func checkpoint(
        _ logs: [String], next: UInt64, calendar: DayCalendar, stops: Bool = false, isClean: Bool = false
    ) throws(StoreError) -> Checkpoint {
        let identifier = try number("id")
        return try write(.full) { database in
            let (entries, damaged) = try Self.entries(database)
            var result = Checkpoint(entries: [], damaged: damaged)
            var book = LedgerBook(entries, calendar)
            for log in logs {
                let header = try TurnLogFile.read(log) { header, turn in
                    guard Int64(header.database) == identifier else { return false }
                    book.apply(turn)
                    return true
                }
                if let header, Int64(header.database) == identifier { result.boot = header.boot }
            }
            book.finish(stops: stops)
            result.damaged += try Self.write(book.output, database)
            let upsert = try database.cachedStatement(sql: "INSERT OR REPLACE INTO ledger (target, data) VALUES (?, ?)")
            for (target, entry) in book.entries.enumerated() {
                guard let entry else { continue }
                try upsert.execute(arguments: [target, Data(entry.ledger.bytes(isActive: entry.isActive))])
            }
            try Self.set("generation", Int64(clamping: next), database)
            if let time = book.time {
                try Self.set("last_alive", time.wall, database)
                try Self.set("last_monotonic", time.monotonic, database)
                try Self.set("last_boottime", time.bootTime, database)
            }
            if let boot = result.boot { try Self.set("boot_id", boot, database) }
            try Self.set("clean", isClean ? "1" : "0", database)
            (result.entries, result.time) = (book.entries, book.time)
            return result
        }
    }

    /// Writes blocks, hours, days and gaps. - Returns: the number of damaged blocks that were replaced.
    private static func write(_ output: LedgerBook.Output, _ database: Database) throws -> Int {
        try write(output.gaps, database)
        try write(output.hours, to: "hour", database)
        try write(output.days, to: "day", database)
        var damaged = 0
        let select = try database.cachedStatement(sql: "SELECT data FROM block WHERE number = ?")
        let insert = try database.cachedStatement(sql: "INSERT OR REPLACE INTO block (number, data) VALUES (?, ?)")
        // In the order of their numbers, which appends them to the file.
        let blocks = output.blocks.sorted { ($0.hour, $0.target) < ($1.hour, $1.target) }
        for block in blocks {
            let number = HistorySchema.block(block.target, hour: block.hour)
            var bytes = block.samples.block
            // An earlier checkpoint of the same hour has a block already.
            if let data = try Data.fetchOne(select, arguments: [number]) {
                do throws(SampleBlock.DamageError) {
                    bytes = SampleBlock(try SampleBlock(bytes: [UInt8](data)).samples().joined(with: bytes.samples()))
                } catch {
                    damaged += 1
                }
            }
            try insert.execute(arguments: [number, Data(bytes.bytes)])
        }
        return damaged
    }

    /// Writes summaries, and replaces those of an earlier checkpoint, in which the period had not ended.
    static func write(_ summaries: [LedgerBook.Summary], to table: String, _ database: Database) throws {
        let states = RecordedState.allCases
        let marks = Array(repeating: "?", count: states.count + 9).joined(separator: ", ")
        let insert = try database.cachedStatement(
            sql: """
                INSERT OR REPLACE INTO \(table)
                (t, target, until, \(states.map(\.column).joined(separator: ", ")), probes, lost, outages, continues_outage,
                rtt, response) VALUES (\(marks))
                """)
        let sorted = summaries.sorted { ($0.summary.period.lowerBound, $0.target) < ($1.summary.period.lowerBound, $1.target) }
        for entry in sorted {
            let (target, summary) = (entry.target, entry.summary)
            var (writer, responses) = (VarintWriter(), VarintWriter())
            summary.roundTrips.append(to: &writer)
            summary.responseTimes.append(to: &responses)
            var arguments: [any DatabaseValueConvertible] = [summary.period.lowerBound, target, summary.period.upperBound]
            for state in states { arguments.append(summary.times[state]) }
            arguments +=
                [
                    summary.probes, summary.lost, summary.outages, summary.continuesOutage, Data(writer.bytes),
                    Data(responses.bytes),
                ]
                as [any DatabaseValueConvertible]
            try insert.execute(arguments: StatementArguments(arguments))
        }
    }
}
