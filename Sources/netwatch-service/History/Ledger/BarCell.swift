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
