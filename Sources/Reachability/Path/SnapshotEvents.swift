// The effect of each rtnetlink event on a snapshot, and the tables that become stale.
//
// The kernel does not send an event for every change. The following events are only hints, and the table is dumped again:
// - When a link or an address is removed, its IPv4 routes are removed without an event, and multipath members die and revive
//   without one. Only the routes over that link, and those that prefer that address, become stale.
// - Without an IPv4 address, all IPv4 next hops of a link are dead. The first address revives those of multipath routes
//   (fib_inetaddr_event).
// - Routes over a link without carrier die and revive with `ignore_routes_with_linkdown`.
// - The first end of a veth pair is announced before it has a peer, and the last end after the first has moved to another
//   namespace.
// - IPv6 routes with an MTU of their own follow the MTU of their link (rt6_mtu_change).
// - An IPv6 address that is kept while its link is down (keep_addr_on_down) becomes tentative again. Only the end of that state
//   has an event.
// - Nexthop objects are removed without an event when their link goes down or loses carrier, and disappear from their groups.
// - NLM_F_REPLACE on a key with several routes does not name the route that was replaced.
// - An IPv4 multipath route with one live next hop looks like another route of its key, and both removals look the same.
// - The kernel accepts a rule twice if the request has no NLM_F_EXCL, and both removals look the same.
// - IPv6 multipath routes arrive merged, appended, or one next hop at a time.

extension Kernel.Snapshot {
    /// Applies an event and adds the changes and stale tables to `outcome`. With `isRecorded`, the change of the link itself is
    /// already in `outcome`.
    mutating func take(_ event: NetlinkEvent, _ outcome: inout SnapshotKeeper.Outcome, isRecorded: Bool = false) {
        switch event {
        case .link(let link): takeLink(link, &outcome, isRecorded)
        case .linkRemoved(let index): takeLinkRemoval(index, &outcome, isRecorded)
        case .address(let address):
            if isOnlyAddress(address.key) { markRoutesStale(.v4, over: address.key.interface, &outcome) }
            if addresses[address.key] != address { record(.address(address), &outcome) }
        case .addressRemoved(let key):
            markRoutesStale(key.prefix.address.family, over: key.interface, &outcome)
            for interface in index.interfaces(preferring: key.prefix.address) {
                markRoutesStale(key.prefix.address.family, over: interface, &outcome)
            }
            if addresses[key] != nil { record(.addressRemoved(key), &outcome) }
        case .route(let route, let replaces, let isDead): takeRoute(route, replaces, isDead, &outcome)
        case .routeRemoved(let route): takeRouteRemoval(route, &outcome)
        case .linkdownPolicy(let family, let interface):
            // The kernel also sends this event for each new device, whose link is not up yet.
            guard let link = links[interface], link.flags.contains(.up), !link.hasCarrier else { break }
            markRoutesStale(family, over: interface, &outcome)
        case .rule(let rule):
            if rules.contains(rule) { noteDuplicate(rule) } else { record(.ruleAdded(rule), &outcome) }
        case .ruleRemoved(let rule):
            // A dump may be newer than this event, and show the second of two equal rules.
            outcome.staleTables.insert(.rules(rule.family))
            if rules.contains(rule), !index.duplicateRules.contains(rule) { record(.ruleRemoved(rule), &outcome) }
        case .nexthop(let object):
            guard nexthops[object.id] != object else { return }
            // With nexthop_compat_mode 0, routes that use the object change with it without an event.
            if nexthops[object.id] != nil { outcome.staleTables.formUnion([.routesV4, .routesV6]) }
            if isOutdated(object) { outcome.staleTables.insert(.nexthops) }
            record(.nexthop(object), &outcome)
        case .nexthopRemoved(let id):
            outcome.staleTables.formUnion([.nexthops, .routesV4, .routesV6])
            if nexthops[id] != nil { record(.nexthopRemoved(id), &outcome) }
        case .neighbor, .neighborRemoved, .done, .ignored, .malformed: break
        }
    }

    /// Returns whether an IPv4 address is the only one of its interface, so that it may have been added as the first.
    private func isOnlyAddress(_ key: Address.Key) -> Bool {
        func isIPv4(_ other: Address.Key) -> Bool { other.prefix.address.family == .v4 }
        return isIPv4(key) && !addresses.keys.contains { $0.interface == key.interface && $0 != key && isIPv4($0) }
    }

    /// Returns whether a dumped route cannot exist, because its link is not up. Routes to this machine's own addresses remain
    /// (fib_sync_down_dev skips them). So do routes that refuse, which IPv6 assigns to `lo` in any state.
    func isHidden(_ route: Route) -> Bool {
        guard route.kind != .local, !route.kind.refuses, !route.isMultipath, let hop = route.firstHop,
            let link = links[hop.interface]
        else {
            return false
        }
        return !link.flags.contains(.up)
    }

    /// Returns whether a dead route stays dead until a link has carrier: the kernel ignores routes over links that are up without
    /// carrier (`ignore_routes_with_linkdown`).
    func isIgnored(_ route: Route) -> Bool {
        let hops = route.nextHops
        return !hops.isEmpty
            && hops.allSatisfy { links[$0.interface].map { $0.flags.contains(.up) && !$0.hasCarrier } ?? false }
    }

    /// Returns the interfaces of a multipath route's next hops whose link is not up. Either the route or the link is out of date.
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
        if link.kind == "veth", link.lower == 0 { outcome.staleTables.insert(.links) }
        guard let old else {
            // Earlier events of the link were lost, so routes and nexthop objects that use it may have been removed.
            if !link.hasCarrier, isUsed(link.index) { takeState(of: link, &outcome) }
            return
        }
        if old.mtu != link.mtu { markRoutesStale(.v6, over: link.index, &outcome) }
        if old.flags.contains(.up) != link.flags.contains(.up) || old.hasCarrier != link.hasCarrier {
            takeState(of: link, &outcome)
        }
    }

    /// Returns whether a route or a nexthop object uses the interface.
    private func isUsed(_ interface: UInt32) -> Bool {
        IPAddress.Family.allCases.contains { index.keys(over: interface, $0)?.isEmpty != true }
            || nexthops.values.contains { $0.hop?.interface == interface }
    }

    /// Handles a link that went up or down, or gained or lost carrier.
    private mutating func takeState(of link: Link, _ outcome: inout SnapshotKeeper.Outcome) {
        outcome.staleTables.formUnion([.addresses, .nexthops])
        for family in IPAddress.Family.allCases { markRoutesStale(family, over: link.index, &outcome) }
        if !link.hasCarrier { removeNexthops(over: link.index, &outcome) }
        if !link.flags.contains(.up) { removeRoutes(over: link.index, &outcome) }
    }

    private mutating func takeLinkRemoval(_ index: UInt32, _ outcome: inout SnapshotKeeper.Outcome, _ isRecorded: Bool) {
        outcome.staleTables.formUnion([.addresses, .nexthops, .routesV4, .routesV6])
        guard links[index] != nil else { return }
        let isPeer = { (link: Link) in link.kind == "veth" && link.lower == index && !link.lowerIsElsewhere }
        if links.values.contains(where: isPeer) { outcome.staleTables.insert(.links) }
        if isRecorded { apply(.linkRemoved(index)) } else { record(.linkRemoved(index), &outcome) }
        for key in addresses.keys where key.interface == index { record(.addressRemoved(key), &outcome) }
        removeNexthops(over: index, &outcome)
        removeRoutes(over: index, &outcome)
    }

    /// Returns whether a dump may be newer than the event of an object. The kernel accepts neither an object over a link without
    /// carrier nor a group with a missing member. Therefore such an object may have been removed since, without an event.
    private func isOutdated(_ object: NexthopObject) -> Bool {
        if let hop = object.hop { return links[hop.interface]?.hasCarrier != true }
        return object.group.contains { nexthops[$0.id] == nil }
    }

    private mutating func removeNexthops(over index: UInt32, _ outcome: inout SnapshotKeeper.Outcome) {
        for object in nexthops.values where object.hop?.interface == index { record(.nexthopRemoved(object.id), &outcome) }
    }

    /// Marks the routes over an interface as stale: they may have been added, changed or removed without an event.
    private func markRoutesStale(
        _ family: IPAddress.Family, over interface: UInt32, _ outcome: inout SnapshotKeeper.Outcome
    ) {
        if index.knowsRoutes(over: interface, family) {
            outcome.staleRoutes.insert(StaleRoutes(family: family, interface: interface))
        } else {
            outcome.staleTables.insert(.routes(family))
        }
    }

    private mutating func removeRoutes(over interface: UInt32, _ outcome: inout SnapshotKeeper.Outcome) {
        let isGone = links[interface] == nil
        for family in IPAddress.Family.allCases {
            // If the index does not know the routes, only default routes are removed at once. The following dump removes the
            // others.
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

    // While duplicate address detection runs, the kernel announces a self-configured IPv6 address only by the route of its
    // prefix.
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
        if comesFromUnknownAddress(route) { outcome.staleTables.insert(.addresses) }
        if isDead || isHidden(route) {
            if isDead, routes[route.key] == nil, isIgnored(route) { return }
            if !isDead, let hop = route.firstHop {
                markRoutesStale(route.key.family, over: hop.interface, &outcome)
            } else {
                outcome.staleTables.insert(table)
            }
            if contains(route) { record(.routeRemoved(route), &outcome) }
            return
        }
        for interface in hopsOverLostLinks(of: route) { markRoutesStale(route.key.family, over: interface, &outcome) }
        let others: [Route]
        switch routes[route.key] {
        // The usual case: no other route has the key.
        case nil: return record(.routeAdded(route), &outcome)
        case .one(let only) where only == route: return noteSecond(route, replaces)
        case .one(let other): others = [other]
        case .several(let all):
            if all.contains(route) { noteSecond(route, replaces) }
            others = all.filter { $0 != route }
        }
        if replaces && !others.isEmpty {
            // If the route is known, a dump was newer than this event: the replaced route is already absent, and the others may
            // have been added since. IPv6 replaces a route with a gateway only by another route with a gateway. The replaced
            // route is known only if dumps show all routes, but dumps omit the routes between the members of a multipath route.
            let isOtherKind = route.key.family == .v6 && others.contains { $0.hasGateway != route.hasGateway }
            if others.count > 1 || contains(route) || isOtherKind || index.duplicates.contains(route.key) {
                outcome.staleTables.insert(table)
            } else if let only = others.first {
                record(.routeRemoved(only), &outcome)
            }
        } else if route.key.family == .v6 && !others.isEmpty {
            outcome.staleTables.insert(table)
            // A multipath message contains all members, including those that were single routes.
            if route.isMultipath {
                for other in others where other.kind == route.kind { record(.routeRemoved(other), &outcome) }
            }
        }
        if !contains(route) { record(.routeAdded(route), &outcome) }
    }

    // The kernel refuses a second identical route (EEXIST). Therefore the known route may be a multipath route with dead next
    // hops.
    private mutating func noteSecond(_ route: Route, _ replaces: Bool) {
        if route.key.family == .v4 && !replaces { noteDuplicate(route.key) }
    }

    /// Returns whether a multipath route of the key would look the same with dead next hops. A dump may already show that route.
    private func isRemnant(_ route: Route) -> Bool {
        guard route.key.family == .v4, case .several(let all) = routes[route.key] else { return false }
        return all.contains { $0 != route && $0.isMultipath && route.nextHops.allSatisfy($0.nextHops.contains) }
    }

    private mutating func takeRouteRemoval(_ route: Route, _ outcome: inout SnapshotKeeper.Outcome) {
        if index.duplicates.contains(route.key) || isRemnant(route), contains(route) {
            for interface in Set(route.nextHops.map(\.interface)) { markRoutesStale(route.key.family, over: interface, &outcome) }
        }
        switch routes[route.key] {
        case nil: break
        case .one(let only) where only == route: record(.routeRemoved(route), &outcome)
        case .several(let all) where all.contains(route): record(.routeRemoved(route), &outcome)
        default: outcome.staleTables.insert(.routes(route.key.family))
        }
        // A dump of the routes over one interface does not show the key's other routes.
        if routes[route.key] == nil { forgetDuplicate(route.key) }
    }
}
