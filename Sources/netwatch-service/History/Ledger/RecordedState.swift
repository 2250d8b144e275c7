import Reachability

/// The state of a target for a part of its history.
enum RecordedState: UInt8, Hashable, Sendable, CaseIterable {
    /// No probe has decided yet.
    case unknown
    case up
    case degraded
    case down
    case unreachable
    /// A maintenance window.
    case maintenance
    /// Nothing was recorded: the service was stopped, the machine was suspended, or the disk was full.
    case notRecorded

    /// Whether the target cannot be reached, for whatever cause.
    var isOutage: Bool { self == .down || self == .unreachable }

    /// The name of the state in queries and documents, and of the column of the time in it.
    var name: String {
        switch self {
        case .unknown: "unknown"
        case .up: "up"
        case .degraded: "degraded"
        case .down: "down"
        case .unreachable: "unreachable"
        case .maintenance: "maintenance"
        case .notRecorded: "not_recorded"
        }
    }
}

/// The time in each state, in milliseconds.
struct StateTimes: Hashable, Sendable {
    private var times: [7 of Int64] = [7 of Int64](repeating: 0)

    /// The time in a state.
    subscript(state: RecordedState) -> Int64 {
        get { times[Int(state.rawValue)] }
        set { times[Int(state.rawValue)] = newValue }
    }

    /// The time in all states.
    var total: Int64 { RecordedState.allCases.reduce(0) { $0 + self[$1] } }

    static func + (first: Self, second: Self) -> Self {
        var sum = first
        for state in RecordedState.allCases { sum[state] += second[state] }
        return sum
    }

    /// Returns the times of a number of equal periods.
    static func * (times: Self, count: Int64) -> Self {
        var product = times
        for state in RecordedState.allCases { product[state] *= count }
        return product
    }

    static func == (first: Self, second: Self) -> Bool { RecordedState.allCases.allSatisfy { first[$0] == second[$0] } }

    func hash(into hasher: inout Hasher) {
        for state in RecordedState.allCases { hasher.combine(self[state]) }
    }
}

/// The availability of a target: the part of the observed time in which it was reachable. A degraded target is reachable.
///
/// Faults of this machine and of the network before the server (`unreachable`) are no faults of the server, so they are outside of
/// ``server``. Time in other states is outside of both.
struct Availability: Hashable, Sendable {
    /// The availability of the server, from 0 to 1; `nil` if it was never observed.
    let server: Double?
    /// The availability with the faults of this machine and of the network; `nil` if there was no result.
    let withLocalCauses: Double?
    /// The part of the time that was observed: all but unknown, maintenance and not recorded; `nil` for no time.
    let observed: Double?

    init(_ times: StateTimes) {
        let reachable = times[.up] + times[.degraded]
        func part(_ amount: Int64, of total: Int64) -> Double? { total > 0 ? Double(amount) / Double(total) : nil }
        server = part(reachable, of: reachable + times[.down])
        withLocalCauses = part(reachable, of: reachable + times[.down] + times[.unreachable])
        observed = part(reachable + times[.down] + times[.unreachable], of: times.total)
    }
}

extension RecordedState {
    /// The state of a target by its probes.
    init(_ state: StatusName) {
        self =
            switch state {
            case .unknown: .unknown
            case .up: .up
            case .degraded: .degraded
            case .down: .down
            case .unreachable: .unreachable
            }
    }
}
