/// What the path is, told from the snapshot and from what the kernel answers when it is asked for a route (contract, "What
/// satisfied means"). A pure function: what it needs to ask comes out as a question, and it is run again with the answer.
struct PathEvaluation {
    /// The interface that the kernel last chose, whether usable or not.
    struct Selected: Hashable, Sendable {
        /// 0 once the device that had it is gone.
        var index: UInt32
        var name: String

        init(_ interface: NetworkInterface) {
            index = interface.index
            name = interface.name
        }
    }

    /// What it leads to.
    enum Outcome {
        /// The kernel has to be asked these first.
        case ask([RouteQuery])
        case path(NetworkPath, selected: Selected?)
    }

    let snapshot: Kernel.Snapshot
    let catalog: InterfaceCatalog
    let resolver: ResolverConfiguration
    let configuration: MonitorConfiguration
    let destinations: RouteDestinations
    let answers: RouteAnswers
    let lastSelected: Selected?
    let isConsistent: Bool
    /// The interfaces that the routes of targets use.
    let followed: Set<UInt32>

    /// More candidates than this are not tried: each costs a question.
    private static let candidateLimit = 16

    /// What is asked whatever the snapshot says; none where that decides.
    static func firstQuestions(_ configuration: MonitorConfiguration, _ destinations: RouteDestinations) -> [RouteQuery] {
        switch configuration.selection {
        case .any, .prohibited:
            IPAddress.Family.allCases.filter(configuration.families.contains).map { RouteQuery(destinations[$0]) }
        case .named, .required: []
        }
    }

    func run() -> Outcome {
        let defaults = snapshot.defaults
        var questions: [RouteQuery] = []
        var choices = Choices()
        if configuration.families.contains(.v4) { choices.v4 = choose(.v4, defaults, &questions) }
        if configuration.families.contains(.v6) { choices.v6 = choose(.v6, defaults, &questions) }
        let (v4, v6) = (choices.v4?.usable, choices.v6?.usable)
        let selected = v4 ?? v6
        let under = selected.flatMap { underlying($0.interface, defaults, &questions) }
        let carrying = carriers(followed, defaults, &questions)
        guard questions.isEmpty else { return .ask(questions) }

        // What the kernel would use counts as selected, also when it cannot carry packets now.
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
            isExpensive: chosen.contains { $0.isExpensive },
            isConstrained: false,
            gateways: gateways([v4, v6].compactMap { $0 }),
            interfaces: ordered,
            cause: cause,
            isConsistent: isConsistent,
            notable: Set(ordered.filter { isNotable($0, chosen, defaults) || carrying.contains($0.index) }.map(\.index))
        )
        return .path(path, selected: last)
    }

    /// The last selected interface as it is now: under the name that it was given meanwhile, or back under its old one, as an adapter
    /// that was plugged in again or a tunnel that was made anew.
    private func present(_ last: Selected) -> Selected {
        if let interface = catalog.interfaces[last.index], isAllowed(interface) { return Selected(interface) }
        // Also where the one that was selected was renamed, and another has the name that is wanted now.
        let again = catalog.interfaces.values.filter { $0.name == last.name && isAllowed($0) }.min { $0.index < $1.index }
        return again.map(Selected.init) ?? last
    }

    /// What the kernel says for each family; `nil` for one that does not count.
    struct Choices {
        var v4: Choice?
        var v6: Choice?

        subscript(family: IPAddress.Family) -> Choice? { family == .v4 ? v4 : v6 }
    }

    /// What the kernel says for one family.
    struct Choice {
        struct Usable {
            var interface: NetworkInterface
            var route: ChosenRoute
        }
        /// Packets can go this way.
        var usable: Usable?
        /// The interface of the kernel's route, whether usable or not.
        var picked: NetworkInterface?
        /// Why there is no route; `nil` where there is one.
        var refusal: Int32?
    }

    private func choose(_ family: IPAddress.Family, _ defaults: DefaultRoutes, _ questions: inout [RouteQuery]) -> Choice {
        var first: Choice?
        for query in candidates(family, defaults) {
            guard let answer = answers[query] else {
                questions.append(query)
                return first ?? Choice()
            }
            let choice = judge(answer, to: query)
            if let picked = choice.picked, !isAllowed(picked) { continue }
            if choice.usable != nil { return choice }
            if first == nil { first = choice }
        }
        guard let refused = first, refused.refusal != nil else { return first ?? Choice() }
        // Asked for one interface, the kernel does not say why there is no route; asked for none, it does.
        let free = RouteQuery(destinations[family])
        guard let answer = answers[free] else {
            questions.append(free)
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

    /// Whether the path may use the interface.
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

    // Answers of RTM_F_FIB_MATCH name no source address: then any usable one of the interface serves. Others name one unless the
    // kernel has none: an IPv6 address that was kept while its link was down is tentative again before anybody is told.
    private func hasUsableSource(_ route: ChosenRoute, _ query: RouteQuery) -> Bool {
        let family = query.destination.family
        let isUsable = { (address: Address) in
            // A link-local IPv6 source reaches nobody beyond the link, and routers drop it (RFC 4007, 9).
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

    // The route to the tunnel's other end where the kernel tells that; else the best default route that is no tunnel's, which is
    // where WireGuard's and OpenVPN's packets go.
    private func underlying(
        _ interface: NetworkInterface, _ defaults: DefaultRoutes, _ questions: inout [RouteQuery]
    ) -> NetworkInterface? {
        guard interface.type == .tunnel else { return nil }
        if let remote = snapshot.links[interface.index]?.tunnelRemote {
            let query = RouteQuery(remote)
            switch answers[query] {
            case nil: questions.append(query)
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

    /// The interfaces that are followed and those that carry their packets: what is under a tunnel, a VLAN and the like.
    private func carriers(
        _ followed: Set<UInt32>, _ defaults: DefaultRoutes, _ questions: inout [RouteQuery]
    ) -> Set<UInt32> {
        var found = followed
        // In a fixed order, so that a recording can be run again.
        var rest = followed.sorted()
        while let index = rest.popLast() {
            guard let interface = catalog.interfaces[index] else { continue }
            var below = underlying(interface, defaults, &questions).map { [$0.index] } ?? []
            // The lower device of a veth is its peer.
            if let link = snapshot.links[index], link.lower != 0, !link.lowerIsElsewhere, link.kind != "veth" {
                below.append(link.lower)
            }
            rest += below.filter { found.insert($0).inserted }
        }
        return found
    }

    // MARK: Order

    /// By default route and its metric, then by level, hardware first, then by index.
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
        // At most three are chosen, so looking through them is cheaper than a set.
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
    /// Whether the path may use the interface.
    func allows(_ interface: NetworkInterface) -> Bool {
        switch selection {
        case .any: true
        case .named(let name): interface.hasName(name)
        case .required(let type): interface.type == type
        case .prohibited(let types): !types.contains(interface.type)
        }
    }
}
