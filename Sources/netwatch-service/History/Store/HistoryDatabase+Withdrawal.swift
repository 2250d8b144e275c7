import FoundationEssentials
import GRDB
import Pacing

extension HistoryDatabase {
    /// Removes the history after a time. The logs must be empty.
    ///
    /// The current hour and day of each target are made again from the remaining samples and hours. Time for which there are none was
    /// not recorded. Incidents stay: those that began later begin and end at that time, because their right times are not known.
    ///
    /// - Returns: the ledgers at that time, by the number of the target.
    func withdraw(after time: Int64, calendar: DayCalendar) throws(StoreError) -> [Int: TargetLedger] {
        try write(.full) { database in
            var calendar = calendar
            let hour = TargetLedger.hour(containing: time)
            var day = calendar.day(containing: time)
            // A day of another time zone may have ended within it.
            let former = try Int64.fetchOne(database, sql: "SELECT max(until) FROM day WHERE until <= ?", arguments: [time])
            if let former, day.contains(former) { day = former..<day.upperBound }
            try Self.removeEvents(after: time, database)
            let (entries, _) = try Self.entries(database)
            let earlier = try Self.times(of: "hour", in: day.lowerBound..<max(day.lowerBound, hour.lowerBound), database)
            try database.execute(
                sql: "DELETE FROM block WHERE number >= ?", arguments: [HistorySchema.block(0, hour: hour.upperBound)])
            try database.execute(sql: "DELETE FROM hour WHERE until > ?", arguments: [time])
            try database.execute(sql: "DELETE FROM day WHERE until > ?", arguments: [time])
            var ledgers: [Int: TargetLedger] = [:]
            for (target, entry) in entries.enumerated() {
                guard var entry else { continue }
                if entry.ledger.end > time {
                    let samples = try Self.trimBlock(of: target, hour: hour.lowerBound, after: time, database)
                    entry.ledger = Self.ledger(
                        at: time, hour, day, samples: samples, earlier: earlier[target], state: entry.ledger.state)
                    try database.execute(
                        sql: "INSERT OR REPLACE INTO ledger (target, data) VALUES (?, ?)",
                        arguments: [target, Data(entry.ledger.bytes(isActive: entry.isActive))])
                }
                ledgers[target] = entry.ledger
            }
            try Self.set("last_alive", time, database)
            return ledgers
        }
    }

    private static func removeEvents(after time: Int64, _ database: Database) throws {
        try database.execute(sql: "UPDATE incident SET ended = ? WHERE ended > ?", arguments: [time, time])
        for table in ["incident", "member", "members"] {
            try database.execute(sql: "UPDATE OR REPLACE \(table) SET began = ? WHERE began > ?", arguments: [time, time])
        }
        try database.execute(sql: "DELETE FROM gap WHERE began >= ?", arguments: [time])
        try database.execute(sql: "UPDATE gap SET ended = ? WHERE ended > ?", arguments: [time, time])
        try database.execute(sql: "DELETE FROM path_event WHERE time > ?", arguments: [time])
    }

    /// Returns the sums of the summaries that are completely in a time, by the number of the target.
    private static func times(
        of table: String, in period: Range<Int64>, _ database: Database
    ) throws -> [Int: PeriodSummary] {
        var sums: [Int: PeriodSummary] = [:]
        let rows = try SummaryRows(database, table, from: period.lowerBound, until: period.upperBound, target: nil)
        while let (target, summary) = try rows.next() {
            guard summary.period.upperBound <= period.upperBound else { continue }
            var sum = sums[target] ?? PeriodSummary(period)
            sum.add(summary)
            sums[target] = sum
        }
        return sums
    }

    /// Removes the samples of a block after a time. - Returns: the remaining samples.
    private static func trimBlock(of target: Int, hour: Int64, after time: Int64, _ database: Database) throws -> [Sample] {
        let number = HistorySchema.block(target, hour: hour)
        guard let data = try Data.fetchOne(database, sql: "SELECT data FROM block WHERE number = ?", arguments: [number]) else {
            return []
        }
        let samples = ((try? SampleBlock(bytes: [UInt8](data)).samples()) ?? []).filter { $0.time <= time }
        if samples.isEmpty {
            try database.execute(sql: "DELETE FROM block WHERE number = ?", arguments: [number])
        } else {
            try database.execute(
                sql: "UPDATE block SET data = ? WHERE number = ?", arguments: [Data(SampleBlock(samples).bytes), number])
        }
        return samples
    }

    private static func ledger(
        at time: Int64, _ hour: Range<Int64>, _ day: Range<Int64>, samples: [Sample], earlier: PeriodSummary?,
        state: RecordedState
    ) -> TargetLedger {
        let timeline = HourTimeline(hour: hour, samples: samples, end: time)
        var current = timeline.summary(of: hour)
        current.times[.notRecorded] += max(0, time - hour.lowerBound - current.times.total)
        var today = PeriodSummary(day)
        if let earlier { today.add(earlier) }
        // The hour can have begun before the day: in a zone with an offset of half an hour, and after a day of another zone.
        today.add(day.lowerBound <= hour.lowerBound ? current : timeline.summary(of: day.lowerBound..<hour.upperBound))
        today.times[.notRecorded] += max(0, time - day.lowerBound - today.times.total)
        return TargetLedger(samples.last?.state ?? state, end: time, hour: current, day: today)
    }
}
