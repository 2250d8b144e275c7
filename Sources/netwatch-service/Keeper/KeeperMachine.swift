import Pacing
import Reachability
import Records

/// The decisions of the keeper: a turn receives the reports of the monitor and the time, and returns its effects.
///
/// It reads no clock and does no I/O, so tests replay turns.
struct KeeperMachine: Sendable {
    /// An effect of a turn.
    enum Effect: Sendable {
        /// The history records the turn.
        case record(HistoryTurn)
        /// The history records a state of an incident with the numbers of its targets, and reports the commit with the last number.
        case recordIncident(Incident, TargetSet, Int)
        /// The history records a change of the path.
        case recordPath(PathUpdate)
        /// The history after this time is removed.
        case withdraw(after: Int64)
        /// Readers receive an event. `isRecorded` is set for incidents.
        case publish(MonitorEvent, isRecorded: Bool?)
        /// The monitor has ended.
        case ended
    }

    private(set) var targets: [KeptTarget]
    private(set) var path: PathUpdate?
    private(set) var canary: ServerUpdate?
    private(set) var incidents = IncidentDesk()
    private(set) var frame: BarFrame
    private var configuration: Configuration
    private var canaryID: TargetID?
    /// The places of targets by their numbers at the monitor and in the history.
    private var placesAtMonitor: [TargetID: Int] = [:]
    private var placesInHistory: [Int: Int] = [:]
    /// The names of the targets, for the texts that incidents have of them.
    private(set) var names = TargetNames()
    private var recorder: HistoryRecorder
    private var ledgers: LedgerBook
    private var calendar: DayCalendar
    /// The windows that cover the present time; `nil` if the targets must be compared with them again.
    private var activeWindows: [Bool]?
    /// The time of the last update of all bars, in milliseconds.
    private var barsShown: Int64 = 0
    private let offset: TimeZoneOffset
    /// The time of the last record that readers have received; `nil` before the first one.
    private var published: Moment?

    /// The time between two updates of the running cells of all bars, in milliseconds. They are not older than the statuses beside them.
    static let barInterval: Int64 = 1_000

    /// A target and its numbers.
    struct NewTarget: Sendable {
        var configured: ConfiguredTarget
        var monitor: TargetID
        var number: Int
        var bars: TargetBars
    }

    init(
        _ configuration: Configuration, targets: [NewTarget], canary: TargetID?, ledgers: [Int: TargetLedger],
        recorder: HistoryRecorder, frame: BarFrame, offset: @escaping TimeZoneOffset, at moment: Moment
    ) {
        (self.configuration, self.recorder, self.frame) = (configuration, recorder, frame)
        (self.offset, canaryID, calendar) = (offset, canary, DayCalendar(offset: offset))
        self.ledgers = LedgerBook(restoring: ledgers, calendar)
        self.ledgers.reserve(targets.map(\.number).max() ?? -1)
        self.targets = targets.map { Self.kept($0, at: moment) }
        renumber()
        for target in self.targets { self.recorder.add(target.number, outageLimit: target.configured.outageLimit) }
        updateMaintenance()
    }

    private static func kept(_ target: NewTarget, at moment: Moment) -> KeptTarget {
        let update = ServerUpdate(
            endpoint: target.configured.endpoint, statusName: .unknown, cause: nil, since: moment, address: nil, interface: nil,
            roundTrip: nil, isInitial: true, moment: moment)
        return KeptTarget(
            configured: target.configured, monitor: target.monitor, number: target.number, update: update, bars: target.bars)
    }

    private mutating func renumber() {
        placesAtMonitor = [:]
        placesInHistory = [:]
        names = TargetNames(targets.lazy.map { ($0.configured.name, $0.configured.endpoint.text) })
        for (place, target) in targets.enumerated() {
            placesAtMonitor[target.monitor] = place
            placesInHistory[target.number] = place
        }
    }

    /// Returns the target with a number at the monitor; `nil` if it was removed.
    func target(at monitor: TargetID) -> KeptTarget? { placesAtMonitor[monitor].map { targets[$0] } }

    /// Returns the names of an event's target, or of the only target of an incident; `nil` if it is about none.
    func identity(of event: MonitorEvent) -> TargetIdentity? {
        switch event {
        case .server(let id, _), .probe(let id, _): target(at: id)?.configured.identity
        case .incident(let incident) where incident.subject.kind == .target:
            incident.members.numbers.lazy.compactMap { target(at: TargetID($0)) }
                .first { $0.configured.endpoint.text == incident.subject.name }?.configured.identity
        default: nil
        }
    }

    /// The time by which the wall clock is behind the history, in milliseconds.
    var lag: Int64 { recorder.lag }
    /// The end of the history in milliseconds since 1970, while the wall clock shows a time before it; `nil` while results are recorded,
    /// and for a lag of at most ten seconds.
    var repeatedUntil: Int64? { recorder.isRepeated && recorder.lag > 10_000 ? recorder.now : nil }

    /// The time of the next turn if nothing happens; `nil` for never.
    var deadline: Int64? { incidents.deadline }

    // MARK: Turns

    /// Handles everything since the last turn. - Parameter isLate: whether the process did not run since then.
    mutating func turn(_ batch: Intake.Batch, at moment: Moment, isLate: Bool = false) -> [Effect] {
        var effects: [Effect] = []
        if let time = recorder.read(ClockReading(moment), isLate: isLate) {
            incidents.limit(to: time)
            effects.append(.withdraw(after: time))
        }
        updateMaintenance()
        // In the order of the monitor: a first state that was handled after a result would end the state of the result.
        var results = batch.results[...]
        for event in batch.events {
            let earlier = max(0, event.results - results.startIndex)
            for result in results.prefix(earlier) { add(result) }
            results = results.dropFirst(earlier)
            handle(event.event, at: moment, &effects)
        }
        for result in results { add(result) }
        publish(incidents.takeOverdue(at: moment.monotonicNanoseconds), &effects)
        let turn = recorder.takeTurn()
        account(turn)
        effects.append(.record(turn))
        return effects
    }

    /// Continues with the ledgers of a history whose end was withdrawn.
    mutating func withdrawn(_ restored: [Int: TargetLedger]) {
        ledgers = LedgerBook(restoring: restored, calendar)
        ledgers.reserve(targets.map(\.number).max() ?? -1)
        // Their time until now was not recorded.
        for target in targets { recorder.restart(target.number) }
    }

    /// Notes that the history has a state of an incident.
    mutating func committed(_ id: String, _ number: Int) -> [Effect] {
        var effects: [Effect] = []
        publish(incidents.committed(id, number), &effects)
        return effects
    }

    private mutating func publish(_ event: MonitorEvent, _ effects: inout [Effect]) {
        published = max(published ?? event.moment, event.moment)
        effects.append(.publish(event, isRecorded: nil))
    }

    /// Publishes states of incidents. They have waited for the history, and the times of records never decrease.
    private mutating func publish(_ states: [BoardIncident], _ effects: inout [Effect]) {
        for state in states {
            let moment = max(published ?? state.incident.moment, state.incident.moment)
            published = moment
            effects.append(.publish(.incident(state.incident.published(at: moment)), isRecorded: state.isRecorded))
        }
    }

    /// Shows incidents of earlier runs of the service, the newest first.
    mutating func restore(_ earlier: [BoardIncident]) { incidents.restore(earlier) }

    private mutating func add(_ result: HistoryRecorder.Result) {
        guard let place = placesAtMonitor[TargetID(result.target)] else { return }
        targets[place].measured.add(result)
        var result = result
        result.target = targets[place].number
        recorder.add(result)
    }

    private mutating func handle(_ event: MonitorEvent, at moment: Moment, _ effects: inout [Effect]) {
        switch event {
        case .path(let update):
            path = update
            effects.append(.recordPath(update))
            publish(event, &effects)
        case .server(let id, let update):
            guard id != canaryID else {
                canary = update
                return publish(event, &effects)
            }
            // The target may have been removed in the meantime.
            guard let place = placesAtMonitor[id] else { return }
            targets[place].update = update
            let state = RecordedState(update.statusName)
            recorder.change(targets[place].number, to: state, at: update.moment.milliseconds)
            publish(event, &effects)
        case .incident(let incident):
            let severity = severity(of: incident)
            let incident = incidents.dated(incident.with(severity), at: recorder.now, isRepeated: recorder.isRepeated)
            let members = members(of: incident)
            let number = incidents.add(incident, of: members, at: moment.monotonicNanoseconds)
            effects.append(.recordIncident(incident, members, number))
        case .resync, .gap: publish(event, &effects)
        case .ended: effects.append(.ended)
        case .probe: break
        }
    }

    /// Returns the numbers of an incident's targets in the history, without the canary and removed targets.
    private func members(of incident: Incident) -> TargetSet {
        TargetSet(incident.members.numbers.lazy.compactMap { placesAtMonitor[TargetID($0)].map { targets[$0].number } })
    }

    /// Returns the highest severity of an incident's targets. Those that were removed count.
    private func severity(of incident: Incident) -> Incident.Severity? {
        let present = incident.members.numbers.lazy.compactMap { target(at: TargetID($0))?.configured.severity }.max()
        return [present, incidents.last(incident.id)?.severity].compactMap { $0 }.max()
    }

    // MARK: History

    /// Accounts the events of a turn, as the history does.
    private mutating func account(_ turn: HistoryTurn) {
        ledgers.apply(turn)
        let showsBars = recorder.now - barsShown >= Self.barInterval || recorder.now < barsShown
        if showsBars { ledgers.finish(stops: false) }
        let ended = ledgers.takeOutput()
        for hour in ended.hours { forBars(of: hour.target) { $0.add(hour: hour.summary, in: $1) } }
        for day in ended.days { forBars(of: day.target) { $0.add(day: day.summary, in: $1) } }
        if frame.isOutdated(at: recorder.now) { moveBars() }
        if showsBars { showBars() }
    }

    /// Moves the bars of all targets to the present time.
    private mutating func moveBars() {
        let next = BarFrame(at: recorder.now, in: &calendar)
        let move = BarMove(from: frame, to: next)
        frame = next
        for place in targets.indices { targets[place].bars.move(move) }
    }

    private mutating func forBars(of number: Int, _ body: (inout TargetBars, BarFrame) -> Void) {
        guard let place = placesInHistory[number] else { return }
        body(&targets[place].bars, frame)
    }

    /// Shows the running hour and day in the bars of all targets.
    private mutating func showBars() {
        barsShown = recorder.now
        for place in targets.indices {
            let number = targets[place].number
            guard ledgers.entries.indices.contains(number), let ledger = ledgers.entries[number]?.ledger else { continue }
            targets[place].bars.show(hour: ledger.currentHour.times, day: ledger.currentDay.times)
        }
    }

    // MARK: Maintenance

    /// Applies the maintenance windows that cover the present time.
    private mutating func updateMaintenance() {
        let windows = configuration.maintenance.map { $0.covers(recorder.now, offset: offset) }
        guard windows != activeWindows else { return }
        activeWindows = windows
        let active = zip(configuration.maintenance, windows).filter(\.1).map(\.0)
        for place in targets.indices {
            let target = targets[place].configured
            let isCovered = active.contains { window in window.targets.isEmpty || window.targets.contains { $0.names(target) } }
            guard isCovered != targets[place].isInMaintenance else { continue }
            targets[place].isInMaintenance = isCovered
            recorder.change(targets[place].number, isInMaintenance: isCovered)
        }
    }
}

extension String {
    /// Whether a maintenance window with this text covers a target: its identifier, its name, its text or its group.
    fileprivate func names(_ target: ConfiguredTarget) -> Bool {
        self == target.id || self == target.name || self == target.endpoint.text || self == target.group
    }
}

extension ConfiguredTarget {
    /// The time that a failure lasts before the report counts it, in milliseconds.
    fileprivate var outageLimit: Int64 { min(settings.openAfter.saturatingNanoseconds / 1_000_000, TurnCoder.outageLimit) }
}

// MARK: Configurations

extension KeeperMachine {
    /// Changes to another configuration. `additions` are the targets at the places ``ConfigurationDifference/added``, and
    /// `replacements` the numbers at the monitor of those at ``ConfigurationDifference/changed``.
    mutating func change(
        to next: Configuration, _ difference: ConfigurationDifference, additions: [NewTarget], replacements: [TargetID],
        at moment: Moment
    ) {
        for place in difference.removed { recorder.remove(targets[place].number) }
        var kept = [KeptTarget?](repeating: nil, count: next.targets.count)
        for pair in difference.retained { kept[pair.next] = targets[pair.former] }
        for (pair, monitor) in zip(difference.changed, replacements) {
            var target = targets[pair.former]
            target.monitor = monitor
            // Those of the former address.
            target.measured = MeasuredTimes()
            kept[pair.next] = target
        }
        ledgers.reserve(additions.map(\.number).max() ?? -1)
        for (place, addition) in zip(difference.added, additions) {
            kept[place] = Self.kept(addition, at: moment)
            recorder.add(addition.number, outageLimit: addition.configured.outageLimit)
        }
        configuration = next
        targets = zip(next.targets, kept).compactMap { configured, target in
            guard var target else { return nil }
            target.configured = configured
            recorder.setOutageLimit(configured.outageLimit, of: target.number)
            return target
        }
        renumber()
        activeWindows = nil
        updateMaintenance()
    }
}

extension LedgerBook {
    /// Creates a book of summaries, which keeps no samples, from the ledgers of the history.
    fileprivate init(restoring ledgers: [Int: TargetLedger], _ calendar: DayCalendar) {
        var entries: [Entry?] = Array(repeating: nil, count: (ledgers.keys.max() ?? -1) + 1)
        for (number, ledger) in ledgers where number >= 0 { entries[number] = Entry(ledger: ledger, isActive: false) }
        self.init(entries, calendar, blocksOf: [])
    }
}

extension ClockReading {
    /// Creates the reading of a moment.
    init(_ moment: Moment) {
        self.init(
            wall: moment.milliseconds, monotonic: moment.monotonicNanoseconds / 1_000_000,
            bootTime: (moment.monotonicNanoseconds + moment.suspendedNanoseconds) / 1_000_000)
    }
}

/// A target of the service while it is monitored.
struct KeptTarget: Sendable {
    /// The target in the configuration, which is also its place on the board.
    var configured: ConfiguredTarget
    /// The number at the monitor.
    var monitor: TargetID
    /// The number in the history.
    var number: Int
    var update: ServerUpdate
    var isInMaintenance = false
    var measured = MeasuredTimes()
    var bars: TargetBars

    /// The target on the board.
    var onBoard: BoardTarget {
        var target = BoardTarget(
            key: configured.key, id: configured.id, title: configured.title, group: configured.group, update: update)
        (target.isInMaintenance, target.measured) = (isInMaintenance, measured)
        target.bars = bars.bars
        (target.number, target.monitor) = (number, monitor)
        (target.name, target.labels, target.severity) = (configured.name, configured.labels, configured.severity)
        target.selector = configured.settings.selector
        target.hasOwnResolver = configured.settings.resolver != nil
        return target
    }
}
