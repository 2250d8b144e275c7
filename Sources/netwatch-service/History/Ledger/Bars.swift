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
