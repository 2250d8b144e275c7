import EventLoop
import FoundationEssentials
import GRDB
import Pacing

extension HistoryReader {
    /// The kind of the summaries.
    enum Resolution: String, Hashable, Sendable {
        case hour
        case day
    }

    /// The summaries of a target that overlap a time, the oldest first. The last one can be of a period that has not ended.
    func summaries(_ resolution: Resolution, of target: Int, _ span: Range<Int64>) throws(StoreError) -> [PeriodSummary] {
        let span = Self.limited(span)
        // A day can begin 25 hours before the time.
        let margin = resolution == .hour ? HistorySchema.hour : 2 * 86_400_000
        var found = try read { database in
            var found: [PeriodSummary] = []
            let rows = try SummaryRows(
                database, resolution.rawValue, from: span.lowerBound - margin, until: span.upperBound, target: target)
            while let (_, summary) = try rows.next() {
                try checkTime()
                if summary.period.overlaps(span) { found.append(summary) }
            }
            return found
        }
        guard let overlay else { return found }
        let ended = resolution == .hour ? overlay.output.hours : overlay.output.days
        found += ended.filter { $0.target == target && $0.summary.period.overlaps(span) }.map(\.summary)
        if overlay.entries.indices.contains(target), let ledger = overlay.entries[target]?.ledger {
            let current = resolution == .hour ? ledger.currentHour : ledger.currentDay
            if current.times.total > 0, current.period.overlaps(span) { found.append(current) }
        }
        return found
    }

    /// The summary of each target over a time, by the number of the target.
    ///
    /// The states of each target sum to the length of the time: what no summary covers was not recorded. An hour that is partly in the
    /// time counts by its samples. If they were removed, it counts with the same part of its states and results.
    ///
    /// - Parameters:
    ///   - span: the time in milliseconds since 1970.
    ///   - target: the only target; `nil` for all.
    ///   - hasRoundTrips: whether the distributions of round trips and response times are wanted. Without them the query needs half of the time.
    /// - Returns: the summaries by the number of the target.
    /// - Throws: ``StoreError`` if the database cannot be read in time.
    func summaries(_ span: Range<Int64>, of target: Int? = nil, hasRoundTrips: Bool = true) throws(StoreError) -> [Int:
        PeriodSummary]
    {
        let span = Self.limited(span)
        var sums: [Int: SpanSum] = [:]
        if let target { sums[target] = SpanSum(span) } else { for known in try targets() { sums[known.number] = SpanSum(span) } }
        let days = try daysInside(span)
        let ledgers = try current()
        for hour in Self.partialHours(of: span) where days.map({ !$0.overlaps(hour) }) ?? true {
            try forTimelines(of: target, in: hour, ledgers) { number, timeline in
                sums[number]?.add(timeline, in: hour.clamped(to: span))
            }
        }
        try read { database in
            func add(_ table: String, _ start: Int64, _ end: Int64) throws {
                let rows = try SummaryRows(
                    database, table, from: start, until: end, target: target, hasRoundTrips: hasRoundTrips)
                while let (number, summary) = try rows.next() {
                    try checkTime()
                    sums[number]?.add(summary)
                }
            }
            let first = span.lowerBound - HistorySchema.hour + 1
            guard let days else { return try add("hour", first, span.upperBound) }
            try add("hour", first, days.lowerBound)
            try add("day", days.lowerBound, days.upperBound)
            try add("hour", days.upperBound, span.upperBound)
        }
        for entry in overlay?.output.days ?? [] where days?.contains(entry.summary.period.lowerBound) == true {
            sums[entry.target]?.add(entry.summary)
        }
        for entry in overlay?.output.hours ?? [] where days?.contains(entry.summary.period.lowerBound) != true {
            sums[entry.target]?.add(entry.summary)
        }
        for (number, ledger) in ledgers.enumerated() {
            guard let ledger else { continue }
            // A target that is no longer monitored can have a day that never ends.
            let isInDays = days?.contains(ledger.currentDay.period.lowerBound) == true
            if isInDays { sums[number]?.add(ledger.currentDay) }
            if days?.contains(ledger.currentHour.period.lowerBound) != true { sums[number]?.add(ledger.currentHour) }
        }
        return sums.mapValues { $0.completed }
    }

    /// Returns the hours that are partly in a time: at most two.
    private static func partialHours(of span: Range<Int64>) -> [Range<Int64>] {
        guard !span.isEmpty else { return [] }
        let first = TargetLedger.hour(containing: span.lowerBound)
        let last = TargetLedger.hour(containing: span.upperBound)
        var hours: [Range<Int64>] = []
        if first.lowerBound < span.lowerBound || first.upperBound > span.upperBound { hours.append(first) }
        if last != first, last.lowerBound < span.upperBound { hours.append(last) }
        return hours
    }

    /// Returns whether an hour begins with an outage that was counted before, by the number of the target, as far as it is known.
    private func continuedOutages(
        of target: Int?, in hour: Range<Int64>, _ ledgers: [TargetLedger?]
    ) throws(StoreError) -> [Int: Bool] {
        var continued = try read { database in
            var continued: [Int: Bool] = [:]
            let rows = try SummaryRows(
                database, Resolution.hour.rawValue, from: hour.lowerBound, until: hour.lowerBound + 1, target: target,
                hasRoundTrips: false)
            while let (number, summary) = try rows.next() { continued[number] = summary.continuesOutage }
            return continued
        }
        for entry in overlay?.output.hours ?? [] where entry.summary.period == hour {
            continued[entry.target] = entry.summary.continuesOutage
        }
        for (number, ledger) in ledgers.enumerated() {
            if let ledger, ledger.currentHour.period == hour { continued[number] = ledger.currentHour.continuesOutage }
        }
        return continued
    }

    /// Calls `body` with the timeline of each target that has samples of an hour.
    private func forTimelines(
        of target: Int?, in hour: Range<Int64>, _ ledgers: [TargetLedger?], _ body: (Int, HourTimeline) -> Void
    ) throws(StoreError) {
        let recent = Dictionary(grouping: overlay?.blocks(of: target, hour: hour.lowerBound) ?? [], by: \.target)
        let continued = try continuedOutages(of: target, in: hour, ledgers)
        func use(_ number: Int, _ bytes: [UInt8]?) {
            var samples: [Sample] = []
            // The samples of a damaged block are replaced by the summary of the hour.
            if let bytes {
                guard let decoded = try? SampleBlock(bytes: bytes).samples() else { return }
                samples = decoded
            }
            for block in recent[number] ?? [] { samples = samples.joined(with: block.samples.samples) }
            let ledger = ledgers.indices.contains(number) ? ledgers[number] : nil
            let end = ledger.map { $0.currentHour.period == hour ? $0.end : hour.upperBound } ?? hour.upperBound
            var timeline = HourTimeline(hour: hour, samples: samples, end: end, outageLimit: ledger?.outages.limit ?? 0)
            timeline.continuesOutage = continued[number] ?? true
            body(number, timeline)
        }
        let numbers = try read { database in
            var numbers: Set<Int> = []
            let first = HistorySchema.block(target ?? 0, hour: hour.lowerBound)
            let last = target == nil ? HistorySchema.block(0, hour: hour.upperBound) - 1 : first
            let rows = try Row.fetchCursor(
                database, sql: "SELECT target, data FROM block WHERE number BETWEEN ? AND ?", arguments: [first, last])
            while let row = try rows.next() {
                try checkTime()
                guard let number = row.integer(0), let data = row.bytes(1) else { continue }
                numbers.insert(Int(number))
                use(Int(number), data)
            }
            return numbers
        }
        for number in recent.keys where !numbers.contains(number) { use(number, nil) }
    }

    /// Returns the time of the complete days inside of a time, whose summaries replace those of their hours; `nil` for none.
    ///
    /// In zones with an offset of half an hour, an hour belongs to two days. There, and for days without hours, days are used only
    /// before the first hour that is kept.
    private func daysInside(_ span: Range<Int64>) throws(StoreError) -> Range<Int64>? {
        try read { database in
            let row = try Row.fetchOne(
                database,
                sql: """
                    SELECT min(t), max(until), max(t % \(HistorySchema.hour)), max(until % \(HistorySchema.hour)) FROM day
                    WHERE t >= ? AND t < ? AND until <= ?
                    """, arguments: [span.lowerBound, span.upperBound, span.upperBound])
            guard let row, let start = row.time(0), let end = row.time(1), start < end else { return nil }
            if row.integer(2) == 0, row.integer(3) == 0 { return start..<end }
            guard let hour = try Int64.fetchOne(database, sql: "SELECT min(t) FROM hour"), hour > start else { return nil }
            let last = try Int64.fetchOne(
                database, sql: "SELECT max(until) FROM day WHERE t >= ? AND until <= ?", arguments: [start, min(hour, end)])
            return last.flatMap { start <= $0 ? start..<$0 : nil }
        }
    }

    /// Returns the ledgers by the number of the target. Those of targets that are no longer monitored are of the last checkpoint.
    private func current() throws(StoreError) -> [TargetLedger?] {
        if let overlay { return overlay.entries.map { $0?.ledger } }
        return try read { try HistoryDatabase.entries($0).entries.map { $0?.ledger } }
    }

    /// The cells of a bar of all targets: 16 bytes for each cell.
    struct BarTable: Sendable {
        /// The number of cells of a bar.
        let count: Int
        // The cells of the first target, then those of the second one.
        fileprivate var cells: [BarCell]

        /// The cells of a target, the oldest first. A target that is not in the history has empty cells.
        subscript(target: Int) -> ArraySlice<BarCell> {
            guard target >= 0, (target + 1) * count <= cells.count else {
                return Array(repeating: BarCell(), count: count)[...]
            }
            return cells[target * count..<(target + 1) * count]
        }
    }

    /// Returns the bars of all targets, from the summaries that begin in each cell.
    ///
    /// One pass over the rows keeps the times of one cell in memory: 0.6 MB for 10,000 targets. The current hour and day are not
    /// included.
    ///
    /// - Parameters:
    ///   - cells: the limits of the cells, the oldest first, without overlaps.
    ///   - resolution: the summaries: days for the cells of 90 days, otherwise hours.
    /// - Returns: the cells of all targets.
    /// - Throws: ``StoreError`` if the database cannot be read in time.
    func bars(_ cells: [Range<Int64>], _ resolution: Resolution) throws(StoreError) -> BarTable {
        let targets = (try self.targets().last?.number ?? -1) + 1
        return try read { database in
            var table = BarTable(count: cells.count, cells: Array(repeating: BarCell(), count: targets * cells.count))
            let states = RecordedState.allCases.map(\.column).joined(separator: ", ")
            let statement = try database.makeStatement(
                sql: "SELECT target, \(states) FROM \(resolution.rawValue) WHERE t >= ? AND t < ?")
            var times = [StateTimes](repeating: StateTimes(), count: targets)
            let ended = (resolution == .hour ? overlay?.output.hours : overlay?.output.days) ?? []
            for (index, cell) in cells.enumerated() {
                for target in times.indices { times[target] = StateTimes() }
                let rows = try Row.fetchCursor(statement, arguments: [cell.lowerBound, cell.upperBound])
                while let row = try rows.next() {
                    try checkTime()
                    let target = Int(clamping: row.integer(0) ?? -1)
                    guard times.indices.contains(target) else { continue }
                    for state in RecordedState.allCases {
                        let time = row.integer(1 + Int(state.rawValue)) ?? 0
                        times[target][state] += min(max(time, 0), 1 << 40)
                    }
                }
                for entry in ended where cell.contains(entry.summary.period.lowerBound) && times.indices.contains(entry.target) {
                    times[entry.target] = times[entry.target] + entry.summary.times
                }
                for target in times.indices { table.cells[target * cells.count + index] = BarCell(times[target]) }
            }
            return table
        }
    }
}
