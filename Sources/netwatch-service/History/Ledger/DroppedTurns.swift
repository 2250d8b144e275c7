/// Turns that could not be recorded: the disk was full, or it was too slow. Their samples are lost; the states at their end are kept.
struct DroppedTurns: Sendable {
    /// The number of lost samples.
    private(set) var samples = 0
    /// The start of the time that was not recorded, in milliseconds since 1970.
    let start: Int64
    /// The time of the last turn.
    private(set) var time: ClockReading
    /// The state of each target that had an event; `nil` if the target is no longer monitored.
    private var states: [Int: RecordedState?] = [:]
    /// The times that failures last before they are outages, of the targets for which they were set.
    private var outageLimits: [Int: Int64] = [:]
    /// The times before the start in which the service did not run, or could not record.
    private var stops: [HistoryGap] = []

    /// - Parameters:
    ///   - start: the time of the last turn that was recorded.
    ///   - first: the first turn that was not.
    init(after start: Int64, _ first: HistoryTurn) {
        (self.start, time) = (start, first.time)
        add(first)
    }

    mutating func add(_ turn: HistoryTurn) {
        time = turn.time
        for event in turn.events {
            switch event {
            case .begin(let target, let state, _), .change(let target, let state, _): states[target] = .some(state)
            case .sample(let target, let sample):
                samples += 1
                states[target] = .some(sample.state)
            case .outageLimit(let target, let limit): outageLimits[target] = limit
            case .end(let target, _): states[target] = .some(nil)
            case .gap(let gap): if gap.reason == .stopped || gap.period.upperBound <= start { stops.append(gap) }
            }
        }
    }

    mutating func add(_ later: DroppedTurns) {
        samples += later.samples
        time = later.time
        states.merge(later.states) { $1 }
        outageLimits.merge(later.outageLimits) { $1 }
        stops += later.stops
    }

    /// The time that was not recorded.
    var gap: HistoryGap { HistoryGap(period: start..<max(start, time.wall), reason: .notRecorded) }

    /// The turn that replaces the lost ones: the gap, and the states at its end.
    var replacement: HistoryTurn {
        let changes = states.sorted { $0.key < $1.key }.map { target, state -> HistoryEvent in
            state.map { .begin(target: target, $0, at: time.wall) } ?? .end(target: target, at: time.wall)
        }
        let limits = outageLimits.sorted { $0.key < $1.key }.map { HistoryEvent.outageLimit(target: $0.key, $0.value) }
        return HistoryTurn(time, (stops + [gap]).map { .gap($0) } + changes + limits)
    }
}

extension DroppedTurns? {
    /// Adds a turn. - Parameter start: the time of the last turn before the first one.
    mutating func add(_ turn: HistoryTurn, after start: Int64) {
        if self == nil { self = DroppedTurns(after: start, turn) } else { self?.add(turn) }
    }
}
