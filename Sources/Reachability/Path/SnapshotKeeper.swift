/// Keeps a ``Kernel/Snapshot`` true: applies events, and replaces a table by a dump of it, whatever events come in between.
///
/// ```
///                 apply(event) ──→ live ──→ changes
///                      │
///   beginDump(table)   └─(while a dump of its table runs)─→ log
///   addDumped(event) ──→ shadow
///   mergeDump() ── log replayed on shadow ── shadow compared with live, shard by shard ──→ changes
/// ```
/// A slice of a dump may be older or newer than an event that is read before it. Replaying the events in order on the finished
/// dump gives the last word to the last event, so a route that is dumped and then deleted does not come back.
///
/// The end of a large dump takes several calls, between which events are applied. A shard of the routes that is merged follows the
/// events alone, as the live snapshot does; for the others the log goes on, and it is replayed before the next shard is compared.
///
/// A dump of the routes over one interface decides about these only: routes that use the interface and are not in the dump are gone.
package struct SnapshotKeeper: Sendable {
    /// What an event, or the end of a dump, did.
    package struct Outcome: Sendable {
        /// The differences, in order.
        package var changes: [Kernel.Change] = []
        /// The tables that the event left in doubt: the kernel does not tell everything (see ``SnapshotKeeper/apply(_:)``).
        package var doubts: CaseSet<KernelTable> = []
        /// The interfaces whose routes are stale.
        package var staleRoutes: Set<StaleRoutes> = []

        mutating func add(_ other: Outcome) {
            changes += other.changes
            addStale(other)
        }

        fileprivate mutating func addStale(_ other: Outcome) {
            doubts.formUnion(other.doubts)
            staleRoutes.formUnion(other.staleRoutes)
        }
    }

    package private(set) var live = Kernel.Snapshot()
    private var dump: Dump?
    // The links without a carrier whose routes the last dumps showed as dead.
    private var ignored: Set<StaleRoutes> = []

    /// Events kept while a dump runs; one more and the dump has to be repeated.
    static let logLimit = 65_536

    private struct Dump: Sendable {
        let table: KernelTable
        /// The interface whose routes are dumped; `nil` for the complete table.
        let interface: UInt32?
        var shadow = Kernel.Snapshot()
        var log: [NetlinkEvent] = []
        var replayed = 0
        var mergedShards: Range<Int>
        var hasMergedDefaults = false
        // Of a dump over one interface: what is left of routes whose next hops over it are dead.
        var remnants: [Route] = []
        var sawDead = false
        // The links without a carrier whose routes are dead.
        var ignored: Set<UInt32> = []
        var lostEvents = false

        init(_ table: KernelTable, over interface: UInt32?) {
            (self.table, self.interface) = (table, interface)
            let first = RouteTable.shards(of: table.routeFamily ?? .v4).lowerBound
            mergedShards = first..<first
        }
    }

    package init() {}

    /// The table whose dump is being read.
    package var dumping: KernelTable? { dump?.table }

    /// Applies an event to the live snapshot.
    package mutating func apply(_ event: NetlinkEvent) -> Outcome {
        var outcome = Outcome()
        apply(event, &outcome)
        return outcome
    }

    /// Applies an event to the live snapshot; what it did is added to `outcome`.
    package mutating func apply(_ event: NetlinkEvent, _ outcome: inout Outcome) {
        if let table = dump?.table {
            if event.isAbout(table) {
                if dump?.log.count ?? 0 < Self.logLimit { dump?.log.append(event) } else { dump?.lostEvents = true }
            }
            // Routes that prefer the address go without a message. The dump may still have them, and the index does not know these.
            if case .addressRemoved(let key) = event, table == .routes(key.prefix.address.family) {
                if let interface = dump?.interface {
                    outcome.staleRoutes.insert(StaleRoutes(family: key.prefix.address.family, interface: interface))
                } else {
                    outcome.doubts.insert(table)
                }
            }
        }
        if !ignored.isEmpty, case .link(let link) = event, live.links[link.index] != link {
            ignored = ignored.filter { $0.interface != link.index }
        }
        live.take(event, &outcome)
    }

    /// A dump of this table begins, or of its routes over one interface; one that was running is forgotten.
    package mutating func beginDump(_ table: KernelTable, over interface: UInt32? = nil) {
        dump = Dump(table, over: interface)
    }

    /// One entry of the running dump.
    package mutating func addDumped(_ event: NetlinkEvent) {
        guard let table = dump?.table, event.isAbout(table) else { return }
        switch event {
        case .route(let route, _, isDead: true):
            if live.isIgnored(route) {
                dump?.ignored.formUnion(route.nextHops.map(\.interface))
            } else {
                dump?.sawDead = true
            }
            return
        case .route(let route, _, _) where live.isHidden(route):
            dump?.sawDead = true
            return
        default: break
        }
        // Dumped routes that share a key are all there: nothing is replaced.
        if case .route(let route, _, _) = event { return addDumpedRoute(route) }
        var ignored = Outcome()
        dump?.shadow.take(event, &ignored)
    }

    private mutating func addDumpedRoute(_ route: Route) {
        if dump?.shadow.contains(route) == true { dump?.shadow.noteDuplicate(route.key) }
        if let interface = dump?.interface, !route.uses(interface: interface) { dump?.remnants.append(route) }
        dump?.shadow.apply(.routeAdded(route))
    }

    /// The running dump is complete; the live snapshot becomes what it says, at once.
    package mutating func endDump() -> Outcome {
        var outcome = Outcome()
        while !mergeDump(atMost: .max, &outcome) {}
        return outcome
    }

    /// The running dump is complete; another slice of the live snapshot becomes what it says, of roughly `limit` events and routes.
    ///
    /// - Returns: whether that was the last slice.
    package mutating func mergeDump(atMost limit: Int, _ outcome: inout Outcome) -> Bool {
        // Taken out, so that its tables have one owner and are changed in place.
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
        } else if running.lostEvents || (running.sawDead && running.interface == nil) {
            outcome.doubts.insert(running.table)
        } else if running.sawDead, let family = running.table.routeFamily, let interface = running.interface {
            outcome.staleRoutes.insert(StaleRoutes(family: family, interface: interface))
        }
        return isDone
    }

    // Routes over a link that has just been switched on may still be dead although the link ignores nothing: a second dump has to show
    // the same.
    private mutating func noteIgnored(_ finished: inout Dump) {
        guard let family = finished.table.routeFamily else { return }
        let interface = finished.interface
        let isDumped = { (routes: StaleRoutes) in
            routes.family == family && (interface ?? routes.interface) == routes.interface
        }
        let found = Set(finished.ignored.map { StaleRoutes(family: family, interface: $0) }.filter(isDumped))
        if !found.isSubset(of: ignored) { finished.sawDead = true }
        ignored = ignored.filter { !isDumped($0) }.union(found)
    }

    /// The running dump failed; what it said is forgotten.
    package mutating func abandonDump() { dump = nil }

    // MARK: Merging

    private mutating func mergeTable(_ finished: inout Dump, _ outcome: inout Outcome) {
        if finished.table != .links { finished.shadow.takeLinks(of: live) }
        _ = replay(&finished, atMost: .max, &outcome)
        var merged = Outcome()
        merged.changes = finished.shadow.changes(since: live, in: finished.table)
        if finished.table == .links { consider(merged.changes, &merged) }
        live.apply(merged.changes)
        for family in IPAddress.Family.allCases where finished.table == .rules(family) {
            live.takeDuplicateRules(of: finished.shadow, family)
        }
        outcome.add(merged)
    }

    /// Replays events on the shadow. Returns how many; those about shards that are merged already count and do nothing.
    private func replay(_ running: inout Dump, atMost limit: Int, _ outcome: inout Outcome) -> Int {
        var replayed = Outcome()
        let start = running.replayed
        while running.replayed < running.log.count, running.replayed - start < limit {
            let event = running.log[running.replayed]
            running.replayed += 1
            if let key = event.routeKey, running.mergedShards.contains(RouteTable.shard(of: key)) { continue }
            running.shadow.take(event, &replayed)
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
        running.shadow.takeLinks(of: live)
        var work = replay(&running, atMost: limit, &outcome)
        guard running.log.isEmpty else { return false }
        if !running.hasMergedDefaults { mergeDefaultRoutes(&running, family, &outcome) }
        while running.mergedShards.upperBound < RouteTable.shards(of: family).upperBound {
            guard work < limit else { return false }
            let shard = running.mergedShards.upperBound
            work += max(live.routes.shards[shard].count, running.shadow.routes.shards[shard].count)
            removeHiddenRoutes(from: &running, inShard: shard)
            let changes = running.shadow.routeChanges(since: live, inShard: shard)
            live.apply(changes)
            live.takeDuplicates(of: running.shadow, inShard: shard)
            outcome.changes += changes
            running.shadow.removeRoutes(inShard: shard)
            running.mergedShards = running.mergedShards.lowerBound..<shard + 1
        }
        return true
    }

    // First of all: the path and its cause depend on them.
    private mutating func mergeDefaultRoutes(
        _ running: inout Dump, _ family: IPAddress.Family, _ outcome: inout Outcome
    ) {
        running.hasMergedDefaults = true
        var changes: [Kernel.Change] = []
        for key in live.defaultRoutes.union(running.shadow.defaultRoutes) where key.family == family {
            if running.shadow.index.duplicates.contains(key) { live.noteDuplicate(key) }
            removeHidden(running.shadow.routes(key), from: &running)
            let (known, new) = (live.routes(key), running.shadow.routes(key))
            changes += known.subtracting(new).map { .routeRemoved($0) } + new.subtracting(known).map { .routeAdded($0) }
        }
        live.apply(changes)
        outcome.changes += changes
    }

    private func removeHiddenRoutes(from running: inout Dump, inShard shard: Int) {
        removeHidden(running.shadow.routes.shards[shard].values.lazy.flatMap(\.list), from: &running)
    }

    // A link may have gone down after its routes were dumped.
    private func removeHidden(_ routes: some Sequence<Route>, from running: inout Dump) {
        for route in Array(routes.filter(live.isHidden)) {
            running.shadow.apply(.routeRemoved(route))
            running.sawDead = true
        }
        if !running.sawDead { running.sawDead = routes.contains { !live.hopsOverLostLinks(of: $0).isEmpty } }
    }

    private mutating func mergeRoutes(_ finished: inout Dump, over interface: UInt32, _ outcome: inout Outcome) {
        guard let family = finished.table.routeFamily else { return }
        guard live.index.tellsRoutes(over: interface, family), finished.shadow.routes.count <= RouteIndex.limit,
            let keys = live.index.keys(over: interface, family)
        else {
            outcome.doubts.insert(finished.table)
            return
        }
        finished.shadow.takeLinks(of: live)
        _ = replay(&finished, atMost: .max, &outcome)
        for shard in RouteTable.shards(of: family) { removeHiddenRoutes(from: &finished, inShard: shard) }
        var changes: [Kernel.Change] = []
        for route in keys.flatMap({ live.routes[$0]?.list ?? [] })
        where route.uses(interface: interface) && !finished.shadow.contains(route) {
            changes.append(.routeRemoved(route))
        }
        live.apply(changes)
        // The route that is known may be another one than the remnant.
        for route in finished.remnants where live.contains(route) { live.noteDuplicate(route.key) }
        for key in finished.shadow.index.duplicates { live.noteDuplicate(key) }
        // Key by key, and whatever order a set has: a recording has to say the same again.
        for (key, bucket) in finished.shadow.routes {
            let missing = bucket.all.filter { !live.contains($0) }
            guard !missing.isEmpty else { continue }
            let others = live.routes(key).subtracting(bucket.all)
            // The next hops over the interface are alive again: what the route was without them has gone.
            if !live.index.duplicates.contains(key), missing.contains(where: { others == [$0.withoutHops(over: interface)] }) {
                for remnant in others {
                    live.apply(.routeRemoved(remnant))
                    changes.append(.routeRemoved(remnant))
                }
            } else if !others.isEmpty {
                outcome.doubts.insert(finished.table)
            }
            for route in missing {
                live.apply(.routeAdded(route))
                changes.append(.routeAdded(route))
            }
        }
        outcome.changes += changes
    }

    // A dump of links may show for the first time that one is down or gone: what went over it goes as well.
    private func consider(_ changes: [Kernel.Change], _ outcome: inout Outcome) {
        var after = live
        for change in changes {
            switch change {
            case .link(let link): after.take(.link(link), &outcome, isRecorded: true)
            case .linkRemoved(let index): after.take(.linkRemoved(index), &outcome, isRecorded: true)
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
