internal import Pacing

/// All targets of a monitor: the times of their probes, their shared routes, and the delivery of answers to them.
///
/// A turn handles at most ``turnBudget`` targets. If more have work, the next turn follows at once, so that the monitor reads the
/// kernel's events and the answers of servers in between.
struct Fleet: Sendable {
    typealias Effect = MonitorMachine.Effect

    /// The maximum number of targets that begin, are notified or reach a deadline in one turn.
    static let turnBudget = 128

    private struct Traits: Hashable, Sendable {
        var lane = ProbeAdmission.Lane(.v4, .untried)
        /// The lane to which the used sockets count; `nil` if none is used.
        var running: ProbeAdmission.Lane?
        var sockets: UInt8 = 0
        var isPostponed = false
        /// Whether the next probe has a turn of its own, because the budget of its interface was used up.
        var hasTurn = false
        /// Whether an attempt to a further address runs.
        var isSurveying = false
    }

    /// A target that waits for the answer to a query.
    private struct Asker: Hashable, Sendable {
        let target: TargetID
        let query: RouteQuery
    }

    private var slab = TargetSlab()
    private var traits: [Traits] = []
    private var due = DueHeap()
    private(set) var book: RouteBook
    private(set) var admission = ProbeAdmission()
    private var random = SplitMix64(seed: 0)

    // Targets that have not begun; those before `begun` have.
    private var waiting: [TargetID] = []
    private var begun = 0
    // Targets whose probe is due, by lane, until the lane has room.
    private var postponed = [[TargetID]](repeating: [], count: ProbeAdmission.Lane.count)
    // Whether the targets of a lane wait for sockets, rather than for places of TLS handshakes.
    private var lacksSockets = [Bool](repeating: false, count: ProbeAdmission.Lane.count)
    // Targets that are notified in the next turn, before others: their route is blocked now, or no route query represents them.
    private var losses: [TargetID] = []
    private var ramp = NoticeRamp()
    // Targets without a route query or with a failed lookup: any change may concern them.
    private var unrouted: Set<TargetID> = []
    private var unroutedDue: Int64?
    private var lastUnrouted: Int64?
    // Targets whose interval grows, of which each change may hurry the next probe.
    private var eager: Set<TargetID> = []
    private var eagerDue: Int64?
    private var lastEager: Int64?

    // There are only a few at a time, because each query is answered before the turn ends.
    private var askers: [RouteQuery: [Asker]] = [:]
    private var checks: Set<RouteQuery> = []
    private var neighborAskers: [Neighbor.Key: Set<TargetID>] = [:]
    // Servers on the link that have answered, and whose link-layer addresses are asked for.
    private var learnedNeighbors: Set<Neighbor.Key> = []
    private var counterAskers: [UInt32: Set<TargetID>] = [:]
    private var hops = HopBook()
    // The hosts that are asked by packets with a source address or a mark: what they answer is evidence for the targets of the same packets alone.
    private var selectedHosts: [RouteSelector: HopBook] = [:]
    private var witnesses = WitnessBook()
    // The route queries of name servers that have answered, with the times of the answers.
    private var nameServerQueries: [RouteQuery: Int64] = [:]
    // The number of targets of which a further address is tried now.
    private var surveys = 0
    /// The budgets of metered interfaces.
    private(set) var budgets = MeteredBudgets()
    private var untried = UntriedProbes()
    private var shortage = ProbeShortage()
    /// Whether ``takeShortage()`` has something to return.
    private var shortageChanged = false

    private var localState: LocalState?
    private var hasResumed = false
    private var interfaceUses: [UInt32: Int] = [:]
    /// Whether the set of used interfaces has changed since ``takeUsedInterfaces()``.
    private(set) var usedInterfacesChanged = false
    private var budgetTime: Int64 = .min
    private var budget = 0

    /// Creates a fleet without targets. `groupingLimit` is the number of route queries above which they are
    /// shared.
    init(groupingLimit: Int = RouteBook.defaultGroupingLimit) { book = RouteBook(groupingLimit: groupingLimit) }

    // MARK: Targets

    /// The number of targets.
    var count: Int { slab.count }

    /// The numbers of all targets, in order.
    var ids: [TargetID] { slab.ids }

    /// Returns a target's machine; `nil` if there is none.
    subscript(id: TargetID) -> TargetMachine? { slab.slot(of: id).flatMap { slab[$0] } }

    /// Returns a target's endpoint; `nil` if there is no such target.
    func endpoint(of id: TargetID) -> Endpoint? { slab.slot(of: id).flatMap { slab[$0]?.endpoint } }

    /// Returns a target's settings; `nil` if there is no such target.
    func settings(of id: TargetID) -> ProbeSettings? { slab.slot(of: id).flatMap { slab[$0]?.settings } }

    /// Returns whether the target has not begun yet.
    func isWaiting(_ id: TargetID) -> Bool { self[id].map { !$0.hasBegun } ?? false }

    /// Sets the seed of random draws.
    mutating func begin(seed: UInt64) { random = SplitMix64(seed: seed) }

    /// Sets the number of sockets that the process's descriptors allow at the same time.
    mutating func setProbeLimit(_ limit: Int) { admission.setLimit(limit) }

    /// Adds a target, which begins in a later turn. Does nothing if a target with this number exists.
    mutating func add(_ id: TargetID, _ endpoint: Endpoint, _ settings: ProbeSettings) {
        guard slab.slot(of: id) == nil else { return }
        let slot = slab.add(TargetMachine(id: id, endpoint: endpoint, settings: settings, firstNumber: id.firstNumber))
        while traits.count <= slot { traits.append(Traits()) }
        traits[slot] = Traits(lane: slab[slot]?.lane ?? ProbeAdmission.Lane(.v4, .untried))
        if settings.initialInterval != nil { eager.insert(id) }
        waiting.append(id)
    }

    /// Removes a target.
    ///
    /// - Returns: the cancellations of its running attempts and lookup.
    mutating func remove(_ id: TargetID, _ snapshot: KernelSnapshot) -> [Effect] {
        guard let slot = slab.slot(of: id), let machine = slab[slot] else { return [] }
        book.move(id, from: machine.queries, to: [], in: snapshot)
        count(machine.usedInterfaces, -1)
        if let lane = traits[slot].running { admission.add(-Int(traits[slot].sockets), to: lane) }
        if traits[slot].isSurveying { surveys -= 1 }
        due.set(slot, due: nil)
        ramp.remove(id)
        unrouted.remove(id)
        if !eager.isEmpty { eager.remove(id) }
        traits[slot] = Traits()
        slab.remove(id)
        if slab.count == 0 {
            (waiting, begun, losses) = ([], 0, [])
            postponed = [[TargetID]](repeating: [], count: ProbeAdmission.Lane.count)
        }
        budgets.cancel(machine.runningAttempts)
        return machine.runningAttempts.map { .cancel(attempt: $0) } + [.cancelLookup(id)]
    }

    /// The interfaces over which the targets are probed, or were last.
    mutating func takeUsedInterfaces() -> Set<UInt32> {
        usedInterfacesChanged = false
        return Set(interfaceUses.keys)
    }

    private mutating func count(_ interfaces: InterfaceSet, _ step: Int) {
        for interface in interfaces {
            let uses = interfaceUses[interface, default: 0] + step
            if uses == 0 || uses == step { usedInterfacesChanged = true }
            interfaceUses[interface] = uses > 0 ? uses : nil
        }
    }

    // MARK: Changes of the local state

    /// Applies changes of the kernel's state. `snapshot` is the state after them.
    mutating func apply(_ changes: [KernelChange], _ snapshot: KernelSnapshot) {
        book.apply(changes, snapshot)
        for change in changes {
            switch change {
            // Behind a link that has lost its carrier, other hosts may have the same addresses.
            case .link(let link) where !link.flags.contains(.lowerUp):
                hops.forget(link.index)
                for key in selectedHosts.keys { selectedHosts[key]?.forget(link.index) }
                witnesses.forget(link.index)
            case .linkRemoved(let index):
                hops.forget(index)
                for key in selectedHosts.keys { selectedHosts[key]?.forget(index) }
                witnesses.forget(index)
                budgets.remove(index)
            default: break
            }
        }
    }

    /// Sets the local state after a change.
    mutating func setLocalState(_ state: LocalState?, at now: Moment) {
        localState = state
        book.expire()
        unroutedDue = unroutedDue ?? lastUnrouted?.addingSaturated(unroutedGap) ?? now.monotonicNanoseconds
        hurryEagerTargets(at: now)
    }

    /// Notes that the kernel's answers may have changed, although the local state has not.
    mutating func expireRoutes() { book.expire() }

    /// Notes a change that may hurry the next probe of targets whose interval grows.
    mutating func hurryEagerTargets(at now: Moment) {
        guard !eager.isEmpty else { return }
        let gap = max(TargetMachine.recheckGap, Int64(eager.count) * 10_000)
        eagerDue = eagerDue ?? lastEager?.addingSaturated(gap) ?? now.monotonicNanoseconds
    }

    /// Notes that the machine has resumed from suspend.
    mutating func resumed() { hasResumed = true }

    // The minimum time between two notices of all targets that any change may concern, in nanoseconds. It bounds their work.
    private var unroutedGap: Int64 { max(TargetMachine.recheckGap, Int64(unrouted.count) * 10_000) }

    // MARK: The turn

    /// The time at which ``turn(_:at:)`` is due without another event, in nanoseconds; `.min` for at once, `nil` for never.
    var deadline: Int64? {
        guard localState != nil, slab.count > 0 else { return nil }
        if book.hasMoved || witnesses.mustSearch { return .min }
        if !losses.isEmpty || begun < waiting.count || canResume { return .min }
        return [
            due.next, book.checkDue, unrouted.isEmpty ? nil : unroutedDue, eager.isEmpty ? nil : eagerDue,
            admitsNotice ? ramp.due : nil, shortage.deadline,
            untried.first.flatMap { untriedWait ? $0.due : nil },
        ].compactMap { $0 }.min()
    }

    /// Whether the target of the next notice may start a probe.
    private var admitsNotice: Bool {
        ramp.head.flatMap { slab.slot(of: $0) }.map { admission.allows(traits[$0].lane) } ?? true
    }

    /// Whether targets without a result wait for sockets.
    private var untriedWait: Bool { ProbeAdmission.Lane.untried.contains { !postponed[$0.index].isEmpty } }

    private var canResume: Bool {
        postponed.indices.contains { lane in
            guard let first = postponed[lane].first else { return false }
            return slab.slot(of: first).map { admission.allows(traits[$0].lane) } ?? true
        }
    }

    /// Performs all due work, up to the budget of the turn. Returns the effects, in order.
    mutating func turn(_ snapshot: KernelSnapshot, at now: Moment) -> [Effect] {
        guard localState != nil, slab.count > 0 else { return [] }
        let time = now.monotonicNanoseconds
        if budgetTime != time { (budgetTime, budget) = (time, Self.turnBudget) }
        var effects: [Effect] = []
        if hasResumed {
            hasResumed = false
            unroutedDue = nil
            hops.forgetAll()
            for key in selectedHosts.keys { selectedHosts[key]?.forgetAll() }
            witnesses.forgetAll()
            ramp.add(slab.ids.filter { !isWaiting($0) }, hasResumed: true, using: &random, at: time)
        }
        if let due = unroutedDue, due <= time {
            (unroutedDue, lastUnrouted) = (nil, time)
            ramp.add(unrouted.sorted(), hasResumed: false, using: &random, at: time)
        }
        if let due = eagerDue, due <= time {
            (eagerDue, lastEager) = (nil, time)
            ramp.add(eager.sorted(), hasResumed: false, using: &random, at: time)
        }
        if book.hasMoved { ramp.add(book.takeMoved(), hasResumed: false, using: &random, at: time) }
        let queries = book.takeCheck(at: time)
        checks.formUnion(queries)
        effects += queries.map { .askRoute($0) }
        notify(&effects, snapshot, now)
        preemptUntried(&effects, snapshot, now)
        // Before targets that begin: these would otherwise delay the probes of others by as many turns.
        resumePostponed(&effects, snapshot, now)
        tickDue(&effects, snapshot, now)
        beginWaiting(&effects, snapshot, now)
        startSearches(&effects, now)
        if shortage.update(isWaiting: isShortOfFiles, at: time) { shortageChanged = true }
        return effects
    }

    private func isPostponed(_ id: TargetID) -> Bool { slab.slot(of: id).map { traits[$0].isPostponed } ?? false }

    private mutating func notify(_ effects: inout [Effect], _ snapshot: KernelSnapshot, _ now: Moment) {
        var taken = 0
        while taken < losses.count, budget > 0 {
            budget -= 1
            effects += deliver(losses[taken], .localStateChanged, snapshot, at: now)
            taken += 1
        }
        if taken == losses.count { losses = [] } else { losses.removeFirst(taken) }
        while budget > 0, admitsNotice, let notice = ramp.takeNext(at: now.monotonicNanoseconds) {
            budget -= 1
            effects += deliver(notice.target, notice.hasResumed ? .resumed : .localStateChanged, snapshot, at: now)
        }
    }

    private mutating func beginWaiting(_ effects: inout [Effect], _ snapshot: KernelSnapshot, _ now: Moment) {
        while budget > 0, begun < waiting.count {
            budget -= 1
            begun += 1
            let id = waiting[begun - 1]
            // Without room, the first probe is due at once, and waits with those of other targets.
            let slot = slab.slot(of: id)
            let allowsProbe = slot.map { admission.allows(traits[$0].lane) } ?? false
            let fresh = allowsProbe ? slot.flatMap { freshAnswer(for: $0, now) } : nil
            effects += deliver(id, .begin, snapshot, at: now, allowsProbe: allowsProbe, fresh: fresh)
        }
        if begun == waiting.count {
            (waiting, begun) = ([], 0)
        } else if begun > 4_096 {
            waiting.removeFirst(begun)
            begun = 0
        }
    }

    /// Preempts first probes without an answer if other targets without a result wait for their sockets.
    private mutating func preemptUntried(_ effects: inout [Effect], _ snapshot: KernelSnapshot, _ now: Moment) {
        while budget > 0, let probe = untried.first {
            let runs = slab.slot(of: probe.target).map { traits[$0].running?.experience == .untried } ?? false
            guard !runs || untriedWait && probe.due <= now.monotonicNanoseconds else { return }
            untried.removeFirst()
            guard runs else { continue }
            budget -= 1
            effects += deliver(probe.target, .preempted, snapshot, at: now)
        }
    }

    private mutating func resumePostponed(_ effects: inout [Effect], _ snapshot: KernelSnapshot, _ now: Moment) {
        // Usually nothing waits.
        guard postponed.contains(where: { !$0.isEmpty }) else { return admission.hasUntriedWaiting = false }
        for lane in postponed.indices where !postponed[lane].isEmpty {
            admission.hasUntriedWaiting = untriedWait
            var taken = 0
            while taken < postponed[lane].count, budget > 0 {
                let id = postponed[lane][taken]
                if let slot = slab.slot(of: id), traits[slot].isPostponed {
                    guard admission.allows(traits[slot].lane) else {
                        lacksSockets[lane] = !admission.allowsSocket(traits[slot].lane)
                        break
                    }
                    traits[slot].isPostponed = false
                    budget -= 1
                    effects += startProbe(slot, id, snapshot, now)
                }
                taken += 1
            }
            if taken == postponed[lane].count { postponed[lane] = [] } else { postponed[lane].removeFirst(taken) }
        }
    }

    private mutating func tickDue(_ effects: inout [Effect], _ snapshot: KernelSnapshot, _ now: Moment) {
        while budget > 0, let slot = due.takeDue(at: now.monotonicNanoseconds) {
            guard let probe = slab[slot]?.startsProbe(at: now.monotonicNanoseconds) else { continue }
            budget -= 1
            if probe.isDue, !traits[slot].isPostponed {
                if admission.allows(traits[slot].lane) {
                    effects += startProbe(slot, probe.id, snapshot, now)
                    continue
                }
                traits[slot].isPostponed = true
                let lane = traits[slot].lane
                if postponed[lane.index].isEmpty { lacksSockets[lane.index] = !admission.allowsSocket(lane) }
                postponed[lane.index].append(probe.id)
                let other = slab[slot]?.dueBesideProbe()
                guard let other, other <= now.monotonicNanoseconds else {
                    due.set(slot, due: other)
                    continue
                }
            }
            effects += deliver(probe.id, .tick, snapshot, at: now, allowsProbe: !probe.isDue)
        }
    }

    /// Starts a probe that is due and has room, or lets it wait for the budget of its metered interface.
    private mutating func startProbe(
        _ slot: Int, _ id: TargetID, _ snapshot: KernelSnapshot, _ now: Moment
    ) -> [Effect] {
        let time = now.monotonicNanoseconds
        if let (key, scheme) = slab[slot]?.budgetUse(),
            let turn = budgets.turn(key, scheme, hasWaited: traits[slot].hasTurn, at: time)
        {
            traits[slot].hasTurn = true
            return deliver(id, .paused(until: turn), snapshot, at: now)
        }
        return deliver(id, .tick, snapshot, at: now, fresh: freshAnswer(for: slot, now))
    }

    // MARK: Shortage of sockets

    /// Returns whether the limit of open files now delays probes, and the targets that wait; `nil` if this has not changed since the
    /// last call.
    mutating func takeShortage() -> (isReported: Bool, waiting: [TargetID])? {
        guard shortageChanged else { return nil }
        shortageChanged = false
        let waiting = shortage.isReported ? waitingForSockets : []
        return (shortage.isReported, waiting)
    }

    /// The targets that wait for sockets. Others wait for places of TLS handshakes.
    private var waitingForSockets: [TargetID] {
        postponed.indices.flatMap { lacksSockets[$0] ? postponed[$0].filter { isPostponed($0) } : [] }
    }

    /// Whether targets wait because of the limit of open files.
    private var isShortOfFiles: Bool {
        admission.isLimitedByFiles && postponed.indices.contains { lacksSockets[$0] && !postponed[$0].isEmpty }
    }

    // MARK: Delivery

    /// Returns the budget from which a target's probes take their bytes; `nil` for none.
    private mutating func budgetKey(of id: TargetID) -> MeteredBudgets.Key? {
        slab.slot(of: id).flatMap { slab[$0]?.budgetKey() }
    }

    /// Returns the answer to the only route query of a target's next probe; `nil` if the kernel must be asked.
    private mutating func freshAnswer(for slot: Int, _ now: Moment) -> TargetMachine.FreshAnswer? {
        guard let query = slab[slot]?.queryOfNextProbe(), let answer = book.answer(to: query, at: now.monotonicNanoseconds) else {
            return nil
        }
        return TargetMachine.FreshAnswer(query: query, answer: answer)
    }

    private mutating func deliver(
        _ id: TargetID, _ event: TargetMachine.Event, _ snapshot: KernelSnapshot, at now: Moment, allowsProbe: Bool = true,
        fresh: TargetMachine.FreshAnswer? = nil
    ) -> [Effect] {
        let allowances = TargetMachine.Allowances(
            survey: surveys < admission.limit / 8, probe: allowsProbe, repetition: admission.allowsRepetition)
        guard let localState, let slot = slab.slot(of: id),
            let (before, found, after, timing) = slab[slot]?.handleOnce(
                event, in: localState, at: now, allowing: allowances, fresh: fresh)
        else { return [] }
        if after.queries != before.queries { book.move(id, from: before.queries, to: after.queries, in: snapshot) }
        if after.interfaces != before.interfaces {
            count(before.interfaces, -1)
            count(after.interfaces, 1)
        }
        if timing.isConcernedByEveryChange { unrouted.insert(id) } else if !unrouted.isEmpty { unrouted.remove(id) }
        let ran = traits[slot].running
        update(slot, timing)
        if ran == nil, traits[slot].running?.experience == .untried, let timeout = slab[slot]?.settings.timeout {
            untried.add(id, timeout: timeout, at: now.monotonicNanoseconds)
        }
        if let key = timing.budgetKey { budgets.count(found, key, at: now.monotonicNanoseconds) }
        guard !found.isEmpty else { return [] }
        var effects: [Effect] = []
        effects.reserveCapacity(found.count)
        for effect in found {
            switch effect {
            case .resolve(let request): effects.append(.resolve(request))
            case .askRoute(let query): effects += ask(id, query, snapshot, at: now)
            case .connect(let attempt): effects.append(.connect(attempt))
            case .cancel(let attempt):
                budgets.cancel([attempt])
                effects.append(.cancel(attempt: attempt))
            case .askNeighbor(let key):
                neighborAskers[key, default: []].insert(id)
                effects.append(.askNeighbor(key))
            case .askHost(let request): effects += ask(id, request, snapshot, at: now)
            case .readCounters(let interface):
                if counterAskers[interface] == nil { effects.append(.readCounters(interface)) }
                counterAskers[interface, default: []].insert(id)
            case .search(let request): effects += search(id, request, snapshot, at: now)
            case .noteAlive(let hop, let proof):
                if case .target(let address, let port) = proof {
                    witnesses.noteTarget(id, address, port: port, behind: hop, at: now.monotonicNanoseconds)
                }
                if case .target(hop.address, _) = proof, hops.mustLearn(hop, at: now.monotonicNanoseconds) {
                    learnedNeighbors.insert(hop)
                    effects.append(.askNeighbor(hop))
                }
                // The far end of a tunnel has no address that could be asked.
                if !hop.address.isUnspecified, hops.noteAlive(hop, by: proof, at: now.monotonicNanoseconds) {
                    effects.append(.askHost(HostQuery(hop, isBound: true)))
                }
            case .note(let report, let hop): hops.note(report, behind: hop)
            case .publish(let update): effects.append(.emit(.server(id, update)))
            case .report(let report): effects.append(.emit(.probe(id, report)))
            }
        }
        return effects
    }

    // Keeps the number of running probes and the time of the next tick.
    private mutating func update(_ slot: Int, _ timing: TargetMachine.Timing) {
        let sockets = UInt8(clamping: timing.socketCount)
        if sockets != traits[slot].sockets {
            // The lane of a running probe stays the same.
            let lane = traits[slot].running ?? traits[slot].lane
            admission.add(Int(sockets) - Int(traits[slot].sockets), to: lane)
            traits[slot].running = sockets > 0 ? lane : nil
            traits[slot].sockets = sockets
        }
        if timing.isSurveying != traits[slot].isSurveying { surveys += timing.isSurveying ? 1 : -1 }
        traits[slot].isSurveying = timing.isSurveying
        traits[slot].lane = timing.lane
        if timing.isProbing { (traits[slot].isPostponed, traits[slot].hasTurn) = (false, false) }
        due.set(slot, due: traits[slot].isPostponed ? slab[slot]?.dueBesideProbe() : timing.deadline)
    }

    // MARK: Answers

    /// Delivers the answer to a lookup, and returns the effects.
    mutating func lookedUp(_ answer: LookupAnswer, _ snapshot: KernelSnapshot, at now: Moment) -> [Effect] {
        noteNameServers(answer, at: now) + deliver(TargetID(owning: answer.id), .lookup(answer), snapshot, at: now)
    }

    /// Delivers the result of an attempt, and returns the effects.
    mutating func probed(_ result: ProbeResult, _ snapshot: KernelSnapshot, at now: Moment) -> [Effect] {
        let id = TargetID(owning: result.id)
        if let count = result.retransmissions, count > 0, let key = budgetKey(of: id) {
            budgets.spend(count * ProbeBytes.retransmission(.v6), key, at: now.monotonicNanoseconds)
        }
        budgets.settle(result, at: now.monotonicNanoseconds)
        return deliver(id, .probe(result), snapshot, at: now)
    }

    /// Delivers the outcome of a connection that another part of the program made, and returns the effects.
    mutating func reported(
        _ outcome: PassiveReport.Outcome, to id: TargetID, _ snapshot: KernelSnapshot, at now: Moment
    ) -> [Effect] { deliver(id, .reported(outcome), snapshot, at: now) }

    /// Delivers the state of a next hop to the targets that asked for it, and returns the effects.
    mutating func neighborAnswered(
        _ key: Neighbor.Key, _ answer: NeighborAnswer, _ snapshot: KernelSnapshot, at now: Moment
    ) -> [Effect] {
        if learnedNeighbors.remove(key) != nil { hops.learn(key, answer) }
        var effects: [Effect] = []
        // A fixed order, so that a replay emits the same events.
        for id in (neighborAskers.removeValue(forKey: key) ?? []).sorted() {
            effects += deliver(id, .neighbor(key, answer), snapshot, at: now)
        }
        return effects
    }

    /// Delivers the packet counters of an interface to the targets that asked for them, and returns the effects.
    mutating func counted(
        _ interface: UInt32, _ counters: LinkCounters?, _ snapshot: KernelSnapshot, at now: Moment
    ) -> [Effect] {
        var effects: [Effect] = []
        for id in (counterAskers.removeValue(forKey: interface) ?? []).sorted() {
            effects += deliver(id, .counters(interface, counters), snapshot, at: now)
        }
        return effects
    }

    /// Delivers the reply of a host to the targets that asked for it, and returns the effects.
    mutating func hostReplied(
        _ query: HostQuery, _ reply: HostReply, _ snapshot: KernelSnapshot, at now: Moment
    ) -> [Effect] {
        var effects: [Effect] = []
        let time = now.monotonicNanoseconds
        let states =
            query.selector.map { selectedHosts[$0]?.receive(query, reply, at: time) ?? [] }
            ?? hops.receive(query, reply, at: time)
        for (id, state) in states {
            effects += deliver(id, .host(query.host, state), snapshot, at: now)
        }
        return effects
    }

    private mutating func ask(
        _ id: TargetID, _ request: HopBook.Request, _ snapshot: KernelSnapshot, at now: Moment
    ) -> [Effect] {
        let (state, query) = state(of: request, for: id, at: now.monotonicNanoseconds)
        if let state { return deliver(id, .host(request.query.host, state), snapshot, at: now) }
        return query.map { [.askHost($0)] } ?? []
    }

    /// The number of books for packets with a source address or a mark at which those without a question are removed.
    private static let selectedLimit = 64

    private mutating func state(
        of request: HopBook.Request, for id: TargetID, at now: Int64
    ) -> (state: HopBook.State?, query: HostQuery?) {
        guard let selector = request.query.selector else { return hops.state(request, for: id, at: now) }
        if selectedHosts.count >= Self.selectedLimit, selectedHosts[selector] == nil {
            selectedHosts = selectedHosts.filter { $0.value.isWaited }
        }
        return selectedHosts[selector, default: HopBook()].state(request, for: id, at: now)
    }

    // MARK: Witnesses

    /// Returns the queries for the routes to name servers that have answered: one behind a gateway is a witness for the targets there.
    private mutating func noteNameServers(_ answer: LookupAnswer, at now: Moment) -> [Effect] {
        var effects: [Effect] = []
        for exchange in answer.families.flatMap(\.exchanges) where exchange.outcome == .answered {
            let server = exchange.server
            guard !server.address.isLoopback, server.zone == nil, localState?.isOwn(server.address) == false else { continue }
            let query = RouteQuery(server.address, port: server.port)
            // The question was sent since then. Its answer may have waited for this process.
            let time = now.monotonicNanoseconds.addingSaturated(-max(0, answer.elapsedNanoseconds))
            if nameServerQueries.updateValue(time, forKey: query) == nil {
                checks.insert(query)
                effects.append(.askRoute(query))
            }
        }
        return effects
    }

    private mutating func noteNameServer(_ query: RouteQuery, _ answer: RouteAnswer) {
        guard let time = nameServerQueries.removeValue(forKey: query), let localState else { return }
        let candidate = Candidate(address: query.destination, port: query.port, zone: 0, boundTo: 0)
        guard let route = candidateRoute(of: candidate, by: answer, in: localState)?.route, route.gateway != nil,
            let hop = route.firstHop(to: query.destination, in: localState)
        else { return }
        witnesses.noteNameServer(query.destination, port: query.port, behind: hop, at: time)
    }

    /// Delivers what is known about the way behind a first hop, or lets the target wait for a search.
    private mutating func search(
        _ id: TargetID, _ request: WitnessBook.Request, _ snapshot: KernelSnapshot, at now: Moment
    ) -> [Effect] {
        guard let state = witnesses.state(request, for: id, at: now.monotonicNanoseconds) else { return [] }
        return deliver(id, .searched(request.hop, state), snapshot, at: now)
    }

    /// Starts the searches for which targets wait. At the end of a turn, so that all of its targets share one.
    private mutating func startSearches(_ effects: inout [Effect], _ now: Moment) {
        guard witnesses.mustSearch else { return }
        let searches = witnesses.takeSearches(at: now.monotonicNanoseconds) { id in
            slab.slot(of: id).flatMap { slab[$0]?.isReachable } ?? false
        }
        effects += searches.map { .search($0) }
    }

    /// Delivers the reply of a search to the targets that wait for it, and to those that it connected to. Returns the effects.
    mutating func searched(
        _ hop: Neighbor.Key, _ reply: HopSearchReply, _ snapshot: KernelSnapshot, at now: Moment
    ) -> [Effect] {
        guard let localState else { return [] }
        let outcome = witnesses.receive(hop, reply, isOwn: localState.isOwn, at: now.monotonicNanoseconds)
        var effects: [Effect] = []
        for (id, state) in outcome.waiting { effects += deliver(id, .searched(hop, state), snapshot, at: now) }
        if let (id, address, roundTrip) = outcome.answered {
            let success = PassiveReport.Outcome.success(address: address, roundTrip: .nanoseconds(roundTrip))
            effects += deliver(id, .reported(success), snapshot, at: now)
        }
        for id in outcome.silent { effects += deliver(id, .reported(.failure), snapshot, at: now) }
        return effects
    }

    /// Stores the kernel's answer to a query, and delivers it to the targets that wait for it. Other targets are notified if the
    /// answer has changed: at once if their route is blocked, otherwise at the rate of ``NoticeRamp``. Returns the effects.
    mutating func routeAnswered(
        _ query: RouteQuery, _ answer: RouteAnswer, _ snapshot: KernelSnapshot, at now: Moment
    ) -> [Effect] {
        noteNameServer(query, answer)
        let asked = askers.removeValue(forKey: query) ?? []
        guard checks.remove(query) != nil || !asked.isEmpty, let localState else { return [] }
        var changed: (targets: [TargetID], isOpen: Bool) = ([], false)
        if !query.showsAll { changed = book.receive(query, answer, in: localState, at: now.monotonicNanoseconds) }
        var effects: [Effect] = []
        for asker in asked { effects += deliver(asker.target, .route(asker.query, answer), snapshot, at: now) }
        if !changed.isOpen {
            losses += changed.targets
        } else {
            ramp.add(changed.targets, hasResumed: false, using: &random, at: now.monotonicNanoseconds)
        }
        notify(&effects, snapshot, now)
        return effects
    }

    private mutating func ask(_ id: TargetID, _ query: RouteQuery, _ snapshot: KernelSnapshot, at now: Moment) -> [Effect] {
        if query.showsAll {
            askers[query, default: []].append(Asker(target: id, query: query))
            return [.askRoute(query)]
        }
        if let answer = book.answer(to: query, at: now.monotonicNanoseconds) {
            return deliver(id, .route(query, answer), snapshot, at: now)
        }
        let sent = book.representative(of: query)
        let isPending = askers[sent] != nil || checks.contains(sent)
        askers[sent, default: []].append(Asker(target: id, query: query))
        return isPending ? [] : [.askRoute(sent)]
    }
}
