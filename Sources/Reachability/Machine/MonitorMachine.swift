internal import Pacing

/// The whole monitor without its sockets: the path and the targets, and who gets which answer.
package struct MonitorMachine: Sendable {
    /// An input, decoded.
    package enum Event: Sendable {
        case path(PathMachine.Event)
        case route(RouteQuery, RouteAnswer)
        case neighbor(Neighbor.Key, NeighborAnswer)
        case lookup(LookupAnswer)
        case probe(ProbeResult)
        case targetAdded(TargetID, Endpoint, ProbeSettings)
        case targetRemoved(TargetID)
        case turnEnded

        /// The kernel would not send there.
        var isRefusal: Bool {
            if case .route(_, .refused) = self { true } else { false }
        }
    }

    /// What the shell is to do; what is large stands behind a reference, as an effect is moved from list to list. What answers at once (routes, neighbors, evidence) comes back before the turn ends.
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
    // A few at a time: each is answered before the turn ends.
    private var askers: [Askers] = []
    private var neighborAskers: [Neighbor.Key: Set<TargetID>] = [:]
    private var waiting: [TargetID] = []
    private var surroundings: TargetMachine.Surroundings?
    private var isChanged = false
    private var hasResumed = false
    // The routes of targets use other interfaces than before.
    private var usesOthers = false

    private struct Askers: Sendable {
        let query: RouteQuery
        var isPath = false
        var targets: Set<TargetID> = []
    }

    /// A machine; `mergeLimit` is how many routes of a finished dump are looked at in one turn, roughly.
    package init(_ configuration: MonitorConfiguration, mergeLimit: Int = PathMachine.usualMergeLimit) {
        path = PathMachine(configuration, mergeLimit: mergeLimit)
    }

    /// When ``Event/turnEnded`` is due without any other event; monotonic nanoseconds.
    package var deadline: Int64? {
        var earliest = path.deadline
        guard !path.hasEnded else { return nil }
        for target in targets.values {
            guard let due = target.deadline else { continue }
            earliest = earliest.map { min($0, due) } ?? due
        }
        return earliest
    }

    /// ``deadline``, for an owner that is a class: to ask a property of its property there copies the whole machine (2,000
    /// instructions), to change it does not.
    mutating func nextDeadline() -> Int64? { deadline }

    /// Takes one event and says what to do, in order.
    package mutating func handle(_ event: Event, at now: Moment) -> [Effect] {
        guard !path.hasEnded else { return [] }
        switch event {
        case .path(let event):
            if case .resumed = event { hasResumed = true }
            if case .resolver = event { isChanged = true }
            return follow(path.handle(event, at: now), at: now)
        case .route(let query, let answer):
            guard let place = askers.firstIndex(where: { $0.query == query }) else { return [] }
            let asked = askers.remove(at: place)
            // In a fixed order, so that a recording says the same again.
            var effects = asked.isPath ? follow(path.handle(.route(query, answer), at: now), at: now) : []
            for id in asked.targets.sorted() { effects += tell(id, .route(query, answer), at: now) }
            return effects
        case .neighbor(let key, let answer):
            return (neighborAskers.removeValue(forKey: key) ?? []).sorted().flatMap {
                tell($0, .neighbor(key, answer), at: now)
            }
        case .lookup(let answer): return tell(TargetID(owning: answer.id), .lookup(answer), at: now)
        case .probe(let result): return tell(TargetID(owning: result.id), .probe(result), at: now)
        case .targetAdded(let id, let endpoint, let settings):
            targets[id] = TargetMachine(id: id, endpoint: endpoint, settings: settings, firstNumber: id.firstNumber)
            waiting.append(id)
            return []
        case .targetRemoved(let id):
            waiting.removeAll { $0 == id }
            guard let target = targets.removeValue(forKey: id) else { return [] }
            if !target.usedInterfaces.isEmpty { usesOthers = true }
            return [.cancelAll(id)]
        case .turnEnded: return endTurn(at: now)
        }
    }

    private mutating func endTurn(at now: Moment) -> [Effect] {
        if usesOthers {
            usesOthers = false
            path.follow(targets.values.reduce(into: []) { $0.formUnion($1.usedInterfaces) })
        }
        var effects = follow(path.handle(.turnEnded, at: now), at: now)
        // Targets come after the path is told, and not while it waits for answers.
        guard !targets.isEmpty, !path.hasEnded, path.path != nil, !path.isAsking else { return effects }
        if isChanged || surroundings == nil { surroundings = lookAround() }
        for id in targets.keys.sorted() {
            if waiting.contains(id) {
                effects += tell(id, .begin, at: now)
                continue
            }
            if hasResumed {
                effects += tell(id, .resumed, at: now)
            } else if isChanged {
                effects += tell(id, .surroundingsChanged, at: now)
            }
            if let due = targets[id]?.deadline, due <= now.monotonicNanoseconds { effects += tell(id, .tick, at: now) }
        }
        waiting = []
        isChanged = false
        hasResumed = false
        return effects
    }

    private func lookAround() -> TargetMachine.Surroundings? {
        guard let present = path.path, let resolver = path.resolver else { return nil }
        let own = Set(path.snapshot.addresses.keys.map(\.prefix.address))
        return TargetMachine.Surroundings(
            interfaces: path.catalog.interfaces, path: present, isOwn: { own.contains($0) }, hasResolver: resolver.hasNameserver
        )
    }

    private mutating func tell(_ id: TargetID, _ event: TargetMachine.Event, at now: Moment) -> [Effect] {
        guard let surroundings, var target = targets[id] else { return [] }
        let used = target.usedInterfaces
        let effects = target.handle(event, in: surroundings, at: now)
        if used != target.usedInterfaces { usesOthers = true }
        targets[id] = target
        return effects.map { effect in
            switch effect {
            case .resolve(let request): return .resolve(request)
            case .askRoute(let query):
                askers[place(of: query)].targets.insert(id)
                return .askRoute(query)
            case .connect(let attempt): return .connect(attempt)
            case .cancel(let attempt): return .cancel(attempt: attempt)
            case .askNeighbor(let key):
                neighborAskers[key, default: []].insert(id)
                return .askNeighbor(key)
            case .publish(let update): return .emit(.server(id, update))
            case .report(let report): return .emit(.probe(id, report))
            }
        }
    }

    private mutating func place(of query: RouteQuery) -> Int {
        if let place = askers.firstIndex(where: { $0.query == query }) { return place }
        askers.append(Askers(query: query))
        return askers.count - 1
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

    /// Nothing can be reached from a namespace that is gone, whatever was known before.
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
            askers[place(of: query)].isPath = true
            return .askRoute(query)
        case .readEvidence(let link): return .readEvidence(link)
        case .publish(let update):
            isChanged = true
            return .emit(.path(update))
        case .resynced(let reason): return .emit(.resync(reason, now))
        case .gap(let nanoseconds):
            // The monotonic clock stood still meanwhile; the wall clock did not.
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
    /// Attempts and lookups of a target are numbered from here, so that an answer finds its target.
    var firstNumber: UInt64 { UInt64(UInt32(truncatingIfNeeded: number)) << 32 }

    init(owning attempt: UInt64) { self.init(Int(attempt >> 32)) }
}
