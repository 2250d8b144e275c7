/// What of a path's change is worth telling: what a user sees of the selected path, and of physical and default-route interfaces.
/// Containers' interfaces that come and go, lifetimes and statistics are not.
package enum PathDifference {
    /// The reasons to publish `new` after `old`; none when nothing worth telling changed.
    package static func reasons(from old: NetworkPath, to new: NetworkPath) -> Set<PathChangeReason> {
        var reasons: Set<PathChangeReason> = []
        let selections = [\NetworkPath.interface, \.interfaceV4, \.interfaceV6, \.underlying]
        if selections.contains(where: { Identity(old[keyPath: $0]) != Identity(new[keyPath: $0]) }) {
            reasons.insert(.interfaceChanged)
        }
        if old.supportsIPv4 != new.supportsIPv4 || old.supportsIPv6 != new.supportsIPv6 || old.status != new.status {
            reasons.insert(.familiesChanged)
        }
        if old.gateways != new.gateways { reasons.insert(.gatewaysChanged) }
        if old.supportsDNS != new.supportsDNS { reasons.insert(.dnsChanged) }
        if old.isExpensive != new.isExpensive || old.isConstrained != new.isConstrained { reasons.insert(.costChanged) }
        switch (old.cause, new.cause) {
        case (nil, nil): break
        case (let one?, let other):
            if !one.isSameFailure(as: other) || one.detail != other?.detail { reasons.insert(.causeChanged) }
        case (nil, _?): reasons.insert(.causeChanged)
        }
        if old.isConsistent != new.isConsistent { reasons.insert(.resynced) }

        let (before, after) = (notable(old), notable(new))
        if before.map(Row.init) != after.map(Row.init) { reasons.insert(.interfacesChanged) }
        let formerly = Dictionary(before.map { ($0.index, $0.addresses) }, uniquingKeysWith: { first, _ in first })
        if after.contains(where: { interface in formerly[interface.index].map { $0 != interface.addresses } ?? false }) {
            reasons.insert(.addressesChanged)
        }
        return reasons
    }

    private static func notable(_ path: NetworkPath) -> [NetworkInterface] {
        path.interfaces.filter { path.notable.contains($0.index) }
    }

    /// Which interface it is; not how it is.
    private struct Identity: Equatable {
        let index: UInt32?
        let name: String?
        let type: InterfaceType?

        init(_ interface: NetworkInterface?) {
            index = interface?.index
            name = interface?.name
            type = interface?.type
        }
    }

    /// What the list of interfaces shows beside addresses.
    private struct Row: Equatable {
        let identity: Identity
        let isVirtual: Bool
        let isExpensive: Bool
        let level: LinkLevel

        init(_ interface: NetworkInterface) {
            identity = Identity(interface)
            isVirtual = interface.isVirtual
            isExpensive = interface.isExpensive
            level = interface.level
        }
    }
}
