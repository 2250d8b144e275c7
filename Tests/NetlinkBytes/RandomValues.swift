package import Reachability

// Random values as a kernel might hold them. Each holds only what one message can carry.

extension IPAddress {
    package static func random(_ family: Family, using generator: inout some RandomNumberGenerator) -> IPAddress {
        family == .v4
            ? IPAddress(v4: .random(in: 0x0100_0000...0xdfff_ffff, using: &generator))
            : IPAddress(v6: 0x2001_0db8_0000_0000 | .random(in: 0...0xffff_ffff, using: &generator), generator.next())
    }
}

extension IPPrefix {
    package static func random(_ family: IPAddress.Family, using generator: inout some RandomNumberGenerator) -> IPPrefix {
        IPPrefix(.random(family, using: &generator), length: .random(in: 1...(family == .v4 ? 32 : 128), using: &generator))
    }
}

extension Link {
    package static func random(using generator: inout some RandomNumberGenerator) -> Link {
        let kind =
            [nil, "veth", "bridge", "tun", "macvlan", "wireguard", "a-kind-of-the-future"].randomElement(using: &generator) ?? nil
        let isElsewhere = UInt8.random(in: 0..<4, using: &generator) == 0
        return Link(
            index: .random(in: 1...0x7fff_ffff, using: &generator), name: "if\(UInt16.random(in: 0...999, using: &generator))",
            flags: Flags(rawValue: .random(in: 0...0x7ffff, using: &generator)),
            hardwareType: .random(in: 0...0xffff, using: &generator),
            operationalState: OperationalState(rawValue: .random(in: 0...6, using: &generator)) ?? .unknown,
            mtu: .random(in: 68...65_536, using: &generator), kind: kind,
            portKind: Bool.random(using: &generator) ? "bridge" : nil, master: .random(in: 0...400, using: &generator),
            lower: .random(in: 0...400, using: &generator), lowerIsElsewhere: isElsewhere,
            hardwareAddress: Bool.random(using: &generator) ? (0..<6).map { _ in .random(in: 0...255, using: &generator) } : [],
            parentBus: Bool.random(using: &generator) ? "usb" : nil, isTap: kind == "tun" && Bool.random(using: &generator)
        )
    }
}

extension Address {
    package static func random(using generator: inout some RandomNumberGenerator) -> Address {
        let family: IPAddress.Family = Bool.random(using: &generator) ? .v4 : .v6
        let isForever = Bool.random(using: &generator)
        let preferred: UInt32? = isForever ? nil : .random(in: 0...86_400, using: &generator)
        var flags = Flags(rawValue: .random(in: 0...0xfff, using: &generator))
        // The decoder derives deprecation from the remaining preferred lifetime.
        if preferred == 0 { flags.insert(.deprecated) } else { flags.remove(.deprecated) }
        return Address(
            interface: .random(in: 1...400, using: &generator), prefix: .random(family, using: &generator),
            peer: UInt8.random(in: 0..<4, using: &generator) == 0 ? .random(family, using: &generator) : nil,
            scope: [0, 200, 253, 254].randomElement(using: &generator) ?? 0, flags: flags,
            lifetime: Lifetime(
                preferredSeconds: preferred, validSeconds: isForever ? nil : .random(in: 0...86_400, using: &generator),
                renewedCentiseconds: .random(in: 0...1_000_000, using: &generator)
            )
        )
    }
}

extension Route.NextHop {
    package static func random(_ family: IPAddress.Family, using generator: inout some RandomNumberGenerator) -> Route.NextHop {
        let other: IPAddress.Family = UInt8.random(in: 0..<8, using: &generator) == 0 ? .v6 : family
        return Route.NextHop(
            interface: .random(in: 1...0x7fff_ffff, using: &generator),
            gateway: Bool.random(using: &generator) ? .random(other, using: &generator) : nil,
            isOnLink: Bool.random(using: &generator)
        )
    }
}

extension Route {
    package static func random(using generator: inout some RandomNumberGenerator) -> Route {
        let family: IPAddress.Family = Bool.random(using: &generator) ? .v4 : .v6
        let nowhere = IPPrefix(family == .v4 ? IPAddress(v4: 0) : IPAddress(v6: 0, 0), length: 0)
        let key = Key(
            table: Bool.random(using: &generator) ? 254 : .random(in: 1...0xffff_ffff, using: &generator),
            metric: .random(in: 0...0xffff_fffe, using: &generator),
            destination: Bool.random(using: &generator) ? nowhere : .random(family, using: &generator),
            source: family == .v6 && Bool.random(using: &generator) ? .random(.v6, using: &generator) : nil,
            typeOfService: family == .v4 && Bool.random(using: &generator) ? 0x10 : 0
        )
        let kind = Kind(rawValue: .random(in: 1...9, using: &generator))
        var hops: [NextHop] = []
        if kind == .unicast {
            let count = [1, 1, 1, 2, 4].randomElement(using: &generator) ?? 1
            for _ in 0..<count { hops.append(.random(family, using: &generator)) }
            if count > 1 { for index in hops.indices { hops[index].weight = .random(in: 1...256, using: &generator) } }
        }
        return Route(
            key, kind: kind, nextHops: hops, origin: .random(in: 0...255, using: &generator),
            scope: [0, 200, 253, 254, 255].randomElement(using: &generator) ?? 0,
            preferredSource: Bool.random(using: &generator) ? .random(family, using: &generator) : nil,
            nexthopObject: Bool.random(using: &generator) ? 0 : .random(in: 1...99, using: &generator)
        )
    }
}

extension Rule {
    package static func random(using generator: inout some RandomNumberGenerator) -> Rule {
        let family: IPAddress.Family = Bool.random(using: &generator) ? .v4 : .v6
        func maybe<Value>(_ value: Value) -> Value? { Bool.random(using: &generator) ? value : nil }
        return Rule(
            family: family, priority: .random(in: 0...0xffff_ffff, using: &generator),
            action: .random(in: 1...8, using: &generator),
            table: .random(in: 0...1_000_000, using: &generator), target: maybe(1_000) ?? 0, isInverted: maybe(true) ?? false,
            source: maybe(.random(family, using: &generator)), destination: maybe(.random(family, using: &generator)),
            incomingInterface: maybe("eth0"), outgoingInterface: maybe("eth300"), mark: maybe(0x10) ?? 0,
            markMask: maybe(0xff) ?? 0,
            typeOfService: maybe(0x10) ?? 0, users: maybe(1_000...2_000), suppressedPrefixLength: maybe(0),
            suppressedGroup: maybe(7),
            ipProtocol: maybe(6) ?? 0, sourcePorts: maybe(1...1_023), destinationPorts: maybe(443...443),
            isL3MasterDevice: maybe(true) ?? false, tunnel: maybe(0x0102_0304_0506_0708) ?? 0, origin: maybe(4) ?? 0
        )
    }
}

extension NexthopObject {
    package static func random(using generator: inout some RandomNumberGenerator) -> NexthopObject {
        let id = UInt32.random(in: 1...0xffff_ffff, using: &generator)
        switch UInt8.random(in: 0..<3, using: &generator) {
        case 0: return NexthopObject(id: id, isBlackhole: true)
        case 1:
            let members = (1...3).map { Member(id: $0, weight: .random(in: 1...0xffff, using: &generator)) }
            return NexthopObject(id: id, group: members)
        default: return NexthopObject(id: id, hop: .random(.v4, using: &generator))
        }
    }
}
