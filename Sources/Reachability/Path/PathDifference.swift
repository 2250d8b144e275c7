/// The relevant differences between two paths: the user-visible state of the selected path, and of physical and default-route
/// interfaces. Containers' interfaces, lifetimes and statistics are not relevant.
package enum PathDifference {
    /// Returns the reasons to publish `new` after `old`; empty if nothing relevant changed.
    package static func reasons(from old: NetworkPath, to new: NetworkPath) -> CaseSet<PathChangeReason> {
        var reasons: CaseSet<PathChangeReason> = []
        if Identity(old.interface) != Identity(new.interface) || Identity(old.interfaceV4) != Identity(new.interfaceV4)
            || Identity(old.interfaceV6) != Identity(new.interfaceV6) || Identity(old.underlying) != Identity(new.underlying)
        {
            reasons.insert(.interfaceChanged)
        }
        if old.supportsIPv4 != new.supportsIPv4 || old.supportsIPv6 != new.supportsIPv6 || old.status != new.status {
            reasons.insert(.familiesChanged)
        }
        if old.gateways != new.gateways { reasons.insert(.gatewaysChanged) }
        if old.supportsDNS != new.supportsDNS || old.resolvers != new.resolvers { reasons.insert(.dnsChanged) }
        if old.isExpensive != new.isExpensive || old.isConstrained != new.isConstrained { reasons.insert(.costChanged) }
        switch (old.cause, new.cause) {
        case (nil, nil): break
        case (let one?, let other):
            if !one.hasSameDetail(as: other) { reasons.insert(.causeChanged) }
        case (nil, _?): reasons.insert(.causeChanged)
        }
        if old.isConsistent != new.isConsistent { reasons.insert(.resynced) }

        // An interface that becomes or stops being relevant is compared in both paths, so that this alone is not a change.
        let isNotable = { (interface: NetworkInterface) in
            new.notable.contains(interface.index) || old.notable.contains(interface.index)
        }
        let before = old.interfaces.filter(isNotable)
        let after = new.interfaces.filter(isNotable)
        if !before.elementsEqual(after, by: isSameRow) { reasons.insert(.interfacesChanged) }
        let hasOtherAddresses = after.contains { interface in
            before.first { $0.index == interface.index }.map { $0.addresses != interface.addresses } ?? false
        }
        if hasOtherAddresses { reasons.insert(.addressesChanged) }
        return reasons
    }

    /// The identity of an interface, without its state.
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

    /// Returns whether the list of interfaces shows the same values for both, except for addresses.
    private static func isSameRow(_ left: NetworkInterface, _ right: NetworkInterface) -> Bool {
        Identity(left) == Identity(right) && left.isVirtual == right.isVirtual && left.isExpensive == right.isExpensive
            && left.level == right.level
    }
}
