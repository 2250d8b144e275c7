import NetlinkBytes
import Pacing

@testable import Reachability

/// Links, their addresses, and the entries that are added and removed with them.
extension SimulatedKernel {
    mutating func addLink() {
        guard links.count < Self.linkLimit else { return }
        let index = nextIndex
        nextIndex += UInt32.random(in: 1...300, using: &dice)
        var link = Link(
            index: index, name: "if\(index % 7)", flags: [.up, .running, .lowerUp], operationalState: .up,
            hardwareAddress: [2, 0, 0, 0, UInt8(index >> 8 & 0xff), UInt8(index & 0xff)])
        while links.contains(where: { $0.value.name == link.name }) { link.name += "x" }
        switch Int.random(in: 0..<6, using: &dice) {
        case 0: (link.kind, link.hardwareType, link.operationalState, link.hardwareAddress) = ("tun", 65_534, .unknown, [])
        case 1: (link.kind, link.lower, link.lowerIsElsewhere) = ("veth", 2, true)
        case 2: link.kind = "bridge"
        default: link.parentBus = "pci"
        }
        links.append(Entry(id: Int(index), value: link))
        touch(.links)
        send(.link(link, change: .max))
    }

    mutating func update(_ index: UInt32, _ body: (inout Link) -> Void) {
        guard let place = links.firstIndex(where: { $0.value.index == index }) else { return }
        body(&links[place].value)
        touch(.links)
        send(.link(links[place].value))
    }

    mutating func switchLink(_ index: UInt32, up: Bool) {
        guard let link = link(index), link.flags.contains(.up) != up else { return }
        let isTunnel = link.kind == "tun"
        update(index) { link in
            link.flags = up ? [.up, .running, .lowerUp] : []
            link.operationalState = up ? (isTunnel ? .unknown : .up) : .down
        }
        if up { revive(index) } else { fall(index) }
    }

    mutating func revive(_ index: UInt32) {
        for place in routes.indices where routes[place].dead.remove(index) != nil {
            touch(.routes(routes[place].value.key.family))
        }
        for entry in addresses where entry.value.key.interface == index { addConnected(entry.value) }
    }

    mutating func fall(_ index: UInt32) {
        dropNexthops(over: index)
        for entry in addresses where entry.value.key.interface == index && entry.value.address.family == .v6 {
            addresses.removeAll { $0.id == entry.id }
            touch(.addresses)
            send(.address(entry.value, removed: true))
        }
        for entry in routes where entry.value.uses(interface: index) && entry.value.kind != .local {
            guard let place = routes.firstIndex(where: { $0.id == entry.id }) else { continue }
            let shown = Self.shown(routes[place])
            let family = entry.value.key.family
            touch(.routes(family))
            routes[place].dead.insert(index)
            guard Self.shown(routes[place]).nextHops.isEmpty else { continue }
            routes.remove(at: place)
            ghosts.append(shown)
            if family == .v6 { for hop in shown.nextHops { send(.route(shown.withHops([hop]), removed: true)) } }
        }
    }

    mutating func dropNexthops(over index: UInt32) {
        nexthops.removeAll { $0.value.hop?.interface == index }
        let ids = Set(nexthops.map(\.value.id))
        for place in nexthops.indices { nexthops[place].value.group.removeAll { !ids.contains($0.id) } }
        nexthops.removeAll { $0.value.hop == nil && !$0.value.isBlackhole && $0.value.group.isEmpty }
        touch(.nexthops)
    }

    mutating func setCarrier(_ index: UInt32, _ hasCarrier: Bool) {
        guard let link = link(index), link.flags.contains(.up), link.flags.contains(.lowerUp) != hasCarrier else { return }
        let isTunnel = link.kind == "tun"
        update(index) { link in
            link.flags = hasCarrier ? [.up, .running, .lowerUp] : [.up]
            link.operationalState = hasCarrier ? (isTunnel ? .unknown : .up) : .down
        }
        if !hasCarrier { dropNexthops(over: index) }
    }

    mutating func alterLink() {
        guard let index = randomLink() else { return }
        let (name, mtu) = ("if\(UInt8.random(in: 7...99, using: &dice))", UInt32.random(in: 1_280...9_000, using: &dice))
        let isRenamed = chance(50) && !links.contains { $0.value.name == name }
        update(index) { link in if isRenamed { link.name = name } else { link.mtu = mtu } }
    }

    mutating func removeLink(_ index: UInt32) {
        switchLink(index, up: false)
        // A move to another namespace is announced without the link's addresses and routes.
        let isMove = chance(30)
        for entry in addresses where entry.value.key.interface == index {
            addresses.removeAll { $0.id == entry.id }
            touch(.addresses)
            if !isMove { send(.address(entry.value, removed: true)) }
        }
        for entry in routes where entry.value.uses(interface: index) {
            guard let place = routes.firstIndex(where: { $0.id == entry.id }) else { continue }
            touch(.routes(entry.value.key.family))
            let hops = routes[place].value.nextHops.filter { $0.interface != index }
            let shown = Self.shown(routes[place])
            // IPv4 drops a multipath route with any of its devices (fib_sync_down_dev, NETDEV_UNREGISTER), without a message.
            if hops.isEmpty || entry.value.key.family == .v4 {
                routes.remove(at: place)
                if !isMove, entry.value.kind == .local { send(.route(shown, removed: true)) }
            } else {
                routes[place].value = routes[place].value.withHops(hops)
                routes[place].dead.remove(index)
                if Self.shown(routes[place]).nextHops.isEmpty { routes.remove(at: place) }
            }
        }
        guard let link = link(index) else { return }
        links.removeAll { $0.value.index == index }
        touch(.links)
        send(.link(link, removed: true))
    }

    // MARK: Addresses

    mutating func addAddress() {
        guard let index = randomLink(), let link = link(index) else { return }
        let low = UInt32.random(in: 1...4, using: &dice)
        let isV4 = chance(60)
        guard isV4 || link.flags.contains(.up) else { return }
        let isLinkLocal = !isV4 && chance(25)
        let address: IPAddress =
            isV4
            ? IPAddress(v4: 0x0a00_0000 | (index % 5) << 8 | low)
            : IPAddress(v6: isLinkLocal ? 0xfe80 << 48 : 0x2001_0db8_0000_0000 | UInt64(index % 5), UInt64(low))
        let flags: Address.Flags = isV4 ? .permanent : [[.tentative], [], [.optimistic, .tentative], [.temporary]][Int(low - 1)]
        let new = Address(
            interface: index, prefix: IPPrefix(address, length: isV4 ? 24 : 64), scope: isLinkLocal ? 253 : 0, flags: flags,
            lifetime: Address.Lifetime(
                preferredSeconds: isV4 ? nil : 600, validSeconds: isV4 ? nil : 900, renewedCentiseconds: clock))
        guard !addresses.contains(where: { $0.value.key == new.key }) else { return }
        addresses.append(Entry(id: takeID(), value: new))
        touch(.addresses)
        send(.address(new))
        if isV4 {
            let own = Route(
                Route.Key(table: 255, destination: IPPrefix(address, length: 32)), kind: .local,
                nextHops: [.init(interface: index)],
                origin: 2, scope: 254, preferredSource: address)
            if !routes.contains(where: { $0.value == own }) { append(own) }
        }
        if link.flags.contains(.up) { addConnected(new) }
    }

    func connected(_ address: Address) -> Route {
        let isV4 = address.address.family == .v4
        let network = IPPrefix(
            IPAddress(bytes: Array(address.address.bytes.dropLast(isV4 ? 1 : 8)) + [UInt8](repeating: 0, count: isV4 ? 1 : 8))
                ?? address.address, length: address.key.prefix.length)
        return Route(
            Route.Key(metric: isV4 ? 0 : 256, destination: network), nextHops: [.init(interface: address.key.interface)],
            origin: 2,
            scope: isV4 ? 253 : 0, preferredSource: isV4 ? address.address : nil)
    }

    mutating func addConnected(_ address: Address) {
        let route = connected(address)
        if !routes.contains(where: { $0.value == route }) { append(route) }
    }

    mutating func append(_ route: Route) {
        routes.append(Entry(id: takeID(), value: route))
        touch(.routes(route.key.family))
        send(.route(route, flags: 0x400))
    }

    mutating func removeAddress() {
        guard let entry = pick(addresses.filter { $0.value.key.interface != 1 }) else { return }
        let address = entry.value
        addresses.removeAll { $0.id == entry.id }
        touch(.addresses)
        send(.address(address, removed: true))
        let isElsewhere = addresses.contains { $0.value.address == address.address }
        for route in [connected(address)] {
            let isShared = addresses.contains { connected($0.value) == route }
            if !isShared, let place = routes.firstIndex(where: { $0.value == route }) {
                routes.remove(at: place)
                touch(.routes(route.key.family))
                send(.route(route, removed: true))
            }
        }
        for own in routes
        where own.value.kind == .local && own.value.preferredSource == address.address
            && own.value.uses(interface: address.key.interface)
        {
            routes.removeAll { $0.id == own.id }
            touch(.routesV4)
            send(.route(own.value, removed: true))
        }
        guard address.address.family == .v4, !isElsewhere else { return }
        if routes.contains(where: { $0.value.preferredSource == address.address }) { touch(.routesV4) }
        routes.removeAll { $0.value.preferredSource == address.address }
    }

    /// Renews an address, as a router advertisement does, or ends its duplicate address detection.
    mutating func refreshAddress() {
        guard let place = addresses.indices.randomElement(using: &dice) else { return }
        clock += 1
        if chance(70) {
            addresses[place].value.lifetime.renewedCentiseconds = clock
            addresses[place].value.flags.subtract([.tentative, .optimistic])
            touch(.addresses)
        }
        send(.address(addresses[place].value))
    }
}
