internal import Pacing

/// All targets of a monitor: the times of their probes, their shared routes, and the delivery of answers to them.
///
/// A turn handles at most ``turnBudget`` targets. If more have work, the next turn follows at once, so that the monitor reads the
/// kernel's events and the answers of servers in between.
struct Fleet: Sendable {
    typealias Effect = MonitorMachine.Effect

    /// The maximum number of targets that begin, are notified or reach a deadline in one turn.
    static let turnBudget = 256

    private struct Traits: Hashable, Sendable {
        var lane = ProbeAdmission.Lane(.v4, isSuspect: false)
        /// The lane of the running probe; `nil` if none runs.
        var running: ProbeAdmission.Lane?
        var isPostponed = false
        /// Whether an attempt to a further address runs.
        var isSurveying = false
    }

    /// A target that waits for the answer to a query.
    struct Asker: Hashable, Sendable {
        let target: TargetID
        let query: RouteQuery
    }

    private var slab = TargetSlab()
    private var traits: [Traits] = []
    private var due = DueHeap()
    var book: RouteBook
    var admission = ProbeAdmission()
    var random = SplitMix64(seed: 0)

    // Targets that have not begun; those before `begun` have.
    private var waiting: [TargetID] = []
    private var begun = 0
    // Targets whose probe is due, by lane, until the lane has room.
    private var postponed = [[TargetID]](repeating: [], count: ProbeAdmission.Lane.count)
    // Targets that are notified in the next turn, before others: their route is blocked now, or no route query represents them.
    var losses: [TargetID] = []
    var ramp = NoticeRamp()
    // Targets without a route query or with a failed lookup: any change may concern them.
    private var unrouted: Set<TargetID> = []
    private var unroutedDue: Int64?
    private var lastUnrouted: Int64?

    // There are only a few at a time, because each query is answered before the turn ends.
    var askers: [RouteQuery: [Asker]] = [:]
    var checks: Set<RouteQuery> = []
    var neighborAskers: [Neighbor.Key: Set<TargetID>] = [:]
    var counterAskers: [UInt32: Set<TargetID>] = [:]
    var hops = HopBook()
    // The number of targets of which a further address is tried now.
    private var surveys = 0

    var localState: TargetMachine.LocalState?
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

    /// Returns whether the target has not begun yet.
    func isWaiting(_ id: TargetID) -> Bool { self[id].map { !$0.hasBegun } ?? false }

    /// Sets the seed of random draws.
    mutating func begin(seed: UInt64) { random = SplitMix64(seed: seed) }

    /// Sets the number of probes that the process's descriptors allow at the same time.
    mutating func setProbeLimit(_ limit: Int) { admission.setCeiling(limit) }

    /// Adds a target, which begins in a later turn. Does nothing if a target with this number exists.
    mutating func add(_ id: TargetID, _ endpoint: Endpoint, _ settings: ProbeSettings) {
        guard slab.slot(of: id) == nil else { return }
        let slot = slab.add(TargetMachine(id: id, endpoint: endpoint, settings: settings, firstNumber: id.firstNumber))
        while traits.count <= slot { traits.append(Traits()) }
        traits[slot] = Traits(lane: slab[slot]?.lane ?? ProbeAdmission.Lane(.v4, isSuspect: false))
        waiting.append(id)
    }

    /// Removes a target.
    ///
    /// - Returns: the cancellations of its running attempts and lookup.
    mutating func remove(_ id: TargetID, _ snapshot: Kernel.Snapshot) -> [Effect] {
        guard let slot = slab.slot(of: id), let machine = slab[slot] else { return [] }
        book.move(id, from: machine.queries, to: [], in: snapshot)
        count(machine.usedInterfaces, -1)
        if let lane = traits[slot].running { admission.end(lane) }
        if traits[slot].isSurveying { surveys -= 1 }
        due.set(slot, due: nil)
        ramp.remove(id)
        unrouted.remove(id)
        traits[slot] = Traits()
        slab.remove(id)
        if slab.count == 0 {
            (waiting, begun, losses) = ([], 0, [])
            postponed = [[TargetID]](repeating: [], count: ProbeAdmission.Lane.count)
        }
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
    mutating func apply(_ changes: [Kernel.Change], _ snapshot: Kernel.Snapshot) {
        book.apply(changes, snapshot)
        for change in changes {
            switch change {
            // Behind a link that has lost its carrier, other hosts may have the same addresses.
            case .link(let link) where !link.flags.contains(.lowerUp): hops.forget(link.index)
            case .linkRemoved(let index): hops.forget(index)
            default: break
            }
        }
    }

    /// Sets the local state after a change.
    mutating func setLocalState(_ state: TargetMachine.LocalState?, at now: Moment) {
        localState = state
        book.expire()
        unroutedDue = unroutedDue ?? lastUnrouted?.addingSaturated(unroutedGap) ?? now.monotonicNanoseconds
    }

    /// Notes that the machine has resumed from suspend.
    mutating func resumed() { hasResumed = true }

    // The minimum time between two notices of all targets that any change may concern, in nanoseconds. It bounds their work.
    private var unroutedGap: Int64 { max(TargetMachine.recheckGap, Int64(unrouted.count) * 10_000) }

    // MARK: The turn

    /// The time at which ``turn(_:at:)`` is due without another event, in nanoseconds; `.min` for at once, `nil` for never.
    var deadline: Int64? {
        guard localState != nil, slab.count > 0 else { return nil }
        if book.hasMoved { return .min }
        if !losses.isEmpty || canBegin || canResume { return .min }
        return [due.next, book.checkDue, unrouted.isEmpty ? nil : unroutedDue, admitsNotice ? ramp.due : nil].compactMap { $0 }
            .min()
    }

    /// Whether the target of the next notice may start a probe.
    private var admitsNotice: Bool {
        ramp.head.flatMap { slab.slot(of: $0) }.map { admission.allows(traits[$0].lane) } ?? true
    }

    private var canBegin: Bool {
        guard begun < waiting.count else { return false }
        guard let slot = slab.slot(of: waiting[begun]) else { return true }
        return admission.allows(traits[slot].lane)
    }

    private var canResume: Bool {
        postponed.indices.contains { lane in
            guard let first = postponed[lane].first else { return false }
            return slab.slot(of: first).map { admission.allows(traits[$0].lane) } ?? true
        }
    }

    /// Performs all due work, up to the budget of the turn. Returns the effects, in order.
    mutating func turn(_ snapshot: Kernel.Snapshot, at now: Moment) -> [Effect] {
        guard localState != nil, slab.count > 0 else { return [] }
        let time = now.monotonicNanoseconds
        if budgetTime != time { (budgetTime, budget) = (time, Self.turnBudget) }
        var effects: [Effect] = []
        if hasResumed {
            hasResumed = false
            unroutedDue = nil
            hops.forgetAll()
            ramp.add(slab.ids.filter { !isWaiting($0) }, hasResumed: true, using: &random, at: time)
        }
        if let due = unroutedDue, due <= time {
            (unroutedDue, lastUnrouted) = (nil, time)
            ramp.add(unrouted.sorted(), hasResumed: false, using: &random, at: time)
        }
        if book.hasMoved { ramp.add(book.takeMoved(), hasResumed: false, using: &random, at: time) }
        let queries = book.takeCheck(at: time)
        checks.formUnion(queries)
        effects += queries.map { .askRoute($0) }
        notify(&effects, snapshot, now)
        beginWaiting(&effects, snapshot, now)
        resumePostponed(&effects, snapshot, now)
        tickDue(&effects, snapshot, now)
        return effects
    }

    mutating func notify(_ effects: inout [Effect], _ snapshot: Kernel.Snapshot, _ now: Moment) {
        var taken = 0
        while taken < losses.count, budget > 0 {
            budget -= 1
            effects += deliver(losses[taken], .localStateChanged, snapshot, at: now)
            taken += 1
        }
        if taken == losses.count { losses = [] } else { losses.removeFirst(taken) }
        while budget > 0, admitsNotice, let notice = ramp.take(at: now.monotonicNanoseconds) {
            budget -= 1
            effects += deliver(notice.target, notice.hasResumed ? .resumed : .localStateChanged, snapshot, at: now)
        }
    }

    private mutating func beginWaiting(_ effects: inout [Effect], _ snapshot: Kernel.Snapshot, _ now: Moment) {
        while budget > 0, canBegin {
            budget -= 1
            begun += 1
            let id = waiting[begun - 1]
            let query = slab.slot(of: id).flatMap { slab[$0]?.takeOnlyQuery() }
            effects += deliver(id, .begin, snapshot, at: now, fresh: query.flatMap { freshAnswer(to: $0, now) })
        }
        if begun == waiting.count {
            (waiting, begun) = ([], 0)
        } else if begun > 4_096 {
            waiting.removeFirst(begun)
            begun = 0
        }
    }

    private mutating func resumePostponed(_ effects: inout [Effect], _ snapshot: Kernel.Snapshot, _ now: Moment) {
        for lane in postponed.indices {
            var taken = 0
            while taken < postponed[lane].count, budget > 0 {
                let id = postponed[lane][taken]
                if let slot = slab.slot(of: id), traits[slot].isPostponed {
                    guard admission.allows(traits[slot].lane) else { break }
                    traits[slot].isPostponed = false
                    budget -= 1
                    effects += deliver(id, .tick, snapshot, at: now)
                }
                taken += 1
            }
            if taken == postponed[lane].count { postponed[lane] = [] } else { postponed[lane].removeFirst(taken) }
        }
    }

    private mutating func tickDue(_ effects: inout [Effect], _ snapshot: Kernel.Snapshot, _ now: Moment) {
        while budget > 0, let slot = due.takeDue(at: now.monotonicNanoseconds) {
            guard let tick = slab[slot]?.tick(at: now.monotonicNanoseconds) else { continue }
            if tick.startsProbe, !admission.allows(traits[slot].lane) {
                traits[slot].isPostponed = true
                postponed[traits[slot].lane.index].append(tick.id)
                continue
            }
            budget -= 1
            let fresh = tick.query.flatMap { freshAnswer(to: $0, now) }
            effects += deliver(tick.id, .tick, snapshot, at: now, fresh: fresh)
        }
    }

    // MARK: Delivery

    private func freshAnswer(to query: RouteQuery, _ now: Moment) -> TargetMachine.FreshAnswer? {
        book.answer(to: query, at: now.monotonicNanoseconds).map { TargetMachine.FreshAnswer(query: query, answer: $0) }
    }

    mutating func deliver(
        _ id: TargetID, _ event: TargetMachine.Event, _ snapshot: Kernel.Snapshot, at now: Moment,
        fresh: TargetMachine.FreshAnswer? = nil
    ) -> [Effect] {
        let allowsSurvey = surveys < admission.limit / 8
        guard let localState, let slot = slab.slot(of: id),
            let (before, found, after, timing) = slab[slot]?.handleOnce(
                event, in: localState, at: now, allowsSurvey: allowsSurvey, fresh: fresh)
        else { return [] }
        if after.queries != before.queries { book.move(id, from: before.queries, to: after.queries, in: snapshot) }
        if after.interfaces != before.interfaces {
            count(before.interfaces, -1)
            count(after.interfaces, 1)
        }
        if timing.followsEveryChange { unrouted.insert(id) } else if !unrouted.isEmpty { unrouted.remove(id) }
        update(slot, timing)
        guard !found.isEmpty else { return [] }
        var effects: [Effect] = []
        effects.reserveCapacity(found.count)
        for effect in found {
            switch effect {
            case .resolve(let request): effects.append(.resolve(request))
            case .askRoute(let query): effects += ask(id, query, snapshot, at: now)
            case .connect(let attempt): effects.append(.connect(attempt))
            case .cancel(let attempt): effects.append(.cancel(attempt: attempt))
            case .askNeighbor(let key):
                neighborAskers[key, default: []].insert(id)
                effects.append(.askNeighbor(key))
            case .askHost(let request): effects += ask(id, request, snapshot, at: now)
            case .readCounters(let interface):
                if counterAskers[interface] == nil { effects.append(.readCounters(interface)) }
                counterAskers[interface, default: []].insert(id)
            case .noteAlive(let hop, let proof):
                if hops.noteAlive(hop, by: proof, at: now.monotonicNanoseconds) {
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
        switch (traits[slot].running, timing.isProbing) {
        case (nil, true):
            traits[slot].running = traits[slot].lane
            admission.start(traits[slot].lane)
        case (let lane?, false):
            traits[slot].running = nil
            admission.end(lane)
        default: break
        }
        if timing.isSurveying != traits[slot].isSurveying { surveys += timing.isSurveying ? 1 : -1 }
        traits[slot].isSurveying = timing.isSurveying
        traits[slot].lane = timing.lane
        if timing.isProbing { traits[slot].isPostponed = false }
        due.set(slot, due: traits[slot].isPostponed ? nil : timing.deadline)
    }
}

// The fleet reads these values around each event. The functions are mutating, because a computed property of a machine in the slab
// copies the machine, and a mutating function does not.
extension TargetMachine {
    fileprivate struct Routing {
        let queries: [RouteQuery]
        let interfaces: InterfaceSet
    }

    fileprivate struct Timing {
        let deadline: Int64?
        let lane: ProbeAdmission.Lane
        let isProbing: Bool
        let isSurveying: Bool
        let followsEveryChange: Bool
    }

    /// Handles an event, and returns the values around it. One access to the slab is cheaper than one for each value.
    fileprivate mutating func handleOnce(
        _ event: Event, in localState: LocalState, at now: Moment, allowsSurvey: Bool, fresh: FreshAnswer?
    ) -> (before: Routing, effects: [Effect], after: Routing, timing: Timing) {
        let before = routing()
        let effects = handle(event, in: localState, at: now, allowsSurvey: allowsSurvey, fresh: fresh)
        return (before, effects, routing(), timing())
    }

    fileprivate mutating func routing() -> Routing { Routing(queries: queries, interfaces: usedInterfaces) }

    fileprivate mutating func timing() -> Timing {
        Timing(
            deadline: deadline, lane: lane, isProbing: isProbing, isSurveying: survey?.running != nil,
            followsEveryChange: followsEveryChange)
    }

    /// The target's number, whether a tick at this time starts a probe, and the only route query of that probe.
    fileprivate mutating func tick(at time: Int64) -> (id: TargetID, startsProbe: Bool, query: RouteQuery?) {
        let startsProbe = wouldStartProbe(at: time)
        return (id, startsProbe, startsProbe ? onlyQuery : nil)
    }

    fileprivate mutating func takeOnlyQuery() -> RouteQuery? { onlyQuery }
}
