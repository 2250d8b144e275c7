/// Keeps a ``KernelSnapshot`` current: applies events, and replaces a table by a dump of it, including the events that arrive
/// during the dump.
///
/// ```
///                 apply(event) ──→ live ──→ changes
///                      │
///   beginDump(table)   └─(while a dump of its table runs)─→ log
///   addDumped(event) ──→ shadow
///   mergeDump() ── log replayed on shadow ── shadow compared with live, shard by shard ──→ changes
/// ```
/// A slice of a dump may be older or newer than an event that is read before it. The events are replayed in order on the complete
/// dump, so that the last event decides. A route that is dumped and then deleted does not return.
///
/// Merging a large dump takes several calls, between which events are applied. A merged shard of the routes follows only the
/// events, like the live snapshot. For the other shards the log continues, and is replayed before the next shard is compared.
///
/// A dump of the routes over one interface decides only about these routes. Routes that use the interface and are not in the dump
/// are removed.
package struct SnapshotKeeper: Sendable {
    /// The result of an event, or of the end of a dump.
    package struct Outcome: Sendable {
        /// The changes, in order.
        package var changes: [KernelChange] = []
        /// The stale tables. The kernel does not send an event for every change (see ``SnapshotKeeper/apply(_:)``).
        package var staleTables: CaseSet<KernelTable> = []
        /// The interfaces with stale routes.
        package var staleRoutes: Set<StaleRoutes> = []

        mutating func add(_ other: Outcome) {
            changes += other.changes
            addStale(other)
        }

        fileprivate mutating func addStale(_ other: Outcome) {
            staleTables.formUnion(other.staleTables)
            staleRoutes.formUnion(other.staleRoutes)
        }
    }

    package private(set) var live = KernelSnapshot()
    private var dump: Dump?
    // The links without carrier whose routes were dead in the last dumps.
    private var ignored: Set<StaleRoutes> = []

    /// The maximum number of logged events during a dump. If there are more, the dump is repeated.
    static let logLimit = 65_536

    private struct Dump: Sendable {
        let table: KernelTable
        /// The interface to whose routes the dump is limited; `nil` for the complete table.
        let interface: UInt32?
        var shadow = KernelSnapshot.shadow
        var log: [NetlinkEvent] = []
        var replayed = 0
        var mergedShards: Range<Int>
        var hasMergedDefaults = false
        // For a dump over one interface: multipath routes without their dead next hops over the interface.
        var remnants: [Route] = []
        var hasDeadRoutes = false
        // The links without carrier whose routes are dead.
        var ignored: Set<UInt32> = []
        var lostEvents = false

        init(_ table: KernelTable, over interface: UInt32?) {
            (self.table, self.interface) = (table, interface)
            let first = RouteTable.shards(of: table.routeFamily ?? .v4).lowerBound
            mergedShards = first..<first
        }
    }

    package init() {}

    /// The table of the running dump; `nil` if none runs.
    package var dumping: KernelTable? { dump?.table }

    /// Applies an event to the live snapshot.
    package mutating func apply(_ event: NetlinkEvent) -> Outcome {
        var outcome = Outcome()
        apply(event, &outcome)
        return outcome
    }

    /// Applies an event to the live snapshot, and adds the changes and stale tables to `outcome`. Events of the tables in `doubtful`
    /// were lost, and these tables were not dumped since.
    package mutating func apply(_ event: NetlinkEvent, _ outcome: inout Outcome, doubtful: CaseSet<KernelTable> = []) {
        if let table = dump?.table {
            if event.isAbout(table) {
                if dump?.log.count ?? 0 < Self.logLimit { dump?.log.append(event) } else { dump?.lostEvents = true }
            }
            // Routes that prefer the address are removed without an event. The dump may still contain them, and the index does
            // not know them.
            if case .addressRemoved(let key) = event, table == .routes(key.prefix.address.family) {
                if let interface = dump?.interface {
                    outcome.staleRoutes.insert(StaleRoutes(family: key.prefix.address.family, interface: interface))
                } else {
                    outcome.staleTables.insert(table)
                }
            }
        }
        if !ignored.isEmpty, case .link(let link) = event, live.links[link.index] != link {
            ignored = ignored.filter { $0.interface != link.index }
        }
        live.apply(event, &outcome, doubtful: doubtful)
    }

    /// Begins a dump of a table, or of its routes over one interface. A running dump is discarded.
    package mutating func beginDump(_ table: KernelTable, over interface: UInt32? = nil) {
        dump = Dump(table, over: interface)
    }

    /// Adds one entry of the running dump.
    package mutating func addDumped(_ event: NetlinkEvent) {
        guard let table = dump?.table, event.isAbout(table) else { return }
        switch event {
        case .route(let route, _, isDead: true):
            if live.isIgnored(route) {
                dump?.ignored.formUnion(route.nextHops.map(\.interface))
            } else {
                dump?.hasDeadRoutes = true
            }
            return
        case .route(let route, _, _) where live.isHidden(route):
            dump?.hasDeadRoutes = true
            return
        default: break
        }
        switch event {
        // Dumped routes that share a key all exist: none replaces another.
        case .route(let route, _, _): return addDumpedRoute(route)
        // A dumped address is not a new one.
        case .address(let address): return dump?.shadow.apply(.address(address)) ?? ()
        default: break
        }
        var ignored = Outcome()
        dump?.shadow.apply(event, &ignored)
    }

    private mutating func addDumpedRoute(_ route: Route) {
        if let interface = dump?.interface, !route.uses(interface: interface) { dump?.remnants.append(route) }
        dump?.shadow.addDumped(route)
    }

    /// Completes the running dump, and merges it at once.
    package mutating func endDump() -> Outcome {
        var outcome = Outcome()
        while !mergeDump(atMost: .max, &outcome) {}
        return outcome
    }

    /// Merges a slice of the complete dump into the live snapshot, of roughly `limit` events and routes.
    ///
    /// - Returns: whether this was the last slice.
    package mutating func mergeDump(atMost limit: Int, _ outcome: inout Outcome) -> Bool {
        // The dump is moved out of the property, so that its tables have one owner and are changed in place.
        guard var running = dump else { return true }
        dump = nil
        let isDone: Bool
        if running.table.routeFamily == nil {
            mergeTable(&running, &outcome)
            isDone = true
        } else if let interface = running.interface {
            mergeRoutes(&running, over: interface, &outcome)
            isDone = true
        } else {
            isDone = mergeRoutes(&running, atMost: limit, &outcome)
        }
        if isDone { noteIgnored(&running) }
        if !isDone {
            dump = running
        } else if running.lostEvents || (running.hasDeadRoutes && running.interface == nil) {
            outcome.staleTables.insert(running.table)
        } else if running.hasDeadRoutes, let family = running.table.routeFamily, let interface = running.interface {
            outcome.staleRoutes.insert(StaleRoutes(family: family, interface: interface))
        }
        return isDone
    }

    // Routes over a link that has just gone up may still be dead, although the link does not ignore routes. A second dump has to
    // show the same.
    private mutating func noteIgnored(_ finished: inout Dump) {
        guard let family = finished.table.routeFamily else { return }
        let interface = finished.interface
        let isDumped = { (routes: StaleRoutes) in
            routes.family == family && (interface ?? routes.interface) == routes.interface
        }
        let found = Set(finished.ignored.map { StaleRoutes(family: family, interface: $0) }.filter(isDumped))
        if !found.isSubset(of: ignored) { finished.hasDeadRoutes = true }
        ignored = ignored.filter { !isDumped($0) }.union(found)
    }

    /// Discards the running dump after a failure.
    package mutating func abandonDump() { dump = nil }

    // MARK: Merging

    private mutating func mergeTable(_ finished: inout Dump, _ outcome: inout Outcome) {
        if finished.table != .links { finished.shadow.copyLinks(of: live) }
        _ = replay(&finished, atMost: .max, &outcome)
        var merged = Outcome()
        merged.changes = finished.shadow.changes(since: live, in: finished.table)
        if finished.table == .links { applyLinkChanges(merged.changes, &merged) }
        live.apply(merged.changes)
        for family in IPAddress.Family.allCases where finished.table == .rules(family) {
            live.copyDuplicateRules(of: finished.shadow, family)
        }
        outcome.add(merged)
    }

    /// Replays events on the shadow and returns their number. Events about merged shards count, but have no effect.
    private func replay(_ running: inout Dump, atMost limit: Int, _ outcome: inout Outcome) -> Int {
        var replayed = Outcome()
        let start = running.replayed
        while running.replayed < running.log.count, running.replayed - start < limit {
            let event = running.log[running.replayed]
            running.replayed += 1
            if let key = event.routeKey, running.mergedShards.contains(RouteTable.shard(of: key)) { continue }
            running.shadow.apply(event, &replayed)
        }
        let count = running.replayed - start
        if running.replayed == running.log.count {
            running.log.removeAll(keepingCapacity: true)
            running.replayed = 0
        }
        outcome.addStale(replayed)
        return count
    }

    private mutating func mergeRoutes(_ running: inout Dump, atMost limit: Int, _ outcome: inout Outcome) -> Bool {
        guard let family = running.table.routeFamily else { return true }
        running.shadow.copyLinks(of: live)
        var work = replay(&running, atMost: limit, &outcome)
        guard running.log.isEmpty else { return false }
        if !running.hasMergedDefaults { mergeDefaultRoutes(&running, family, &outcome) }
        while running.mergedShards.upperBound < RouteTable.shards(of: family).upperBound {
            guard work < limit else { return false }
            let shard = running.mergedShards.upperBound
            work += max(live.routes.shards[shard].count, running.shadow.routes.shards[shard].count)
            removeHiddenRoutes(from: &running, inShard: shard)
            let changes = running.shadow.routeChanges(since: live, inShard: shard)
            live.apply(changes, leadingTo: running.shadow, inShard: shard)
            live.copyDuplicates(of: running.shadow, inShard: shard)
            outcome.changes += changes
            running.shadow.removeRoutes(inShard: shard)
            running.mergedShards = running.mergedShards.lowerBound..<shard + 1
        }
        return true
    }

    // Default routes are merged first, because the path and its cause depend on them.
    private mutating func mergeDefaultRoutes(
        _ running: inout Dump, _ family: IPAddress.Family, _ outcome: inout Outcome
    ) {
        running.hasMergedDefaults = true
        var changes: [KernelChange] = []
        for key in live.defaultRoutes.union(running.shadow.defaultRoutes) where key.family == family {
            if running.shadow.index.duplicates.contains(key) { live.noteDuplicate(key) }
            let dumped = running.shadow.routes(key)
            removeHidden(dumped.filter(live.isHidden), from: &running)
            if dumped.contains(where: { !live.hopsOverLostLinks(of: $0).isEmpty }) { running.hasDeadRoutes = true }
            let (known, new) = (live.routes(key), running.shadow.routes(key))
            changes += known.subtracting(new).map { .routeRemoved($0) } + new.subtracting(known).map { .routeAdded($0) }
        }
        live.apply(changes)
        outcome.changes += changes
    }

    // Whether a route is hidden depends on its next hops alone, of which a large table has few.
    private func removeHiddenRoutes(from running: inout Dump, inShard number: Int) {
        // Most of the 128 shards of a usual host are empty. A reference to a method, such as `live.isHidden`, copies the snapshot.
        let shard = running.shadow.routes.shards[number]
        guard !shard.isEmpty else { return }
        removeHidden(shard.routes { live.isHidden($0) }, from: &running)
        if !running.hasDeadRoutes {
            let shard = running.shadow.routes.shards[number]
            running.hasDeadRoutes = !shard.routes { !live.hopsOverLostLinks(of: $0).isEmpty }.isEmpty
        }
    }

    // A link may have gone down after its routes were dumped.
    private func removeHidden(_ routes: some Sequence<Route>, from running: inout Dump) {
        for route in routes {
            running.shadow.apply(.routeRemoved(route))
            running.hasDeadRoutes = true
        }
    }

    private mutating func mergeRoutes(_ finished: inout Dump, over interface: UInt32, _ outcome: inout Outcome) {
        guard let family = finished.table.routeFamily else { return }
        guard live.index.knowsRoutes(over: interface, family), finished.shadow.routes.count <= RouteIndex.limit,
            let keys = live.index.keys(over: interface, family)
        else {
            outcome.staleTables.insert(finished.table)
            return
        }
        finished.shadow.copyLinks(of: live)
        _ = replay(&finished, atMost: .max, &outcome)
        for shard in RouteTable.shards(of: family) { removeHiddenRoutes(from: &finished, inShard: shard) }
        var changes: [KernelChange] = []
        for route in keys.flatMap({ live.routes[$0]?.list ?? [] })
        where route.uses(interface: interface) && !finished.shadow.contains(route) {
            changes.append(.routeRemoved(route))
        }
        live.apply(changes)
        // The known route may be a different route than the remnant.
        for route in finished.remnants where live.contains(route) { live.noteDuplicate(route.key) }
        for key in finished.shadow.index.duplicates { live.noteDuplicate(key) }
        // Ordered by key, independent of the order of a set: a replay must behave the same.
        for (key, bucket) in finished.shadow.routes {
            let missing = bucket.all.filter { !live.contains($0) }
            let isMultipath = bucket.all.contains(where: \.isMultipath)
            guard !missing.isEmpty || isMultipath else { continue }
            let others = live.routes(key).subtracting(bucket.all)
            guard !missing.isEmpty else {
                // An earlier dump has shown the route without its dead next hops, and an event from before it has added the complete route. This
                // dump does not have the remnant either way, because it does not use the interface.
                if bucket.all.contains(where: { others.contains($0.withoutHops(over: interface)) }) {
                    outcome.staleTables.insert(finished.table)
                }
                continue
            }
            // The next hops over the interface are alive again, so the route without them no longer exists.
            if !live.index.duplicates.contains(key), missing.contains(where: { others == [$0.withoutHops(over: interface)] }) {
                for remnant in others {
                    live.apply(.routeRemoved(remnant))
                    changes.append(.routeRemoved(remnant))
                }
            } else if !others.isEmpty {
                outcome.staleTables.insert(finished.table)
            }
            for route in missing {
                live.apply(.routeAdded(route))
                changes.append(.routeAdded(route))
            }
        }
        outcome.changes += changes
    }

    // A dump of links may be the first sign that a link is down or removed. The routes and addresses over that link are removed
    // too.
    private func applyLinkChanges(_ changes: [KernelChange], _ outcome: inout Outcome) {
        var after = live
        for change in changes {
            switch change {
            case .link(let link): after.apply(.link(link), &outcome, isRecorded: true)
            case .linkRemoved(let index): after.apply(.linkRemoved(index), &outcome, isRecorded: true)
            default: break
            }
        }
    }
}

/// The routes of a family over one interface.
package struct StaleRoutes: Hashable, Comparable, Sendable {
    package var family: IPAddress.Family
    package var interface: UInt32

    package init(family: IPAddress.Family, interface: UInt32) {
        self.family = family
        self.interface = interface
    }

    package static func < (left: StaleRoutes, right: StaleRoutes) -> Bool {
        (left.family == .v4 ? 0 : 1, left.interface) < (right.family == .v4 ? 0 : 1, right.interface)
    }
}

extension NetlinkEvent {
    func isAbout(_ table: KernelTable) -> Bool {
        switch self {
        case .link, .linkRemoved: table == .links
        case .address, .addressRemoved: table == .addresses
        case .route(let route, _, _), .routeRemoved(let route): table == .routes(route.key.family)
        case .rule(let rule), .ruleRemoved(let rule): table == .rules(rule.family)
        case .nexthop, .nexthopRemoved: table == .nexthops
        case .linkdownPolicy, .neighbor, .neighborRemoved, .done, .ignored, .malformed: false
        }
    }

    fileprivate var routeKey: Route.Key? {
        switch self {
        case .route(let route, _, _), .routeRemoved(let route): route.key
        default: nil
        }
    }
}
