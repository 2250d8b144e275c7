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
        case hostReply(HostQuery, HostReply)
        indirect case searchReply(Neighbor.Key, HopSearchReply)
        case counters(UInt32, LinkCounters?)
        /// The outcome of a connection that another part of the program made.
        case passiveReport(PassiveReport)
        /// A job has reported.
        indirect case heartbeat(TargetID, HeartbeatReport)
        /// The number of probes that the process's descriptors allow at the same time.
        case probeLimit(Int)
        case targetAdded(TargetID, Endpoint, ProbeSettings)
        case targetRemoved(TargetID)
        /// A target is removed, and another one with other settings is added in its place.
        case targetReplaced(TargetID, by: TargetID)
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
        case askHost(HostQuery)
        indirect case search(HopSearch)
        /// Reads the packet counters of an interface. The answer returns within the same turn.
        case readCounters(UInt32)
        indirect case readEvidence(Link)
        indirect case resolve(LookupRequest)
        indirect case connect(ProbeAttempt)
        case cancel(attempt: UInt64)
        case cancelLookup(TargetID)
        indirect case emit(MonitorEvent)
        case changed([KernelChange])
    }

    package private(set) var path: PathMachine
    private var incidents: IncidentBook
    private var openIncidents: [OpenIncident]
    private var missingFamilies = MissingFamilies()
    private var index = TargetIndex()
    private(set) var fleet: Fleet
    private var reported: ReportedTargets
    // The path's queries. There are only a few at a time, because each query is answered before the turn ends.
    private var pathQueries: [RouteQuery] = []
    private var isChanged = true

    /// Creates a machine.
    ///
    /// - Parameters:
    ///   - configuration: the configuration of the path.
    ///   - mergeLimit: the approximate number of routes of a complete dump that are compared in one turn.
    ///   - groupingLimit: the number of the targets' route queries from which they are shared.
    package init(_ configuration: MonitorConfiguration, mergeLimit: Int? = nil, groupingLimit: Int? = nil) {
        incidents = IncidentBook(hasMembers: configuration.publishesMembers)
        openIncidents = configuration.openIncidents
        reported = ReportedTargets(remembering: configuration.heartbeats)
        path = PathMachine(configuration, mergeLimit: mergeLimit ?? PathMachine.defaultMergeLimit)
        fleet = Fleet(groupingLimit: groupingLimit ?? RouteBook.defaultGroupingLimit)
    }

    /// The number of targets.
    package var targetCount: Int { fleet.count + reported.count }

    /// The time at which ``Event/turnEnded`` is due without another event, on the monotonic clock in nanoseconds; `nil` for
    /// never.
    package var deadline: Int64? {
        guard !path.hasEnded else { return nil }
        let probes = earlier(path.deadline, path.isAsking ? nil : fleet.deadline)
        return earlier(earlier(probes, incidents.deadline), path.path == nil ? nil : reported.deadline)
    }

    /// Returns ``deadline`` to an owner that is a class. Reading a computed property of the machine there copies the complete
    /// machine (2,000 instructions); a mutating call does not.
    mutating func nextDeadline() -> Int64? { deadline }

    /// Whether ``foresee()`` has work. Mutating for the same reason as ``nextDeadline()``.
    mutating func isForesightDue() -> Bool { path.isForesightDue }

    /// Prepares for the loss of the path, in an idle moment. No event depends on this call, so recordings do not have it.
    package mutating func foresee() { path.foresee() }

    /// Applies the messages that a published loss of the path has delayed. Call it when the loss is delivered.
    mutating func applyDelayedMessages() { path.applyDelayedMessages() }

    /// Returns what is known of the jobs of which more is known since the last call, for a later process.
    package mutating func takeHeartbeats(at now: Moment) -> [HeartbeatMemories.Job: HeartbeatMemory] {
        reported.takeChanges(at: now)
    }

    /// Handles one event and returns the effects, in order.
    package mutating func handle(_ event: Event, at now: Moment) -> [Effect] {
        guard !path.hasEnded else { return [] }
        path.applyDelayedMessages()
        let effects = effects(of: event, at: now)
        for case .emit(let event) in effects { record(event) }
        guard case .turnEnded = event, effects.isEmpty else { return effects }
        // The turn's updates are complete, so that an incident is published with all targets of the turn.
        return incidents.takeChanges(at: now).map { .emit(.incident($0)) }
    }

    private mutating func record(_ event: MonitorEvent) {
        switch event {
        case .server(let id, let update):
            let isFault = missingFamilies.isFault(id, update)
            incidents.record(id, update, .init(fleet.settings(of: id) ?? reported.settings(of: id)), isFault: isFault)
        // An unsatisfied path has records of its own.
        case .path(let update):
            for (id, failure, isFault) in missingFamilies.pathChanged(update.path) {
                incidents.record(id, failure, .init(fleet.settings(of: id)), isFault: isFault, at: update.moment)
            }
        case .probe(let id, let report): incidents.record(id, report)
        case .incident, .resync, .gap, .ended: break
        }
    }

    private mutating func effects(of event: Event, at now: Moment) -> [Effect] {
        switch event {
        case .path(let event):
            switch event {
            case .began(let seed, _):
                fleet.begin(seed: seed)
                incidents.restore(openIncidents, at: now)
                openIncidents = []
            case .resumed(let asleep):
                fleet.resumed()
                let effects = reported.resumed(after: asleep, at: now)
                return forward(path.handle(event, at: now), at: now) + effects
            case .resolver: isChanged = true
            default: break
            }
            return forward(path.handle(event, at: now), at: now)
        case .route(let query, let answer):
            var effects: [Effect] = []
            if let place = pathQueries.firstIndex(of: query) {
                pathQueries.remove(at: place)
                effects = forward(path.handle(.route(query, answer), at: now), at: now)
            }
            return effects + fleet.routeAnswered(query, answer, path.snapshot, at: now)
        case .neighbor(let key, let answer): return fleet.neighborAnswered(key, answer, path.snapshot, at: now)
        case .lookup(let answer): return fleet.lookedUp(answer, path.snapshot, at: now)
        case .probe(let result): return fleet.probed(result, path.snapshot, at: now)
        case .hostReply(let query, let reply): return fleet.hostReplied(query, reply, path.snapshot, at: now)
        case .searchReply(let hop, let reply): return fleet.searched(hop, reply, path.snapshot, at: now)
        case .counters(let interface, let counters): return fleet.counted(interface, counters, path.snapshot, at: now)
        case .passiveReport(let report): return reported(report, at: now)
        case .heartbeat(let id, let report): return reported.receive(report, for: id, at: now)
        case .probeLimit(let limit):
            fleet.setProbeLimit(limit)
            return []
        case .targetAdded(let id, let endpoint, let settings) where endpoint.scheme.kind.isReported:
            reported.add(id, endpoint, settings, at: now)
            return []
        case .targetAdded(let id, let endpoint, let settings):
            if fleet.endpoint(of: id) == nil { index.add(id, endpoint) }
            fleet.add(id, endpoint, settings)
            return []
        case .targetReplaced(let id, let other):
            incidents.replace(id, by: other)
            reported.replace(id, by: other, at: now)
            return []
        case .targetRemoved(let id):
            incidents.remove(id, at: now)
            missingFamilies.remove(id)
            reported.remove(id)
            if let endpoint = fleet.endpoint(of: id) { index.remove(id, endpoint) }
            return fleet.remove(id, path.snapshot)
        case .turnEnded: return endTurn(at: now)
        }
    }

    private mutating func reported(_ report: PassiveReport, at now: Moment) -> [Effect] {
        if !index.isBuilt {
            index.begin(count: fleet.count)
            for id in fleet.ids { if let endpoint = fleet.endpoint(of: id) { index.add(id, endpoint) } }
        }
        return index.targets(of: report.endpoint).flatMap { id in
            fleet.endpoint(of: id) == report.endpoint ? fleet.reported(report.outcome, to: id, path.snapshot, at: now) : []
        }
    }

    private mutating func endTurn(at now: Moment) -> [Effect] {
        if fleet.usedInterfacesChanged { path.setUsedInterfaces(fleet.takeUsedInterfaces()) }
        var effects = forward(path.handle(.turnEnded, at: now), at: now)
        if path.takeExpiredAnswers() { fleet.expireRoutes() }
        if path.takeReachableNeighbor() { fleet.hurryEagerTargets(at: now) }
        if reported.count > 0, path.path != nil { effects += reported.turn(at: now) }
        // Targets are handled after the path is published, and not while the path waits for answers.
        guard fleet.count > 0, !path.hasEnded, path.path != nil, !path.isAsking else { return effects }
        if isChanged {
            isChanged = false
            fleet.setLocalState(makeLocalState(), at: now)
        }
        effects += fleet.turn(path.snapshot, at: now)
        if let shortage = fleet.takeShortage() { note(shortage, at: now) }
        return effects
    }

    /// Opens or ends the incident of the limit of open files.
    private mutating func note(_ shortage: (isReported: Bool, waiting: [TargetID]), at now: Moment) {
        guard shortage.isReported else { return incidents.endShortage(at: now) }
        let (limit, count) = (fleet.admission.limit, shortage.waiting.count)
        let cause = Cause(
            .local, .fileLimit,
            detail: "the limit of open files allows \(limit) probes at a time, and \(count) targets wait for their turn",
            evidence: ["probes": .number(limit), "waiting": .number(count)])
        let endpoints = shortage.waiting.prefix(Incident.listedTargets).compactMap { fleet.endpoint(of: $0) }
        incidents.beginShortage(cause, of: endpoints, waiting: shortage.waiting, at: now)
    }

    private func makeLocalState() -> LocalState? {
        guard let present = path.path, let resolver = path.resolver else { return nil }
        let own = Set(path.snapshot.addresses.keys.map(\.prefix.address))
        let addresses = path.catalog.addresses
        return LocalState(
            interfaces: path.catalog.interfaces, path: present, isOwn: { own.contains($0) },
            hasResolver: resolver.hasNameserver,
            addressFault: { interface, family in
                Reachability.addressFault(of: (addresses[interface] ?? []).filter { $0.address.family == family })
            },
            sourceFault: { source in
                own.contains(source)
                    ? Reachability.sourceFault(of: addresses.values.flatMap { $0.filter { $0.address == source } }) : .missing
            })
    }

    private mutating func forward(_ effects: [PathMachine.Effect], at now: Moment) -> [Effect] {
        guard !effects.isEmpty else { return [] }
        var forwarded: [Effect] = []
        forwarded.reserveCapacity(effects.count)
        for effect in effects {
            if case .ended = effect { forwarded += endTargets(at: now) }
            forwarded.append(forward(effect, at: now))
        }
        return forwarded
    }

    /// Reports every target as unreachable, because no packet can be sent from a removed namespace.
    private func endTargets(at now: Moment) -> [Effect] {
        fleet.ids.compactMap { id in
            guard let target = fleet[id], let cause = path.path?.cause else { return nil }
            let update = ServerUpdate(
                endpoint: target.endpoint, statusName: .unreachable, cause: cause, since: now, address: nil, interface: nil,
                roundTrip: nil, isInitial: fleet.isWaiting(id), moment: now
            )
            return .emit(.server(id, update))
        }
    }

    private mutating func forward(_ effect: PathMachine.Effect, at now: Moment) -> Effect {
        switch effect {
        case .dump(let table, let interface, let sequence): return .dump(table, over: interface, sequence: sequence)
        case .askRoute(let query):
            pathQueries.append(query)
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
            fleet.apply(changes, path.snapshot)
            return .changed(changes)
        case .ended: return .emit(.ended(now))
        }
    }
}

/// The events that a monitor emits, in order. Records are made only from these events.
package enum MonitorEvent: Hashable, Sendable {
    /// A path update. The first one is settled and initial; the others are changes.
    case path(PathUpdate)
    /// A server update. The first one of each target is initial, with the state `unknown`; the others are changes.
    case server(TargetID, ServerUpdate)
    /// The outcome of one probe.
    case probe(TargetID, ProbeReport)
    /// An incident opened, has grown, or is over. It follows the updates of its servers.
    case incident(Incident)
    /// All tables of the kernel were dumped again.
    case resync(ResyncReason, Moment)
    /// The monitor observed nothing between `from` and `to`.
    case gap(from: Moment, to: Moment)
    /// The monitor cannot observe events any more, because its namespace was removed. No event follows.
    case ended(Moment)

    /// The time at which the causing input was read.
    package var moment: Moment {
        switch self {
        case .path(let update): update.moment
        case .server(_, let update): update.moment
        case .probe(_, let report): report.moment
        case .incident(let incident): incident.moment
        case .resync(_, let moment), .gap(_, let moment), .ended(let moment): moment
        }
    }
}
