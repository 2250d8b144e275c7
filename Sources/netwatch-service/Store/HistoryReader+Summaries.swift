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

    /// The summaries of a target that overlap a time, the oldest first. The current period, which has not ended, is not included.
    func summaries(_ resolution: Resolution, of target: Int, _ span: Range<Int64>) throws(StoreError) -> [PeriodSummary] {
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
        let ended = resolution == .hour ? overlay?.output.hours : overlay?.output.days
        found += (ended ?? []).filter { $0.target == target && $0.summary.period.overlaps(span) }.map(\.summary)
        return found
    }

    /// The summary of each target over a time, by the number of the target.
    ///
    /// The states of each target sum to the length of the time: what no summary covers was not recorded. An hour that is partly in the
    /// time counts with the same part of its states and results.
    ///
    /// - Parameters:
    ///   - span: the time in milliseconds since 1970.
    ///   - target: the only target; `nil` for all.
    ///   - ledgers: the keeper's ledgers, whose current hours are not in the database yet. Readers of a stopped service need none.
    /// - Returns: the summaries by the number of the target.
    /// - Throws: ``StoreError`` if the database cannot be read in time.
    func summaries(
        _ span: Range<Int64>, of target: Int? = nil, adding ledgers: [Int: TargetLedger] = [:]
    ) throws(StoreError) -> [Int: PeriodSummary] {
        var sums: [Int: Sum] = [:]
        if let target { sums[target] = Sum(span) } else { for known in try targets() { sums[known.number] = Sum(span) } }
        let first = try read { try Int64.fetchOne($0, sql: "SELECT min(t) FROM hour") }
        try read { database in
            // Days, if the time begins before the first hour that is kept.
            var start = span.lowerBound
            if let first, first > span.lowerBound {
                let rows = try SummaryRows(database, "day", from: span.lowerBound, until: first, target: target)
                while let (number, summary) = try rows.next() {
                    try checkTime()
                    guard summary.period.upperBound <= min(first, span.upperBound) else { continue }
                    sums[number]?.add(summary, summary.period)
                }
                start = first
            }
            let rows = try SummaryRows(
                database, "hour", from: start - HistorySchema.hour + 1, until: span.upperBound, target: target)
            while let (number, summary) = try rows.next() {
                try checkTime()
                sums[number]?.add(summary, summary.period)
            }
        }
        for entry in overlay?.output.hours ?? [] { sums[entry.target]?.add(entry.summary, entry.summary.period) }
        var current = ledgers
        // Targets without a ledger of the keeper are no longer monitored. Theirs is that of the last checkpoint.
        let entries: [LedgerBook.Entry?]
        if let overlay { entries = overlay.entries } else { entries = try read { try HistoryDatabase.entries($0).entries } }
        for (number, entry) in entries.enumerated() where current[number] == nil {
            if let entry { current[number] = entry.ledger }
        }
        for (number, ledger) in current {
            let hour = ledger.currentHour
            sums[number]?.add(hour, hour.period.lowerBound..<max(ledger.end, hour.period.lowerBound))
        }
        return sums.mapValues { $0.completed }
    }

    /// The sum of the summaries of a target.
    private struct Sum {
        private var sum: PeriodSummary
        /// The end of the last period that was added. Summaries of the same time are not added twice.
        private var end = Int64.min

        init(_ span: Range<Int64>) { sum = PeriodSummary(span) }

        /// Adds the part of a summary that is in the time. - Parameter period: the accounted time.
        mutating func add(_ summary: PeriodSummary, _ period: Range<Int64>) {
            let part = period.clamped(to: sum.period)
            guard !part.isEmpty, period.lowerBound >= end else { return }
            end = period.upperBound
            let (length, accounted) = (part.upperBound - part.lowerBound, summary.times.total)
            // The first and the last hour of a target can be accounted in part, and that part can be in the time.
            guard accounted > length else { return sum.add(summary) }
            let scale = Double(length) / Double(accounted)
            for state in RecordedState.allCases { sum.times[state] += Int64(Double(summary.times[state]) * scale) }
            sum.probes += Int(Double(summary.probes) * scale)
            sum.lost += Int(Double(summary.lost) * scale)
            sum.roundTrips.add(summary.roundTrips)
        }

        /// The sum, in which the time without summaries was not recorded.
        var completed: PeriodSummary {
            var sum = sum
            sum.times[.notRecorded] += max(0, sum.period.upperBound - sum.period.lowerBound - sum.times.total)
            return sum
        }
    }

    /// The cells of a bar of all targets: 7 bytes for each cell.
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
                    let target = Int(clamping: (row[0] as Int64?) ?? -1)
                    guard times.indices.contains(target) else { continue }
                    for state in RecordedState.allCases {
                        let time = (row[1 + Int(state.rawValue)] as Int64?) ?? 0
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
