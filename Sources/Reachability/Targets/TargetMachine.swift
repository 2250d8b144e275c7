internal import Pacing

/// The state machine of one target. It decides when to resolve the name, query routes and probe, and interprets the results.
///
/// ```
///           begin                          the schedule, a changed route, a resume
///   idle ─────────▶ (a probe starts) ◀───────────────────────────────────────┐
///                        │                                                   │
///             name       │        address                                    │
///        ┌───────────────┴──────────────┐                                    │
///        ▼                              ▼                                    │
///    resolving ──── addresses ────▶  asking (each address's route)           │
///        │                              │                                    │
///        │                   some open  │  none open                         │
///        │                 ┌────────────┴────────▶ pathless ─────────────────┤
///        │                 ▼                           ▲                     │
///        │             connecting ── the last route ───┘                     │
///        │              │      │     is removed                              │
///        │              │      └── silence ───▶ examining (the next hop)     │
///        │   a success, │                          │                         │
///        │   or none    ▼                          │                         │
///        └─ failed ──▶ waiting ◀───────────────────┘ ────────────────────────┘
/// ```
///
/// - **idle** before `begin`; **waiting** for the schedule.
/// - **pathless**: the kernel would certainly not send a packet to any address. Nothing is probed. The routes are queried again
///   when the local state changes, and once per interval in case a change was missed.
/// - When the local state changes, the routes of the known addresses are *checked* in every state: at once, then at least
///   ``recheckGap`` apart. If the last route is removed, the target becomes unreachable in that turn. If a route has changed, the
///   target is probed at once.
/// - If no name server answers, the first hops to them are examined too.
/// - If the server redirects the probe to another host, a machine of that host continues the probe (``RedirectedProbe``).
/// - ``Verdict`` counts the results; ``ProbeSchedule`` determines the next probe.
///
/// Answers to queries that were not sent, or are no longer relevant, are ignored. Every wait has a deadline.
package struct TargetMachine: Sendable {
    /// An input of the machine. Large values are stored by reference: most events are small, and are moved often.
    enum Event: Hashable, Sendable {
        /// The monitor is settled, and the target begins.
        case begin
        /// Links, addresses, routes, rules or the resolver's configuration changed, possibly with an effect on targets.
        case localStateChanged
        /// The machine has resumed from suspend.
        case resumed
        case lookup(LookupAnswer)
        case route(RouteQuery, RouteAnswer)
        case probe(ProbeResult)
        /// The entry of a next hop in the neighbor table.
        case neighbor(Neighbor.Key, NeighborAnswer)
        /// The state of a first hop or of the target's host.
        indirect case host(Neighbor.Key, HopBook.State)
        /// What is known about the way behind a first hop.
        indirect case searched(Neighbor.Key, WitnessBook.State)
        /// The packet counters of an interface.
        case counters(UInt32, LinkCounters?)
        /// The outcome of a connection that another part of the program made.
        case reported(PassiveReport.Outcome)
        /// The budget of the metered interface is used up, and the next probe may begin at a time.
        case paused(until: Int64)
        /// Targets without a result need the socket of a probe that has no answer yet.
        case preempted
        /// The time of ``deadline`` is reached.
        case tick
    }

    /// A request of the machine to its owner.
    enum Effect: Hashable, Sendable {
        case resolve(LookupRequest)
        case askRoute(RouteQuery)
        case connect(ProbeAttempt)
        case cancel(attempt: UInt64)
        case askNeighbor(Neighbor.Key)
        case askHost(HopBook.Request)
        /// Asks who has answered from behind a first hop, by a search if nobody has.
        indirect case search(WitnessBook.Request)
        case readCounters(UInt32)
        /// The first hop is alive: the target, or a router behind it, has answered.
        case noteAlive(Neighbor.Key, by: HopBook.Proof)
        /// A router behind the hop has reported why it does not forward.
        case note(HopBook.Report, behind: Neighbor.Key)
        case publish(ServerUpdate)
        case report(ProbeReport)
    }

    /// The time after which a path that is there again is published if no probe has shown more by then, in nanoseconds.
    static let pathNews: Int64 = 50_000_000
    /// The minimum time between two checks of the routes, in nanoseconds.
    static let recheckGap: Int64 = 20_000_000
    /// The minimum time between two lookups because of changed local state, in nanoseconds.
    static let lookupGap: Int64 = 1_000_000_000
    /// The time after which an unanswered query is repeated, in nanoseconds.
    static let retryGap: Int64 = 1_000_000_000
    /// The maximum number of consecutive restarts of a probe because of changed routes. The next probe continues on its routes.
    static let restartLimit = 3

    // Indirect: a target that waits holds no memory for a probe.
    indirect enum Phase: Sendable {
        case idle
        case waiting
        case pathless
        case resolving(ProbeRun, lookup: UInt64)
        case asking(ProbeRun, RouteSurvey)
        /// The routes to silent name servers are asked.
        case tracing(ProbeRun, RouteSurvey)
        case connecting(ProbeRun, AttemptRace)
        case examining(ProbeRun, Examination)
        /// The target has redirected the probe to another host.
        case following(ProbeRun, RedirectedProbe)
    }

    /// The address, interface and times of the last relevant result.
    struct Place: Hashable, Sendable {
        var address: IPAddress?
        var interface: UInt32?
        var roundTrip: Duration?
        /// ``ProbeReport/responseTime``.
        var responseNanoseconds: Int64?
        var phases = PhaseTimes()
    }

    package let id: TargetID
    package let endpoint: Endpoint
    package let settings: ProbeSettings
    /// The host to which connections are made: the endpoint's own, or its proxy.
    let peer: Endpoint
    /// The redirect that the machine follows; `nil` for the machine of a target.
    let redirection: Boxed<HTTPRedirection>?

    var phase = Phase.idle
    var verdict: Verdict
    var schedule: ProbeSchedule
    /// The addresses of the target, as last resolved.
    var addresses: [IPAddress] = []
    /// The open routes of the addresses, as last queried.
    var openRoutes: SmallMap<IPAddress, ChosenRoute> = [:] {
        didSet {
            guard !openRoutes.isEmpty, openRoutes != oldValue else { return }
            usedInterfaces = InterfaceSet(openRoutes.values.flatMap { [$0.interface] + $0.nextHops.map(\.interface) })
        }
    }
    /// The interfaces of the present open routes, or of the last ones if none is open now.
    private(set) var usedInterfaces = InterfaceSet()
    /// The route queries of the present addresses. The fleet asks them again after a change.
    private(set) var queries: [RouteQuery] = []
    /// The last result, as far as it predicts the duration of the next probe.
    var experience = ProbeAdmission.Experience.untried
    /// Whether the last silent probe was connected, so that the next one may need a TLS handshake for its whole duration.
    var isConnectedInSilence = false
    /// The metered interface to which an open route leads; 0 if there is none.
    var meteredInterface: UInt32 = 0
    /// Whether probes wait for the budget of the metered interface, or the last one has waited.
    var isPaused = false
    /// The earliest time of the next probe; `.min` if it does not wait for a budget.
    var pausedUntil = Int64.min
    /// The kernel's last answers to the queries of the present addresses.
    var known: SmallMap<RouteQuery, RouteAnswer> = [:]
    /// The definite causes since the target was last reached.
    var streak = FailureStreak()
    /// The address that answered last.
    var lastAnswered: IPAddress?
    /// The knowledge about the size of segments on the way to the target.
    var segments = Segments.unlimited
    /// The round trip in microseconds of a path so slow that a probe needs more time than the settings have; 0 for other paths.
    var slowRoundTrip: UInt32 = 0
    /// The part of the packets that were lost at the last success, in percent; 0 if few results were known.
    var lossAtSuccess: UInt8 = 0
    /// The number of failures since the last success, at most 255.
    var failuresSinceSuccess: UInt8 = 0
    /// The cause of the last success for which the target is degraded: a certificate that expires soon.
    var levelDegradation: Cause?
    /// The results of the other addresses; `nil` if the target has only one.
    var survey: AddressSurvey?
    var quality = QualityWindow()
    var flaps = FlapDetector()
    /// The route queries of a check, which runs independently of the phase.
    var check: (survey: RouteSurvey, until: Int64)?
    var lastRecheck: Int64?
    var recheckDue: Int64?
    /// The time at which a path that is there again is published; `.max` if there is none to publish.
    var pathNewsDue = Int64.max
    /// The time at which unanswered route queries are repeated; `nil` if all were answered.
    var retryDue: Int64?
    /// Whether the last lookup failed because of the way to the name servers.
    var isCutOffFromNames = false
    /// The time of the name server's answer that has the addresses, on the monotonic clock in nanoseconds; `nil` for other sources.
    var answered: Int64?
    /// The time at which one of the addresses has last failed, on the same clock; `.min` after a success. The name is asked for again.
    var addressFailed = Int64.min
    /// Whether the local state changed during a probe that continues nevertheless.
    var isOutdated = false
    var restarts = 0

    var place = Place()
    /// The end of the validity of the certificates in the last handshake, in seconds since 1970; `nil` if it is not known.
    var certificateEnd: Int64?
    var lastInterface: NetworkInterface?
    var published: ServerUpdate?
    var nextNumber: UInt64

    /// Creates a machine. The ids of its attempts and lookups count up from `firstNumber`.
    package init(id: TargetID, endpoint: Endpoint, settings: ProbeSettings, firstNumber: UInt64) {
        self.init(id: id, endpoint: endpoint, settings: settings, redirection: nil, firstNumber: firstNumber)
    }

    init(
        id: TargetID, endpoint: Endpoint, settings: ProbeSettings, redirection: Boxed<HTTPRedirection>?, firstNumber: UInt64
    ) {
        self.id = id
        self.redirection = redirection
        self.endpoint = endpoint
        self.settings = settings
        peer = settings.http.proxy(for: endpoint) ?? endpoint
        nextNumber = firstNumber
        verdict = Verdict(
            failAfter: settings.failAfter, recoverAfter: settings.recoverAfter,
            interval: settings.countsConfirmations ? 0 : settings.interval.saturatingNanoseconds)
        schedule = ProbeSchedule(
            interval: settings.interval, initial: settings.initialInterval,
            phase: settings.isScheduledOnly ? 0 : ProbeSchedule.phase(of: id))
    }

    /// The time at which ``Event/tick`` is due, on the monotonic clock in nanoseconds; `nil` for never.
    package var deadline: Int64? {
        let own: Int64? =
            switch phase {
            case .idle: nil
            case .waiting, .pathless: nextProbe
            case .resolving(let run, _), .asking(let run, _), .tracing(let run, _): run.deadline
            case .connecting(let run, let race):
                min(run.deadline, race.nextStart ?? .max, run.mustAskHosts ? hostQueryDue(run) : .max)
            case .examining(_, let examination): examination.until
            case .following(_, let redirected): redirected.machine.deadline
            }
        let due = min(own ?? .max, dueBeside)
        return due == .max ? nil : due
    }

    /// Handles one event.
    ///
    /// - Parameters:
    ///   - event: the event.
    ///   - localState: the present state of this host.
    ///   - now: the present time.
    ///   - allowances: what the owner's other targets leave to this one.
    ///   - fresh: the kernel's present answer to ``onlyQuery``; `nil` if it must be asked.
    /// - Returns: the effects, in order.
    mutating func handle(
        _ event: Event, in localState: LocalState, at now: Moment, allowing allowances: Allowances = Allowances(),
        fresh: FreshAnswer? = nil
    ) -> [Effect] {
        var turn = Turn(localState: localState, now: now, allowances: allowances, fresh: fresh)
        if case .idle = phase, event != .begin { return [] }
        follow(event, &turn)
        switch event {
        case .begin: begin(&turn)
        case .localStateChanged: localStateChanged(&turn)
        case .resumed: resumed(&turn)
        case .lookup(let answer): lookedUp(answer, &turn)
        case .route(let query, let answer): routeAnswered(query, answer, &turn)
        case .probe(let result):
            if !surveyAttemptEnded(result, &turn) { attemptEnded(result, &turn) }
        case .neighbor(let key, let answer):
            surveyNeighborAnswered(key, answer, &turn)
            neighborAnswered(key, answer, &turn)
        case .host(let host, let state): hostAnswered(host, state, &turn)
        case .searched(let hop, let state): searched(hop, state, &turn)
        case .counters(let interface, let counters): counted(interface, counters, &turn)
        case .reported(let outcome): reported(outcome, &turn)
        case .paused(let time): pause(until: time, &turn)
        case .preempted: preempt(&turn)
        case .tick: tick(&turn)
        }
        return turn.effects
    }

    /// Notes the queries that are sent for the present addresses.
    mutating func setQueries(_ new: [RouteQuery]) { if queries != new { queries = new } }

    mutating func takeNumber() -> UInt64 {
        defer { nextNumber &+= 1 }
        return nextNumber
    }

    /// Whether the machine has handled ``Event/begin``.
    var hasBegun: Bool {
        if case .idle = phase { return false }
        return true
    }

    /// Whether a probe runs.
    var isProbing: Bool {
        switch phase {
        case .idle, .waiting, .pathless: false
        case .resolving, .asking, .tracing, .connecting, .examining, .following: true
        }
    }

    /// Whether the next tick at this time starts a probe.
    func wouldStartProbe(at now: Int64) -> Bool {
        switch phase {
        case .waiting, .pathless: nextProbe.map { $0 <= now } ?? false
        case .idle, .resolving, .asking, .tracing, .connecting, .examining, .following: false
        }
    }

    /// The time of the next probe in nanoseconds; `nil` for none.
    private var nextProbe: Int64? { schedule.next.map { max($0, pausedUntil) } }

    /// ``deadline`` of a target whose probe is due and has to wait, `.max` for never: only checks and attempts to further addresses continue.
    var dueBeside: Int64 {
        min(min(pathNewsDue, surveyDue), min(recheckDue ?? .max, retryDue ?? .max), check?.until ?? .max)
    }

    /// The route query of the next probe, if it needs only one and that is known beforehand.
    var onlyQuery: RouteQuery? {
        if !queries.isEmpty { return queries.count == 1 ? queries[0] : nil }
        guard case .address(let address, nil) = peer.host, settings.interface == nil else { return nil }
        return RouteQuery(address, port: peer.port)
    }

    /// The group of targets that shares the target's part of the simultaneous probes.
    var lane: ProbeAdmission.Lane {
        let family: IPAddress.Family
        if let address = addresses.first {
            family = address.family
        } else if case .address(let address, _) = peer.host {
            family = address.family
        } else {
            family = .v4
        }
        return ProbeAdmission.Lane(family, experience, hasHandshake: hasHandshakePlace)
    }

    /// Whether probes begin with a place for a TLS handshake. The last probe of a target whose host drops the SYN did not need it.
    var hasHandshakePlace: Bool {
        endpoint.scheme.usesTLS && redirection == nil && (experience != .silent || isConnectedInSilence)
    }

    /// Whether any change of the local state may concern the target, because no route query represents it: the name has no address,
    /// the last lookup failed, or the interface that the user named is missing.
    var followsEveryChange: Bool { hasBegun && (queries.isEmpty || needsLookup) }

    private func hostQueryDue(_ run: ProbeRun) -> Int64 {
        run.deadline - min(Self.hostQueryLead, (run.deadline - run.started.monotonicNanoseconds) / 2)
    }

    /// The number of sockets in use, or reserved for the probe that runs.
    var socketCount: Int {
        let others = survey?.running?.race.running.count ?? 0
        if case .connecting(_, let race) = phase { return max(race.running.count, 1) + others }
        if case .following(_, let redirected) = phase { return redirected.machine.socketCount + others }
        return (isProbing ? 1 : 0) + others
    }

    private mutating func begin(_ turn: inout Turn) {
        guard case .idle = phase else { return }
        publish(isInitial: true, &turn)
        if turn.allowances.probe { return startProbe(&turn) }
        phase = .waiting
        schedule.begin(at: turn.time)
    }

    private mutating func resumed(_ turn: inout Turn) {
        verdict.resetCounts()
        verdict.pathChanged()
        streak.reset()
        quality.reset()
        abandonSurvey(&turn)
        restarts = 0
        (lastRecheck, recheckDue, retryDue) = (nil, nil, nil)
        startProbe(&turn)
    }

    private mutating func tick(_ turn: inout Turn) {
        if turn.time >= min(recheckDue ?? .max, retryDue ?? .max) { recheck(&turn) }
        if let until = check?.until, turn.time >= until { check = nil }
        if turn.time >= pathNewsDue {
            pathNewsDue = .max
            if verdict.endCertainCause() { publish(&turn) }
        }
        if survey?.running != nil { tickSurvey(&turn) }
        switch phase {
        case .idle: break
        case .waiting, .pathless:
            if turn.allowances.probe, let next = nextProbe, turn.time >= next { startProbe(&turn) }
        case .resolving(let run, _):
            if turn.time >= run.deadline { lookupFailed(nil, run, &turn) }
        case .asking(let run, _):
            // The kernel has not answered.
            if turn.time >= run.deadline { wait(&turn) }
        case .tracing(let run, _):
            if turn.time >= run.deadline { endTrace(run, [], &turn) }
        case .connecting(let run, let race):
            if turn.time >= run.deadline {
                if !repeatOverslept(run, &turn) { deadlineReached(run, race, &turn) }
                return
            }
            if let next = race.nextStart, turn.time >= next { startAttempt(run, race, &turn) }
            if case .connecting(let run, let race) = phase, run.mustAskHosts, turn.time >= hostQueryDue(run) {
                askHosts(run, race, &turn)
            }
        case .examining(let run, let examination):
            if turn.time >= examination.until { finishExamination(run, examination, &turn) }
        case .following: break
        }
    }
}
