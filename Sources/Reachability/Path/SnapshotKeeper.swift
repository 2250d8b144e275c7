/// Keeps a ``NetworkSnapshot`` true: applies events, and replaces a table by a dump of it, whatever events come in between.
///
/// ```
///                 apply(event) ──→ live ──→ changes
///                      │
///   beginDump(table)   └─(while a dump of its table runs)─→ log
///   addDumped(event) ──→ shadow
///   endDump() ───── log replayed on shadow ── shadow compared with live ──→ changes
/// ```
/// A slice of a dump may be older or newer than an event that is read before it. Replaying the events in order on the finished
/// dump gives the last word to the last event, so a route that is dumped and then deleted does not come back.
package struct SnapshotKeeper: Sendable {
    /// What an event, or the end of a dump, did.
    package struct Outcome: Sendable {
        /// The differences, in order.
        package var changes: [SnapshotChange] = []
        /// The tables that the event left in doubt: the kernel does not tell everything (see ``SnapshotKeeper/apply(_:)``).
        package var doubts: CaseSet<KernelTable> = []

        mutating func add(_ other: Outcome) {
            changes += other.changes
            doubts.formUnion(other.doubts)
        }
    }

    package private(set) var live = NetworkSnapshot()
    private var dump: Dump?

    /// Events kept while a dump runs; one more and the dump has to be repeated.
    static let logLimit = 65_536

    private struct Dump: Sendable {
        let table: KernelTable
        var shadow = NetworkSnapshot()
        var log: [NetlinkEvent] = []
        var sawDead = false
        var lostEvents = false
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
        if let table = dump?.table, event.isAbout(table) {
            if dump?.log.count ?? 0 < Self.logLimit { dump?.log.append(event) } else { dump?.lostEvents = true }
        }
        live.take(event, &outcome)
    }

    /// A dump of this table begins; one that was running is forgotten.
    package mutating func beginDump(_ table: KernelTable) { dump = Dump(table: table) }

    /// One entry of the running dump.
    package mutating func addDumped(_ event: NetlinkEvent) {
        guard let table = dump?.table, event.isAbout(table) else { return }
        switch event {
        case .route(_, _, isDead: true):
            dump?.sawDead = true
            return
        case .route(let route, _, _) where live.isHidden(route):
            dump?.sawDead = true
            return
        default: break
        }
        // Dumped routes that share a key are all there: nothing is replaced.
        if case .route(let route, _, _) = event { return dump?.shadow.apply(.routeAdded(route)) ?? () }
        var ignored = Outcome()
        dump?.shadow.take(event, &ignored)
    }

    /// The running dump is complete; the live snapshot becomes what it says.
    package mutating func endDump() -> Outcome {
        guard var finished = dump else { return Outcome() }
        dump = nil
        var outcome = Outcome()
        // Whether a route's link is up decides whether it is there.
        for link in live.links.values where finished.table != .links { finished.shadow.apply(.link(link)) }
        for event in finished.log { finished.shadow.take(event, &outcome) }
        // A link may have gone down after its routes were dumped.
        for route in finished.shadow.allRoutes.filter(live.isHidden) {
            finished.shadow.apply(.routeRemoved(route))
            finished.sawDead = true
        }
        outcome.changes = finished.shadow.changes(since: live, in: finished.table)
        if finished.table == .links { consider(outcome.changes, &outcome) }
        live.apply(outcome.changes)
        if finished.sawDead || finished.lostEvents { outcome.doubts.insert(finished.table) }
        return outcome
    }

    /// The running dump failed; what it said is forgotten.
    package mutating func abandonDump() { dump = nil }

    // A dump of links may show for the first time that one is down or gone: what went over it goes as well.
    private func consider(_ changes: [SnapshotChange], _ outcome: inout Outcome) {
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

extension NetlinkEvent {
    func isAbout(_ table: KernelTable) -> Bool {
        switch self {
        case .link, .linkRemoved: table == .links
        case .address, .addressRemoved: table == .addresses
        case .route(let route, _, _), .routeRemoved(let route): table == .routes(route.key.family)
        case .rule(let rule), .ruleRemoved(let rule): table == .rules(rule.family)
        case .nexthop, .nexthopRemoved: table == .nexthops
        case .neighbour, .neighbourRemoved, .done, .ignored, .malformed: false
        }
    }
}
