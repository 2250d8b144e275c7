import Reachability

/// The incidents between the monitor, the history and the readers. Readers see a state of an incident once the history has it, or after
/// a time limit as not recorded.
struct IncidentDesk: Sendable {
    /// The time for which readers wait for the history, in nanoseconds.
    static let limit: Int64 = 200_000_000

    /// A state of an incident that the history does not have yet.
    private struct Waiting: Sendable {
        var incident: Incident
        /// The number of the state, so that an earlier commit does not count for a later state.
        var number: Int
        /// The time from which readers see it in any case; `nil` if they have seen it.
        var deadline: Int64?
    }

    private var waiting: [String: Waiting] = [:]
    private var lastNumber = 0
    /// The incidents that readers see, the newest first.
    private(set) var shown: [BoardIncident] = []

    /// The time of the next ``takeOverdue(at:)``; `nil` for never.
    var deadline: Int64? { waiting.values.compactMap(\.deadline).min() }

    /// Shows incidents of earlier runs of the service, the newest first.
    mutating func restore(_ incidents: [Incident]) {
        shown = incidents.map { BoardIncident(incident: $0, isRecorded: true) }
    }

    /// Adds a state of an incident. - Returns: The number with which its commit is reported.
    mutating func add(_ incident: Incident, at now: Int64) -> Int {
        lastNumber += 1
        let deadline = waiting[incident.id]?.deadline ?? now + Self.limit
        waiting[incident.id] = Waiting(incident: incident, number: lastNumber, deadline: deadline)
        return lastNumber
    }

    /// Notes that the history has a state. - Returns: The incident, if readers have not seen this state.
    mutating func committed(_ id: String, _ number: Int) -> BoardIncident? {
        guard let state = waiting[id], state.number == number else { return nil }
        waiting[id] = nil
        let incident = BoardIncident(incident: state.incident, isRecorded: true)
        show(incident)
        return state.deadline == nil ? nil : incident
    }

    /// Returns the states that the history does not have in time. Readers see them as not recorded.
    mutating func takeOverdue(at now: Int64) -> [BoardIncident] {
        let ids = waiting.filter { $0.value.deadline.map { $0 <= now } ?? false }.keys.sorted()
        return ids.compactMap { id in
            guard let state = waiting[id] else { return nil }
            waiting[id]?.deadline = nil
            let incident = BoardIncident(incident: state.incident, isRecorded: false)
            show(incident)
            return incident
        }
    }

    private mutating func show(_ incident: BoardIncident) {
        if let place = shown.firstIndex(where: { $0.incident.id == incident.incident.id }) {
            shown[place] = incident
        } else {
            shown.insert(incident, at: 0)
        }
        // Open incidents stay, however many there are: the monitor limits them by its targets.
        var over = 0
        shown.removeAll { incident in
            guard incident.incident.state == .over else { return false }
            over += 1
            return over > Board.recentIncidents
        }
    }
}
