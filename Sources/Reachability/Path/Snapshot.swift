/// The links, addresses, routes and rules of one network namespace, as the kernel reports them.
///
/// A snapshot changes only by ``KernelChange``: applying the published changes to an earlier snapshot gives the later one.
package struct KernelSnapshot: Hashable, Sendable {
    /// The devices, by index.
    package private(set) var links: [UInt32: Link] = [:]
    /// The addresses, by interface, address, prefix and peer.
    package private(set) var addresses: [Address.Key: Address] = [:]
    /// The routes, by key.
    package private(set) var routes = RouteTable()
    /// The policy rules.
    package private(set) var rules: Set<Rule> = []
    /// The nexthop objects, by number.
    package private(set) var nexthops: [UInt32: NexthopObject] = [:]
    /// The keys of default routes. They are stored so that a full Internet table need not be searched for them.
    package private(set) var defaultRoutes: Set<Route.Key> = []
    private(set) var index = RouteIndex()

    /// Creates an empty snapshot.
    package init() {}

    /// Returns the addresses of one interface, sorted.
    package func addresses(of interface: UInt32) -> [Address] {
        addresses.values.filter { $0.key.interface == interface }.sorted { $0.key < $1.key }
    }

    /// All routes, unordered.
    package var allRoutes: some Sequence<Route> { routes.lazy.flatMap { $0.value.list } }

    /// Returns the routes with this key; empty if there are none.
    package func routes(_ key: Route.Key) -> Set<Route> { routes[key]?.all ?? [] }

    /// Returns whether the snapshot contains exactly this route.
    package func contains(_ route: Route) -> Bool { routes.contains(route) }

    /// Applies one change.
    package mutating func apply(_ change: KernelChange) {
        switch change {
        case .link(let link): links[link.index] = link
        case .linkRemoved(let index): links[index] = nil
        case .address(let address): addresses[address.key] = address
        case .addressRemoved(let key): addresses[key] = nil
        case .routeAdded(let route): add(route)
        case .routeRemoved(let route): remove(route)
        case .ruleAdded(let rule): rules.insert(rule)
        case .ruleRemoved(let rule): rules.remove(rule)
        case .nexthop(let object): nexthops[object.id] = object
        case .nexthopRemoved(let id): nexthops[id] = nil
        }
    }

    /// Applies changes in order.
    package mutating func apply(_ changes: some Sequence<KernelChange>) {
        for change in changes { apply(change) }
    }

    /// Records that the kernel may have two indistinguishable routes under this key.
    mutating func noteDuplicate(_ key: Route.Key) { index.duplicates.insert(key) }

    /// Records that the kernel may have this rule twice.
    mutating func noteDuplicate(_ rule: Rule) { index.duplicateRules.insert(rule) }

    /// Removes the record that the kernel may have two indistinguishable routes under this key.
    mutating func forgetDuplicate(_ key: Route.Key) { index.duplicates.remove(key) }

    /// Adds a route. Returns false if it is already present.
    @discardableResult
    fileprivate mutating func add(_ route: Route) -> Bool {
        guard routes.add(route) else { return false }
        if route.key.destination.isDefault { defaultRoutes.insert(route.key) }
        index.add(route)
        return true
    }

    private mutating func remove(_ route: Route) {
        guard routes.remove(route) else { return }
        let others = routes[route.key]
        index.remove(route, others: others)
        if route.key.destination.isDefault, others == nil { defaultRoutes.remove(route.key) }
    }
}

extension KernelSnapshot {
    // For the shadow of a dump, which is compared and emptied shard by shard.

    /// Copies the links of another snapshot: the state of its link decides whether a route exists.
    mutating func copyLinks(of other: KernelSnapshot) { links = other.links }

    /// Creates the shadow of a dump, which has no index of its routes.
    static var shadow: KernelSnapshot {
        var shadow = KernelSnapshot()
        shadow.index.isKept = false
        return shadow
    }

    /// Adds a route of a dump, and records a second route that looks the same.
    mutating func addDumped(_ route: Route) {
        if !add(route) { noteDuplicate(route.key) }
    }

    /// Removes the routes of one shard. The default routes stay unchanged, because they are not used any more.
    mutating func removeRoutes(inShard number: Int) { routes.removeShard(number) }

    /// Applies the changes of one shard to that of a complete dump. An empty shard becomes that of the dump, whose memory it takes
    /// over: otherwise, the first dump of a large table would be in memory twice.
    mutating func apply(_ changes: [KernelChange], leadingTo dumped: KernelSnapshot, inShard number: Int) {
        guard routes.shards[number].isEmpty else { return apply(changes) }
        routes.setShard(number, to: dumped.routes.shards[number])
        for case .routeAdded(let route) in changes {
            if route.key.destination.isDefault { defaultRoutes.insert(route.key) }
            index.add(route)
        }
    }

    /// Copies the record of a family's duplicate rules from a complete dump.
    mutating func copyDuplicateRules(of dumped: KernelSnapshot, _ family: IPAddress.Family) {
        index.duplicateRules = index.duplicateRules.filter { $0.family != family }.union(dumped.index.duplicateRules)
    }

    /// Copies the record of a shard's duplicate routes from a complete dump.
    mutating func copyDuplicates(of dumped: KernelSnapshot, inShard number: Int) {
        guard !index.duplicates.isEmpty || !dumped.index.duplicates.isEmpty else { return }
        index.duplicates = index.duplicates.filter { RouteTable.shard(of: $0) != number }
        index.duplicates.formUnion(dumped.index.duplicates.filter { RouteTable.shard(of: $0) == number })
    }
}

extension KernelSnapshot {
    /// Returns the snapshot after the loss of a link, as far as a path depends on it: routes other than default ones are not
    /// removed. The kernel removes the routes over a link that is switched off.
    func losing(_ link: Link) -> KernelSnapshot {
        var after = self
        after.links[link.index] = link
        guard !link.flags.contains(.up) else { return after }
        // A copy of the index would cost more than the evaluation.
        after.index.isKept = false
        for key in defaultRoutes {
            for route in routes[key]?.list ?? []
            where route.uses(interface: link.index) && !route.isMultipath && route.kind != .local && !route.kind.refuses {
                after.apply(.routeRemoved(route))
            }
        }
        return after
    }
}

/// One difference between two snapshots. Later versions may add cases.
package enum KernelChange: Hashable, Sendable {
    /// A device was added or changed.
    case link(Link)
    /// The device with this index was removed, or moved to another namespace.
    case linkRemoved(UInt32)
    /// An address was added or changed.
    case address(Address)
    /// An address was removed.
    case addressRemoved(Address.Key)
    /// A route was added. A changed route is removed and added.
    case routeAdded(Route)
    /// A route was removed.
    case routeRemoved(Route)
    /// A rule was added.
    case ruleAdded(Rule)
    /// A rule was removed.
    case ruleRemoved(Rule)
    /// A nexthop object was added or changed.
    case nexthop(NexthopObject)
    /// The nexthop object with this number was removed.
    case nexthopRemoved(UInt32)
}

extension KernelSnapshot {
    /// Returns the changes that lead from `old` to this snapshot, in the order of their tables.
    package func changes(since old: KernelSnapshot) -> [KernelChange] {
        KernelTable.allCases.flatMap { changes(since: old, in: $0) }
    }

    /// Returns the changes of one table.
    func changes(since old: KernelSnapshot, in table: KernelTable) -> [KernelChange] {
        switch table {
        case .links:
            old.links.keys.filter { links[$0] == nil }.sorted().map { .linkRemoved($0) }
                + links.values.filter { old.links[$0.index] != $0 }.sorted { $0.index < $1.index }.map { .link($0) }
        case .addresses:
            old.addresses.keys.filter { addresses[$0] == nil }.sorted().map { .addressRemoved($0) }
                + addresses.values.filter { old.addresses[$0.key] != $0 }.sorted { $0.key < $1.key }.map { .address($0) }
        case .nexthops:
            old.nexthops.keys.filter { nexthops[$0] == nil }.sorted().map { .nexthopRemoved($0) }
                + nexthops.values.filter { old.nexthops[$0.id] != $0 }.sorted { $0.id < $1.id }.map { .nexthop($0) }
        case .routesV4: routeChanges(since: old, .v4)
        case .routesV6: routeChanges(since: old, .v6)
        case .rulesV4: ruleChanges(since: old, .v4)
        case .rulesV6: ruleChanges(since: old, .v6)
        }
    }

    private func routeChanges(since old: KernelSnapshot, _ family: IPAddress.Family) -> [KernelChange] {
        RouteTable.shards(of: family).flatMap { routeChanges(since: old, inShard: $0) }
    }

    /// Returns the changes of one shard of the routes.
    func routeChanges(since old: KernelSnapshot, inShard number: Int) -> [KernelChange] {
        let (known, new) = (old.routes.shards[number], routes.shards[number])
        return known.routes(missingIn: new).map { .routeRemoved($0) } + new.routes(missingIn: known).map { .routeAdded($0) }
    }

    private func ruleChanges(since old: KernelSnapshot, _ family: IPAddress.Family) -> [KernelChange] {
        old.rules.filter { $0.family == family && !rules.contains($0) }.map { .ruleRemoved($0) }
            + rules.filter { $0.family == family && !old.rules.contains($0) }.map { .ruleAdded($0) }
    }
}

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

extension KernelSnapshot {
    /// Applies an event and adds the changes and stale tables to `outcome`. With `isRecorded`, the change of the link itself is
    /// already in `outcome`. Events of the tables in `doubtful` were lost: an event that changes nothing here may be the second of
    /// two changes, between which the routes were dumped.
    mutating func apply(
        _ event: NetlinkEvent, _ outcome: inout SnapshotKeeper.Outcome, isRecorded: Bool = false,
        doubtful: CaseSet<KernelTable> = []
    ) {
        switch event {
        case .link(let link):
            applyLink(link, &outcome, isRecorded)
            if doubtful.contains(.links) { applyState(of: link, &outcome) }
        case .linkRemoved(let index): applyLinkRemoval(index, &outcome, isRecorded)
        case .address(let address):
            let isDoubtful = doubtful.contains(.addresses) && address.address.family == .v4
            if isDoubtful || isOnlyAddress(address.key) { markRoutesStale(.v4, over: address.key.interface, &outcome) }
            if addresses[address.key] != address { record(.address(address), &outcome) }
        case .addressRemoved(let key):
            markRoutesStale(key.prefix.address.family, over: key.interface, &outcome)
            for interface in index.interfaces(preferring: key.prefix.address) {
                markRoutesStale(key.prefix.address.family, over: interface, &outcome)
            }
            if addresses[key] != nil { record(.addressRemoved(key), &outcome) }
        case .route(let route, let replaces, let isDead): applyRoute(route, replaces, isDead, &outcome)
        case .routeRemoved(let route): applyRouteRemoval(route, &outcome)
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

    private mutating func record(_ change: KernelChange, _ outcome: inout SnapshotKeeper.Outcome) {
        apply(change)
        outcome.changes.append(change)
    }

    private mutating func applyLink(_ link: Link, _ outcome: inout SnapshotKeeper.Outcome, _ isRecorded: Bool) {
        let old = links[link.index]
        guard old != link else { return }
        if isRecorded { apply(.link(link)) } else { record(.link(link), &outcome) }
        if link.kind == "veth", link.lower == 0 { outcome.staleTables.insert(.links) }
        guard let old else {
            // Earlier events of the link were lost, so routes and nexthop objects that use it may have been removed.
            if !link.hasCarrier, isUsed(link.index) { applyState(of: link, &outcome) }
            return
        }
        if old.mtu != link.mtu { markRoutesStale(.v6, over: link.index, &outcome) }
        if old.flags.contains(.up) != link.flags.contains(.up) || old.hasCarrier != link.hasCarrier {
            applyState(of: link, &outcome)
        }
    }

    /// Returns whether a route or a nexthop object uses the interface.
    private func isUsed(_ interface: UInt32) -> Bool {
        IPAddress.Family.allCases.contains { index.keys(over: interface, $0)?.isEmpty != true }
            || nexthops.values.contains { $0.hop?.interface == interface }
    }

    /// Handles a link that went up or down, or gained or lost carrier.
    private mutating func applyState(of link: Link, _ outcome: inout SnapshotKeeper.Outcome) {
        outcome.staleTables.formUnion([.addresses, .nexthops])
        for family in IPAddress.Family.allCases { markRoutesStale(family, over: link.index, &outcome) }
        if !link.hasCarrier { removeNexthops(over: link.index, &outcome) }
        if !link.flags.contains(.up) { removeRoutes(over: link.index, &outcome) }
    }

    private mutating func applyLinkRemoval(_ index: UInt32, _ outcome: inout SnapshotKeeper.Outcome, _ isRecorded: Bool) {
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

    private mutating func applyRoute(
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

    private mutating func applyRouteRemoval(_ route: Route, _ outcome: inout SnapshotKeeper.Outcome) {
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
