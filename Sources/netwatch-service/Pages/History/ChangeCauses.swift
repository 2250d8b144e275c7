import Reachability

/// The causes of a target's changes and outages, from the incidents to which it belonged.
///
/// The history has the cause of each incident, but not of each change. A change has the cause of the incident that began with it, else of
/// the only one that lasted at its time; without such a one, its cause is not known. The last change has the cause of the target's status.
///
/// An incident has the cause of its first target. For another one, the facts that concern the first alone are left out.
struct ChangeCauses {
    let update: ServerUpdate
    /// The incidents of the target.
    let incidents: [Incident]
    /// Whether no incident of the time is missing.
    var areAll = true

    /// The facts that are those of the incident's subject, whatever its targets.
    private static let sharedFacts: Set<String> = [
        "gateway", "interface", "resolver", "hop", "flags", "neighbor_state", "rcode", "scope", "level",
    ]

    /// Returns the cause of a change; `nil` if it has none, or if it is not known.
    func cause(of change: TargetDetail.StateChange) -> Cause? {
        guard change.state.isFailure else { return nil }
        let began = update.statusMoment.milliseconds
        // A later update of the same status can have another cause.
        if change.time == began, update.moment.milliseconds == began, RecordedState(update.statusName) == change.state {
            return update.cause
        }
        return incident(of: change).map(cause)
    }

    /// Returns the incident to which the target belonged from a change on; `nil` if it is not certain.
    func incident(of change: TargetDetail.StateChange) -> Incident? {
        guard change.state.isFailure else { return nil }
        let possible = incidents.filter { $0.includes(change.time) && $0.explains(change.state) }
        let beginning = possible.filter { $0.began.milliseconds == change.time }
        if beginning.count == 1 { return beginning[0] }
        return possible.count == 1 && areAll ? possible[0] : nil
    }

    /// Returns the cause of an incident for the target.
    func cause(of incident: Incident) -> Cause {
        let cause = incident.cause
        guard let first = incident.targets.first, first != update.endpoint else { return cause }
        let own = cause.evidence.filter { !Self.sharedFacts.contains($0.key) }
        let isOfFirst = own.values.contains { fact in
            if case .text(let text) = fact { cause.detail.contains(text) } else { false }
        }
        let detail = isOfFirst ? "\(incident.subject) is at fault: \(cause.code.rawValue)" : cause.detail
        let shared = cause.evidence.filter { Self.sharedFacts.contains($0.key) }
        return Cause(cause.layer, cause.code, detail: detail, evidence: shared)
    }
}

extension Incident {
    /// Whether the incident lasted at a time in milliseconds since 1970.
    fileprivate func includes(_ time: Int64) -> Bool {
        began.milliseconds <= time && ended.map { time < $0.milliseconds } ?? true
    }

    /// Whether a target in this state can belong to the incident. A target is also degraded if one of its addresses fails.
    fileprivate func explains(_ state: RecordedState) -> Bool {
        switch state {
        case .down: scope == .server && cause.layer != .quality
        case .unreachable: scope != .server
        default: true
        }
    }
}

extension RecordedState {
    /// Whether a target in this state has a cause.
    var isFailure: Bool { isOutage || self == .degraded }
}
