/// The targets that fail only because this machine has no path for their address family and never had one, such as an IPv4 address on a
/// machine with IPv6 only. As long as the path is satisfied by the other family, that is no fault of an interface, and no incident.
struct MissingFamilies: Sendable {
    /// The families for which there has been a path.
    private var known: Set<IPAddress.Family> = []
    private var isSatisfied = false
    // The targets that lack a family, with their last updates.
    private var failing: [TargetID: ServerUpdate] = [:]

    /// Notes a target's status. Returns whether a failure belongs to an incident.
    mutating func isFault(_ id: TargetID, _ update: ServerUpdate) -> Bool {
        guard lacksFamily(update) else {
            remove(id)
            return true
        }
        failing[id] = update
        return !isSatisfied
    }

    mutating func remove(_ id: TargetID) {
        if !failing.isEmpty { failing[id] = nil }
    }

    /// Notes the published path. Returns the targets whose failure belongs to an incident from now on, or no longer, in order.
    mutating func pathChanged(_ path: NetworkPath) -> [(id: TargetID, update: ServerUpdate, isFault: Bool)] {
        if path.supportsIPv4 { known.insert(.v4) }
        if path.supportsIPv6 { known.insert(.v6) }
        let wasFault = !isSatisfied
        isSatisfied = path.status == .satisfied
        var changed: [(id: TargetID, update: ServerUpdate, isFault: Bool)] = []
        for (id, update) in failing.sorted(by: { $0.key < $1.key }) {
            let lacksFamily = lacksFamily(update)
            if !lacksFamily { failing[id] = nil }
            let isFault = !lacksFamily || !isSatisfied
            if isFault != wasFault { changed.append((id, update, isFault)) }
        }
        return changed
    }

    private func lacksFamily(_ update: ServerUpdate) -> Bool {
        guard update.statusName == .unreachable, let family = update.address?.family, !known.contains(family) else {
            return false
        }
        return update.cause.map { $0.code == .noAddress || $0.code == .noRoute } ?? false
    }
}
