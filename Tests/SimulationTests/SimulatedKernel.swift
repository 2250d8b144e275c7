import NetlinkBytes
import Pacing

@testable import Reachability

/// One namespace of a kernel, as far as rtnetlink shows it: tables that change, the messages that a real kernel sends for the
/// changes, and those that it does not send.
///
/// What Linux does, measured or read: IPv4 routes, dead members of multipath routes and nexthop objects go without a word when their
/// link goes down; IPv6 routes and addresses are announced. A route whose preferred source goes, goes silently. A replaced route is
/// not removed by a message. Carrier loss changes no route.
struct SimulatedKernel {
    struct Entry<Value> {
        /// Dumps walk in this order, and see what is added behind them.
        let id: Int
        var value: Value
        /// Interfaces of next hops that are dead; they come alive again with their link.
        var dead: Set<UInt32> = []
    }

    var dice: SplitMix64
    private(set) var links: [Entry<Link>] = []
    private(set) var addresses: [Entry<Address>] = []
    private(set) var routes: [Entry<Route>] = []
    private(set) var rules: [Entry<Rule>] = []
    private(set) var nexthops: [Entry<NexthopObject>] = []
    /// Routes that a dump may still show, flagged dead.
    var ghosts: [Route] = []
    /// Messages that wait in the socket's buffer.
    var queue: [[UInt8]] = []
    /// The buffer was full: everything is dropped until the reader has emptied it.
    private(set) var isCongested = false
    /// Counts the changes of each table, as the kernel's `cb->seq` does.
    private(set) var generations: [KernelTable: Int] = [:]
    private var nextID = 1
    private var nextIndex: UInt32 = 2
    private var clock: UInt32 = 1

    static let queueLimit = 400
    static let linkLimit = 10

    init(seed: UInt64) {
        dice = SplitMix64(seed: seed)
        let lo = Link(
            index: 1, name: "lo", flags: [.up, .running, .lowerUp, .loopback], hardwareType: 772, mtu: 65_536,
            hardwareAddress: [0, 0, 0, 0, 0, 0])
        links.append(Entry(id: 1, value: lo))
        addresses.append(
            Entry(id: takeID(), value: Address(interface: 1, prefix: IPPrefix(IPAddress(v4: 0x7f00_0001), length: 8), scope: 254))
        )
        for _ in 0..<3 { addLink() }
        for _ in 0..<4 { change() }
        queue = []
    }

    // MARK: Dice

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &dice) < percent }
    mutating func pick<Element>(_ elements: [Element]) -> Element? { elements.randomElement(using: &dice) }

    private mutating func takeID() -> Int {
        nextID += 1
        return nextID
    }

    // MARK: Messages

    mutating func send(_ message: RawMessage) {
        if isCongested { return }
        guard queue.count < Self.queueLimit else {
            isCongested = true
            return
        }
        queue.append(message.bytes)
    }

    /// The reader was too slow.
    mutating func congest() { isCongested = true }

    /// The reader has emptied the buffer.
    mutating func drained() {
        queue = []
        isCongested = false
    }

    private mutating func touch(_ table: KernelTable) { generations[table, default: 0] += 1 }

    // MARK: Truth

    /// A route as the kernel would show it: without its dead next hops.
    static func shown(_ entry: Entry<Route>) -> Route {
        guard !entry.dead.isEmpty else { return entry.value }
        return entry.value.withHops(entry.value.nextHops.filter { !entry.dead.contains($0.interface) })
    }

    /// What a complete dump of everything shows.
    var truth: NetworkSnapshot {
        var snapshot = NetworkSnapshot()
        for entry in links { snapshot.apply(.link(entry.value)) }
        for entry in addresses { snapshot.apply(.address(entry.value)) }
        for entry in routes { snapshot.apply(.routeAdded(Self.shown(entry))) }
        for entry in rules { snapshot.apply(.ruleAdded(entry.value)) }
        for entry in nexthops { snapshot.apply(.nexthop(entry.value)) }
        return snapshot
    }

    func link(_ index: UInt32) -> Link? { links.first { $0.value.index == index }?.value }

    // MARK: Changes

    /// One change, or none where the dice ask for something that the kernel refuses.
    mutating func change() {
        switch Int.random(in: 0..<100, using: &dice) {
        case 0..<6: addLink()
        case 6..<10: if let index = randomLink() { removeLink(index) }
        case 10..<20: if let index = randomLink() { switchLink(index, up: chance(60)) }
        case 20..<28: if let index = randomLink() { setCarrier(index, chance(65)) }
        case 28..<40: addAddress()
        case 40..<46: removeAddress()
        case 46..<50: refreshAddress()
        case 50..<72: addRoute()
        case 72..<82: removeRoute()
        case 82..<86: addRule()
        case 86..<89: removeRule()
        case 89..<93: addNexthop()
        case 93..<95: removeNexthop()
        case 95..<97: alterLink()
        default: makeNoise()
        }
    }

    private mutating func randomLink() -> UInt32? { pick(links.map(\.value.index).filter { $0 != 1 }) }

    private mutating func addLink() {
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

    private mutating func update(_ index: UInt32, _ body: (inout Link) -> Void) {
        guard let place = links.firstIndex(where: { $0.value.index == index }) else { return }
        body(&links[place].value)
        touch(.links)
        send(.link(links[place].value))
    }

    private mutating func switchLink(_ index: UInt32, up: Bool) {
        guard let link = link(index), link.flags.contains(.up) != up else { return }
        let isTunnel = link.kind == "tun"
        update(index) { link in
            link.flags = up ? [.up, .running, .lowerUp] : []
            link.operationalState = up ? (isTunnel ? .unknown : .up) : .down
        }
        if up { revive(index) } else { fall(index) }
    }

    private mutating func revive(_ index: UInt32) {
        for place in routes.indices where routes[place].dead.remove(index) != nil {
            touch(.routes(routes[place].value.key.family))
        }
        for entry in addresses where entry.value.key.interface == index { addConnected(entry.value) }
    }

    private mutating func fall(_ index: UInt32) {
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

    private mutating func dropNexthops(over index: UInt32) {
        nexthops.removeAll { $0.value.hop?.interface == index }
        let ids = Set(nexthops.map(\.value.id))
        for place in nexthops.indices { nexthops[place].value.group.removeAll { !ids.contains($0.id) } }
        nexthops.removeAll { $0.value.hop == nil && !$0.value.isBlackhole && $0.value.group.isEmpty }
        touch(.nexthops)
    }

    private mutating func setCarrier(_ index: UInt32, _ hasCarrier: Bool) {
        guard let link = link(index), link.flags.contains(.up), link.flags.contains(.lowerUp) != hasCarrier else { return }
        let isTunnel = link.kind == "tun"
        update(index) { link in
            link.flags = hasCarrier ? [.up, .running, .lowerUp] : [.up]
            link.operationalState = hasCarrier ? (isTunnel ? .unknown : .up) : .down
        }
        if !hasCarrier { dropNexthops(over: index) }
    }

    private mutating func alterLink() {
        guard let index = randomLink() else { return }
        let (name, mtu) = ("if\(UInt8.random(in: 7...99, using: &dice))", UInt32.random(in: 1_280...9_000, using: &dice))
        let isRenamed = chance(50) && !links.contains { $0.value.name == name }
        update(index) { link in if isRenamed { link.name = name } else { link.mtu = mtu } }
    }

    private mutating func removeLink(_ index: UInt32) {
        switchLink(index, up: false)
        // A move to another namespace says nothing of what was on the link.
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
            if hops.isEmpty {
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

    private mutating func addAddress() {
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

    private func connected(_ address: Address) -> Route {
        let isV4 = address.address.family == .v4
        let network = IPPrefix(
            IPAddress(bytes: Array(address.address.bytes.dropLast(isV4 ? 1 : 8)) + [UInt8](repeating: 0, count: isV4 ? 1 : 8))
                ?? address.address, length: address.key.prefix.length)
        return Route(
            Route.Key(metric: isV4 ? 0 : 256, destination: network), nextHops: [.init(interface: address.key.interface)],
            origin: 2,
            scope: isV4 ? 253 : 0, preferredSource: isV4 ? address.address : nil)
    }

    private mutating func addConnected(_ address: Address) {
        let route = connected(address)
        if !routes.contains(where: { $0.value == route }) { append(route) }
    }

    private mutating func append(_ route: Route) {
        routes.append(Entry(id: takeID(), value: route))
        touch(.routes(route.key.family))
        send(.route(route, flags: 0x400))
    }

    private mutating func removeAddress() {
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

    /// A router's advertisement: the time is renewed, duplicate detection may have ended.
    private mutating func refreshAddress() {
        guard let place = addresses.indices.randomElement(using: &dice) else { return }
        clock += 1
        if chance(70) {
            addresses[place].value.lifetime.renewedCentiseconds = clock
            addresses[place].value.flags.subtract([.tentative, .optimistic])
            touch(.addresses)
        }
        send(.address(addresses[place].value))
    }

    // MARK: Routes

    private mutating func addRoute() {
        let family: IPAddress.Family = chance(55) ? .v4 : .v6
        let isDefault = chance(55)
        let nowhere = IPPrefix(family == .v4 ? IPAddress(v4: 0) : IPAddress(v6: 0, 0), length: 0)
        let number = UInt32.random(in: 0...3, using: &dice)
        let elsewhere =
            family == .v4
            ? IPPrefix(IPAddress(v4: 0xc633_0000 | number << 8), length: 24)
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
        guard !bucket.contains(where: { routes[$0].value == route || Self.shown(routes[$0]) == route }) else { return }
        switch Int.random(in: 0..<3, using: &dice) {
        case 0: if bucket.isEmpty { append(route) }
        case 1: if family == .v4 { append(route) } else { appendV6(route, bucket) }
        default: replace(route, bucket)
        }
    }

    /// IPv6 routes by gateways of one key are one multipath route.
    private mutating func appendV6(_ route: Route, _ bucket: [Int]) {
        func isMergeable(_ route: Route) -> Bool { route.kind == .unicast && route.nextHops.allSatisfy { $0.gateway != nil } }
        guard isMergeable(route), let place = bucket.first(where: { isMergeable(routes[$0].value) }) else { return append(route) }
        let known = routes[place].value.nextHops
        let new = route.nextHops.filter { hop in !known.contains { $0.interface == hop.interface } }
        guard !new.isEmpty else { return }
        routes[place].value = routes[place].value.withHops(known + new)
        touch(.routesV6)
        send(.route(Self.shown(routes[place]), flags: 0xc00))
    }

    private mutating func replace(_ route: Route, _ bucket: [Int]) {
        guard let place = bucket.first else { return append(route) }
        // Which of several IPv6 replaces depends on more than is modelled here.
        if route.key.family == .v6 && bucket.count > 1 { return }
        routes[place] = Entry(id: routes[place].id, value: route)
        touch(.routes(route.key.family))
        send(.route(route, flags: RawMessage.replace))
    }

    private mutating func removeRoute() {
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

    private mutating func addRule() {
        guard rules.count < 12 else { return }
        let rule = Rule.random(using: &dice)
        rules.append(Entry(id: takeID(), value: rule))
        touch(.rules(rule.family))
        send(.rule(rule))
    }

    private mutating func removeRule() {
        guard let entry = pick(rules) else { return }
        rules.removeAll { $0.id == entry.id }
        touch(.rules(entry.value.family))
        send(.rule(entry.value, removed: true))
    }

    private mutating func addNexthop() {
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

    private mutating func removeNexthop() {
        guard let entry = pick(nexthops) else { return }
        nexthops.removeAll { $0.id == entry.id }
        touch(.nexthops)
        send(.nexthop(entry.value, removed: true))
        // The groups that lose a member are announced; an empty one goes.
        for group in nexthops where group.value.group.contains(where: { $0.id == entry.value.id }) {
            nexthops.removeAll { $0.id == group.id }
            send(.nexthop(group.value, removed: true))
        }
    }

    private mutating func makeNoise() {
        let index = randomLink() ?? 1
        switch Int.random(in: 0..<7, using: &dice) {
        case 0:
            let neighbour = Neighbour(
                interface: index, address: IPAddress(v4: 0x0a00_00fe), state: .stale, hardwareAddress: [2, 0, 0, 0, 0, 1])
            send(.neighbour(neighbour))
        case 1: if let link = link(index) { send(.link(link)) }
        case 2: if let entry = pick(addresses) { send(.address(entry.value)) }
        case 3:
            // A port that leaves its bridge.
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
