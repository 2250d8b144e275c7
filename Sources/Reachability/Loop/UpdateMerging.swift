internal import EventLoop

extension PathUpdate: Coalescing {
    package func merged(after earlier: PathUpdate) -> PathUpdate {
        PathUpdate(
            path: path, reasons: PathChangeReason.allCases.filter { reasons.contains($0) || earlier.reasons.contains($0) },
            isInitial: isInitial || earlier.isInitial, coalescedEventCount: coalescedEventCount + earlier.coalescedEventCount,
            moment: moment
        )
    }
}

/// The latest update of each server whose update a reader has not received.
struct ServerBatch: Coalescing {
    private var updates: [Endpoint: ServerUpdate]

    init(_ update: ServerUpdate) { updates = [update.endpoint: update] }

    subscript(endpoint: Endpoint) -> ServerUpdate? { updates[endpoint] }

    /// The updates in the order in which they were read. Updates of the same moment are sorted by the names of their servers.
    var ordered: [ServerUpdate] {
        guard updates.count > 1 else { return Array(updates.values) }
        return updates.values.sorted { ($0.moment, $0.endpoint.text) < ($1.moment, $1.endpoint.text) }
    }

    func merged(after earlier: ServerBatch) -> ServerBatch {
        var batch = earlier
        batch.updates.merge(updates) { old, new in old.isInitial ? new.asInitial() : new }
        return batch
    }

    func asInitial() -> ServerBatch {
        var batch = self
        batch.updates = updates.mapValues { $0.asInitial() }
        return batch
    }

    func accumulate(into latest: inout ServerBatch?) -> ServerBatch? {
        if latest == nil { latest = self } else { latest?.updates.merge(updates) { $1 } }
        return nil
    }
}

/// The latest states of the incidents whose state a reader has not received; for new subscribers, the open incidents.
struct IncidentBatch: Coalescing {
    /// The maximum number of ended incidents in one batch. The oldest ones are dropped.
    static let finishedLimit = 1_000

    private var incidents: [String: Incident]
    private var finished: [String] = []

    init(_ incident: Incident) {
        incidents = [incident.id: incident]
        if !incident.isOpen { finished = [incident.id] }
    }

    /// The incidents in the order of their last changes.
    var ordered: [Incident] { incidents.values.sorted { ($0.moment, $0.began, $0.id) < ($1.moment, $1.began, $1.id) } }

    func merged(after earlier: IncidentBatch) -> IncidentBatch {
        var batch = earlier
        batch.incidents.merge(incidents) { $1 }
        batch.finished += finished
        let dropped = batch.finished.count - Self.finishedLimit
        if dropped > 0 {
            for id in batch.finished.prefix(dropped) { batch.incidents[id] = nil }
            batch.finished.removeFirst(dropped)
        }
        return batch
    }

    func asInitial() -> IncidentBatch { self }

    func accumulate(into latest: inout IncidentBatch?) -> IncidentBatch? {
        guard latest != nil else {
            latest = self
            latest?.removeFinished()
            return nil
        }
        latest?.incidents.merge(incidents) { $1 }
        latest?.finished = finished
        latest?.removeFinished()
        return nil
    }

    private mutating func removeFinished() {
        for id in finished { incidents[id] = nil }
        finished = []
    }
}
