internal import EventLoop

extension PathUpdate: Coalescing {
    package func following(_ earlier: PathUpdate) -> PathUpdate {
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

    func following(_ earlier: ServerBatch) -> ServerBatch {
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
