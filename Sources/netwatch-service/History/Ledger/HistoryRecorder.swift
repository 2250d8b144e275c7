import Pacing
import Reachability

/// The translation of results, changes and readings of the clocks into the events of the history.
///
/// A clock that shows a time again records nothing, so that no second is counted twice.
struct HistoryRecorder: Sendable {
    /// A result, as the monitor reported it.
    struct Result: Hashable, Sendable {
        /// The number of the target.
        var target: Int
        /// The state of the target after this result.
        var state: RecordedState
        /// The round trip in units of a ``Sample``; `nil` if the probe failed.
        var roundTrip: UInt32?
        /// Whether ``roundTrip`` was measured. Otherwise it is the time of the connection, because a retransmission prevents the measurement.
        var isRoundTripMeasured = true
        /// The response time in units of a ``Sample``; `nil` if the probe failed.
        var responseTime: UInt32?
        /// The phases of that time. They are not recorded.
        var phases = PhaseTimes()
        /// The end of the certificate's validity in seconds since 1970; `nil` if the probe has shown none. It is not recorded.
        var certificateEnd: Int64?
        /// The wall clock in milliseconds since 1970.
        var time: Int64
    }

    /// The states of a target.
    private struct Entry: Sendable {
        /// The state by the probes.
        var probed: RecordedState
        var isInMaintenance: Bool
        /// The time of the last event.
        var last: Int64
        /// The time that a failure lasts before it is an outage, in milliseconds.
        var outageLimit: Int64
        /// The time until which failures count as unknown, because the target has not been reached yet; `nil` if it has, or this time is over.
        var beginning: Int64?

        /// The state that is recorded.
        var state: RecordedState { isInMaintenance ? .maintenance : beginning != nil && probed.isOutage ? .unknown : probed }

        mutating func setProbed(_ state: RecordedState) {
            probed = state
            if state == .up || state == .degraded { beginning = nil }
        }
    }

    private var clock: HistoryClock
    private var reading: ClockReading
    private var entries: [Int: Entry] = [:]
    private var events: [HistoryEvent] = []
    /// The targets that have not been reached since they were added, and the time at which the failures of the first of them count.
    private var beginnings: Set<Int> = []
    private var firstBeginning = Int64.max
    /// Whether the clock shows a time that was recorded already.
    private(set) var isRepeated = false
    /// The time by which the wall clock is behind the recorded time, in milliseconds.
    private(set) var lag: Int64 = 0

    /// Starts the recorder.
    ///
    /// - Parameters:
    ///   - now: the present time.
    ///   - last: the time until which something was recorded. The time since then is a gap, in which the service did not run.
    ///   - unrecordedUntil: the time until which it ran after `last`, and could not record; `nil` if it did not.
    init(_ now: ClockReading, last: Int64? = nil, unrecordedUntil: Int64? = nil) {
        clock = HistoryClock(now, last: last)
        if let last { events = HistoryGap.sinceEnd(last, until: clock.last, unrecordedUntil: unrecordedUntil).map { .gap($0) } }
        reading = now
        reading.wall = clock.last
    }

    /// The present time of the history in milliseconds since 1970.
    var now: Int64 { clock.last }

    /// Takes the events since the last turn.
    mutating func takeTurn() -> HistoryTurn {
        defer { events.removeAll(keepingCapacity: true) }
        return HistoryTurn(reading, events)
    }

    /// Continues with another reading of the clocks.
    ///
    /// - Parameters:
    ///   - next: the reading.
    ///   - isLate: whether the process did not run since the reading before, so that the states of that time are not known.
    /// - Returns: the time after which the history is wrong and must be withdrawn, because the clock was set back; usually `nil`.
    ///   All targets then begin again.
    mutating func read(_ next: ClockReading, isLate: Bool = false) -> Int64? {
        let result = clock.read(next, isLate: isLate)
        lag = max(0, clock.last - next.wall)
        reading = next
        reading.wall = clock.last
        isRepeated = false
        switch result {
        case .time: break
        case .repeated: isRepeated = true
        case .gap(let period, let reason):
            events.append(.gap(HistoryGap(period: period, reason: reason == .suspended ? .suspend : .notRecorded)))
            for target in entries.keys { entries[target]?.last = period.upperBound }
        case .withdraw(let time):
            events = []
            for target in entries.keys.sorted() {
                begin(target, at: time)
                if let entry = entries[target], let beginning = entry.beginning {
                    entries[target]?.beginning = min(beginning, time.addingSaturated(entry.outageLimit))
                }
            }
            firstBeginning = beginnings.isEmpty ? .max : time
            return time
        }
        endBeginnings()
        return nil
    }

    /// Records the failures of the targets that have not been reached in time since they were added.
    private mutating func endBeginnings() {
        guard clock.last >= firstBeginning else { return }
        firstBeginning = .max
        for target in beginnings.sorted() {
            guard let beginning = entries[target]?.beginning else {
                beginnings.remove(target)
                continue
            }
            if beginning <= clock.last {
                beginnings.remove(target)
                change(target, at: beginning) { $0.beginning = nil }
            } else {
                firstBeginning = min(firstBeginning, beginning)
            }
        }
    }

    /// Adds a target whose state is not known yet. The seconds before its first success count as unknown, for at most `outageLimit`, so that
    /// the start of a machine is no outage.
    ///
    /// - Parameters:
    ///   - target: the number of the target.
    ///   - isInMaintenance: whether a maintenance window covers it.
    ///   - outageLimit: the time that a failure lasts before it is an outage, in milliseconds.
    mutating func add(_ target: Int, isInMaintenance: Bool = false, outageLimit: Int64 = 0) {
        var entry = Entry(
            probed: .unknown, isInMaintenance: isInMaintenance, last: clock.last, outageLimit: max(0, outageLimit))
        if outageLimit > 0 {
            let beginning = clock.last.addingSaturated(outageLimit)
            entry.beginning = beginning
            beginnings.insert(target)
            firstBeginning = min(firstBeginning, beginning)
        }
        entries[target] = entry
        begin(target, at: clock.last)
    }

    /// Sets the time that a failure lasts before it is an outage, in milliseconds.
    mutating func setOutageLimit(_ limit: Int64, of target: Int) {
        guard let entry = entries[target], entry.outageLimit != max(0, limit) else { return }
        entries[target]?.outageLimit = max(0, limit)
        events.append(.outageLimit(target: target, max(0, limit)))
    }

    /// Begins a target again, after the history was withdrawn.
    mutating func restart(_ target: Int) { begin(target, at: clock.last) }

    private mutating func begin(_ target: Int, at time: Int64) {
        guard let entry = entries[target] else { return }
        entries[target]?.last = time
        events.append(.begin(target: target, entry.state, at: time))
        if entry.outageLimit > 0 { events.append(.outageLimit(target: target, entry.outageLimit)) }
    }

    /// Removes a target.
    mutating func remove(_ target: Int) {
        guard let entry = entries.removeValue(forKey: target) else { return }
        beginnings.remove(target)
        events.append(.end(target: target, at: max(entry.last, clock.last)))
    }

    /// Adds a result.
    mutating func add(_ result: Result) {
        guard let place = entries.index(forKey: result.target) else { return }
        entries.values[place].setProbed(result.state)
        guard !isRepeated else { return }
        let entry = entries.values[place]
        let time = min(max(result.time, entry.last), clock.last)
        entries.values[place].last = time
        let sample = Sample(
            time: time, state: entry.state, roundTrip: result.roundTrip, responseTime: result.responseTime)
        events.append(.sample(target: result.target, sample))
    }

    /// Changes the state of a target by its probes. - Parameter time: the wall clock in milliseconds since 1970.
    mutating func change(_ target: Int, to state: RecordedState, at time: Int64) {
        change(target, at: time) { $0.setProbed(state) }
    }

    /// Begins or ends the maintenance of a target.
    mutating func change(_ target: Int, isInMaintenance: Bool) {
        change(target, at: clock.last) { $0.isInMaintenance = isInMaintenance }
    }

    private mutating func change(_ target: Int, at time: Int64, _ body: (inout Entry) -> Void) {
        guard var entry = entries[target] else { return }
        let former = entry.state
        body(&entry)
        defer { entries[target] = entry }
        guard entry.state != former else { return }
        // During a repeated time, the change counts from the end of the recorded time on.
        entry.last = isRepeated ? clock.last : min(max(time, entry.last), clock.last)
        events.append(.change(target: target, entry.state, at: entry.last))
    }
}
