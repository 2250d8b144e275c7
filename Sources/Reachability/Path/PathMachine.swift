internal import Pacing

/// Computes the path from the kernel's messages: keeps the snapshot, and decides when to dump, which queries to send, and when to
/// publish.
///
/// ```
///   began ─→ dumping all tables ─→ settled: first path ─→ following events ──────────────────┐
///                                                            │        ↑                        │
///                               overrun, resume, stale table │        │ dumps complete         │
///                                                            └─→ dumping again (still following)
///   namespaceGone ─→ ended
/// ```
/// Events are hints. The snapshot follows them, and at the end of each turn with a change the machine queries the kernel's route.
/// Only the first path waits for dumps. The loss of the only usable link is published before the turn's end.
package struct PathMachine: Sendable {
    /// An input of the machine.
    package enum Event: Hashable, Sendable {
        /// The sockets are open and have joined their groups. `seed` feeds the jitter; `isPolling` means that no events will
        /// arrive.
        case began(seed: UInt64, isPolling: Bool)
        /// A datagram of the event socket.
        case messages([NetlinkMessage])
        /// Events were lost.
        case overrun
        /// A datagram of the dump socket.
        case dump([NetlinkMessage])
        /// A dump could not be requested or read.
        case dumpFailed(errno: Int32)
        case route(RouteQuery, RouteAnswer)
        case evidence(UInt32, InterfaceEvidence)
        case resolver(ResolverConfiguration)
        /// The machine was suspended for this time, and has just resumed.
        case resumed(nanosecondsAsleep: Int64)
        /// The namespace's file no longer exists.
        case namespaceGone
        /// The tables must be dumped again, because no events arrive.
        case pollDue
        /// The turn has no more input, or ``PathMachine/deadline`` is reached.
        case turnEnded
    }

    /// A request of the machine to its owner.
    package enum Effect: Hashable, Sendable {
        /// Dumps the complete table, or only its routes over one interface.
        case dump(KernelTable, over: UInt32? = nil, sequence: UInt32)
        case askRoute(RouteQuery)
        indirect case readEvidence(Link)
        case publish(PathUpdate)
        case resynced(ResyncReason)
        case gap(nanoseconds: Int64)
        /// Links, addresses, routes, rules or the resolver's configuration changed.
        case changed([Kernel.Change])
        /// The monitor has ended; no further effects follow.
        case ended
    }

    package let configuration: MonitorConfiguration
    package private(set) var evidence: [UInt32: InterfaceEvidence] = [:]
    package private(set) var resolver: ResolverConfiguration?
    package private(set) var path: NetworkPath?
    package private(set) var catalog = InterfaceCatalog()
    package private(set) var hasEnded = false
    /// The number of events since the last publication that changed nothing published.
    package private(set) var coalescedEventCount = 0
    /// The number of messages that could not be decoded.
    package internal(set) var malformed = 0
    /// The number of times that events were lost.
    package private(set) var overruns = 0

    // The queries that are sent after each change.
    private var first: [Effect]
    package private(set) var destinations = RouteDestinations()
    var keeper = SnapshotKeeper()
    var schedule = DumpSchedule()
    var draws = SplitMix64(seed: 0)
    var sequence: UInt32 = 0
    var wasInterrupted = false
    var isPolling = false
    private var hasBegun = false
    var unsettled = CaseSet<KernelTable>.all
    var resync = Resync()
    // The complete dump that is being merged, and the time of its next slice.
    var merge: Merge?
    let mergeLimit: Int
    // The earliest expiry of a default route with a lifetime.
    var expiryDue: Int64?
    var reasons: CaseSet<PathChangeReason> = []
    // Changes are collected until the turn ends; stale tables until the next event.
    var pending = SnapshotKeeper.Outcome()
    private(set) var awaited: Set<UInt32> = []
    private var subjects: [UInt32: EvidenceSubject] = [:]
    private var answers = RouteAnswers()
    private var formerAnswers = RouteAnswers()
    private(set) var published: NetworkPath?
    private(set) var lastSelected: PathEvaluation.Selected?
    var work = Work()
    private var hasExpiredAnswers = false
    private var hasReachableNeighbor = false
    // The interfaces that the targets' routes use.
    private(set) var followed: Set<UInt32> = []
    var delayed: DelayedMessages?
    // The losses that ``foresee()`` has computed, and whether it must be called again.
    var foreseen: [Loss] = []
    var isForesightMissing = false

    /// Creates a machine. `mergeLimit` is the approximate number of routes of a complete dump that are compared in one turn.
    package init(_ configuration: MonitorConfiguration, mergeLimit: Int = Self.defaultMergeLimit) {
        self.configuration = configuration
        self.mergeLimit = mergeLimit
        first = PathEvaluation.initialQueries(configuration, destinations).map { .askRoute($0) }
    }

    /// The known state of the kernel's tables.
    package var snapshot: Kernel.Snapshot { keeper.live }
    /// Whether the first dumps are complete, and no dump or query is pending.
    package var isIdle: Bool { path != nil && schedule.isIdle && merge == nil && !isAsking }
    /// Whether answers are pending that decide the path.
    package var isAsking: Bool { work.evaluate || work.ask }
    /// The time at which ``Event/turnEnded`` is due without another event, on the monotonic clock in nanoseconds; `nil` for
    /// never.
    package var deadline: Int64? {
        hasBegun && !hasEnded ? earlier(merge?.due ?? schedule.deadline, expiryDue) : nil
    }

    /// Follows the interfaces that the targets' routes use. Their changes, and changes of the interfaces that carry their
    /// packets, are published like those of physical interfaces.
    package mutating func follow(_ interfaces: Set<UInt32>) {
        guard followed != interfaces else { return }
        followed = interfaces
        markChanged()
    }

    /// Handles one event and returns the effects, in order.
    package mutating func handle(_ event: Event, at now: Moment) -> [Effect] {
        guard !hasEnded else { return [] }
        takeDelayedMessages()
        let time = now.monotonicNanoseconds
        switch event {
        case .began(let seed, let isPolling):
            draws = SplitMix64(seed: seed)
            self.isPolling = isPolling
            hasBegun = true
            schedule.requestAll(at: time)
        case .messages(let messages):
            // The first of the seven messages of a link that goes up comes alone.
            if pending.changes.isEmpty { pending.changes.reserveCapacity(max(messages.count, 8)) }
            for (place, message) in messages.enumerated() {
                if case .link(let link) = message.event, let end = loss(of: link) {
                    delayed = DelayedMessages(messages: messages[place...], time: time)
                    return publish(end, at: now)
                }
                take(message, at: time)
            }
        case .overrun:
            overruns += 1
            noteLoss(.overrun, at: time)
        case .dump(let messages): return readDump(messages, at: now)
        case .dumpFailed(let errno): return endDump(errno: errno, at: now)
        case .route(let query, let answer):
            // If the kernel did not answer, the previous answer remains valid.
            answers.add(answer == .unanswered ? formerAnswers[query] ?? answer : answer, to: query)
        case .evidence(let index, let evidence):
            awaited.remove(index)
            guard self.evidence[index] != evidence, keeper.live.links[index] != nil else { break }
            self.evidence[index] = evidence
            work.interfaces.insert(index)
            markChanged()
        case .resolver(let configuration):
            guard resolver != configuration else { break }
            resolver = configuration
            markChanged()
        case .resumed(let nanoseconds):
            // Before the first path, nothing was observed that could have a gap.
            guard path != nil else {
                schedule.requestAll(at: time)
                break
            }
            reasons.insert(.resumed)
            markChanged()
            noteLoss(.resume, at: time)
            return [.gap(nanoseconds: nanoseconds)]
        case .namespaceGone: return end(at: now)
        case .pollDue:
            schedule.requestAll(at: time)
            // The tables were read one after another, and are consistent only after all have been read.
            unsettled = .all
        case .turnEnded: return endTurn(at: now)
        }
        return []
    }

    // MARK: Events

    mutating func take(_ message: NetlinkMessage, at now: Int64) {
        take(message.event, at: now)
        noteLifetime(of: message, at: now)
    }

    private mutating func take(_ event: NetlinkEvent, at now: Int64) {
        switch event {
        case .malformed: malformed += 1
        case .done: break
        case .neighbor(let neighbor):
            work.events += 1
            if neighbor.state.contains(.reachable) { hasReachableNeighbor = true }
        case .ignored, .neighborRemoved: work.events += 1
        default:
            work.events += 1
            let known = pending.changes.count
            keeper.apply(event, &pending)
            noteChanges(from: known, at: now)
            // The kernel's earlier answers may depend on the removed entry, also if the snapshot already lacked it.
            if event.isRemoval { expireAnswers() }
        }
    }

    /// Processes the new entries of `pending`.
    mutating func noteChanges(from known: Int, at now: Int64) {
        for table in pending.staleTables { schedule.request(table, at: now) }
        pending.staleTables = []
        // A fixed order, so that a replay behaves the same: too many interfaces become one complete dump.
        for routes in pending.staleRoutes.isEmpty ? [] : pending.staleRoutes.sorted() { schedule.request(routes, at: now) }
        pending.staleRoutes = []
        guard pending.changes.count > known else { return }
        for place in known..<pending.changes.count { note(pending.changes[place]) }
        work.ask = true
    }

    private mutating func note(_ change: Kernel.Change) {
        switch change {
        case .link(let link):
            work.interfaces.insert(link.index)
            work.structure = true
            let subject = EvidenceSubject(link)
            if InterfaceClassifier.needsEvidence(link), subjects[link.index] != subject {
                subjects[link.index] = subject
                awaited.insert(link.index)
            }
        case .linkRemoved(let index):
            // Another device may receive the index. From now on the selected interface is identified by its name.
            if lastSelected?.index == index { lastSelected?.index = 0 }
            work.interfaces.insert(index)
            work.structure = true
            awaited.remove(index)
            evidence[index] = nil
            subjects[index] = nil
        case .address(let address):
            work.interfaces.insert(address.key.interface)
            work.structure = true
        case .addressRemoved(let key):
            work.interfaces.insert(key.interface)
            work.structure = true
        case .routeAdded(let route), .routeRemoved(let route):
            if route.key.destination.isDefault { work.structure = true }
            if route.refusedNetwork != nil { work.filters = true }
        // A rule that refuses may replace a missing route, and the kernel's answer stays the same.
        case .ruleAdded, .ruleRemoved: (work.filters, work.structure) = (true, true)
        case .nexthop, .nexthopRemoved: work.structure = true
        }
    }

    /// Notes that the kernel's answers may have changed, although the snapshot has not.
    mutating func expireAnswers() {
        work.ask = true
        hasExpiredAnswers = true
    }

    /// Returns whether answers to other queries than the path's must be requested again, and clears the mark.
    mutating func takeExpiredAnswers() -> Bool {
        defer { hasExpiredAnswers = false }
        return hasExpiredAnswers
    }

    /// Returns whether the kernel has reported that a neighbor is reachable, and clears the mark.
    mutating func takeReachableNeighbor() -> Bool {
        defer { hasReachableNeighbor = false }
        return hasReachableNeighbor
    }

    mutating func markChanged() {
        (work.ask, work.structure) = (true, true)
    }

    private mutating func noteLoss(_ reason: ResyncReason, at now: Int64) {
        schedule.requestAll(at: now)
        // An earlier loss that is not repaired yet is repaired by the same dumps.
        resync = Resync(
            reasons: resync.reasons.filter { $0 != reason } + [reason], tables: .all,
            runningDump: schedule.running ?? merge?.table)
    }

    // MARK: The turn's end

    private mutating func endTurn(at now: Moment) -> [Effect] {
        guard hasBegun else { return [] }
        checkLifetimes(at: now.monotonicNanoseconds)
        var effects: [Effect] = awaited.sorted().compactMap { index in keeper.live.links[index].map { .readEvidence($0) } }
        // The owner answers within the turn; the next `turnEnded` continues.
        guard effects.isEmpty else { return effects }
        effects += settle(at: now)
        // Changes from events are published before a complete dump is merged.
        if effects.isEmpty, !work.evaluate, let due = merge?.due, due <= now.monotonicNanoseconds {
            mergeDump(at: now.monotonicNanoseconds)
            effects += settle(at: now)
        }
        // A dump uses the kernel's time, so known changes are published first.
        if !work.evaluate { effects += startDump(at: now) }
        return effects
    }

    private mutating func settle(at now: Moment) -> [Effect] {
        var effects: [Effect] = []
        if !pending.changes.isEmpty {
            effects.append(.changed(pending.changes))
            pending.changes = []
        }
        effects += evaluate(at: now)
        if resync.tables.isEmpty, path != nil, !work.evaluate {
            effects += resync.reasons.map { .resynced($0) }
            resync.reasons = []
        }
        return effects
    }

    private mutating func evaluate(at now: Moment) -> [Effect] {
        guard unsettled.isEmpty, let resolver else { return [] }
        if work.filters { chooseDestinations() }
        if work.ask {
            if !work.evaluate { swap(&formerAnswers, &answers) }
            answers.removeAll()
            (work.ask, work.evaluate) = (false, true)
            if isOnlyAnswers { return formerAnswers.queries.sorted(by: RouteQuery.areInOrder).map { .askRoute($0) } }
            if !first.isEmpty { return first }
        }
        // The queries and their answers are unchanged, and nothing else changed: a route to another destination was added or
        // removed.
        guard work.evaluate, !(isOnlyAnswers && answers == formerAnswers) else {
            coalescedEventCount += work.events
            if work.evaluate { reasons.remove(.resynced) }
            work = Work()
            return []
        }
        if !work.interfaces.isEmpty {
            catalog.update(keeper.live, evidence: evidence, changed: work.interfaces)
            work.interfaces = []
        }
        let evaluation = PathEvaluation(
            snapshot: keeper.live, catalog: catalog, resolver: resolver, configuration: configuration,
            destinations: destinations, answers: answers, lastSelected: lastSelected, isConsistent: isConsistent,
            followed: followed
        )
        switch evaluation.run() {
        case .ask(let queries): return queries.map { .askRoute($0) }
        case .path(let new, let selected):
            let events = work.events
            work = Work(ask: work.ask)
            lastSelected = selected
            (foreseen, isForesightMissing) = ([], true)
            return publish(new, events: events, at: now)
        }
    }

    // Filters were added or removed, and may cover the queries' destinations.
    private mutating func chooseDestinations() {
        work.filters = false
        let chosen = RouteDestinations(keeper.live.refusedNetworks)
        guard chosen != destinations else { return }
        destinations = chosen
        first = PathEvaluation.initialQueries(configuration, chosen).map { .askRoute($0) }
        work.structure = true
    }

    private var isOnlyAnswers: Bool { path != nil && !work.structure && work.interfaces.isEmpty && !formerAnswers.isEmpty }

    private mutating func publish(_ loss: Loss, at now: Moment) -> [Effect] {
        defer { work.events = 0 }
        lastSelected = loss.selected
        return publish(loss.path, differences: loss.differences, events: work.events + 1, at: now)
    }

    /// Publishes a path if it differs from the published one. `differences`: the result of the comparison, if it is known.
    private mutating func publish(
        _ new: NetworkPath, differences: CaseSet<PathChangeReason>? = nil, events: Int, at now: Moment
    ) -> [Effect] {
        path = new
        // The comparison uses the last published path: several changes that are not relevant alone may be relevant together.
        guard let old = published else {
            published = new
            coalescedEventCount = 0
            reasons = []
            return [.publish(PathUpdate(path: new, reasons: [], isInitial: true, coalescedEventCount: 0, moment: now))]
        }
        let found = differences ?? PathDifference.reasons(from: old, to: new)
        guard !found.isEmpty || reasons.contains(.resumed) else {
            coalescedEventCount += events
            // The dump's result has been evaluated; a later change has its own reasons.
            reasons.remove(.resynced)
            return []
        }
        published = new
        if !resync.tables.isEmpty, resync.reasons != [.resume] { reasons.insert(.resynced) }
        let all = Array(found.union(reasons))
        // In a storm, one turn has many events besides the one that caused the change.
        let others = coalescedEventCount + max(0, events - 1)
        let update = PathUpdate(path: new, reasons: all, isInitial: false, coalescedEventCount: others, moment: now)
        coalescedEventCount = 0
        reasons = []
        return [.publish(update)]
    }

    private mutating func end(at now: Moment) -> [Effect] {
        hasEnded = true
        let name = configuration.namespace.map { "network namespace \($0)" } ?? "the network namespace"
        let cause = Cause(.link, .noInterface, detail: "\(name) has been removed")
        let removed = NetworkPath(
            status: .unsatisfied, supportsDNS: resolver?.hasNameserver ?? false, resolvers: resolver?.nameservers ?? [],
            cause: cause,
            notable: [])
        let found = published.map { PathDifference.reasons(from: $0, to: removed) } ?? []
        let update = PathUpdate(
            path: removed, reasons: Array(found), isInitial: path == nil, coalescedEventCount: coalescedEventCount, moment: now)
        path = removed
        return [.publish(update), .ended]
    }
}
