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
            case .link(let link) where !link.flags.contains(.lowerUp):
                hops.forget(link.index)
                witnesses.forget(link.index)
            case .linkRemoved(let index):
                hops.forget(index)
                witnesses.forget(index)
                budgets.remove(index)
            default: break
            }
        }
    }

    /// Delivers the answer to a lookup, and returns the effects.
    mutating func lookedUp(_ answer: LookupAnswer, _ snapshot: Kernel.Snapshot, at now: Moment) -> [Effect] {
        noteNameServers(answer, at: now) + deliver(TargetID(owning: answer.id), .lookup(answer), snapshot, at: now)
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
        let (state, query) = hops.state(request, for: id, at: now.monotonicNanoseconds)
        if let state { return deliver(id, .host(request.query.host, state), snapshot, at: now) }
        return query.map { [.askHost($0)] } ?? []
    }

    // MARK: Witnesses

    /// Returns the queries for the routes to name servers that have answered: one behind a gateway is a witness for the targets there.
    private mutating func noteNameServers(_ answer: LookupAnswer, at now: Moment) -> [Effect] {
        var effects: [Effect] = []
        for exchange in answer.families.flatMap(\.exchanges) where exchange.outcome == .answered {
            let server = exchange.server
            guard !server.address.isLoopback, server.zone == nil, localState?.isOwn(server.address) == false else { continue }
            let query = RouteQuery(server.address, port: SilentLookup.port)
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
        let candidate = Candidate(address: query.destination, port: SilentLookup.port, zone: 0, boundTo: 0)
        guard let route = candidateRoute(of: candidate, by: answer, in: localState)?.route, route.gateway != nil,
            let hop = route.firstHop(to: query.destination, in: localState)
        else { return }
        witnesses.noteNameServer(query.destination, behind: hop, at: time)
    }

    /// Delivers what is known about the way behind a first hop, or lets the target wait for a search.
    mutating func search(
        _ id: TargetID, _ request: WitnessBook.Request, _ snapshot: Kernel.Snapshot, at now: Moment
    ) -> [Effect] {
        guard let state = witnesses.state(request, for: id, at: now.monotonicNanoseconds) else { return [] }
        return deliver(id, .searched(request.hop, state), snapshot, at: now)
    }

    /// Starts the searches for which targets wait. At the end of a turn, so that all of its targets share one.
    mutating func startSearches(_ effects: inout [Effect], _ now: Moment) {
        guard witnesses.mustSearch else { return }
        let searches = witnesses.takeSearches(at: now.monotonicNanoseconds) { id in
            slab.slot(of: id).flatMap { slab[$0]?.isReachable } ?? false
        }
        effects += searches.map { .search($0) }
    }

    /// Delivers the reply of a search to the targets that wait for it, and to those that it connected to. Returns the effects.
    mutating func searched(
        _ hop: Neighbor.Key, _ reply: HopSearchReply, _ snapshot: Kernel.Snapshot, at now: Moment
    ) -> [Effect] {
        guard let localState else { return [] }
        let outcome = witnesses.take(hop, reply, isOwn: localState.isOwn, at: now.monotonicNanoseconds)
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
        _ query: RouteQuery, _ answer: RouteAnswer, _ snapshot: Kernel.Snapshot, at now: Moment
    ) -> [Effect] {
        noteNameServer(query, answer)
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
