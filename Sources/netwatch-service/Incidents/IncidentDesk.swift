import Pacing
import Reachability

/// The incidents between the monitor, the history and the readers. Readers see a state of an incident once the history has it, or after
/// a time limit as not recorded.
///
/// They see the states in the order of the monitor, so that an incident is open before another one is merged with it.
struct IncidentDesk: Sendable {
    /// The time for which readers wait for the history, in nanoseconds.
    static let limit: Int64 = 200_000_000
    /// The maximum number of incidents that are over and that readers see.
    static let recentLimit = 100

    /// A state of an incident that readers have not seen, or that the history does not have yet.
    private struct Waiting: Sendable {
        var incident: Incident
        /// The numbers of its targets in the history.
        var targets: TargetSet
        /// The number of the state, so that an earlier commit does not count for a later state.
        let number: Int
        /// The time from which readers see it in any case.
        let deadline: Int64
        var isRecorded = false
    }

    /// The states that readers have not seen, in their order.
    private var waiting: [Waiting] = []
    /// The numbers of the last states of incidents among them. A thousand incidents can open in one turn.
    private var latest: [String: Int] = [:]
    /// The last states that readers have seen as not recorded, by the identifiers of the incidents.
    private var unrecorded: [String: Waiting] = [:]
    private var lastNumber = 0
    /// The incidents that readers see, the newest first.
    private(set) var shown: [BoardIncident] = []
    // A thousand incidents can open in one turn: those that are new are not looked for among the others.
    private var shownIDs: Set<String> = []

    /// The time of the next ``takeOverdue(at:)``; `nil` for never.
    var deadline: Int64? { waiting.first?.deadline }

    /// Returns the last state of an incident; `nil` for a new one.
    func last(_ id: String) -> Incident? {
        latest[id].flatMap(index).map { waiting[$0].incident } ?? place(of: id).map { shown[$0].incident }
    }

    /// The index of a state that readers have not seen, whose numbers ascend.
    private func index(of number: Int) -> Int? {
        var (low, high) = (0, waiting.count)
        while low < high {
            let middle = (low + high) / 2
            if waiting[middle].number < number { low = middle + 1 } else { high = middle }
        }
        return low < waiting.count && waiting[low].number == number ? low : nil
    }

    /// Shows incidents of earlier runs of the service, the newest first.
    mutating func restore(_ incidents: [BoardIncident]) {
        shown = incidents
        shownIDs = Set(incidents.map(\.incident.id))
    }

    /// Returns an incident with times of the history: it begins when readers have seen it begin, at the latest at the present time. If
    /// the wall clock was set in the meantime, it ends after the time that has elapsed.
    ///
    /// - Parameters:
    ///   - incident: the incident with times of the wall clock.
    ///   - now: the present time of the history in milliseconds since 1970.
    ///   - isRepeated: whether the wall clock shows a time before the end of the history. An incident that is new begins at that end.
    /// - Returns: the incident.
    func dated(_ incident: Incident, at now: Int64, isRepeated: Bool = false) -> Incident {
        let former = last(incident.id)
        let began = former?.began ?? (isRepeated ? incident.began.moved(to: now) : incident.began.limited(to: now))
        guard let ended = incident.ended else { return incident.dated(from: began, to: nil) }
        let elapsed = max(.zero, incident.began.instant.duration(to: ended.instant))
        let difference = ended.milliseconds - incident.began.advanced(by: elapsed).milliseconds
        let isTrue = began == incident.began && abs(difference) <= HistoryClock.tolerance
        return incident.dated(from: began, to: isTrue ? ended : began.advanced(by: elapsed))
    }

    /// Limits the times of all incidents, because the history after a time is withdrawn. - Parameter time: milliseconds since 1970.
    mutating func limit(to time: Int64) {
        func limited(_ incident: Incident) -> Incident {
            incident.dated(from: incident.began.limited(to: time), to: incident.ended?.limited(to: time))
        }
        shown = shown.map { BoardIncident(incident: limited($0.incident), isRecorded: $0.isRecorded, targets: $0.targets) }
        for place in waiting.indices { waiting[place].incident = limited(waiting[place].incident) }
        for id in unrecorded.keys { if let incident = unrecorded[id]?.incident { unrecorded[id]?.incident = limited(incident) } }
    }

    /// Adds a state of an incident. Readers receive no state that differs from the one before only by further targets.
    ///
    /// - Parameters:
    ///   - incident: the incident.
    ///   - targets: the numbers of its targets in the history.
    ///   - now: the present time in nanoseconds.
    /// - Returns: the number with which its commit is reported.
    mutating func add(_ incident: Incident, of targets: TargetSet = TargetSet(), at now: Int64) -> Int {
        lastNumber += 1
        let isKnown =
            last(incident.id).map {
                $0.state == incident.state && $0.targetCount == incident.targetCount && $0.scope == incident.scope
                    && $0.subject == incident.subject && $0.cause.isSameFailure(as: incident.cause)
            } ?? false
        guard isKnown else {
            waiting.append(
                Waiting(incident: incident, targets: targets, number: lastNumber, deadline: now.addingSaturated(Self.limit)))
            latest[incident.id] = lastNumber
            return lastNumber
        }
        if let index = latest[incident.id].flatMap(index) {
            waiting[index].targets.formUnion(targets)
        } else if let place = place(of: incident.id) {
            shown[place].targets.formUnion(targets)
        }
        return lastNumber
    }

    /// Notes that the history has a state. - Returns: The states that readers see now.
    mutating func committed(_ id: String, _ number: Int) -> [BoardIncident] {
        if let index = index(of: number) {
            waiting[index].isRecorded = true
            return take { $0.isRecorded }
        }
        guard let state = unrecorded[id], state.number == number else { return [] }
        unrecorded[id] = nil
        // A later state follows.
        guard latest[id] == nil else { return [] }
        let incident = BoardIncident(incident: state.incident, isRecorded: true, targets: state.targets)
        show(incident)
        return [incident]
    }

    /// Returns the states that the history does not have in time, which readers see as not recorded, and those that have waited for them.
    mutating func takeOverdue(at now: Int64) -> [BoardIncident] { take { $0.isRecorded || $0.deadline <= now } }

    /// Shows the first states for which a condition holds.
    private mutating func take(while condition: (Waiting) -> Bool) -> [BoardIncident] {
        let states = waiting.prefix(while: condition)
        waiting.removeFirst(states.count)
        return states.map { state in
            if latest[state.incident.id] == state.number { latest[state.incident.id] = nil }
            unrecorded[state.incident.id] = state.isRecorded ? nil : state
            let incident = BoardIncident(incident: state.incident, isRecorded: state.isRecorded, targets: state.targets)
            show(incident)
            return incident
        }
    }

    private func place(of id: String) -> Int? {
        shownIDs.contains(id) ? shown.firstIndex { $0.incident.id == id } : nil
    }

    private mutating func show(_ incident: BoardIncident) {
        if let place = place(of: incident.incident.id) {
            // Targets that were removed from the configuration remain.
            var incident = incident
            incident.targets.formUnion(shown[place].targets)
            shown[place] = incident
        } else {
            shown.insert(incident, at: 0)
            shownIDs.insert(incident.incident.id)
        }
        // Open incidents stay, however many there are: the monitor limits them by its targets.
        var over = 0
        shown.removeAll { incident in
            guard !incident.incident.isOpen else { return false }
            over += 1
            guard over > Self.recentLimit else { return false }
            shownIDs.remove(incident.incident.id)
            return true
        }
    }
}

/// An incident on the board.
struct BoardIncident: Hashable, Sendable {
    var incident: Incident
    /// Whether the history has the incident.
    var isRecorded: Bool
    /// The numbers of its targets in the history; empty for an incident of an earlier run, whose targets the history has.
    var targets = TargetSet()

    /// Whether the incident overlaps a time in milliseconds since 1970, and affected a target; `nil` for any.
    func affects(_ target: Int?, in time: Range<Int64>) -> Bool {
        if let target, !targets.contains(target) { return false }
        return incident.began.milliseconds < time.upperBound && incident.ended.map { $0.milliseconds >= time.lowerBound } ?? true
    }
}

extension [BoardIncident] {
    /// Returns these incidents and those of the history that are not among them, the newest first.
    func joined(with recorded: [Incident]) -> [BoardIncident] {
        let known = Set(map(\.incident.id))
        let further = recorded.filter { !known.contains($0.id) }.map { BoardIncident(incident: $0, isRecorded: true) }
        return (self + further).sorted { $0.incident.began.milliseconds > $1.incident.began.milliseconds }
    }
}

extension Incident {
    /// Returns the incident with other times.
    func dated(from began: Moment, to ended: Moment?) -> Incident {
        with(severity, from: began, to: ended, at: moment)
    }

    /// Returns the incident as one that readers see at a time.
    func published(at moment: Moment) -> Incident { with(severity, from: began, to: ended, at: moment) }

    /// Returns the incident with a severity.
    func with(_ severity: Severity?) -> Incident { with(severity, from: began, to: ended, at: moment) }

    private func with(_ severity: Severity?, from began: Moment, to ended: Moment?, at moment: Moment) -> Incident {
        Incident(
            id: id, kind: kind, state: state, into: into, scope: scope, subject: subject, cause: cause, targetCount: targetCount,
            targets: targets, members: members, severity: severity, began: began, ended: ended, moment: moment)
    }
}

extension Moment {
    /// Returns this moment, or one with the time `time` in milliseconds since 1970 if that is earlier.
    fileprivate func limited(to time: Int64) -> Moment { milliseconds > time ? moved(to: time) : self }

    /// Returns this moment with the wall clock `time` in milliseconds since 1970.
    fileprivate func moved(to time: Int64) -> Moment {
        Moment(
            monotonicNanoseconds: monotonicNanoseconds,
            wallClockNanoseconds: time.multipliedReportingOverflow(by: 1_000_000).partialValue,
            suspendedNanoseconds: suspendedNanoseconds)
    }
}
