package import Reachability

// Messages as a kernel sends them for a value. Decoding them must give the same value.

extension RawMessage {
    private static func familyNumber(_ family: IPAddress.Family) -> UInt8 { family == .v4 ? 2 : 10 }

    /// RTM_NEWLINK, or RTM_DELLINK.
    package static func link(
        _ link: Link, removed: Bool = false, change: UInt32 = 0, flags: UInt16 = 0, sequence: UInt32 = 0
    ) -> RawMessage {
        let header: [UInt8] = [0, 0] + link.hardwareType.raw + link.index.raw + link.flags.rawValue.raw + change.raw
        return RawMessage(removed ? 17 : 16, flags: flags, sequence: sequence, header: header) { message in
            message.add(3, text: link.name)
            message.add(16, link.operationalState.rawValue)
            message.add(4, link.mtu)
            if !link.hardwareAddress.isEmpty { message.add(1, link.hardwareAddress) }
            if link.lower != 0 || link.lowerIsElsewhere { message.add(5, link.lower) }
            if link.master != 0 { message.add(10, link.master) }
            if link.kind != nil || link.portKind != nil {
                message.nest(18) { info in
                    if let kind = link.kind { info.add(1, text: kind) }
                    if link.kind == "tun" { info.nest(2) { $0.add(3, UInt8(link.isTap ? 2 : 1)) } }
                    if let portKind = link.portKind { info.add(4, text: portKind) }
                }
            }
            if link.lowerIsElsewhere { message.add(37, UInt32(0)) }
            if let bus = link.parentBus { message.add(57, text: bus) }
        }
    }

    /// RTM_NEWADDR, or RTM_DELADDR.
    package static func address(
        _ address: Address, removed: Bool = false, flags: UInt16 = 0, sequence: UInt32 = 0
    ) -> RawMessage {
        let header: [UInt8] =
            [
                familyNumber(address.address.family), address.key.prefix.length,
                UInt8(truncatingIfNeeded: address.flags.rawValue), address.scope,
            ] + address.key.interface.raw
        return RawMessage(removed ? 21 : 20, flags: flags, sequence: sequence, header: header) { message in
            message.add(1, (address.peer ?? address.address).bytes)
            // The kernel sends an IPv6 address without a peer only once.
            if address.peer != nil || address.address.family == .v4 { message.add(2, address.address.bytes) }
            message.add(8, address.flags.rawValue)
            let lifetime = address.lifetime
            message.add(
                6,
                (lifetime.preferredSeconds ?? .max).raw + (lifetime.validSeconds ?? .max).raw + UInt32(0).raw
                    + lifetime.renewedCentiseconds.raw
            )
        }
    }

    /// RTM_NEWROUTE, or RTM_DELROUTE.
    package static func route(
        _ route: Route, removed: Bool = false, headerFlags: UInt32 = 0, flags: UInt16 = 0, sequence: UInt32 = 0
    ) -> RawMessage {
        let key = route.key
        let hops = route.nextHops
        let isOnLink = hops.count == 1 && hops[0].isOnLink
        let header: [UInt8] =
            [
                familyNumber(key.family), key.destination.length, key.source?.length ?? 0, key.typeOfService,
                key.table < 256 ? UInt8(key.table) : 252, route.origin, route.scope, route.kind.rawValue,
            ] + (headerFlags | (isOnLink ? 4 : 0)).raw
        return RawMessage(removed ? 25 : 24, flags: flags, sequence: sequence, header: header) { message in
            message.add(15, key.table)
            if key.destination.length > 0 { message.add(1, key.destination.address.bytes) }
            if let source = key.source { message.add(2, source.address.bytes) }
            if key.metric != 0 { message.add(6, key.metric) }
            if let source = route.preferredSource { message.add(7, source.bytes) }
            if route.nexthopObject != 0 { message.add(30, route.nexthopObject) }
            if hops.count == 1 {
                message.add(hops[0], of: key.family)
                if hops[0].interface != 0 { message.add(4, hops[0].interface) }
            } else if hops.count > 1 {
                message.add(9, hops.flatMap { multipathMember($0, of: key.family) })
            }
        }
    }

    /// `struct rtnexthop` with its attributes; `flags` as RTNH_F_*.
    package static func multipathMember(_ hop: Route.NextHop, of family: IPAddress.Family, flags: UInt8 = 0) -> [UInt8] {
        var attributes = RawAttributes()
        attributes.add(hop, of: family)
        return UInt16(8 + attributes.bytes.count).raw + [flags | (hop.isOnLink ? 4 : 0), UInt8(hop.weight - 1)]
            + hop.interface.raw + attributes.bytes
    }

    /// RTM_NEWRULE, or RTM_DELRULE.
    package static func rule(_ rule: Rule, removed: Bool = false, flags: UInt16 = 0, sequence: UInt32 = 0) -> RawMessage {
        let header: [UInt8] =
            [
                familyNumber(rule.family), rule.destination?.length ?? 0, rule.source?.length ?? 0, rule.typeOfService,
                rule.table < 256 ? UInt8(rule.table) : 252, 0, 0, rule.action,
            ] + UInt32(rule.isInverted ? 2 : 0).raw
        return RawMessage(removed ? 33 : 32, flags: flags, sequence: sequence, header: header) { message in
            message.add(15, rule.table)
            // The kernel always sends the limit, -1 if there is none.
            message.add(14, rule.suppressedPrefixLength ?? .max)
            if let group = rule.suppressedGroup { message.add(13, group) }
            message.add(21, rule.origin)
            if rule.priority != 0 { message.add(6, rule.priority) }
            if let name = rule.incomingInterface { message.add(3, text: name) }
            if let name = rule.outgoingInterface { message.add(17, text: name) }
            if rule.mark != 0 { message.add(10, rule.mark) }
            if rule.markMask != 0 { message.add(16, rule.markMask) }
            if rule.target != 0 { message.add(4, rule.target) }
            if rule.isL3MasterDevice { message.add(19, UInt8(1)) }
            if rule.tunnel != 0 { message.add(12, rule.tunnel.bigEndian) }
            if let destination = rule.destination { message.add(1, destination.address.bytes) }
            if let source = rule.source { message.add(2, source.address.bytes) }
            if let users = rule.users { message.add(20, users.lowerBound.raw + users.upperBound.raw) }
            if rule.ipProtocol != 0 { message.add(22, rule.ipProtocol) }
            if let ports = rule.sourcePorts { message.add(23, ports.lowerBound.raw + ports.upperBound.raw) }
            if let ports = rule.destinationPorts { message.add(24, ports.lowerBound.raw + ports.upperBound.raw) }
        }
    }

    /// RTM_NEWNEXTHOP, or RTM_DELNEXTHOP.
    package static func nexthop(
        _ object: NexthopObject, family: IPAddress.Family = .v4, removed: Bool = false, flags: UInt16 = 0, sequence: UInt32 = 0
    ) -> RawMessage {
        let onLink: UInt32 = object.hop?.isOnLink == true ? 4 : 0
        let header: [UInt8] = [object.group.isEmpty ? familyNumber(family) : 0, 0, 3, 0] + onLink.raw
        return RawMessage(removed ? 105 : 104, flags: flags, sequence: sequence, header: header) { message in
            message.add(1, object.id)
            if !object.group.isEmpty {
                let members = object.group.flatMap { member in
                    let less = member.weight - 1
                    return member.id.raw + [UInt8(less & 0xff), UInt8(less >> 8), 0, 0]
                }
                message.add(2, members)
                message.add(3, UInt16(0))
            }
            if object.isBlackhole { message.add(4, []) }
            if let hop = object.hop {
                message.add(5, hop.interface)
                if let gateway = hop.gateway { message.add(6, gateway.bytes) }
            }
        }
    }

    /// RTM_NEWNEIGH, or RTM_DELNEIGH.
    package static func neighbor(
        _ neighbor: Neighbor, removed: Bool = false, flags: UInt16 = 0, sequence: UInt32 = 0
    ) -> RawMessage {
        let header: [UInt8] =
            [familyNumber(neighbor.key.address.family), 0, 0, 0] + neighbor.key.interface.raw + neighbor.state.rawValue.raw + [
                0, 1,
            ]
        return RawMessage(removed ? 29 : 28, flags: flags, sequence: sequence, header: header) { message in
            message.add(1, neighbor.key.address.bytes)
            if !neighbor.hardwareAddress.isEmpty { message.add(2, neighbor.hardwareAddress) }
        }
    }
}

extension RawAttributes {
    /// Adds RTA_GATEWAY, or RTA_VIA for a router of the other family.
    fileprivate mutating func add(_ hop: Route.NextHop, of family: IPAddress.Family) {
        guard let gateway = hop.gateway else { return }
        if gateway.family == family {
            add(5, gateway.bytes)
        } else {
            add(18, UInt16(gateway.family == .v4 ? 2 : 10).raw + gateway.bytes)
        }
    }
}
