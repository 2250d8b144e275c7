import Pacing

/// The cells of a bar, the oldest first.
///
/// Equal neighbors are stored once, and the last cell on its own: a board of 10,000 targets has 1,420,000 cells, most of them equal, and
/// only the last ones change between two boards.
struct Bar: Hashable, Sendable {
    private struct Run: Hashable, Sendable {
        var cell: BarCell
        var count: UInt8
    }

    /// All cells but the last one.
    private var runs: [Run] = []
    /// The last cell; `nil` for a bar without cells.
    private(set) var last: BarCell?

    /// Creates a bar without cells.
    init() {}

    init(_ cells: some Collection<BarCell>) {
        for cell in cells { append(cell) }
    }

    /// Creates a bar of empty cells.
    init(count: Int) { self.init(repeatElement(BarCell(), count: count)) }

    /// The number of cells.
    var count: Int { runs.reduce(last == nil ? 0 : 1) { $0 + Int($1.count) } }

    /// All cells.
    var cells: [BarCell] { runs.flatMap { repeatElement($0.cell, count: Int($0.count)) } + (last.map { [$0] } ?? []) }

    /// The times in each state of all cells.
    var times: StateTimes {
        runs.reduce(last?.times ?? StateTimes()) { $0 + $1.cell.times * Int64($1.count) }
    }

    private mutating func append(_ cell: BarCell) {
        defer { last = cell }
        guard let last else { return }
        if let run = runs.last, run.cell == last, run.count < .max {
            runs[runs.count - 1].count += 1
        } else {
            runs.append(Run(cell: last, count: 1))
        }
    }

    /// Replaces the last cell of a bar that has cells.
    mutating func replaceLast(_ cell: BarCell) { if last != nil { last = cell } }

    /// Replaces a cell. A place that the bar does not have changes nothing.
    mutating func replace(_ place: Int, _ cell: BarCell) {
        var cells = cells
        guard cells.indices.contains(place), cells[place] != cell else { return }
        cells[place] = cell
        self = Bar(cells)
    }
}

/// A cell of a bar: the times in each state in a part of the span. It has 16 bytes, because a board can have a million cells.
struct BarCell: Hashable, Sendable {
    // By the raw value of the state, in units. A state that took any time has at least 1.
    private var counts = [7 of UInt16](repeating: 0)
    // In milliseconds. A day of 25 hours needs 1,385.
    private var unit: UInt16 = 1

    /// Creates a cell without time.
    init() {}

    /// Creates the cell of these times, with an error of at most 1/65,000 of their sum.
    init(_ times: StateTimes) {
        let total = times.total
        guard total > 0 else { return }
        unit = UInt16(clamping: (total - 1) / 65_000 + 1)
        for state in RecordedState.allCases where times[state] > 0 {
            let count = (times[state] + Int64(unit) / 2) / Int64(unit)
            counts[Int(state.rawValue)] = UInt16(clamping: max(1, count))
        }
    }

    /// The times in each state.
    var times: StateTimes {
        var times = StateTimes()
        for state in RecordedState.allCases { times[state] = Int64(counts[Int(state.rawValue)]) * Int64(unit) }
        return times
    }

    /// Returns the part of the time in a state, from 0 to 1.
    func share(of state: RecordedState) -> Double {
        let total = RecordedState.allCases.reduce(0) { $0 + Int(counts[Int($1.rawValue)]) }
        return total == 0 ? 0 : Double(counts[Int(state.rawValue)]) / Double(total)
    }

    /// The state that the cell shows: the worst one that was observed in it.
    var state: RecordedState {
        let order: [RecordedState] = [.down, .unreachable, .degraded, .up, .maintenance, .unknown, .notRecorded]
        return order.first { counts[Int($0.rawValue)] > 0 } ?? .notRecorded
    }

    static func == (first: Self, second: Self) -> Bool {
        first.unit == second.unit
            && RecordedState.allCases.allSatisfy { first.counts[Int($0.rawValue)] == second.counts[Int($0.rawValue)] }
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(unit)
        for state in RecordedState.allCases { hasher.combine(counts[Int(state.rawValue)]) }
    }
}

/// The times in each state during the spans: the sums of the cells.
struct SpanTimes: Sendable {
    let bars: SpanValues<Bar>

    subscript(span: BarSpan) -> StateTimes { bars[span].times }
}

/// The span of a bar.
enum BarSpan: String, Hashable, Sendable, CaseIterable {
    case day = "24h"
    case week = "7d"
    case quarter = "90d"

    /// The remedy for another text.
    static let form = "the spans are 24h, 7d and 90d"

    /// The number of cells of a bar: hours of a day, quarters of the days of a week, days.
    var cells: Int {
        switch self {
        case .day: 24
        case .week: 28
        case .quarter: 90
        }
    }
}

/// A value for each span.
struct SpanValues<Value> {
    var day: Value
    var week: Value
    var quarter: Value

    init(day: Value, week: Value, quarter: Value) { (self.day, self.week, self.quarter) = (day, week, quarter) }

    init(repeating value: Value) { self.init(day: value, week: value, quarter: value) }

    subscript(span: BarSpan) -> Value {
        get {
            switch span {
            case .day: day
            case .week: week
            case .quarter: quarter
            }
        }
        set {
            switch span {
            case .day: day = newValue
            case .week: week = newValue
            case .quarter: quarter = newValue
            }
        }
    }
}

extension SpanValues: Equatable where Value: Equatable {}
extension SpanValues: Hashable where Value: Hashable {}
extension SpanValues: Sendable where Value: Sendable {}

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
