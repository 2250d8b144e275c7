import NetlinkBytes
import Pacing

@testable import Reachability

/// Routes, rules and nexthop objects, and messages without meaning.
extension SimulatedKernel {
    mutating func addRoute() {
        let family: IPAddress.Family = chance(55) ? .v4 : .v6
        let isDefault = chance(55)
        let nowhere = IPPrefix(family == .v4 ? IPAddress(v4: 0) : IPAddress(v6: 0, 0), length: 0)
        let number = UInt32.random(in: 0...3, using: &dice)
        // One of the networks contains the address that the path queries (198.51.100.1), as filters of bogus networks do.
        let elsewhere =
            family == .v4
            ? IPPrefix(IPAddress(v4: 0xc633_6400 | number << 8), length: 24)
            : IPPrefix(IPAddress(v6: 0x2001_0db8_ffff_0000, 0), length: 48)
        let key = Route.Key(
            table: chance(85) ? 254 : 1_000, metric: pick([0, 100, 1_024]) ?? 0, destination: isDefault ? nowhere : elsewhere)
        let refusing = chance(8)
        var hops: [Route.NextHop] = []
        let interfaces = links.map(\.value).filter { $0.flags.contains(.up) && $0.index != 1 }.map(\.index)
        if !refusing {
            let count = chance(20) ? 2 : 1
            for index in interfaces.shuffled(using: &dice).prefix(count) {
                let gateway = family == .v4 ? IPAddress(v4: 0x0a00_00fe | (index % 5) << 8) : IPAddress(v6: 0xfe80 << 48, 0xfe)
                hops.append(Route.NextHop(interface: index, gateway: count > 1 || chance(70) ? gateway : nil))
            }
            guard !hops.isEmpty else { return }
        }
        let sources = addresses.map(\.value.address).filter { $0.family == .v4 && !$0.isLoopback }
        let route = Route(
            key, kind: refusing ? pick([.blackhole, .unreachable, .prohibit]) ?? .blackhole : .unicast, nextHops: hops,
            preferredSource: family == .v4 && chance(10) ? pick(sources) : nil)
        let bucket = routes.indices.filter { routes[$0].value.key == key }
        // IPv4 accepts a route beside a multipath route that looks the same because its other next hops are dead.
        let isKnown = { (entry: Entry<Route>) in entry.value == route || (family == .v6 && Self.shown(entry) == route) }
        guard !bucket.contains(where: { isKnown(routes[$0]) }) else { return }
        switch Int.random(in: 0..<3, using: &dice) {
        case 0: if bucket.isEmpty { append(route) }
        case 1: if family == .v4 { append(route) } else { appendV6(route, bucket) }
        default: replace(route, bucket)
        }
    }

    /// Appends an IPv6 route. The routes of one key with gateways form one multipath route.
    mutating func appendV6(_ route: Route, _ bucket: [Int]) {
        func isMergeable(_ route: Route) -> Bool { route.kind == .unicast && route.nextHops.allSatisfy { $0.gateway != nil } }
        guard isMergeable(route), let place = bucket.first(where: { isMergeable(routes[$0].value) }) else { return append(route) }
        let known = routes[place].value.nextHops
        let new = route.nextHops.filter { hop in !known.contains { $0.interface == hop.interface } }
        guard !new.isEmpty else { return }
        routes[place].value = routes[place].value.withHops(known + new)
        touch(.routesV6)
        send(.route(Self.shown(routes[place]), flags: 0xc00))
    }

    mutating func replace(_ route: Route, _ bucket: [Int]) {
        guard let place = bucket.first else { return append(route) }
        // The kernel's choice among several IPv6 routes depends on more than this model has.
        if route.key.family == .v6 && bucket.count > 1 { return }
        routes[place] = Entry(id: routes[place].id, value: route)
        touch(.routes(route.key.family))
        send(.route(route, flags: RawMessage.replace))
    }

    mutating func removeRoute() {
        guard let entry = pick(routes.filter { $0.value.kind != .local }),
            let place = routes.firstIndex(where: { $0.id == entry.id })
        else { return }
        let shown = Self.shown(entry)
        touch(.routes(entry.value.key.family))
        if entry.value.key.family == .v6, shown.isMultipath, chance(60), let hop = shown.nextHops.last {
            routes[place].value = entry.value.withHops(entry.value.nextHops.filter { $0 != hop })
            send(.route(shown.withHops([hop]), removed: true))
        } else {
            routes.remove(at: place)
            send(.route(shown, removed: true))
        }
    }

    // MARK: Rules, nexthop objects, noise

    mutating func addRule() {
        guard rules.count < 12 else { return }
        // A request without NLM_F_EXCL may add a rule that exists.
        let rule = chance(15) ? pick(rules)?.value ?? Rule.random(using: &dice) : Rule.random(using: &dice)
        rules.append(Entry(id: takeID(), value: rule))
        touch(.rules(rule.family))
        send(.rule(rule))
    }

    mutating func removeRule() {
        guard let entry = pick(rules) else { return }
        rules.removeAll { $0.id == entry.id }
        touch(.rules(entry.value.family))
        send(.rule(entry.value, removed: true))
    }

    mutating func addNexthop() {
        guard nexthops.count < 8 else { return }
        let usable = links.map(\.value).filter { $0.flags.contains(.lowerUp) && $0.index != 1 }
        let id = UInt32(takeID())
        var object = NexthopObject(id: id, isBlackhole: true)
        if chance(30), let member = pick(nexthops.filter { $0.value.hop != nil }) {
            object = NexthopObject(id: id, group: [.init(id: member.value.id, weight: 2)])
        } else if let link = pick(usable) {
            object = NexthopObject(id: id, hop: .init(interface: link.index, gateway: IPAddress(v4: 0x0a00_00fe)))
        }
        nexthops.append(Entry(id: Int(id), value: object))
        touch(.nexthops)
        send(.nexthop(object))
    }

    mutating func removeNexthop() {
        guard let entry = pick(nexthops) else { return }
        nexthops.removeAll { $0.id == entry.id }
        touch(.nexthops)
        send(.nexthop(entry.value, removed: true))
        // Groups that lose a member are announced, and an empty one is removed.
        for group in nexthops where group.value.group.contains(where: { $0.id == entry.value.id }) {
            nexthops.removeAll { $0.id == group.id }
            send(.nexthop(group.value, removed: true))
        }
    }

    mutating func makeNoise() {
        let index = randomLink() ?? 1
        switch Int.random(in: 0..<7, using: &dice) {
        case 0:
            let neighbor = Neighbor(
                interface: index, address: IPAddress(v4: 0x0a00_00fe), state: .stale, hardwareAddress: [2, 0, 0, 0, 0, 1])
            send(.neighbor(neighbor))
        case 1: if let link = link(index) { send(.link(link)) }
        case 2: if let entry = pick(addresses) { send(.address(entry.value)) }
        case 3:
            // A message about a port that leaves its bridge.
            send(
                RawMessage(17, header: [7, 0] + UInt16(1).raw + index.raw + UInt32(0).raw + UInt32(0).raw) {
                    $0.add(3, text: "x")
                })
        case 4:
            send(
                RawMessage(16, header: [0, 0] + UInt16(1).raw + index.raw + UInt32(0).raw + UInt32(0).raw) { message in
                    message.add(3, text: "x")
                    message.add(11, [1, 2, 3, 4])
                })
        case 5: send(RawMessage(16, header: [0, 0]))
        default: send(RawMessage(UInt16.random(in: 110...200, using: &dice), header: [1, 2, 3, 4]))
        }
    }
}

extension Route {
    func withHops(_ hops: [NextHop]) -> Route {
        Route(
            key, kind: kind, nextHops: hops, origin: origin, scope: scope, preferredSource: preferredSource,
            nexthopObject: nexthopObject, fingerprint: fingerprint)
    }
}
