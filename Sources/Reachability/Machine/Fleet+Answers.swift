internal import Pacing

/// The delivery of answers to the targets that wait for them.
extension Fleet {
    /// A target that waits for the answer to a query.
    struct Asker: Hashable, Sendable {
        let target: TargetID
        let query: RouteQuery
    }

    /// Applies changes of the kernel's state. `snapshot` is the state after them.
    mutating func apply(_ changes: [Kernel.Change], _ snapshot: Kernel.Snapshot) {
        book.apply(changes, snapshot)
        for change in changes {
            switch change {
            // Behind a link that has lost its carrier, other hosts may have the same addresses.
            case .link(let link) where !link.flags.contains(.lowerUp): hops.forget(link.index)
            case .linkRemoved(let index):
                hops.forget(index)
                budgets.remove(index)
            default: break
            }
        }
    }

    /// Delivers the answer to a lookup, and returns the effects.
    mutating func lookedUp(_ answer: LookupAnswer, _ snapshot: Kernel.Snapshot, at now: Moment) -> [Effect] {
        deliver(TargetID(owning: answer.id), .lookup(answer), snapshot, at: now)
    }

    /// Returns whether the target has not begun yet.
    func isWaiting(_ id: TargetID) -> Bool { self[id].map { !$0.hasBegun } ?? false }

    /// Returns the budget from which a target's probes take their bytes; `nil` for none.
    private mutating func budgetKey(of id: TargetID) -> MeteredBudgets.Key? {
        slab.slot(of: id).flatMap { slab[$0]?.budgetKey() }
    }

    /// Delivers the result of an attempt, and returns the effects.
    mutating func probed(_ result: ProbeResult, _ snapshot: Kernel.Snapshot, at now: Moment) -> [Effect] {
        let id = TargetID(owning: result.id)
        if let count = result.retransmissions, count > 0, let key = budgetKey(of: id) {
            budgets.spend(count * ProbeBytes.retransmission(.v6), key, at: now.monotonicNanoseconds)
        }
        budgets.settle(result, at: now.monotonicNanoseconds)
        return deliver(id, .probe(result), snapshot, at: now)
    }

    /// Delivers the outcome of a connection that another part of the program made, and returns the effects.
    mutating func reported(
        _ outcome: PassiveReport.Outcome, to id: TargetID, _ snapshot: Kernel.Snapshot, at now: Moment
    ) -> [Effect] { deliver(id, .reported(outcome), snapshot, at: now) }

    /// Delivers the state of a next hop to the targets that asked for it, and returns the effects.
    mutating func neighborAnswered(
        _ key: Neighbor.Key, _ answer: NeighborAnswer, _ snapshot: Kernel.Snapshot, at now: Moment
    ) -> [Effect] {
        var effects: [Effect] = []
        // A fixed order, so that a replay emits the same events.
        for id in (neighborAskers.removeValue(forKey: key) ?? []).sorted() {
            effects += deliver(id, .neighbor(key, answer), snapshot, at: now)
        }
        return effects
    }

    /// Delivers the packet counters of an interface to the targets that asked for them, and returns the effects.
    mutating func counted(
        _ interface: UInt32, _ counters: LinkCounters?, _ snapshot: Kernel.Snapshot, at now: Moment
    ) -> [Effect] {
        var effects: [Effect] = []
        for id in (counterAskers.removeValue(forKey: interface) ?? []).sorted() {
            effects += deliver(id, .counters(interface, counters), snapshot, at: now)
        }
        return effects
    }

    /// Delivers the reply of a host to the targets that asked for it, and returns the effects.
    mutating func hostReplied(
        _ query: HostQuery, _ reply: HostReply, _ snapshot: Kernel.Snapshot, at now: Moment
    ) -> [Effect] {
        var effects: [Effect] = []
        for (id, state) in hops.take(query, reply, at: now.monotonicNanoseconds) {
            effects += deliver(id, .host(query.host, state), snapshot, at: now)
        }
        return effects
    }

    mutating func ask(
        _ id: TargetID, _ request: HopBook.Request, _ snapshot: Kernel.Snapshot, at now: Moment
    ) -> [Effect] {
        let (state, mustAsk) = hops.state(request, for: id, at: now.monotonicNanoseconds)
        if let state { return deliver(id, .host(request.query.host, state), snapshot, at: now) }
        return mustAsk ? [.askHost(request.query)] : []
    }

    /// Stores the kernel's answer to a query, and delivers it to the targets that wait for it. Other targets are notified if the
    /// answer has changed: at once if their route is blocked, otherwise at the rate of ``NoticeRamp``. Returns the effects.
    mutating func routeAnswered(
        _ query: RouteQuery, _ answer: RouteAnswer, _ snapshot: Kernel.Snapshot, at now: Moment
    ) -> [Effect] {
        let asked = askers.removeValue(forKey: query) ?? []
        guard checks.remove(query) != nil || !asked.isEmpty, let localState else { return [] }
        var changed: (targets: [TargetID], isOpen: Bool) = ([], false)
        if !query.showsAll { changed = book.take(query, answer, in: localState, at: now.monotonicNanoseconds) }
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

    mutating func ask(_ id: TargetID, _ query: RouteQuery, _ snapshot: Kernel.Snapshot, at now: Moment) -> [Effect] {
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
