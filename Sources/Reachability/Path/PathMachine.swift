internal import Pacing

/// From what the kernel says to what the path is: keeps the snapshot, decides when to dump and what to ask, and when to speak.
///
/// ```
///   began ─→ dumping all tables ─→ settled: first path ─→ following events ──────────────────┐
///                                                            │        ↑                        │
///                                              overrun, resume, doubt │ dumps complete         │
///                                                            └─→ dumping again (still following)
///   namespaceGone ─→ ended
/// ```
/// Events are hints: the snapshot follows them, and at the end of each turn in which something changed the kernel is asked for its
/// route. Nothing waits for a dump but the first path.
package struct PathMachine: Sendable {
    /// What happens to the machine.
    package enum Event: Hashable, Sendable {
        /// Everything is joined and open; `seed` feeds the jitter; `isPolling` where no events will come.
        case began(seed: UInt64, isPolling: Bool)
        /// A datagram of the event socket.
        case messages([NetlinkMessage])
        /// Events were lost.
        case overrun
        /// A datagram of the dump socket.
        case dump([NetlinkMessage])
        /// The dump could not be asked for or read.
        case dumpFailed(errno: Int32)
        case route(RouteQuery, RouteAnswer)
        case evidence(UInt32, InterfaceEvidence)
        case resolver(ResolverConfiguration)
        /// The machine slept for so long, until now.
        case resumed(nanosecondsAsleep: Int64)
        /// The namespace has lost its name.
        case namespaceGone
        /// Time to look at everything again, where no events come.
        case pollDue
        /// Nothing more is to be read in this turn; also when ``PathMachine/deadline`` has come.
        case turnEnded
    }

    /// What the machine wants done.
    package enum Effect: Hashable, Sendable {
        /// The complete table, or only its routes over an interface.
        case dump(KernelTable, over: UInt32? = nil, sequence: UInt32)
        case askRoute(RouteQuery)
        indirect case readEvidence(Link)
        case publish(PathUpdate)
        case resynced(ResyncReason)
        case gap(nanoseconds: Int64)
        /// Links, addresses, routes, rules or the resolver's configuration changed.
        case changed([Kernel.Change])
        /// Nothing is to be watched any more.
        case ended
    }

    package let configuration: MonitorConfiguration
    package private(set) var evidence: [UInt32: InterfaceEvidence] = [:]
    package private(set) var resolver: ResolverConfiguration?
    package private(set) var path: NetworkPath?
    package private(set) var catalog = InterfaceCatalog()
    package private(set) var hasEnded = false
    /// Events that changed nothing that was published, since the last publication.
    package private(set) var coalescedEventCount = 0
    /// Messages that could not be decoded.
    package internal(set) var malformed = 0
    /// Times that events were lost.
    package private(set) var overruns = 0

    // What is asked whenever something changed.
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
    // The dump that is complete and is being merged, and when its next slice may be.
    var merge: Merge?
    let mergeLimit: Int
    // When the first of the default routes that have a lifetime is over.
    var expiryDue: Int64?
    var reasons: CaseSet<PathChangeReason> = []
    // Changes gather here until the turn ends, doubts until the next event.
    var untold = SnapshotKeeper.Outcome()
    private var awaited: Set<UInt32> = []
    private var subjects: [UInt32: EvidenceSubject] = [:]
    private var answers = RouteAnswers()
    private var formerAnswers = RouteAnswers()
    private var told: NetworkPath?
    private var lastSelected: PathEvaluation.Selected?
    var work = Work()
    // The interfaces that the routes of targets use.
    private var followed: Set<UInt32> = []

    /// A machine; `mergeLimit` is how many routes of a finished dump are looked at in one turn, roughly.
    package init(_ configuration: MonitorConfiguration, mergeLimit: Int = Self.usualMergeLimit) {
        self.configuration = configuration
        self.mergeLimit = mergeLimit
        first = PathEvaluation.firstQuestions(configuration, destinations).map { .askRoute($0) }
    }

    /// The kernel's state as far as it is known.
    package var snapshot: Kernel.Snapshot { keeper.live }
    /// Whether the first dumps are complete and nothing is being dumped or asked.
    package var isQuiet: Bool { path != nil && schedule.isQuiet && merge == nil && !isAsking }
    /// Whether answers are awaited that decide the path.
    package var isAsking: Bool { work.evaluate || work.ask }
    /// When ``Event/turnEnded`` is due without any other event, on the monotonic clock in nanoseconds.
    package var deadline: Int64? {
        hasBegun && !hasEnded ? [merge.map(\.due) ?? schedule.deadline, expiryDue].compactMap { $0 }.min() : nil
    }

    /// Changes of these interfaces, which the routes of targets use, are published like those of physical ones; and changes of
    /// those that carry their packets.
    package mutating func follow(_ interfaces: Set<UInt32>) {
        guard followed != interfaces else { return }
        followed = interfaces
        touch()
    }

    /// Takes one event and says what to do.
    package mutating func handle(_ event: Event, at now: Moment) -> [Effect] {
        guard !hasEnded else { return [] }
        let time = now.monotonicNanoseconds
        switch event {
        case .began(let seed, let isPolling):
            draws = SplitMix64(seed: seed)
            self.isPolling = isPolling
            hasBegun = true
            schedule.wantAll(at: time)
        case .messages(let messages):
            if untold.changes.isEmpty { untold.changes.reserveCapacity(messages.count) }
            for message in messages {
                take(message.event, at: time)
                noteLifetime(of: message, at: time)
            }
        case .overrun:
            overruns += 1
            lose(.overrun, at: time)
        case .dump(let messages): return readDump(messages, at: now)
        case .dumpFailed(let errno): return endDump(errno: errno, at: now)
        case .route(let query, let answer):
            // What was last known stands where there was no answer.
            answers.add(answer == .unanswered ? formerAnswers[query] ?? answer : answer, to: query)
        case .evidence(let index, let evidence):
            awaited.remove(index)
            guard self.evidence[index] != evidence, keeper.live.links[index] != nil else { break }
            self.evidence[index] = evidence
            work.interfaces.insert(index)
            touch()
        case .resolver(let configuration):
            guard resolver != configuration else { break }
            resolver = configuration
            touch()
        case .resumed(let nanoseconds):
            // Who knows nothing yet has no gap in it.
            guard path != nil else {
                schedule.wantAll(at: time)
                break
            }
            reasons.insert(.resumed)
            touch()
            lose(.resume, at: time)
            return [.gap(nanoseconds: nanoseconds)]
        case .namespaceGone: return end(at: now)
        case .pollDue:
            schedule.wantAll(at: time)
            // Tables that were read one after the other fit together only when all have been read.
            unsettled = .all
        case .turnEnded: return endTurn(at: now)
        }
        return []
    }

    // MARK: Events

    private mutating func take(_ event: NetlinkEvent, at now: Int64) {
        switch event {
        case .malformed: malformed += 1
        case .done: break
        case .ignored, .neighbor, .neighborRemoved: work.events += 1
        default:
            work.events += 1
            let known = untold.changes.count
            keeper.apply(event, &untold)
            noteChanges(from: known, at: now)
            // The kernel may have answered with what only it knew.
            if event.isRemoval { work.ask = true }
        }
    }

    /// Takes note of what is new in `untold`.
    mutating func noteChanges(from known: Int, at now: Int64) {
        for table in untold.doubts { schedule.want(table, at: now) }
        untold.doubts = []
        // In a fixed order, so that a recording can be run again: too many of them become one dump.
        for routes in untold.staleRoutes.sorted() { schedule.want(routes, at: now) }
        untold.staleRoutes = []
        guard untold.changes.count > known else { return }
        for place in known..<untold.changes.count { note(untold.changes[place]) }
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
            // Another device may get the number: the one that was selected is known by its name from here on.
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
        // A rule that refuses may take the place of a missing route, with the same answer of the kernel.
        case .ruleAdded, .ruleRemoved: (work.filters, work.structure) = (true, true)
        case .nexthop, .nexthopRemoved: work.structure = true
        }
    }

    mutating func touch() {
        (work.ask, work.structure) = (true, true)
    }

    private mutating func lose(_ reason: ResyncReason, at now: Int64) {
        schedule.wantAll(at: now)
        // What was lost before and is not made good yet is made good by the same dumps.
        resync = Resync(
            reasons: resync.reasons.filter { $0 != reason } + [reason], tables: .all,
            underway: schedule.running ?? merge?.table)
    }

    // MARK: The turn's end

    private mutating func endTurn(at now: Moment) -> [Effect] {
        guard hasBegun else { return [] }
        lookAtLifetimes(at: now.monotonicNanoseconds)
        var effects: [Effect] = awaited.sorted().compactMap { index in keeper.live.links[index].map { .readEvidence($0) } }
        // Answered at once, within the turn: the next end of it goes on.
        guard effects.isEmpty else { return effects }
        effects += settle(at: now)
        // What events changed is published before time is spent on a dump that has ended.
        if effects.isEmpty, !work.evaluate, let due = merge?.due, due <= now.monotonicNanoseconds {
            mergeDump(at: now.monotonicNanoseconds)
            effects += settle(at: now)
        }
        // A dump takes the kernel's time: what is known is told first.
        if !work.evaluate { effects += startDump(at: now) }
        return effects
    }

    private mutating func settle(at now: Moment) -> [Effect] {
        var effects: [Effect] = []
        if !untold.changes.isEmpty {
            effects.append(.changed(untold.changes))
            untold.changes = []
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
        // The same questions with the same answers, and nothing else: a route to somewhere else came or went.
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
            return publish(new, events: events, at: now)
        }
    }

    // Filters came or went, with which the question may have to be another one.
    private mutating func chooseDestinations() {
        work.filters = false
        let chosen = RouteDestinations(keeper.live.refusedNetworks)
        guard chosen != destinations else { return }
        destinations = chosen
        first = PathEvaluation.firstQuestions(configuration, chosen).map { .askRoute($0) }
        work.structure = true
    }

    private var isOnlyAnswers: Bool { path != nil && !work.structure && work.interfaces.isEmpty && !formerAnswers.isEmpty }

    private mutating func publish(_ new: NetworkPath, events: Int, at now: Moment) -> [Effect] {
        path = new
        // What counts is what was told last: a change that was passed over may matter together with the next.
        guard let old = told else {
            told = new
            coalescedEventCount = 0
            reasons = []
            return [.publish(PathUpdate(path: new, reasons: [], isInitial: true, coalescedEventCount: 0, moment: now))]
        }
        let found = PathDifference.reasons(from: old, to: new)
        guard !found.isEmpty || reasons.contains(.resumed) else {
            coalescedEventCount += events
            // What the dump showed has been looked at; a change that comes later has its own reasons.
            reasons.remove(.resynced)
            return []
        }
        told = new
        if !resync.tables.isEmpty, resync.reasons != [.resume] { reasons.insert(.resynced) }
        let all = Array(found.union(reasons))
        // In a storm, a turn has many events beside the one that made the change.
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
        let gone = NetworkPath(status: .unsatisfied, supportsDNS: resolver?.hasNameserver ?? false, cause: cause)
        let found = told.map { PathDifference.reasons(from: $0, to: gone) } ?? []
        let update = PathUpdate(
            path: gone, reasons: Array(found), isInitial: path == nil, coalescedEventCount: coalescedEventCount, moment: now)
        path = gone
        return [.publish(update), .ended]
    }
}
