import Pacing

/// The cells of all bars at a time: the last 24 hours, 28 quarters of days in UTC, and 90 local days. The last cell of each bar contains the
/// time.
struct BarFrame: Hashable, Sendable {
    private static let hour: Int64 = 3_600_000
    private static let quarter: Int64 = 6 * hour

    private(set) var cells = SpanValues<[Range<Int64>]>(repeating: [])

    init(at time: Int64, in calendar: inout DayCalendar) {
        cells[.day] = Self.cells(of: Self.hour, count: BarSpan.day.cells, until: time)
        cells[.week] = Self.cells(of: Self.quarter, count: BarSpan.week.cells, until: time)
        var days = [calendar.day(containing: time)]
        while days.count < BarSpan.quarter.cells { days.append(calendar.day(containing: days[days.count - 1].lowerBound - 1)) }
        cells[.quarter] = days.reversed()
    }

    private static func cells(of length: Int64, count: Int, until time: Int64) -> [Range<Int64>] {
        let last = time.floorDivided(by: length).quotient
        return (last - Int64(count) + 1...last).map { $0 * length..<($0 + 1) * length }
    }

    /// Returns the number of the cell that contains a time; `nil` if the bar does not show it.
    func place(of time: Int64, in span: BarSpan) -> Int? {
        let cells = cells[span]
        guard let first = cells.first, let last = cells.last, first.lowerBound <= time, time < last.upperBound else { return nil }
        // Binary search: days have different lengths.
        var (low, high) = (0, cells.count - 1)
        while low < high {
            let middle = (low + high + 1) / 2
            if cells[middle].lowerBound <= time { low = middle } else { high = middle - 1 }
        }
        return low
    }

    /// Whether a time is after the last cell of a bar, so that another frame is needed.
    func isOutdated(at time: Int64) -> Bool { BarSpan.allCases.contains { place(of: time, in: $0) != cells[$0].count - 1 } }
}

/// The places of a frame's cells in a former frame.
struct BarMove: Sendable {
    /// The former place of each cell; `nil` for a cell that the former frame did not have.
    let places: SpanValues<[Int?]>
    /// Whether the last cell of the week's bar stays.
    let keepsQuarter: Bool

    init(from former: BarFrame, to frame: BarFrame) {
        var places = SpanValues<[Int?]>(repeating: [])
        for span in BarSpan.allCases {
            places[span] = frame.cells[span].map { cell in
                former.place(of: cell.lowerBound, in: span).flatMap { former.cells[span][$0] == cell ? $0 : nil }
            }
        }
        self.places = places
        keepsQuarter = former.cells[.week].last == frame.cells[.week].last
    }
}

/// The bars of one target.
struct TargetBars: Hashable, Sendable {
    private(set) var bars = SpanValues(repeating: Bar())
    /// The times of the ended hours in the last cell of the week's bar.
    private var quarter = StateTimes()

    /// Creates empty bars.
    init(_ frame: BarFrame) { for span in BarSpan.allCases { bars[span] = Bar(count: frame.cells[span].count) } }

    /// Creates the bars of a history, which have as many cells as its frame.
    init(_ bars: SpanValues<Bar>) {
        self.bars = bars
        quarter = bars.week.last?.times ?? StateTimes()
    }

    /// Adds the summary of an hour that has ended.
    mutating func add(hour: PeriodSummary, in frame: BarFrame) {
        if let place = frame.place(of: hour.period.lowerBound, in: .day) { bars.day.replace(place, BarCell(hour.times)) }
        guard let place = frame.place(of: hour.period.lowerBound, in: .week) else { return }
        if place == frame.cells[.week].count - 1 {
            quarter = quarter + hour.times
            bars.week.replaceLast(BarCell(quarter))
        } else {
            let former = bars.week.cells
            guard former.indices.contains(place) else { return }
            bars.week.replace(place, BarCell(former[place].times + hour.times))
        }
    }

    /// Adds the summary of a day that has ended.
    mutating func add(day: PeriodSummary, in frame: BarFrame) {
        if let place = frame.place(of: day.period.lowerBound, in: .quarter) { bars.quarter.replace(place, BarCell(day.times)) }
    }

    /// Shows the running hour and day in the last cells.
    mutating func show(hour: StateTimes, day: StateTimes) {
        bars.day.replaceLast(BarCell(hour))
        bars.week.replaceLast(BarCell(quarter + hour))
        bars.quarter.replaceLast(BarCell(day))
    }

    /// Moves the cells to another frame. Cells that the former one did not have are empty.
    mutating func move(_ move: BarMove) {
        if !move.keepsQuarter { quarter = StateTimes() }
        for span in BarSpan.allCases {
            let former = bars[span].cells
            bars[span] = Bar(
                move.places[span].map { place in
                    place.flatMap { former.indices.contains($0) ? former[$0] : nil } ?? BarCell()
                })
        }
    }
}
