import FoundationEssentials
import GRDB

/// A cursor over the summaries of a time, in the order of their starts.
struct SummaryRows {
    private let rows: RowCursor

    /// - Parameters:
    ///   - database: the connection.
    ///   - table: `hour` or `day`.
    ///   - start: the first start of a period.
    ///   - end: the end of the starts.
    ///   - target: the number of the only target; `nil` for all.
    ///   - hasRoundTrips: whether the distributions of round trips and response times are read, which takes most of the time.
    /// - Throws: the error of SQLite.
    init(_ database: Database, _ table: String, from start: Int64, until end: Int64, target: Int?, hasRoundTrips: Bool = true)
        throws
    {
        let states = RecordedState.allCases.map(\.name).joined(separator: ", ")
        let condition = target.map { "AND target = \($0)" } ?? ""
        rows = try Row.fetchCursor(
            database,
            sql: """
                SELECT t, target, until, \(states), probes, lost, outages, continues_outage, \(hasRoundTrips ? "rtt, response" : "x'00', NULL")
                FROM \(table)
                WHERE t >= ? AND t < ? \(condition) ORDER BY t, target
                """, arguments: [start, end])
    }

    /// Returns the next summary. Damaged rows are left out.
    func next() throws -> (target: Int, summary: PeriodSummary)? {
        while let row = try rows.next() {
            guard let start = row.integer(0), let target = row.integer(1), let end = row.integer(2), start <= end,
                start == SampleBlock.limited(start), end == SampleBlock.limited(end), let probes = row.integer(10),
                let lost = row.integer(11), let outages = row.integer(12), let data = row.bytes(14)
            else { continue }
            var summary = PeriodSummary(start..<end)
            for state in RecordedState.allCases {
                summary.times[state] = min(max(row.integer(3 + Int(state.rawValue)) ?? 0, 0), end - start)
            }
            var reader = VarintReader(data[...])
            summary.probes = Int(clamping: min(max(probes, 0), 1 << 40))
            summary.lost = Int(clamping: min(max(lost, 0), 1 << 40))
            summary.outages = Int(clamping: min(max(outages, 0), 1 << 40))
            summary.continuesOutage = row.integer(13) == 1
            summary.roundTrips = RoundTripHistogram(&reader) ?? RoundTripHistogram()
            if let data = row.bytes(15) {
                var reader = VarintReader(data[...])
                summary.responseTimes = RoundTripHistogram(&reader) ?? RoundTripHistogram()
            }
            return (Int(clamping: target), summary)
        }
        return nil
    }
}
