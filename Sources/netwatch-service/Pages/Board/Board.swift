import EventLoop
import Pacing
import Reachability
import Records

/// An immutable snapshot of everything that pages, documents and badges show. The keeper publishes one in each of its turns.
struct Board: Hashable, Sendable {
    /// The time of the snapshot.
    var moment: Moment
    /// The name of this machine.
    var instance: String
    /// The time zone of days (tz database), for people.
    var timeZone: String
    /// The offset of the time zone from UTC at ``moment``, in seconds.
    var timeZoneOffset: Int = 0
    /// The time at which the service started.
    var started: Moment
    /// The number of the last record that the streams received.
    var sequence: Int
    /// The identifier of that record in streams, with which the page's script continues.
    var eventID = 0
    /// The path; `nil` until it has settled.
    var path: PathUpdate?
    /// The groups, in the order of the configuration. Groups that only targets name follow.
    var groups: [Configuration.TargetGroup]
    /// The targets, in the order of the configuration.
    var targets: [BoardTarget]
    /// The canary; `nil` if none is configured.
    var canary: ServerUpdate?
    /// The open incidents and the last ones that are over, the newest first.
    var incidents: [BoardIncident]
    var recording: RecordingStatus
    /// The limits of the cells of all bars.
    var cells: SpanValues<[Range<Int64>]>
    /// The problem of the last attempt to load the configuration; `nil` if it was loaded.
    var reloadProblem: String?
    /// The keys of the configuration whose new values need a restart.
    var restartKeys: [String] = []
    /// The names of the targets, for the texts that incidents have of them.
    var names = TargetNames()

    /// Whether the keeper still publishes boards. - Parameter now: the present time.
    func isFresh(at now: Moment) -> Bool { now.elapsed(since: moment) < .seconds(10) }

    /// Returns the target with an identifier, a name or a text; `nil` if there is none.
    func target(named text: String) -> BoardTarget? {
        targets.first { $0.key == text } ?? targets.first { $0.title == text }
            ?? targets.first { $0.update.endpoint.text == text }
    }

    /// Returns the times of a target in each state of a span. Time before the history counts as not recorded.
    func times(of target: BoardTarget, in span: BarSpan) -> StateTimes {
        var times = target.times[span]
        guard let start = cells[span].first?.lowerBound, let end = cells[span].last?.upperBound else { return times }
        let now = moment.wallClockNanoseconds.floorDivided(by: 1_000_000).quotient
        let length = min(end, now).elapsed(since: start)
        let missing = max(0, length - times.total)
        // Cells are rounded.
        if missing > length / 1_000 { times[.notRecorded] += missing }
        return times
    }
}

/// A target on the board.
struct BoardTarget: Hashable, Sendable {
    /// The key of the history: the identifier, or the text of the target. It is unique.
    var key: String
    /// The identifier; `nil` if the configuration sets none.
    var id: String?
    /// The name for people.
    var title: String
    var group: String?
    /// The status.
    var update: ServerUpdate
    /// What the last probes have measured.
    var measured = MeasuredTimes()
    /// Whether a maintenance window covers the present time.
    var isInMaintenance = false
    /// The bars, the oldest cell first. A bar has a cell for each of ``Board/cells``, or none before the history was read.
    var bars = SpanValues(repeating: Bar())
    /// The number in the history; `nil` for a target that has none.
    var number: Int?
    /// The number at the monitor; `nil` if the target is not monitored.
    var monitor: TargetID?
    /// The name that the configuration sets; `nil` if ``title`` is the text of the target.
    var name: String?
    var labels: [String: String] = [:]
    var severity: Configuration.Severity?
    /// The source address and the mark of its probes; `nil` without them.
    var selector: RouteSelector?
    /// Whether its name is resolved by a name server of its own.
    var hasOwnResolver = false

    /// The names of the target's records.
    var identity: TargetIdentity { TargetIdentity(id: id, name: name, group: group, labels: labels) }

    /// The times in each state during the spans.
    var times: SpanTimes { SpanTimes(bars: bars) }

    /// The state for people, which a maintenance window replaces.
    var state: RecordedState { isInMaintenance ? .maintenance : RecordedState(update.statusName) }
}

/// What the last probes of a target have measured. An update is made only for changes of the status, so it may be days older.
struct MeasuredTimes: Hashable, Sendable {
    /// The last measured round trip, and the response time of the last successful probe, in units of a ``Sample``; `nil` before the first.
    var roundTrip: UInt32?
    var responseTime: UInt32?
    /// The phases of that time.
    var phases: PhaseTimes?
    /// The end of the certificate's validity in the last handshake, in seconds since 1970; `nil` if it is not known.
    var certificateEnd: Int64?

    /// Includes a result.
    mutating func add(_ result: HistoryRecorder.Result) {
        if result.roundTrip != nil, result.isRoundTripMeasured { roundTrip = result.roundTrip }
        if let time = result.responseTime { (responseTime, phases) = (time, result.phases) }
        certificateEnd = result.certificateEnd ?? certificateEnd
    }
}

extension BoardTarget {
    /// The status with what the last probes have measured. Unless the target is up or degraded, it has neither a round trip nor a response time.
    var current: ServerUpdate {
        let answers = update.statusName == .up || update.statusName == .degraded
        guard measured != MeasuredTimes() else { return update }
        return update.with(
            roundTrip: answers ? measured.roundTrip.map(Sample.duration) ?? update.roundTrip : update.roundTrip,
            responseTime: answers ? measured.responseTime.map(Sample.duration) ?? update.responseTime : update.responseTime,
            phases: answers ? measured.phases ?? update.phases : update.phases,
            certificateEnd: measured.certificateEnd ?? update.certificateEnd, isInitial: update.isInitial)
    }
}

/// The latest board. The keeper publishes it, and pages and documents read it.
final class BoardSource: Sendable {
    private let board = Locked<Board?>(nil)

    /// Replaces the board.
    func publish(_ board: Board) {
        // The former board is released after the lock, because it may have 10,000 targets.
        let former = self.board.withLock { present in
            let former = present
            present = board
            return former
        }
        withExtendedLifetime(former) {}
    }

    /// Returns the latest board; `nil` before the first one.
    func current() -> Board? { board.withLock { $0 } }
}
