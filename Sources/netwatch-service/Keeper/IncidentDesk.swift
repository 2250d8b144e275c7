import Reachability

/// The incidents between the monitor, the history and the readers. Readers see a state of an incident once the history has it, or after
/// a time limit as not recorded.
struct IncidentDesk: Sendable {
    /// The time for which readers wait for the history, in nanoseconds.
    static let limit: Int64 = 200_000_000

    /// A state of an incident that the history does not have yet.
    private struct Waiting: Sendable {
        var incident: Incident
        /// The numbers of its targets in the history.
        var targets: TargetSet
        /// The number of the state, so that an earlier commit does not count for a later state.
        var number: Int
        /// The time from which readers see it in any case; `nil` if they have seen it.
        var deadline: Int64?
    }

    private var waiting: [String: Waiting] = [:]
    private var lastNumber = 0
    /// The incidents that readers see, the newest first.
    private(set) var shown: [BoardIncident] = []
    // A thousand incidents can open in one turn: those that are new are not looked for among the others.
    private var shownIDs: Set<String> = []

    /// The time of the next ``takeOverdue(at:)``; `nil` for never.
    var deadline: Int64? { waiting.values.compactMap(\.deadline).min() }

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
        let former = waiting[incident.id]?.incident ?? place(of: incident.id).map { shown[$0].incident }
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
        waiting = waiting.mapValues { state in
            var state = state
            state.incident = limited(state.incident)
            return state
        }
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
        let place = place(of: incident.id)
        let former = waiting[incident.id]?.incident ?? place.map { shown[$0].incident }
        let isKnown =
            former.map {
                $0.state == incident.state && $0.targetCount == incident.targetCount && $0.scope == incident.scope
                    && $0.cause.isSameFailure(as: incident.cause)
            } ?? false
        let deadline = waiting[incident.id]?.deadline ?? (isKnown ? nil : now + Self.limit)
        waiting[incident.id] = Waiting(incident: incident, targets: targets, number: lastNumber, deadline: deadline)
        if isKnown, let place { shown[place].targets.formUnion(targets) }
        return lastNumber
    }

    /// Notes that the history has a state. - Returns: The incident, if readers have not seen this state, or only as not recorded.
    mutating func committed(_ id: String, _ number: Int) -> BoardIncident? {
        guard let state = waiting[id], state.number == number else { return nil }
        waiting[id] = nil
        let wasUnrecorded = place(of: id).map { !shown[$0].isRecorded } ?? false
        let incident = BoardIncident(incident: state.incident, isRecorded: true, targets: state.targets)
        show(incident)
        return state.deadline != nil || wasUnrecorded ? incident : nil
    }

    /// Returns the states that the history does not have in time. Readers see them as not recorded.
    mutating func takeOverdue(at now: Int64) -> [BoardIncident] {
        let ids = waiting.filter { $0.value.deadline.map { $0 <= now } ?? false }.keys.sorted()
        return ids.compactMap { id in
            guard let state = waiting[id] else { return nil }
            waiting[id]?.deadline = nil
            let incident = BoardIncident(incident: state.incident, isRecorded: false, targets: state.targets)
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
            guard over > Board.recentIncidents else { return false }
            shownIDs.remove(incident.incident.id)
            return true
        }
    }
}

extension Incident {
    /// Returns the incident with other times.
    fileprivate func dated(from began: Moment, to ended: Moment?) -> Incident {
        Incident(
            id: id, kind: kind, state: state, into: into, scope: scope, subject: subject, cause: cause, targetCount: targetCount,
            targets: targets, members: members, began: began, ended: ended, moment: moment)
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
