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
        case changed([KernelChange])
        /// The monitor has ended; no further effects follow.
        case ended
    }

    /// The work to do at the end of a turn.
    private struct Work: Sendable {
        /// The kernel must be queried again.
        var ask = false
        /// An evaluation is running; queries may be pending.
        var evaluate = false
        /// Routes or rules that refuse a network were added or removed.
        var filters = false
        /// More than the kernel's answers changed.
        var structure = false
        /// The interfaces whose link, addresses or evidence changed.
        var interfaces: Set<UInt32> = []
        /// The number of events in this turn.
        var events = 0

        /// Whether nothing waits for an evaluation.
        var isUnchanged: Bool { !ask && !evaluate && !filters && !structure && interfaces.isEmpty }
    }

    /// The properties of a link on which its evidence depends. A change of flags is no reason to read the evidence again.
    private struct EvidenceSubject: Hashable, Sendable {
        let name: String
        let kind: String?
        let hardwareType: UInt16
        let hardwareAddress: [UInt8]

        init(_ link: Link) {
            name = link.name
            kind = link.kind
            hardwareType = link.hardwareType
            hardwareAddress = link.hardwareAddress
        }
    }

    /// The tables that must be dumped to repair a loss of events.
    private struct Resync: Sendable {
        /// The reasons in order of arrival, each once.
        var reasons: [ResyncReason] = []
        var tables: CaseSet<KernelTable> = []
        /// The table whose dump was already running when events were lost. The end of that dump does not repair the loss.
        var runningDump: KernelTable?
    }

    /// A complete dump that is being merged.
    private struct Merge: Sendable {
        let table: KernelTable
        /// The interface to whose routes the dump is limited; `nil` for the complete table.
        let interface: UInt32?
        let isPartialResult: Bool
        let wasStale: Bool
        /// The earliest time of the next slice, which belongs to the next turn.
        var due: Int64
    }

    /// The message of a link that ended the path, and those after it.
    private struct DelayedMessages: Sendable {
        let messages: ArraySlice<NetlinkMessage>
        /// The monotonic time of their event.
        let time: Int64
    }

    /// The path after a message of the selected link.
    private struct Loss: Sendable {
        /// The link as the message describes it.
        let link: Link
        let path: NetworkPath
        /// The differences from the published path, which changes only after an evaluation.
        let differences: CaseSet<PathChangeReason>
        let selected: PathEvaluation.Selected?
        /// The one input that may change without an evaluation.
        let isConsistent: Bool
    }

    /// The number of routes that can be compared in about a millisecond.
    package static let defaultMergeLimit = 2_048

    private static let noSuchDevice: Int32 = 19

    package let configuration: MonitorConfiguration
    package private(set) var evidence: [UInt32: InterfaceEvidence] = [:]
    package private(set) var resolver: ResolverConfiguration?
    package private(set) var path: NetworkPath?
    package private(set) var catalog = InterfaceCatalog()
    package private(set) var hasEnded = false
    /// The number of events since the last publication that changed nothing published.
    package private(set) var coalescedEventCount = 0
    /// The number of messages that could not be decoded.
    package private(set) var malformed = 0
    /// The number of times that events were lost.
    package private(set) var overruns = 0

    // The queries that are sent after each change.
    private var queriesAfterChange: [Effect]
    package private(set) var destinations = RouteDestinations()
    private var keeper = SnapshotKeeper()
    private var schedule = DumpSchedule()
    private var draws = SplitMix64(seed: 0)
    private var sequence: UInt32 = 0
    private var wasInterrupted = false
    private var isPolling = false
    private var hasBegun = false
    private var unsettled = CaseSet<KernelTable>.all
    private var resync = Resync()
    // The complete dump that is being merged, and the time of its next slice.
    private var merge: Merge?
    private let mergeLimit: Int
    // The earliest expiry of a default route with a lifetime.
    private var expiryDue: Int64?
    private var reasons: CaseSet<PathChangeReason> = []
    // Changes are collected until the turn ends; stale tables until the next event.
    private var pending = SnapshotKeeper.Outcome()
    private var awaited: Set<UInt32> = []
    private var subjects: [UInt32: EvidenceSubject] = [:]
    private var answers = RouteAnswers()
    private var formerAnswers = RouteAnswers()
    private var published: NetworkPath?
    private var lastSelected: PathEvaluation.Selected?
    private var work = Work()
    private var hasExpiredAnswers = false
    private var hasReachableNeighbor = false
    // The interfaces that the targets' routes use.
    private var usedInterfaces: Set<UInt32> = []
    private var delayed: DelayedMessages?
    // The losses that ``foresee()`` has computed, and whether it must be called again.
    private var foreseen: [Loss] = []
    private var isForesightMissing = false

    /// Creates a machine. `mergeLimit` is the approximate number of routes of a complete dump that are compared in one turn.
    package init(_ configuration: MonitorConfiguration, mergeLimit: Int = Self.defaultMergeLimit) {
        self.configuration = configuration
        self.mergeLimit = mergeLimit
        queriesAfterChange = PathEvaluation.initialQueries(configuration, destinations).map { .askRoute($0) }
    }

    /// The known state of the kernel's tables.
    package var snapshot: KernelSnapshot { keeper.live }
    /// Whether the first dumps are complete, and no dump or query is pending.
    package var isIdle: Bool { path != nil && schedule.isIdle && merge == nil && !isAsking }
    /// Whether answers are pending that decide the path.
    package var isAsking: Bool { work.evaluate || work.ask }
    /// The time at which ``Event/turnEnded`` is due without another event, on the monotonic clock in nanoseconds; `nil` for
    /// never.
    package var deadline: Int64? {
        hasBegun && !hasEnded ? earlier(merge?.due ?? schedule.deadline, expiryDue) : nil
    }

    /// Sets the interfaces that the targets' routes use. Their changes, and changes of the interfaces that carry their
    /// packets, are published like those of physical interfaces.
    package mutating func setUsedInterfaces(_ interfaces: Set<UInt32>) {
        guard usedInterfaces != interfaces else { return }
        usedInterfaces = interfaces
        markChanged()
    }

    /// Handles one event and returns the effects, in order.
    package mutating func handle(_ event: Event, at now: Moment) -> [Effect] {
        guard !hasEnded else { return [] }
        applyDelayedMessages()
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
                apply(message, at: time)
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

    private mutating func apply(_ message: NetlinkMessage, at now: Int64) {
        apply(message.event, at: now)
        noteLifetime(of: message, at: now)
    }

    private mutating func apply(_ event: NetlinkEvent, at now: Int64) {
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
            keeper.apply(event, &pending, doubtful: resync.tables)
            noteChanges(from: known, at: now)
            // The kernel's earlier answers may depend on the removed entry, also if the snapshot already lacked it.
            if event.isRemoval { expireAnswers() }
        }
    }

    /// Processes the new entries of `pending`.
    private mutating func noteChanges(from known: Int, at now: Int64) {
        for table in pending.staleTables { schedule.request(table, at: now) }
        pending.staleTables = []
        // A fixed order, so that a replay behaves the same: too many interfaces become one complete dump.
        for routes in pending.staleRoutes.isEmpty ? [] : pending.staleRoutes.sorted() { schedule.request(routes, at: now) }
        pending.staleRoutes = []
        guard pending.changes.count > known else { return }
        for place in known..<pending.changes.count { note(pending.changes[place]) }
        work.ask = true
    }

    private mutating func note(_ change: KernelChange) {
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
    private mutating func expireAnswers() {
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

    private mutating func markChanged() {
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
            if !queriesAfterChange.isEmpty { return queriesAfterChange }
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
            usedInterfaces: usedInterfaces
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
        queriesAfterChange = PathEvaluation.initialQueries(configuration, chosen).map { .askRoute($0) }
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

    // MARK: Dumps

    private mutating func readDump(_ messages: [NetlinkMessage], at now: Moment) -> [Effect] {
        for message in messages where message.sequence == sequence && schedule.running != nil {
            if message.wasInterrupted { wasInterrupted = true }
            if case .done(let errno) = message.event { return endDump(errno: errno, at: now) }
            if message.event == .malformed { malformed += 1 } else { keeper.addDumped(message.event) }
            noteLifetime(of: message, at: now.monotonicNanoseconds)
        }
        return []
    }

    private mutating func endDump(errno: Int32, at now: Moment) -> [Effect] {
        guard let table = schedule.running else { return [] }
        let time = now.monotonicNanoseconds
        let (interface, wasStale) = (schedule.runningInterface, schedule.isStale)
        // A kernel without IPv6 or nexthop objects refuses their dumps (EAFNOSUPPORT, EOPNOTSUPP, EINVAL). The table is then
        // empty.
        let isAbsent = interface == nil && (errno == 97 || errno == 95 || errno == 22)
        let hasFailed = errno != 0 && !isAbsent
        // A removed interface has no routes, and the event of its removal marks the other stale tables.
        let isGone = interface != nil && errno == Self.noSuchDevice
        let isComplete = !wasInterrupted && (!hasFailed || isGone)
        let decision = schedule.finished(isComplete ? .complete : .interrupted, draw: draws.next(), at: time)
        if hasFailed || decision == .retry { keeper.abandonDump() }
        if decision == .retry || isGone {
            _ = clearRunningDump(table)
            return []
        }
        merge = Merge(
            table: table, interface: interface, isPartialResult: decision == .acceptPartial, wasStale: wasStale, due: time
        )
        mergeDump(at: time)
        return []
    }

    /// Merges a slice of a complete dump.
    private mutating func mergeDump(at time: Int64) {
        guard let finished = merge else { return }
        let before = pending.changes.count
        let isDone = keeper.mergeDump(atMost: mergeLimit, &pending)
        noteChanges(from: before, at: time)
        if before != pending.changes.count, resync.tables.contains(finished.table) { reasons.insert(.resynced) }
        guard isDone else {
            merge?.due = time + 1
            return
        }
        merge = nil
        let isStale = clearRunningDump(finished.table)
        // A table that cannot be read does not delay the path, which is computed from queries and not from tables.
        let settles = finished.interface == nil && unsettled.remove(finished.table) != nil
        if settles || finished.isPartialResult { markChanged() }
        if finished.isPartialResult {
            // The resync is announced when a later dump is complete.
            if resync.reasons.isEmpty { resync.reasons = [.dumpInterrupted] }
            resync.tables.insert(finished.table)
        } else if !isStale, finished.interface == nil {
            // The kernel's answers since the loss may depend on a state that no dump shows any more.
            if resync.tables.remove(finished.table) != nil, resync.tables.isEmpty { expireAnswers() }
        }
        if let path, path.isConsistent != isConsistent { markChanged() }
    }

    /// Returns whether events were lost while this dump ran, and clears the mark: the repeated dump begins after the loss.
    private mutating func clearRunningDump(_ table: KernelTable) -> Bool {
        guard resync.runningDump == table else { return false }
        resync.runningDump = nil
        return true
    }

    // A stale table counts as consistent only after the dump that corrects it is merged.
    private var isConsistent: Bool { !schedule.isStale && merge?.wasStale != true && !isPolling }

    private mutating func startDump(at now: Moment) -> [Effect] {
        guard merge == nil, let table = schedule.next(at: now.monotonicNanoseconds) else { return [] }
        keeper.beginDump(table, over: schedule.runningInterface)
        (sequence, wasInterrupted) = (sequence &+ 1, false)
        return [.dump(table, over: schedule.runningInterface, sequence: sequence)]
    }

    // MARK: Lifetimes

    /// The kernel counts lifetimes in clock ticks and reports hundredths of a second. After this additional time, the route has
    /// expired.
    private static let lifetimeGrain = Duration.milliseconds(50)

    // When the lifetime of a route (from router advertisements) expires, the kernel stops using the route at once. It sends the
    // event up to half a minute later, when it removes the route. A new advertisement extends the lifetime without an event.
    private mutating func noteLifetime(of message: NetlinkMessage, at now: Int64) {
        guard let lifetime = message.routeLifetime else { return }
        expiryDue = min(expiryDue ?? .max, now.addingSaturated((lifetime + Self.lifetimeGrain).saturatingNanoseconds))
    }

    private mutating func checkLifetimes(at now: Int64) {
        guard let due = expiryDue, due <= now else { return }
        expiryDue = nil
        expireAnswers()
        // Reads the remaining lifetimes of the other routes, and of a route whose lifetime was extended.
        schedule.request(.routesV6, at: now)
    }

    // MARK: Loss of the path
    //
    // If no other interface is usable, the path ends with its link, whatever routes remain (docs/command-line.md, "Satisfied paths"). The
    // update is published with the link's message, before the kernel is asked. The consequences follow: removed addresses and routes, and at the
    // turn's end the kernel's own answer.

    /// Handles the messages that a published loss has delayed, so that ``snapshot`` has them. Without this call, the next event does that.
    package mutating func applyDelayedMessages() {
        guard let delayed else { return }
        self.delayed = nil
        for message in delayed.messages { apply(message, at: delayed.time) }
        // The published update has counted the first one.
        work.events -= 1
    }

    /// Whether ``foresee()`` has work. Call it when the monitor is idle.
    package var isForesightDue: Bool { isForesightMissing && path?.status == .satisfied && !hasEnded }

    /// Computes the losses that the next message of the selected link may cause: the link is switched off, or loses its carrier.
    /// Only the time until such a message is published depends on this call.
    package mutating func foresee() {
        isForesightMissing = false
        foreseen = []
        guard let link = onlyUsableLink else { return }
        foreseen = [link.afterSwitchingOff, link.afterCarrierLoss].compactMap { makeLoss(of: $0, formerly: link) }
    }

    /// Returns the loss of the path that the link's message causes; `nil` if the kernel must be asked first.
    private func loss(of link: Link) -> Loss? {
        guard !link.hasCarrier, link.index == path?.interface?.index, let former = onlyUsableLink else { return nil }
        if let known = foreseen.first(where: { $0.link == link && $0.isConsistent == isConsistent }) { return known }
        return makeLoss(of: link, formerly: former)
    }

    /// The selected link, if the path has no other; `nil` if another interface is usable, or changes wait for an evaluation.
    private var onlyUsableLink: Link? {
        guard let path, let interface = path.interface, path.underlying == nil, unsettled.isEmpty, resolver != nil,
            work.isUnchanged, pending.changes.isEmpty, awaited.isEmpty,
            path.interfaceV4.map({ $0.index == interface.index }) ?? true,
            path.interfaceV6.map({ $0.index == interface.index }) ?? true,
            let link = keeper.live.links[interface.index], link.hasCarrier
        else { return nil }
        let defaults = keeper.live.defaults
        let isAlone = catalog.interfaces.values.allSatisfy { other in
            if other.index == interface.index || !configuration.allows(other) { return true }
            // A loopback interface and a port have no path of their own without a default route.
            if other.type == .loopback || other.level == .enslaved { return defaults.metrics[other.index] == nil }
            return other.level < .degraded
        }
        return isAlone ? link : nil
    }

    private func makeLoss(of link: Link, formerly former: Link) -> Loss? {
        // Another kind of device may need other evidence.
        guard let resolver, let published, EvidenceSubject(link) == EvidenceSubject(former), link.master == former.master else {
            return nil
        }
        let snapshot = keeper.live.losing(link)
        var catalog = self.catalog
        catalog.update(snapshot, evidence: evidence, changed: [link.index])
        var answers = RouteAnswers()
        while true {
            let evaluation = PathEvaluation(
                snapshot: snapshot, catalog: catalog, resolver: resolver, configuration: configuration,
                destinations: destinations, answers: answers, lastSelected: lastSelected, isConsistent: isConsistent,
                usedInterfaces: usedInterfaces)
            switch evaluation.run() {
            // The cause is that of the link, whatever the kernel answers.
            case .ask(let queries): for query in queries { answers.add(.refused(errno: RouteAnswer.noRoute), to: query) }
            case .path(let path, let selected):
                guard path.cause?.layer == .link else { return nil }
                return Loss(
                    link: link, path: path, differences: PathDifference.reasons(from: published, to: path), selected: selected,
                    isConsistent: isConsistent)
            }
        }
    }
}

/// The reason for dumping the kernel's tables again. The raw values are those of `resync`
/// records (docs/command-line.md).
package enum ResyncReason: String, Hashable, Sendable, CaseIterable {
    case overrun
    case dumpInterrupted = "dump_interrupted"
    case resume
}

extension Link {
    /// The link as the kernel reports it after an administrator has switched it off.
    fileprivate var afterSwitchingOff: Link {
        var link = self
        link.flags.subtract([.up, .running, .lowerUp, .dormant])
        link.operationalState = .down
        return link
    }

    /// The link as the kernel reports it after the loss of its carrier (default_operstate).
    fileprivate var afterCarrierLoss: Link {
        var link = self
        link.flags.subtract([.running, .lowerUp])
        link.operationalState = lower != 0 || lowerIsElsewhere ? .lowerLayerDown : .down
        return link
    }
}

/// The relevant differences between two paths: the user-visible state of the selected path, and of physical and default-route
/// interfaces. Containers' interfaces, lifetimes and statistics are not relevant.
package enum PathDifference {
    /// Returns the reasons to publish `new` after `old`; empty if nothing relevant changed.
    package static func reasons(from old: NetworkPath, to new: NetworkPath) -> CaseSet<PathChangeReason> {
        var reasons: CaseSet<PathChangeReason> = []
        if Identity(old.interface) != Identity(new.interface) || Identity(old.interfaceV4) != Identity(new.interfaceV4)
            || Identity(old.interfaceV6) != Identity(new.interfaceV6) || Identity(old.underlying) != Identity(new.underlying)
        {
            reasons.insert(.interfaceChanged)
        }
        if old.supportsIPv4 != new.supportsIPv4 || old.supportsIPv6 != new.supportsIPv6 || old.status != new.status {
            reasons.insert(.familiesChanged)
        }
        if old.gateways != new.gateways { reasons.insert(.gatewaysChanged) }
        if old.supportsDNS != new.supportsDNS || old.resolvers != new.resolvers { reasons.insert(.dnsChanged) }
        if old.isExpensive != new.isExpensive || old.isConstrained != new.isConstrained { reasons.insert(.costChanged) }
        switch (old.cause, new.cause) {
        case (nil, nil): break
        case (let one?, let other):
            if !one.hasSameDetail(as: other) { reasons.insert(.causeChanged) }
        case (nil, _?): reasons.insert(.causeChanged)
        }
        if old.isConsistent != new.isConsistent { reasons.insert(.resynced) }

        // An interface that becomes or stops being relevant is compared in both paths, so that this alone is not a change.
        let isNotable = { (interface: NetworkInterface) in
            new.notable.contains(interface.index) || old.notable.contains(interface.index)
        }
        let before = old.interfaces.filter(isNotable)
        let after = new.interfaces.filter(isNotable)
        if !before.elementsEqual(after, by: isSameRow) { reasons.insert(.interfacesChanged) }
        let hasOtherAddresses = after.contains { interface in
            before.first { $0.index == interface.index }.map { $0.addresses != interface.addresses } ?? false
        }
        if hasOtherAddresses { reasons.insert(.addressesChanged) }
        return reasons
    }

    /// The identity of an interface, without its state.
    private struct Identity: Equatable {
        let index: UInt32?
        let name: String?
        let type: InterfaceType?

        init(_ interface: NetworkInterface?) {
            index = interface?.index
            name = interface?.name
            type = interface?.type
        }
    }

    /// Returns whether the list of interfaces shows the same values for both, except for addresses.
    private static func isSameRow(_ left: NetworkInterface, _ right: NetworkInterface) -> Bool {
        Identity(left) == Identity(right) && left.isVirtual == right.isVirtual && left.isExpensive == right.isExpensive
            && left.level == right.level
    }
}
