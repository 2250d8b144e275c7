/// A part of a bar with cells of one state.
struct BarSegment: Hashable, Sendable {
    var state: RecordedState
    /// The number of cells.
    var cells: Int
    /// The times in milliseconds since 1970.
    var period: Range<Int64>
    /// The times in each state.
    var times: StateTimes

    /// Returns the segments of a bar, the oldest first.
    ///
    /// Neighboring cells of one state are one segment: the bar of a calm target is one link, rather than a link for each hour. A bar
    /// without cells has one segment of unknown time.
    static func segments(of bar: Bar, in cells: [Range<Int64>]) -> [BarSegment] {
        guard let start = cells.first?.lowerBound, let end = cells.last?.upperBound, start < end else { return [] }
        guard bar.count == cells.count else {
            return [BarSegment(state: .notRecorded, cells: cells.count, period: start..<end, times: StateTimes())]
        }
        var segments: [BarSegment] = []
        for (cell, period) in zip(bar.cells, cells) {
            let times = cell.times
            if let last = segments.last, last.state == cell.state, last.period.upperBound == period.lowerBound {
                segments[segments.count - 1].cells += 1
                segments[segments.count - 1].period = last.period.lowerBound..<period.upperBound
                segments[segments.count - 1].times = last.times + times
            } else {
                segments.append(BarSegment(state: cell.state, cells: 1, period: period, times: times))
            }
        }
        return segments
    }
}
