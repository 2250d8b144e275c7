/// Computes the path from the snapshot and the kernel's answers to route queries (docs/command-line.md, "Satisfied
/// paths"). A pure function: it returns the queries that it needs, and runs again with the answers.
struct PathEvaluation {
    /// The interface that the kernel last selected, usable or not.
    struct Selected: Hashable, Sendable {
        /// The index of the interface; 0 after its device was removed.
        var index: UInt32
        var name: String

        init(_ interface: NetworkInterface) {
            index = interface.index
            name = interface.name
        }
    }

    /// The result of an evaluation.
    enum Outcome {
        /// The kernel must answer these queries first.
        case ask([RouteQuery])
        case path(NetworkPath, selected: Selected?)
    }

    let snapshot: KernelSnapshot
    let catalog: InterfaceCatalog
    let resolver: ResolverConfiguration
    let configuration: MonitorConfiguration
    let destinations: RouteDestinations
    let answers: RouteAnswers
    let lastSelected: Selected?
    let isConsistent: Bool
    /// The interfaces that the targets' routes use.
    let usedInterfaces: Set<UInt32>

    /// The maximum number of candidates, because each needs a query.
    private static let candidateLimit = 16

    /// The queries that do not depend on the snapshot; empty if the snapshot determines all queries.
    static func initialQueries(_ configuration: MonitorConfiguration, _ destinations: RouteDestinations) -> [RouteQuery] {
        switch configuration.selection {
        case .any, .prohibited:
            IPAddress.Family.allCases.filter(configuration.families.contains).map { RouteQuery(destinations[$0]) }
        case .named, .required: []
        }
    }

    func run() -> Outcome {
        let defaults = snapshot.defaults
        var queries: [RouteQuery] = []
        var choices = Choices()
        if configuration.families.contains(.v4) { choices.v4 = choose(.v4, defaults, &queries) }
        if configuration.families.contains(.v6) { choices.v6 = choose(.v6, defaults, &queries) }
        let (v4, v6) = (choices.v4?.usable, choices.v6?.usable)
        let selected = v4 ?? v6
        let under = selected.flatMap { underlying($0.interface, defaults, &queries) }
        let carrierIndexes = carriers(usedInterfaces, defaults, &queries)
        guard queries.isEmpty else { return .ask(queries) }

        // The interface that the kernel would use counts as selected, even if it cannot carry packets now.
        let pick = selected?.interface ?? choices.v4?.picked ?? choices.v6?.picked
        let last = pick.map(Selected.init) ?? lastSelected.map(present)
        let cause = selected == nil ? PathCause(snapshot, catalog, configuration, destinations).find(choices, last) : nil
        let chosen = [v4?.interface, v6?.interface, under].compactMap { $0 }
        let ordered = order(chosen, defaults)
        let path = NetworkPath(
            status: selected == nil ? .unsatisfied : .satisfied,
            interface: selected?.interface,
            interfaceV4: v4?.interface,
            interfaceV6: v6?.interface,
            underlying: under,
            supportsDNS: resolver.hasNameserver,
            resolvers: resolver.nameservers,
            isExpensive: chosen.contains { $0.isExpensive },
            isConstrained: false,
            gateways: gateways([v4, v6].compactMap { $0 }),
            interfaces: ordered,
            cause: cause,
            isConsistent: isConsistent,
            notable: Set(ordered.filter { isNotable($0, chosen, defaults) || carrierIndexes.contains($0.index) }.map(\.index))
        )
        return .path(path, selected: last)
    }

    /// Returns the last selected interface in its present form: under a new name, or under its old name again. The latter happens
    /// when an adapter is reconnected or a tunnel is created again.
    private func present(_ last: Selected) -> Selected {
        if let interface = catalog.interfaces[last.index], isAllowed(interface) { return Selected(interface) }
        // Also applies if the selected interface was renamed, and another interface now has the required name.
        let sameName = catalog.interfaces.values.filter { $0.name == last.name && isAllowed($0) }.min { $0.index < $1.index }
        return sameName.map(Selected.init) ?? last
    }

    /// The kernel's choice for each family; `nil` for a family that is not configured.
    struct Choices {
        var v4: Choice?
        var v6: Choice?

        subscript(family: IPAddress.Family) -> Choice? { family == .v4 ? v4 : v6 }
    }

    /// The kernel's choice for one family.
    struct Choice {
        struct Usable {
            var interface: NetworkInterface
            var route: ChosenRoute
        }
        /// The usable route; `nil` if there is none.
        var usable: Usable?
        /// The interface of the kernel's route, whether usable or not.
        var picked: NetworkInterface?
        /// The errno with which the kernel refused a route; `nil` if there is a route.
        var refusal: Int32?
    }

    private func choose(_ family: IPAddress.Family, _ defaults: DefaultRoutes, _ queries: inout [RouteQuery]) -> Choice {
        var first: Choice?
        for query in candidates(family, defaults) {
            guard let answer = answers[query] else {
                queries.append(query)
                return first ?? Choice()
            }
            let choice = judge(answer, to: query)
            if let picked = choice.picked, !isAllowed(picked) { continue }
            if choice.usable != nil { return choice }
            if first == nil { first = choice }
        }
        guard let refused = first, refused.refusal != nil else { return first ?? Choice() }
        // A query with an interface does not return the reason for a missing route; a query without one does.
        let unboundQuery = RouteQuery(destinations[family])
        guard let answer = answers[unboundQuery] else {
            queries.append(unboundQuery)
            return refused
        }
        if case .refused(let errno) = answer { return Choice(refusal: errno) }
        return refused
    }

    private func candidates(_ family: IPAddress.Family, _ defaults: DefaultRoutes) -> [RouteQuery] {
        let destination = destinations[family]
        let others = {
            let all = catalog.interfaces.values.filter { $0.type != .loopback && isAllowed($0) }
            return preferred(all, defaults).prefix(Self.candidateLimit).map { RouteQuery(destination, interface: $0.index) }
        }
        switch configuration.selection {
        case .any: return [RouteQuery(destination)]
        case .named, .required: return others()
        case .prohibited: return [RouteQuery(destination)] + others()
        }
    }

    /// Returns whether the path may use the interface.
    func isAllowed(_ interface: NetworkInterface) -> Bool { configuration.allows(interface) }

    private func judge(_ answer: RouteAnswer, to query: RouteQuery) -> Choice {
        switch answer {
        case .refused(let errno): return Choice(refusal: errno)
        case .route(let route):
            guard let interface = catalog.interfaces[route.interface] else { return Choice() }
            var choice = Choice(picked: interface)
            if route.kind == .unicast, interface.level >= .degraded, hasUsableSource(route, query) {
                choice.usable = Choice.Usable(interface: interface, route: route)
            }
            return choice
        }
    }

    // Answers with RTM_F_FIB_MATCH contain no source address; any usable address of the interface is then sufficient. Other
    // answers contain one if the kernel has one. An IPv6 address that was kept while its link was down is tentative again, and no
    // event reports it.
    private func hasUsableSource(_ route: ChosenRoute, _ query: RouteQuery) -> Bool {
        let family = query.destination.family
        let isUsable = { (address: Address) in
            // A link-local IPv6 source works only on the link, and routers drop its packets (RFC 4007 section 9).
            address.address.family == family && address.isUsable && !(family == .v6 && address.address.isLinkLocal)
        }
        guard let source = route.source else {
            return query.interface != 0 && catalog.addresses[route.interface, default: []].contains(where: isUsable)
        }
        // The source may be an address of another interface, as on unnumbered links.
        if let own = catalog.addresses[route.interface, default: []].first(where: { $0.address == source }) {
            return isUsable(own)
        }
        return snapshot.addresses.values.contains { $0.address == source && isUsable($0) }
    }

    // MARK: The interface under a tunnel

    // The route to the tunnel's remote end, if the kernel reports that end. Otherwise the best default route that is not a
    // tunnel's, which WireGuard and OpenVPN use for their packets.
    private func underlying(
        _ interface: NetworkInterface, _ defaults: DefaultRoutes, _ queries: inout [RouteQuery]
    ) -> NetworkInterface? {
        guard interface.type == .tunnel else { return nil }
        if let remote = snapshot.links[interface.index]?.tunnelRemote {
            let query = RouteQuery(remote)
            switch answers[query] {
            case nil: queries.append(query)
            case .route(let route) where route.interface != interface.index:
                return catalog.interfaces[route.interface].flatMap { $0.type == .loopback ? nil : $0 }
            case .refused(let errno) where errno != 0: return nil
            default: break
            }
        }
        let others = catalog.interfaces.values.filter {
            $0.type != .tunnel && $0.type != .loopback && $0.level >= .degraded && defaults.metrics[$0.index] != nil
        }
        return preferred(others, defaults).first
    }

    /// Returns the interfaces that targets use and the interfaces that carry their packets: those under a tunnel, a VLAN and the like.
    private func carriers(
        _ used: Set<UInt32>, _ defaults: DefaultRoutes, _ queries: inout [RouteQuery]
    ) -> Set<UInt32> {
        var found = used
        // A fixed order, so that a replay sends the same queries.
        var remaining = used.sorted()
        while let index = remaining.popLast() {
            guard let interface = catalog.interfaces[index] else { continue }
            var below = underlying(interface, defaults, &queries).map { [$0.index] } ?? []
            // The lower device of a veth is its peer.
            if let link = snapshot.links[index], link.lower != 0, !link.lowerIsElsewhere, link.kind != "veth" {
                below.append(link.lower)
            }
            remaining += below.filter { found.insert($0).inserted }
        }
        return found
    }

    // MARK: Order

    /// Sorts by default route and its metric, then by level, hardware first, then by index.
    private func preferred(_ interfaces: some Sequence<NetworkInterface>, _ defaults: DefaultRoutes) -> [NetworkInterface] {
        interfaces.sorted { left, right in
            let (one, other) = (defaults.metrics[left.index], defaults.metrics[right.index])
            if (left.level >= .degraded) != (right.level >= .degraded) { return left.level >= .degraded }
            if (one == nil) != (other == nil) { return one != nil }
            if let one, let other, one != other { return one < other }
            if (left.type == .loopback) != (right.type == .loopback) { return right.type == .loopback }
            if left.level != right.level { return left.level > right.level }
            if left.isVirtual != right.isVirtual { return right.isVirtual }
            return left.index < right.index
        }
    }

    private func order(_ chosen: [NetworkInterface], _ defaults: DefaultRoutes) -> [NetworkInterface] {
        // At most three interfaces are chosen, so a linear search costs less than a set.
        var ordered: [NetworkInterface] = []
        ordered.reserveCapacity(catalog.interfaces.count)
        for interface in chosen where !ordered.contains(where: { $0.index == interface.index }) { ordered.append(interface) }
        let count = ordered.count
        for interface in preferred(catalog.interfaces.values, defaults)
        where !ordered[..<count].contains(where: { $0.index == interface.index }) {
            ordered.append(interface)
        }
        return ordered
    }

    private func isNotable(_ interface: NetworkInterface, _ chosen: [NetworkInterface], _ defaults: DefaultRoutes) -> Bool {
        !interface.isVirtual || defaults.metrics[interface.index] != nil || chosen.contains { $0.index == interface.index }
    }

    private func gateways(_ usable: [Choice.Usable]) -> [NetworkPath.Gateway] {
        var gateways: [NetworkPath.Gateway] = []
        for choice in usable {
            guard let address = choice.route.gateway else { continue }
            let gateway = NetworkPath.Gateway(address, zone: address.isLinkLocal ? choice.interface.name : nil)
            if !gateways.contains(gateway) { gateways.append(gateway) }
        }
        return gateways
    }
}

extension MonitorConfiguration {
    /// Returns whether the path may use the interface.
    func allows(_ interface: NetworkInterface) -> Bool {
        switch selection {
        case .any: true
        case .named(let name): interface.hasName(name)
        case .required(let type): interface.type == type
        case .prohibited(let types): !types.contains(interface.type)
        }
    }
}
