internal import Pacing

/// A monitor without its sockets: the path and the targets, and the delivery of answers to them.
package struct MonitorMachine: Sendable {
    /// A decoded input.
    package enum Event: Sendable {
        case path(PathMachine.Event)
        case route(RouteQuery, RouteAnswer)
        case neighbor(Neighbor.Key, NeighborAnswer)
        case lookup(LookupAnswer)
        case probe(ProbeResult)
        case targetAdded(TargetID, Endpoint, ProbeSettings)
        case targetRemoved(TargetID)
        case turnEnded

        /// Whether the event is a refusal to route a packet.
        var isRefusal: Bool {
            if case .route(_, .refused) = self { true } else { false }
        }
    }

    /// A request of the machine to the loop. Large values are stored by reference, because effects are moved between lists.
    /// Answers for routes, neighbors and evidence return within the same turn.
    package enum Effect: Hashable, Sendable {
        case dump(KernelTable, over: UInt32?, sequence: UInt32)
        case askRoute(RouteQuery)
        case askNeighbor(Neighbor.Key)
        indirect case readEvidence(Link)
        indirect case resolve(LookupRequest)
        indirect case connect(ProbeAttempt)
        case cancel(attempt: UInt64)
        case cancelAll(TargetID)
        indirect case emit(MonitorEvent)
        case changed([Kernel.Change])
    }

    package private(set) var path: PathMachine
    package private(set) var targets: [TargetID: TargetMachine] = [:]
    // There are only a few at a time, because each query is answered before the turn ends.
    private var callers: [Callers] = []
    private var neighborCallers: [Neighbor.Key: Set<TargetID>] = [:]
    private var waiting: [TargetID] = []
    private var localState: TargetMachine.LocalState?
    private var isChanged = false
    private var hasResumed = false
    // Whether the targets' routes use other interfaces than before.
    private var usedInterfacesChanged = false

    private struct Callers: Sendable {
        let query: RouteQuery
        var isPath = false
        var targets: Set<TargetID> = []
    }

    /// Creates a machine. `mergeLimit` is the approximate number of routes of a complete dump that are compared in one turn.
    package init(_ configuration: MonitorConfiguration, mergeLimit: Int = PathMachine.defaultMergeLimit) {
        path = PathMachine(configuration, mergeLimit: mergeLimit)
    }

    /// The time at which ``Event/turnEnded`` is due without another event, on the monotonic clock in nanoseconds; `nil` for
    /// never.
    package var deadline: Int64? {
        var earliest = path.deadline
        guard !path.hasEnded else { return nil }
        for target in targets.values {
            guard let due = target.deadline else { continue }
            earliest = earliest.map { min($0, due) } ?? due
        }
        return earliest
    }

    /// Returns ``deadline`` to an owner that is a class. Reading a computed property of the machine there copies the complete
    /// machine (2,000 instructions); a mutating call does not.
    mutating func nextDeadline() -> Int64? { deadline }

    /// Handles one event and returns the effects, in order.
    package mutating func handle(_ event: Event, at now: Moment) -> [Effect] {
        guard !path.hasEnded else { return [] }
        switch event {
        case .path(let event):
            if case .resumed = event { hasResumed = true }
            if case .resolver = event { isChanged = true }
            return follow(path.handle(event, at: now), at: now)
        case .route(let query, let answer):
            guard let place = callers.firstIndex(where: { $0.query == query }) else { return [] }
            let asked = callers.remove(at: place)
            // A fixed order, so that a replay emits the same events.
            var effects = asked.isPath ? follow(path.handle(.route(query, answer), at: now), at: now) : []
            for id in asked.targets.sorted() { effects += deliver(id, .route(query, answer), at: now) }
            return effects
        case .neighbor(let key, let answer):
            return (neighborCallers.removeValue(forKey: key) ?? []).sorted().flatMap {
                deliver($0, .neighbor(key, answer), at: now)
            }
        case .lookup(let answer): return deliver(TargetID(owning: answer.id), .lookup(answer), at: now)
        case .probe(let result): return deliver(TargetID(owning: result.id), .probe(result), at: now)
        case .targetAdded(let id, let endpoint, let settings):
            targets[id] = TargetMachine(id: id, endpoint: endpoint, settings: settings, firstNumber: id.firstNumber)
            waiting.append(id)
            return []
        case .targetRemoved(let id):
            waiting.removeAll { $0 == id }
            guard let target = targets.removeValue(forKey: id) else { return [] }
            if !target.usedInterfaces.isEmpty { usedInterfacesChanged = true }
            return [.cancelAll(id)]
        case .turnEnded: return endTurn(at: now)
        }
    }

    private mutating func endTurn(at now: Moment) -> [Effect] {
        if usedInterfacesChanged {
            usedInterfacesChanged = false
            path.follow(targets.values.reduce(into: []) { $0.formUnion($1.usedInterfaces) })
        }
        var effects = follow(path.handle(.turnEnded, at: now), at: now)
        // Targets are handled after the path is published, and not while the path waits for answers.
        guard !targets.isEmpty, !path.hasEnded, path.path != nil, !path.isAsking else { return effects }
        if isChanged || localState == nil { localState = makeLocalState() }
        for id in targets.keys.sorted() {
            if waiting.contains(id) {
                effects += deliver(id, .begin, at: now)
                continue
            }
            if hasResumed {
                effects += deliver(id, .resumed, at: now)
            } else if isChanged {
                effects += deliver(id, .localStateChanged, at: now)
            }
            if let due = targets[id]?.deadline, due <= now.monotonicNanoseconds { effects += deliver(id, .tick, at: now) }
        }
        waiting = []
        isChanged = false
        hasResumed = false
        return effects
    }

    private func makeLocalState() -> TargetMachine.LocalState? {
        guard let present = path.path, let resolver = path.resolver else { return nil }
        let own = Set(path.snapshot.addresses.keys.map(\.prefix.address))
        return TargetMachine.LocalState(
            interfaces: path.catalog.interfaces, path: present, isOwn: { own.contains($0) }, hasResolver: resolver.hasNameserver
        )
    }

    private mutating func deliver(_ id: TargetID, _ event: TargetMachine.Event, at now: Moment) -> [Effect] {
        guard let localState, var target = targets[id] else { return [] }
        let used = target.usedInterfaces
        let effects = target.handle(event, in: localState, at: now)
        if used != target.usedInterfaces { usedInterfacesChanged = true }
        targets[id] = target
        return effects.map { effect in
            switch effect {
            case .resolve(let request): return .resolve(request)
            case .askRoute(let query):
                callers[place(of: query)].targets.insert(id)
                return .askRoute(query)
            case .connect(let attempt): return .connect(attempt)
            case .cancel(let attempt): return .cancel(attempt: attempt)
            case .askNeighbor(let key):
                neighborCallers[key, default: []].insert(id)
                return .askNeighbor(key)
            case .publish(let update): return .emit(.server(id, update))
            case .report(let report): return .emit(.probe(id, report))
            }
        }
    }

    private mutating func place(of query: RouteQuery) -> Int {
        if let place = callers.firstIndex(where: { $0.query == query }) { return place }
        callers.append(Callers(query: query))
        return callers.count - 1
    }

    private mutating func follow(_ effects: [PathMachine.Effect], at now: Moment) -> [Effect] {
        guard !effects.isEmpty else { return [] }
        var followed: [Effect] = []
        followed.reserveCapacity(effects.count)
        for effect in effects {
            if case .ended = effect { followed += endTargets(at: now) }
            followed.append(follow(effect, at: now))
        }
        return followed
    }

    /// Reports every target as unreachable, because no packet can be sent from a removed namespace.
    private func endTargets(at now: Moment) -> [Effect] {
        targets.keys.sorted().compactMap { id in
            guard let target = targets[id], let cause = path.path?.cause else { return nil }
            let update = ServerUpdate(
                endpoint: target.endpoint, state: .unreachable, cause: cause, since: now, address: nil, interface: nil,
                roundTrip: nil, isInitial: waiting.contains(id), moment: now
            )
            return .emit(.server(id, update))
        }
    }

    private mutating func follow(_ effect: PathMachine.Effect, at now: Moment) -> Effect {
        switch effect {
        case .dump(let table, let interface, let sequence): return .dump(table, over: interface, sequence: sequence)
        case .askRoute(let query):
            callers[place(of: query)].isPath = true
            return .askRoute(query)
        case .readEvidence(let link): return .readEvidence(link)
        case .publish(let update):
            isChanged = true
            return .emit(.path(update))
        case .resynced(let reason): return .emit(.resync(reason, now))
        case .gap(let nanoseconds):
            // The monotonic clock stopped during the suspend; the wall clock did not.
            let before = Moment(
                monotonicNanoseconds: now.monotonicNanoseconds,
                wallClockNanoseconds: now.wallClockNanoseconds.addingSaturated(-nanoseconds)
            )
            return .emit(.gap(from: before, to: now))
        case .changed(let changes):
            isChanged = true
            return .changed(changes)
        case .ended: return .emit(.ended(now))
        }
    }
}

extension TargetID {
    /// The first number of a target's attempts and lookups. The number of an answer identifies its target.
    var firstNumber: UInt64 { UInt64(UInt32(truncatingIfNeeded: number)) << 32 }

    init(owning attempt: UInt64) { self.init(Int(attempt >> 32)) }
}
