// What each rtnetlink event means for a snapshot, and what it leaves in doubt.
//
// The kernel does not tell everything, so some events are only hints, and the table is dumped again:
// - IPv4 routes vanish without a message when their link or address goes, and multipath members die and revive silently; only the
//   routes over that link are stale then, and those that prefer that address;
// - routes over a link without a carrier die and revive with `ignore_routes_with_linkdown`;
// - the first end of a veth pair is announced before it has a peer, and the last when the other moved to another namespace;
// - IPv6 routes with an MTU of their own follow that of their link (rt6_mtu_change);
// - an IPv6 address that is kept while its link is down (keep_addr_on_down) is tentative again; only the end of that is told;
// - nexthop objects vanish without a message when their link goes down or loses its carrier, and leave their groups;
// - NLM_F_REPLACE on a key that several routes share does not say which of them went;
// - an IPv4 multipath route with one live next hop looks like another route of its key, and the removal of either looks the same;
// - the kernel takes a rule twice where the request has no NLM_F_EXCL, and the removal of either looks the same;
// - IPv6 multipath routes arrive merged, appended or by single next hop.

extension Kernel.Snapshot {
    /// Applies an event, adding to `outcome` what changed and which tables are in doubt. With `isRecorded` the change of the
    /// link itself is in `outcome` already.
    mutating func take(_ event: NetlinkEvent, _ outcome: inout SnapshotKeeper.Outcome, isRecorded: Bool = false) {
        switch event {
        case .link(let link): takeLink(link, &outcome, isRecorded)
        case .linkRemoved(let index): takeLinkRemoval(index, &outcome, isRecorded)
        case .address(let address):
            if addresses[address.key] != address { record(.address(address), &outcome) }
        case .addressRemoved(let key):
            doubtRoutes(key.prefix.address.family, over: key.interface, &outcome)
            for interface in index.interfaces(preferring: key.prefix.address) {
                doubtRoutes(key.prefix.address.family, over: interface, &outcome)
            }
            if addresses[key] != nil { record(.addressRemoved(key), &outcome) }
        case .route(let route, let replaces, let isDead): takeRoute(route, replaces, isDead, &outcome)
        case .routeRemoved(let route): takeRouteRemoval(route, &outcome)
        case .linkdownPolicy(let family, let interface):
            // Also said of each device that is new, whose link is down yet.
            guard let link = links[interface], link.flags.contains(.up), !link.hasCarrier else { break }
            doubtRoutes(family, over: interface, &outcome)
        case .rule(let rule):
            if rules.contains(rule) { noteDuplicate(rule) } else { record(.ruleAdded(rule), &outcome) }
        case .ruleRemoved(let rule):
            // A dump that was ahead of this event may show the other one of two.
            outcome.doubts.insert(.rules(rule.family))
            if rules.contains(rule), !index.duplicateRules.contains(rule) { record(.ruleRemoved(rule), &outcome) }
        case .nexthop(let object):
            guard nexthops[object.id] != object else { return }
            // Routes that use the object follow it without a message of their own where nexthop_compat_mode is 0.
            if nexthops[object.id] != nil { outcome.doubts.formUnion([.routesV4, .routesV6]) }
            if isOutdated(object) { outcome.doubts.insert(.nexthops) }
            record(.nexthop(object), &outcome)
        case .nexthopRemoved(let id):
            outcome.doubts.formUnion([.nexthops, .routesV4, .routesV6])
            if nexthops[id] != nil { record(.nexthopRemoved(id), &outcome) }
        case .neighbor, .neighborRemoved, .done, .ignored, .malformed: break
        }
    }

    /// Whether a route cannot be there although a dump still has it: its link is not up. Routes to this machine's own addresses
    /// stay (fib_sync_down_dev spares them), and so do those that refuse: IPv6 hangs them on `lo`, up or not.
    func isHidden(_ route: Route) -> Bool {
        guard route.kind != .local, !route.kind.refuses, !route.isMultipath, let hop = route.firstHop,
            let link = links[hop.interface]
        else {
            return false
        }
        return !link.flags.contains(.up)
    }

    /// Whether a dead route stays dead until a link has a carrier: the kernel ignores routes over links that are up without one
    /// (`ignore_routes_with_linkdown`).
    func isIgnored(_ route: Route) -> Bool {
        let hops = route.nextHops
        return !hops.isEmpty
            && hops.allSatisfy { links[$0.interface].map { $0.flags.contains(.up) && !$0.hasCarrier } ?? false }
    }

    /// The interfaces of a multipath route's next hops whose link is not up: one of the two is out of date.
    func hopsOverLostLinks(of route: Route) -> [UInt32] {
        guard route.isMultipath else { return [] }
        return route.nextHops.map(\.interface).filter { links[$0]?.flags.contains(.up) != true }
    }

    private mutating func record(_ change: Kernel.Change, _ outcome: inout SnapshotKeeper.Outcome) {
        apply(change)
        outcome.changes.append(change)
    }

    private mutating func takeLink(_ link: Link, _ outcome: inout SnapshotKeeper.Outcome, _ isRecorded: Bool) {
        let old = links[link.index]
        guard old != link else { return }
        if isRecorded { apply(.link(link)) } else { record(.link(link), &outcome) }
        if link.kind == "veth", link.lower == 0 { outcome.doubts.insert(.links) }
        guard let old else {
            // Its earlier messages were lost: what is known to use it may have gone with it.
            if !link.hasCarrier, isUsed(link.index) { takeState(of: link, &outcome) }
            return
        }
        if old.mtu != link.mtu { doubtRoutes(.v6, over: link.index, &outcome) }
        if old.flags.contains(.up) != link.flags.contains(.up) || old.hasCarrier != link.hasCarrier {
            takeState(of: link, &outcome)
        }
    }

    /// Whether a route or a nexthop object uses the interface.
    private func isUsed(_ interface: UInt32) -> Bool {
        IPAddress.Family.allCases.contains { index.keys(over: interface, $0)?.isEmpty != true }
            || nexthops.values.contains { $0.hop?.interface == interface }
    }

    /// The link is up or down, or has a carrier or none, other than before.
    private mutating func takeState(of link: Link, _ outcome: inout SnapshotKeeper.Outcome) {
        outcome.doubts.formUnion([.addresses, .nexthops])
        for family in IPAddress.Family.allCases { doubtRoutes(family, over: link.index, &outcome) }
        if !link.hasCarrier { removeNexthops(over: link.index, &outcome) }
        if !link.flags.contains(.up) { removeRoutes(over: link.index, &outcome) }
    }

    private mutating func takeLinkRemoval(_ index: UInt32, _ outcome: inout SnapshotKeeper.Outcome, _ isRecorded: Bool) {
        outcome.doubts.formUnion([.addresses, .nexthops, .routesV4, .routesV6])
        guard links[index] != nil else { return }
        let isPeer = { (link: Link) in link.kind == "veth" && link.lower == index && !link.lowerIsElsewhere }
        if links.values.contains(where: isPeer) { outcome.doubts.insert(.links) }
        if isRecorded { apply(.linkRemoved(index)) } else { record(.linkRemoved(index), &outcome) }
        for key in addresses.keys where key.interface == index { record(.addressRemoved(key), &outcome) }
        removeNexthops(over: index, &outcome)
        removeRoutes(over: index, &outcome)
    }

    /// Whether a dump was ahead of the event of an object: the kernel takes neither an object over a link without a carrier nor a
    /// group with a member that is not there, so the object may have gone since, without a message.
    private func isOutdated(_ object: NexthopObject) -> Bool {
        if let hop = object.hop { return links[hop.interface]?.hasCarrier != true }
        return object.group.contains { nexthops[$0.id] == nil }
    }

    private mutating func removeNexthops(over index: UInt32, _ outcome: inout SnapshotKeeper.Outcome) {
        for object in nexthops.values where object.hop?.interface == index { record(.nexthopRemoved(object.id), &outcome) }
    }

    /// Routes over an interface may have come, changed or gone without a message.
    private func doubtRoutes(
        _ family: IPAddress.Family, over interface: UInt32, _ outcome: inout SnapshotKeeper.Outcome
    ) {
        if index.tellsRoutes(over: interface, family) {
            outcome.staleRoutes.insert(StaleRoutes(family: family, interface: interface))
        } else {
            outcome.doubts.insert(.routes(family))
        }
    }

    private mutating func removeRoutes(over interface: UInt32, _ outcome: inout SnapshotKeeper.Outcome) {
        let isGone = links[interface] == nil
        for family in IPAddress.Family.allCases {
            // If there are too many to know them, only the default routes are looked through at once; the dump that follows finds the others.
            for key in index.keys(over: interface, family) ?? defaultRoutes where key.family == family {
                for route in routes[key]?.list ?? []
                where route.uses(interface: interface) && !route.isMultipath
                    && (isGone || (route.kind != .local && !route.kind.refuses))
                {
                    record(.routeRemoved(route), &outcome)
                }
            }
        }
    }

    // While duplicate detection runs, an IPv6 address that the kernel made by itself is announced only by its prefix's route.
    private func comesFromUnknownAddress(_ route: Route) -> Bool {
        let byKernel: UInt8 = 2
        guard route.key.family == .v6, route.origin == byKernel, route.kind == .unicast, let hop = route.firstHop else {
            return false
        }
        return !addresses.keys.contains { $0.interface == hop.interface && route.key.destination.contains($0.prefix.address) }
    }

    private mutating func takeRoute(
        _ route: Route, _ replaces: Bool, _ isDead: Bool, _ outcome: inout SnapshotKeeper.Outcome
    ) {
        let table = KernelTable.routes(route.key.family)
        if comesFromUnknownAddress(route) { outcome.doubts.insert(.addresses) }
        if isDead || isHidden(route) {
            if isDead, routes[route.key] == nil, isIgnored(route) { return }
            if !isDead, let hop = route.firstHop {
                doubtRoutes(route.key.family, over: hop.interface, &outcome)
            } else {
                outcome.doubts.insert(table)
            }
            if contains(route) { record(.routeRemoved(route), &outcome) }
            return
        }
        for interface in hopsOverLostLinks(of: route) { doubtRoutes(route.key.family, over: interface, &outcome) }
        let others: [Route]
        switch routes[route.key] {
        // Nearly always: nothing had its key.
        case nil: return record(.routeAdded(route), &outcome)
        case .one(let only) where only == route: return noteSecond(route, replaces)
        case .one(let other): others = [other]
        case .several(let all):
            if all.contains(route) { noteSecond(route, replaces) }
            others = all.filter { $0 != route }
        }
        if replaces && !others.isEmpty {
            // Known already: a dump was ahead of this event, and what went is gone from it; the others may have come since.
            // IPv6 replaces a route with a gateway by another such; the first one only where dumps show them all, and they leave out
            // what stands between the members of a multipath route.
            let isOtherSort = route.key.family == .v6 && others.contains { $0.hasGateway != route.hasGateway }
            if others.count > 1 || contains(route) || isOtherSort || index.duplicates.contains(route.key) {
                outcome.doubts.insert(table)
            } else if let only = others.first {
                record(.routeRemoved(only), &outcome)
            }
        } else if route.key.family == .v6 && !others.isEmpty {
            outcome.doubts.insert(table)
            // A multipath message carries all members: those that stood alone are among them.
            if route.isMultipath {
                for other in others where other.kind == route.kind { record(.routeRemoved(other), &outcome) }
            }
        }
        if !contains(route) { record(.routeAdded(route), &outcome) }
    }

    // The kernel refuses a second route that is the same (EEXIST), so the known one may be a multipath route with dead next hops.
    private mutating func noteSecond(_ route: Route, _ replaces: Bool) {
        if route.key.family == .v4 && !replaces { noteDuplicate(route.key) }
    }

    /// Whether a multipath route of the key looks the same when its other next hops are dead. A dump may show that one already.
    private func isRemnant(_ route: Route) -> Bool {
        guard route.key.family == .v4, case .several(let all) = routes[route.key] else { return false }
        return all.contains { $0 != route && $0.isMultipath && route.nextHops.allSatisfy($0.nextHops.contains) }
    }

    private mutating func takeRouteRemoval(_ route: Route, _ outcome: inout SnapshotKeeper.Outcome) {
        if index.duplicates.contains(route.key) || isRemnant(route), contains(route) {
            for interface in Set(route.nextHops.map(\.interface)) { doubtRoutes(route.key.family, over: interface, &outcome) }
        }
        switch routes[route.key] {
        case nil: break
        case .one(let only) where only == route: record(.routeRemoved(route), &outcome)
        case .several(let all) where all.contains(route): record(.routeRemoved(route), &outcome)
        default: outcome.doubts.insert(.routes(route.key.family))
        }
        // A dump of the routes over one interface says nothing of the others of the key.
        if routes[route.key] == nil { forgetDuplicate(route.key) }
    }
}
