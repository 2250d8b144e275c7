import EventLoop
import Reachability

/// The hand-over of the monitor's events to the keeper. Results are stored as small values; all other events are stored as they are.
///
/// The monitor's thread never waits for the keeper: it appends to arrays that were allocated before. Results do not wake the
/// keeper, which takes them four times a second. All other events wake it at once.
final class Intake: Sendable {
    /// The maximum number of results that wait: a minute of 10,000 targets that are probed each second.
    static let limit = 600_000
    /// The maximum number of events whose memory is kept.
    static let keptEvents = 256

    /// The reports of the monitor since the last turn of the keeper.
    struct Batch: Sendable {
        /// The results, with the number of the target at the monitor.
        var results: [HistoryRecorder.Result] = []
        /// The events that are no results, in order.
        var events: [Event] = []
        /// The results that were dropped, because the keeper did not take them.
        var dropped = 0

        /// An event, and the number of results that were reported before it.
        struct Event: Sendable {
            var event: MonitorEvent
            var results: Int
        }

        /// Removes the content, and keeps the memory.
        mutating func removeAll() {
            results.removeAll(keepingCapacity: true)
            // The first states of many targets arrive at once, and never again as many.
            events.removeAll(keepingCapacity: events.capacity <= Intake.keptEvents)
            dropped = 0
        }
    }

    fileprivate struct State: Sendable {
        var batch = Batch()
        /// The states of the targets, by their numbers at the monitor.
        var states: [RecordedState] = []
        var probes = LastProbes()
        /// Wakes the keeper; `nil` before it runs.
        var waker: Waker?
    }

    private let state: Locked<State>

    /// Creates an intake for a number of targets.
    init(targets: Int) {
        var initial = State()
        initial.batch.results.reserveCapacity(max(64, targets))
        initial.states = Array(repeating: .unknown, count: targets)
        state = Locked(initial)
    }

    /// Receives an event on the monitor's thread.
    func put(_ event: MonitorEvent) {
        let waker = state.withLock { state -> Waker? in
            switch event {
            case .probe(let id, let report):
                state.add(id, report)
                state.probes.add(report, of: id)
                return nil
            case .server(let id, let update):
                state.change(id, update)
            case .path, .incident, .resync, .gap, .ended: break
            }
            state.batch.events.append(.init(event: event, results: state.batch.results.count))
            return state.batch.events.count == 1 ? state.waker : nil
        }
        waker?.wake()
    }

    /// Sets the waker of the keeper.
    func attach(_ waker: Waker) { state.withLock { $0.waker = waker } }

    /// Returns the last probe of a target; `nil` if it is not known.
    func lastProbe(of id: TargetID, _ endpoint: Endpoint) -> ProbeReport? {
        state.withLock { $0.probes.report(of: id, endpoint) }
    }

    /// Forgets the last probe of a target that is no longer monitored.
    func remove(_ id: TargetID) { state.withLock { $0.probes.remove(id) } }

    /// Exchanges the batch for an empty one.
    func take(_ batch: inout Batch) {
        batch.removeAll()
        state.withLock { swap(&batch, &$0.batch) }
    }
}

extension Intake.State {
    fileprivate mutating func add(_ id: TargetID, _ report: ProbeReport) {
        if batch.results.count >= Intake.limit {
            let dropped = Intake.limit / 10
            batch.results.removeFirst(dropped)
            batch.dropped += dropped
            for place in batch.events.indices { batch.events[place].results = max(0, batch.events[place].results - dropped) }
        }
        func units(_ duration: Duration) -> UInt32 {
            UInt32(clamping: max(1, Int64(duration.milliseconds * 1_000) / Int64(Sample.roundTripUnit)))
        }
        // A retransmission prevents the measurement of a round trip, but the connection had a duration.
        let roundTrip = report.succeeded ? units(report.roundTrip ?? report.connection ?? .zero) : nil
        batch.results.append(
            HistoryRecorder.Result(
                target: id.number, state: id.number < states.count ? states[id.number] : .unknown, roundTrip: roundTrip,
                isRoundTripMeasured: report.roundTrip != nil, responseTime: report.responseTime.map(units),
                phases: PhaseTimes(report),
                certificateEnd: report.certificateEnd,
                time: report.moment.wallClockNanoseconds / 1_000_000))
    }

    fileprivate mutating func change(_ id: TargetID, _ update: ServerUpdate) {
        if id.number >= states.count {
            states.append(contentsOf: repeatElement(.unknown, count: id.number + 1 - states.count))
        }
        states[id.number] = RecordedState(update.statusName)
        // The update follows the result that caused it in the same turn.
        let time = update.moment.wallClockNanoseconds / 1_000_000
        var place = batch.results.count - 1
        while place >= 0, batch.results[place].time == time {
            if batch.results[place].target == id.number { batch.results[place].state = states[id.number] }
            place -= 1
        }
    }
}
