/// A part of a bar with cells of one state.
struct BarSegment: Hashable, Sendable {
    var state: RecordedState
    /// The number of cells.
    var cells: Int
    /// The times in milliseconds since 1970.
    var period: Range<Int64>
    /// The times in each state. Time before the history counts as not recorded.
    var times: StateTimes
    /// The observed part of each cell in tenths, from 1 to 10.
    var observedTenths = 10

    /// Returns the segments of a bar, the oldest first.
    ///
    /// Neighboring cells of one state, of which the same part was observed, are one segment: the bar of a calm target is one link, rather than
    /// a link for each hour. A bar without cells has one segment of unknown time.
    ///
    /// - Parameters:
    ///   - bar: the bar.
    ///   - cells: the times of its cells.
    ///   - now: the present time in milliseconds since 1970. The last cell ends later.
    /// - Returns: the segments.
    static func segments(of bar: Bar, in cells: [Range<Int64>], now: Int64) -> [BarSegment] {
        guard let start = cells.first?.lowerBound, let end = cells.last?.upperBound, start < end else { return [] }
        guard bar.count == cells.count else {
            return [BarSegment(state: .notRecorded, cells: cells.count, period: start..<end, times: StateTimes())]
        }
        var segments: [BarSegment] = []
        for (cell, period) in zip(bar.cells, cells) {
            let (state, times, tenths) = (cell.state, cell.times(in: period, now: now), cell.observedTenths(in: period, now: now))
            if let last = segments.last, last.state == state, last.observedTenths == tenths,
                last.period.upperBound == period.lowerBound
            {
                segments[segments.count - 1].cells += 1
                segments[segments.count - 1].period = last.period.lowerBound..<period.upperBound
                segments[segments.count - 1].times = last.times + times
            } else {
                segments.append(BarSegment(state: state, cells: 1, period: period, times: times, observedTenths: tenths))
            }
        }
        return segments
    }
}

extension BarCell {
    /// The part of a cell that is not worth a mark: a restart of the service is not one.
    private static let tolerance = 0.05

    /// Returns the times in each state, in which the time before the history is not recorded.
    fileprivate func times(in period: Range<Int64>, now: Int64) -> StateTimes {
        var times = times
        let length = min(period.upperBound, now).elapsed(since: period.lowerBound)
        let missing = length - times.total
        // The times of a cell are rounded, by less than a second in a day.
        if times.total > 0, missing > length / 1_000 { times[.notRecorded] += (missing + 500) / 1_000 * 1_000 }
        return times
    }

    /// Returns the part of the time in which the probes had a result, in tenths; 10 for a cell without any.
    fileprivate func observedTenths(in period: Range<Int64>, now: Int64) -> Int {
        let times = times(in: period, now: now)
        let missing = times[.notRecorded] + times[.unknown]
        guard times.total > missing else { return 10 }
        let share = Double(times.total - missing) / Double(times.total)
        return share > 1 - Self.tolerance ? 10 : min(9, max(1, Int((share * 10).rounded())))
    }
}
