import NetlinkBytes

@testable import Reachability

/// A dump in slices, between which the tables may change.
struct SimulatedDump {
    let table: KernelTable
    /// The interface to which a dump of routes is limited. Such a dump includes dead next hops.
    let interface: UInt32?
    let sequence: UInt32
    private let generation: Int
    private var cursor = 0
    private var isMarked = false

    init(_ table: KernelTable, over interface: UInt32?, _ sequence: UInt32, of kernel: SimulatedKernel) {
        self.table = table
        self.interface = interface
        self.sequence = sequence
        generation = kernel.generations[table] ?? 0
    }

    /// The next datagram. `isLast` is true with NLMSG_DONE. If the table has changed, the kernel may notice (NLM_F_DUMP_INTR) or
    /// not.
    mutating func slice(of kernel: inout SimulatedKernel, limit: Int) -> (bytes: [UInt8], isLast: Bool) {
        if kernel.generations[table] ?? 0 != generation, kernel.chance(25) { isMarked = true }
        let flags = RawMessage.multi | (isMarked ? RawMessage.interrupted : 0)
        var messages: [RawMessage] = []
        var isLast = true
        func take<Value>(_ entries: [SimulatedKernel.Entry<Value>], _ message: (SimulatedKernel.Entry<Value>) -> RawMessage) {
            let remaining = entries.filter { $0.id > cursor }.sorted { $0.id < $1.id }
            isLast = remaining.count <= limit
            for entry in remaining.prefix(limit) {
                messages.append(message(entry))
                cursor = entry.id
            }
        }
        func takeRoutes(_ family: IPAddress.Family) {
            let isDumped = { [interface] (route: Route) in
                route.key.family == family && (interface.map { route.uses(interface: $0) } ?? true)
            }
            take(kernel.routes.filter { isDumped($0.value) }) {
                .route(SimulatedKernel.shown($0), flags: flags, sequence: sequence)
            }
            guard isLast else { return }
            for ghost in kernel.ghosts where isDumped(ghost) {
                messages.append(.route(ghost, headerFlags: ghost.isMultipath ? 0 : 1, flags: flags, sequence: sequence))
            }
        }
        switch table {
        case .links: take(kernel.links) { .link($0.value, flags: flags, sequence: sequence) }
        case .addresses: take(kernel.addresses) { .address($0.value, flags: flags, sequence: sequence) }
        case .nexthops: take(kernel.nexthops) { .nexthop($0.value, flags: flags, sequence: sequence) }
        case .routesV4: takeRoutes(.v4)
        case .routesV6: takeRoutes(.v6)
        case .rulesV4: take(kernel.rules.filter { $0.value.family == .v4 }) { .rule($0.value, flags: flags, sequence: sequence) }
        case .rulesV6: take(kernel.rules.filter { $0.value.family == .v6 }) { .rule($0.value, flags: flags, sequence: sequence) }
        }
        if isLast { messages.append(.done(sequence, flags: flags)) }
        return (messages.bytes, isLast)
    }
}

extension SimulatedKernel {
    /// The route to an address: the longest prefix of the main table, then the lowest metric, then the oldest route.
    func lookUp(_ query: RouteQuery) -> Result<(route: Route, hop: Route.NextHop), Refusal> {
        let family = query.destination.family
        if addresses.contains(where: { $0.value.address == query.destination }) {
            let own = Route(
                Route.Key(table: 255, destination: IPPrefix(query.destination, length: family == .v4 ? 32 : 128)), kind: .local)
            return .success((own, Route.NextHop(interface: 1)))
        }
        let matching = routes.map(Self.shown).enumerated().filter {
            $0.element.key.table == 254 && $0.element.key.destination.contains(query.destination)
        }
        let ordered = matching.sorted { left, right in
            let (one, other) = (left.element.key, right.element.key)
            if one.destination.length != other.destination.length { return one.destination.length > other.destination.length }
            return one.metric != other.metric ? one.metric < other.metric : left.offset < right.offset
        }
        for (_, route) in ordered {
            switch route.kind {
            case .blackhole: return .failure(Refusal(errno: 22))
            case .unreachable: return .failure(Refusal(errno: 113))
            case .prohibit: return .failure(Refusal(errno: 13))
            default: break
            }
            // Packets with a mark use the interfaces with even numbers alone, as if policy rules had a table for them.
            let hops = route.nextHops.filter {
                (query.interface == 0 || $0.interface == query.interface) && (query.selector == nil || $0.interface % 2 == 0)
            }
            if let hop = hops.first { return .success((route, hop)) }
        }
        return .failure(Refusal(errno: 101))
    }

    struct Refusal: Error { let errno: Int32 }

    /// The source address that the kernel would choose.
    func source(_ route: Route, _ hop: Route.NextHop) -> IPAddress? {
        if let preferred = route.preferredSource { return preferred }
        let usable = addresses.map(\.value).filter { $0.address.family == route.key.family && $0.isUsable && $0.scope < 254 }
        let own = usable.filter { $0.key.interface == hop.interface }
        return
            (own.first { !$0.address.isLinkLocal } ?? usable.first { !$0.address.isLinkLocal && $0.key.interface != 1 }
            ?? own.first)?
            .address
    }

    /// The reply to RTM_GETROUTE. To a query for one interface (RTM_F_FIB_MATCH) the kernel replies with the route of its table.
    func reply(to query: RouteQuery) -> [UInt8] {
        switch lookUp(query) {
        case .failure(let refusal): return RawMessage.error(9, errno: refusal.errno).bytes
        case .success((let route, let hop)):
            if query.interface != 0 && route.kind != .local { return RawMessage.route(route, sequence: 9).bytes }
            let bits: UInt8 = query.destination.family == .v4 ? 32 : 128
            let chosen = Route(
                Route.Key(table: route.key.table, destination: IPPrefix(query.destination, length: bits)), kind: route.kind,
                nextHops: [hop],
                preferredSource: source(route, hop))
            return RawMessage.route(chosen, headerFlags: 0x200, sequence: 9).bytes
        }
    }

    /// The evidence of an interface beyond its link message.
    func evidence(_ link: Link) -> InterfaceEvidence {
        guard link.kind == nil else { return InterfaceEvidence() }
        let isWireless = link.index % 3 == 0
        return InterfaceEvidence(
            deviceType: isWireless ? "wlan" : nil, isWireless: isWireless, driver: "simulated", bus: "pci", sources: ["sysfs"])
    }

    // MARK: An independent judgment

    /// True if packets can take the route that the kernel names (docs/command-line.md, "Satisfied paths").
    func isUsable(_ query: RouteQuery) -> Bool {
        guard case .success((let route, let hop)) = lookUp(query), route.kind == .unicast, let link = link(hop.interface) else {
            return false
        }
        let own = addresses.map(\.value).filter { $0.key.interface == hop.interface }
        // The link needs carrier, and an address that reaches at least the link.
        guard link.flags.contains(.up), link.flags.contains(.lowerUp), own.contains(where: { $0.isUsable && $0.scope < 254 })
        else { return false }
        func serves(_ address: Address) -> Bool {
            address.isUsable && address.address.family == route.key.family
                && !(route.key.family == .v6 && address.address.isLinkLocal)
        }
        let source = query.interface == 0 ? source(route, hop) : route.preferredSource
        guard let source else { return own.contains(where: serves) }
        if let mine = own.first(where: { $0.address == source }) { return serves(mine) }
        return addresses.contains { $0.value.address == source && serves($0.value) }
    }
}
