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

    /// The limits that the other targets leave to this one.
    struct Allowances {
        /// Whether attempts to further addresses may start.
        var survey = true
        /// Whether the first probe, or one that the schedule demands, may start. Otherwise it is due at once.
        var probe = true
        /// Whether attempts may be repeated.
        var repetition = true
    }

    /// An answer of the kernel that still holds.
    struct FreshAnswer {
        let query: RouteQuery
        let answer: RouteAnswer
    }

    /// The context of handling one event.
    private struct Turn {
        let localState: LocalState
        let now: Moment
        let allowances: Allowances
        let fresh: FreshAnswer?
        var effects: [Effect] = []

        /// The time on the monotonic clock, in nanoseconds.
        var time: Int64 { now.monotonicNanoseconds }
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
    private indirect enum Phase: Sendable {
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
        case redirected(ProbeRun, RedirectedProbe)
    }

    /// The address, interface and times of the last relevant result.
    private struct Place: Hashable, Sendable {
        var address: IPAddress?
        var interface: UInt32?
        var roundTrip: Duration?
        /// ``ProbeReport/responseTime``.
        var responseNanoseconds: Int64?
        var phases = PhaseTimes()
    }

    /// Whether large segments arrive. Routers that drop them without a report are found by a connection with small ones.
    private enum Segments: UInt8, Hashable, Sendable {
        case unlimited
        /// A gap in the received segments was followed by silence, so that the next probe uses small segments.
        case suspected
        /// Small segments have arrived. The next probe shows whether large ones still vanish.
        case compared
        /// Small segments arrive, and large ones do not.
        case limited
    }

    package let id: TargetID
    package let endpoint: Endpoint
    package let settings: ProbeSettings
    /// The host to which connections are made: the endpoint's own, or its proxy.
    private let peer: Endpoint
    /// Whether the connection is the whole probe.
    private let isConnectionAlone: Bool
    /// The probe that the machine continues; `nil` for the machine of a target.
    private let continuation: Boxed<Continuation>?

    private var phase = Phase.idle
    private var verdict: Verdict
    private var schedule: ProbeSchedule
    /// The addresses of the target, as last resolved.
    private var addresses: [IPAddress] = []
    /// The open routes of the addresses, as last queried.
    private var openRoutes: SmallMap<IPAddress, ChosenRoute> = [:] {
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
    private var experience = ProbeAdmission.Experience.untried
    /// Whether the last silent probe was connected, so that the next one may need a TLS handshake for its whole duration.
    private var isConnectedInSilence = false
    /// The metered interface to which an open route leads; 0 if there is none.
    private var meteredInterface: UInt32 = 0
    /// Whether probes wait for the budget of the metered interface, or the last one has waited.
    private var isPaused = false
    /// The earliest time of the next probe; `.min` if it does not wait for a budget.
    private var pausedUntil = Int64.min
    /// The kernel's last answers to the queries of the present addresses.
    private var known: SmallMap<RouteQuery, RouteAnswer> = [:]
    /// The definite causes since the target was last reached.
    private var streak = FailureStreak()
    /// The address that answered last.
    private var lastAnswered: IPAddress?
    /// The knowledge about the size of segments on the way to the target.
    private var segments = Segments.unlimited
    /// The round trip in microseconds of a path so slow that a probe needs more time than the settings have; 0 for other paths.
    private var slowRoundTrip: UInt32 = 0
    /// The part of the packets that were lost at the last success, in percent; 0 if few results were known.
    private var lossAtSuccess: UInt8 = 0
    /// The number of failures since the last success, at most 255.
    private var failuresSinceSuccess: UInt8 = 0
    /// The cause of the last success for which the target is degraded: a certificate that expires soon.
    private var levelDegradation: Cause?
    /// The results of the other addresses; `nil` if the target has only one.
    private var survey: AddressSurvey?
    private var quality = QualityWindow()
    private var flaps = FlapDetector()
    /// The route queries of a check, which runs independently of the phase.
    private var check: (survey: RouteSurvey, until: Int64)?
    private var lastRecheck: Int64?
    private var recheckDue: Int64?
    /// The time at which a path that is there again is published; `.max` if there is none to publish.
    private var pathNewsDue = Int64.max
    /// The time at which unanswered route queries are repeated; `nil` if all were answered.
    private var retryDue: Int64?
    /// Whether the last lookup failed because of the way to the name servers.
    private var isCutOffFromNames = false
    /// The time of the name server's answer that has the addresses, on the monotonic clock in nanoseconds; `nil` for other sources.
    private var answered: Int64?
    /// The time at which one of the addresses has last failed, on the same clock; `.min` after a success. The name is asked for again.
    private var addressFailed = Int64.min
    /// Whether the local state changed during a probe that continues nevertheless.
    private var isOutdated = false
    private var restarts = 0

    private var place = Place()
    /// The end of the validity of the certificates in the last handshake, in seconds since 1970; `nil` if it is not known.
    private var certificateEnd: Int64?
    private var lastInterface: NetworkInterface?
    private var published: ServerUpdate?
    private var nextNumber: UInt64

    /// Creates a machine. The ids of its attempts and lookups count up from `firstNumber`.
    package init(id: TargetID, endpoint: Endpoint, settings: ProbeSettings, firstNumber: UInt64) {
        self.init(id: id, endpoint: endpoint, settings: settings, continuing: nil, firstNumber: firstNumber)
    }

    init(
        id: TargetID, endpoint: Endpoint, settings: ProbeSettings, continuing continuation: Boxed<Continuation>?,
        firstNumber: UInt64
    ) {
        self.id = id
        self.continuation = continuation
        self.endpoint = endpoint
        self.settings = settings
        let scheme = endpoint.scheme
        isConnectionAlone = scheme.form.isConnectionAlone
        peer = isConnectionAlone ? endpoint : scheme.kind.peer(of: endpoint, settings)
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
            case .redirected(_, let redirected): redirected.machine.deadline
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
        passToRedirect(event, &turn)
        switch event {
        case .begin: begin(&turn)
        case .localStateChanged: localStateChanged(&turn)
        case .resumed: resumed(&turn)
        case .lookup(let answer): lookedUp(answer, &turn)
        case .route(let query, let answer): routeAnswered(query, answer, &turn)
        case .probe(let result):
            if !surveyAttemptEnded(result, &turn) { attemptEnded(result, &turn) }
        case .neighbor(let key, let answer): neighborAnswered(key, answer, &turn)
        case .host(let host, let state): hostAnswered(host, state, &turn)
        case .searched(let hop, let state): searched(hop, state, &turn)
        case .counters(let interface, let counters): counted(interface, counters, &turn)
        case .reported(let outcome): reported(outcome, &turn)
        case .paused(let time): pause(until: time, &turn)
        case .preempted: preempt(&turn)
        case .tick: tick(&turn)
        }
        if settings.addresses == .each { continueSurveyOfEach(&turn) }
        return turn.effects
    }

    /// Notes the queries that are sent for the present addresses.
    private mutating func setQueries(_ new: [RouteQuery]) { if queries != new { queries = new } }

    private mutating func makeNumber() -> UInt64 {
        defer { nextNumber &+= 1 }
        return nextNumber
    }
}

// MARK: Events without an answer
extension TargetMachine {
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
        case .redirected: break
        }
    }
}

// MARK: The start of a probe

extension TargetMachine {
    /// Starts a probe, and replaces a running one. `candidateRoutes` are the kernel's present routes to the known addresses. A
    /// target without a name needs only these.
    private mutating func startProbe(_ turn: inout Turn, knowing candidateRoutes: [(Candidate, CandidateRoute)]? = nil) {
        abandon(&turn)
        isOutdated = false
        // A probe that did not have to wait shows that the budget suffices again.
        isPaused = isPaused && pausedUntil != .min
        pausedUntil = .min
        schedule.began(at: turn.time)
        let deadline = turn.time.addingSaturated(probeTime)
        let run = ProbeRun(started: turn.now, deadline: deadline)
        switch peer.host {
        case .name(let name):
            let families = settings.probedFamilies
            guard !families.isEmpty else {
                let detail = "no address of \(name) is of the families that are tried"
                let cause = Cause(.dns, .noAddressForFamily, detail: detail, evidence: ["name": .text(name)])
                return exclude(CauseOfLookup.naming(settings.sourceAddress, in: cause), nil, &turn)
            }
            let number = makeNumber()
            phase = .resolving(run, lookup: number)
            turn.effects.append(
                .resolve(
                    LookupRequest(
                        id: number, name: name, families: families, resolver: settings.sharedResolver, deadline: deadline,
                        notBefore: addressFailed)))
        case .address(let address, _):
            if addresses.first != address { addresses = [address] }
            if address.isUnspecified { return exclude(CauseOfLookup.unusable(address), address, &turn) }
            guard settings.probedFamilies.contains(address.family) else {
                let detail = "\(address) is not of the families that are tried"
                let cause = Cause(.dns, .noAddressForFamily, detail: detail, evidence: ["address": .text("\(address)")])
                return exclude(CauseOfLookup.naming(settings.sourceAddress, in: cause), address, &turn)
            }
            if let candidateRoutes { judge(run, candidateRoutes, &turn) } else { ask(run, &turn) }
        }
    }

    /// Cancels the running attempts without a report.
    private func cancelAttempts(_ turn: inout Turn) { turn.effects += probeAttempts.map { .cancel(attempt: $0) } }

    /// Ends the first probe without a result, because others need its socket. It starts again when silent targets have their turn.
    private mutating func preempt(_ turn: inout Turn) {
        guard case .connecting(let run, let race) = phase, experience == .untried, race.failures.isEmpty,
            !settings.isScheduledOnly
        else { return }
        cancelAttempts(&turn)
        experience = .silent
        isConnectedInSilence = run.connected != nil
        phase = .waiting
        schedule.begin(at: turn.time)
    }

    private mutating func abandon(_ turn: inout Turn) {
        cancelAttempts(&turn)
        check = nil
        phase = .waiting
    }

    /// Fails the target, because its address cannot be probed. No event can change that.
    private mutating func exclude(_ cause: Cause, _ address: IPAddress?, _ turn: inout Turn) {
        let finding = Finding(onTheWay(cause), accusesServer: false, isCertain: true)
        _ = verdict.fail(finding, start: turn.time, at: turn.time)
        place = Place(address: address)
        phase = .waiting
        schedule.stop()
        publish(&turn)
    }
}

// MARK: Names

extension TargetMachine {
    private mutating func lookedUp(_ answer: LookupAnswer, _ turn: inout Turn) {
        guard case .resolving(var run, let lookup) = phase, answer.id == lookup else { return }
        // The questions waited for others, and little of the deadline is left for the name servers and the target. The probe begins
        // again. The addresses are in the cache, or the questions keep their places.
        if let queued = answer.queuedNanoseconds, queued > settings.timeout.saturatingNanoseconds / 2 { return startProbe(&turn) }
        let families = settings.probedFamilies
        let found = answer.code == 0 ? answer.addresses.filter { families.contains($0.family) } : []
        // Linux connects to this machine instead (RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.2).
        let usable = found.filter { !$0.isUnspecified }
        guard !usable.isEmpty else { return lookupFailed(answer, run, &turn) }
        isCutOffFromNames = false
        answered = answer.ageNanoseconds.map { turn.time.addingSaturated(-$0) }
        addresses = Array(inAttemptOrder(usable, last: lastAnswered).prefix(AttemptRace.limit))
        run.resolution = turn.now.elapsed(since: run.started)
        run.lookup = answer
        // A slow name server is no silence of the target, which has half of a probe's time in any case.
        run.deadline = max(run.deadline, turn.time.addingSaturated(probeTime / 2))
        ask(run, &turn)
    }

    private mutating func lookupFailed(_ answer: LookupAnswer?, _ run: ProbeRun, _ turn: inout Turn) {
        var run = run
        let elapsed = turn.now.elapsed(since: run.started)
        run.resolution = elapsed
        let nanoseconds = max(elapsed.saturatingNanoseconds, answer?.elapsedNanoseconds ?? 0)
        run.lookup = answer
        let cause =
            if let answer, answer.code == 0, answer.addresses.contains(where: \.isUnspecified) {
                CauseOfLookup.unusable(answer, name: peer.hostText)
            } else {
                CauseOfLookup.naming(
                    settings.sourceAddress,
                    in: CauseOfLookup.cause(
                        answer, name: peer.hostText, by: settings.resolver, elapsed: nanoseconds, in: turn.localState))
            }
        // The name no longer has addresses. After all other failures, the old addresses remain the best guess.
        if [.nameNotFound, .noAddressForFamily, .unusableAddress].contains(cause.code) {
            addresses = []
            setQueries([])
        }
        isCutOffFromNames = false
        if let lookup = SilentLookup(cause, answer) { return trace(lookup, run, &turn) }
        // An answer of a name server is confirmed at once, like a refusal by the server.
        let isAnswered = answer?.families.contains { $0.exchanges.contains { $0.outcome == .answered } } ?? false
        experience = isAnswered ? .answered : .silent
        fail(run, Finding(cause), Place(), isAnswered ? .refusal : .other, &turn)
    }
}

// MARK: Silent name servers

extension TargetMachine {
    /// Asks for the routes to the silent name servers.
    private mutating func trace(_ lookup: SilentLookup, _ run: ProbeRun, _ turn: inout Turn) {
        var run = run
        run.silentLookup = lookup
        // The kernel answers from memory.
        run.deadline = turn.time.addingSaturated(Examination.timeLimit)
        let survey = RouteSurvey(
            lookup.servers.map { server in
                let zone = server.zone.flatMap { name in turn.localState.interfaces.values.first { $0.hasName(name) }?.index }
                return Candidate(address: server.address, port: server.port, zone: zone ?? 0, boundTo: 0)
            })
        phase = .tracing(run, survey)
        turn.effects += survey.queries.map { .askRoute($0) }
    }

    /// Stores the route to a name server. If all are known, their gateways are examined.
    private mutating func traced(
        _ query: RouteQuery, _ answer: RouteAnswer, _ run: ProbeRun, _ survey: RouteSurvey, _ turn: inout Turn
    ) {
        var survey = survey
        survey.receive(query, answer)
        phase = .tracing(run, survey)
        guard survey.isComplete else { return }
        let failures = survey.candidateRoutes(in: turn.localState).compactMap { candidate, candidateRoute in
            candidateRoute.route.map { route in
                FailedAttempt(
                    candidate: candidate, route: route, result: nil,
                    elapsedNanoseconds: run.resolution?.saturatingNanoseconds ?? 0)
            }
        }
        // A name server without a gateway is silent itself.
        guard failures.count == survey.candidates.count, failures.allSatisfy({ $0.route.gateway != nil }) else {
            return endTrace(run, [], &turn)
        }
        examine(run, failures, &turn)
    }

    /// Ends the probe. The gateways are at fault if the way to every silent name server begins with a silent one.
    private mutating func endTrace(_ run: ProbeRun, _ failures: [FailedAttempt], _ turn: inout Turn) {
        guard let lookup = run.silentLookup else { return finishProbe(.other, &turn) }
        let failures = failures.map { completed($0, run, turn) }
        let causes = failures.map { $0.cause(in: turn.localState) }
        isCutOffFromNames = !causes.isEmpty && causes.allSatisfy { $0.layer == .neighbor }
        guard isCutOffFromNames, let failure = failures.first, let cause = causes.first else {
            // The way to the server that the cause names.
            let accused = lookup.servers.first { lookup.cause.evidence["resolver"] == .text("\($0)") }
            let way = zip(failures, causes).first { $0.0.candidate.address == accused?.address }
            let keys = ["first_hop", "gateway", "interface"]
            let finding = Finding(lookup.cause.adding(Dictionary(uniqueKeysWithValues: keys.map { ($0, way?.1.evidence[$0]) })))
            return fail(run, finding, Place(), .other, &turn)
        }
        let server = failure.candidate.address
        let gateway = failure.route.gateway.map { "\($0)" } ?? ""
        var evidence = lookup.cause.evidence
        evidence["resolver"] = .text(lookup.servers.first { $0.address == server }.map { "\($0)" } ?? "\(server)")
        for key in ["interface", "gateway", "neighbor_state", "first_hop"] { evidence[key] = cause.evidence[key] }
        let detail = "the gateway \(gateway), which leads to the name server \(server), does not answer on its link"
        let finding = Finding(Cause(cause.layer, cause.code, detail: detail, evidence: evidence))
        fail(run, finding, Place(interface: failure.route.interface), .other, &turn)
    }
}

// MARK: Routes

extension TargetMachine {
    /// Returns the addresses with their interfaces; the cause if an interface that the user named does not exist.
    private func candidates(in localState: LocalState) -> Result<[Candidate], NoCandidates> {
        func index(_ name: String) -> UInt32? {
            localState.interfaces.values.first { $0.hasName(name) }?.index
                ?? UInt32(name).flatMap { localState.interfaces[$0]?.index }
        }
        var (zone, bound): (UInt32, UInt32) = (0, 0)
        if case .address(_, let name?) = peer.host {
            guard let found = index(name) else { return .failure(NoCandidates(cause: noInterface(name))) }
            zone = found
        }
        if let name = settings.interface {
            guard let found = index(name) else { return .failure(NoCandidates(cause: noInterface(name))) }
            guard zone == 0 || zone == found else {
                let detail = "\(peer.hostText) is not on interface \(name)"
                return .failure(
                    NoCandidates(cause: Cause(.link, .noInterface, detail: detail, evidence: ["interface": .text(name)])))
            }
            bound = found
        }
        let selector = settings.selector
        return .success(
            addresses.map { Candidate(address: $0, port: peer.port, zone: zone, boundTo: bound, selector: selector) })
    }

    private struct NoCandidates: Error { let cause: Cause }

    private mutating func ask(_ run: ProbeRun, _ turn: inout Turn) {
        // Queries from here on belong to the present local state.
        isOutdated = false
        switch candidates(in: turn.localState) {
        case .failure(let failure):
            setQueries([])
            phase = .asking(run, RouteSurvey([]))
            pathless(failure.cause, Place(address: addresses.first), &turn)
        case .success(let candidates):
            check = nil
            if let fresh = turn.fresh, candidates.count == 1, candidates[0].query == fresh.query,
                let route = candidateRoute(of: candidates[0], by: fresh.answer, in: turn.localState)
            {
                known = [fresh.query: fresh.answer]
                setQueries([fresh.query])
                if route.route == nil { phase = .asking(run, RouteSurvey(candidates)) }
                return judge(run, [(candidates[0], route)], &turn)
            }
            let survey = RouteSurvey(candidates)
            known = known.filter { survey.asks($0.key) }
            setQueries(survey.queries)
            phase = .asking(run, survey)
            turn.effects += survey.queries.map { .askRoute($0) }
        }
    }

    private mutating func routeAnswered(_ query: RouteQuery, _ answer: RouteAnswer, _ turn: inout Turn) {
        if query.showsAll { return otherHopsAnswered(query, answer, &turn) }
        // A late answer, too, is the kernel's latest.
        if answer != .unanswered, addresses.contains(query.destination) { known[query] = answer }
        if case .tracing(let run, let survey) = phase, survey.asks(query) {
            traced(query, answer, run, survey, &turn)
        } else if case .asking(let run, var survey) = phase, survey.asks(query) {
            survey.receive(query, effectiveAnswer(answer, to: query, turn))
            phase = .asking(run, survey)
            guard survey.isComplete else { return }
            guard survey.isDecisive(in: turn.localState) else { return wait(&turn) }
            judge(run, survey.candidateRoutes(in: turn.localState), &turn)
        } else if var asked = check, asked.survey.asks(query) {
            asked.survey.receive(query, effectiveAnswer(answer, to: query, turn))
            check = asked
            guard asked.survey.isComplete else { return }
            check = nil
            if asked.survey.isDecisive(in: turn.localState) { checked(asked.survey.candidateRoutes(in: turn.localState), &turn) }
        }
    }

    /// Returns the previous answer if the kernel did not answer, and schedules another query.
    private mutating func effectiveAnswer(_ answer: RouteAnswer, to query: RouteQuery, _ turn: Turn) -> RouteAnswer {
        guard answer == .unanswered else { return answer }
        retryDue = retryDue ?? turn.time.addingSaturated(Self.retryGap)
        return known[query] ?? answer
    }

    /// Waits for the next probe without a result, because the routes are not known.
    private mutating func wait(_ turn: inout Turn) {
        phase = .waiting
        schedule.continueByGrid(at: turn.time, factor: intervalFactor)
    }

    private mutating func judge(_ run: ProbeRun, _ candidateRoutes: [(Candidate, CandidateRoute)], _ turn: inout Turn) {
        let entries = candidateRoutes.compactMap { candidate, candidateRoute in
            candidateRoute.route.map { AttemptRace.Entry(candidate: candidate, route: $0) }
        }
        guard !entries.isEmpty else { return pathless(candidateRoutes, &turn) }
        openRoutes = Self.openRoutes(candidateRoutes)
        pathFound(turn)
        noteMeteredInterface(turn)
        streak.keep { [openRoutes] in openRoutes[$0] }
        dropSurveyWithoutRoute(&turn)
        startAttempt(run, AttemptRace(workingFirst(entries), deadline: run.deadline), &turn)
    }

    private static func openRoutes(_ candidateRoutes: [(Candidate, CandidateRoute)]) -> SmallMap<IPAddress, ChosenRoute> {
        var routes: SmallMap<IPAddress, ChosenRoute> = [:]
        for (candidate, candidateRoute) in candidateRoutes { routes[candidate.address] = candidateRoute.route }
        return routes
    }

    private mutating func pathless(_ candidateRoutes: [(Candidate, CandidateRoute)], _ turn: inout Turn) {
        guard let lowest = lowestCause(candidateRoutes) else { return finishProbe(.other, &turn) }
        let address = lowest.candidate.address
        let removed = causeOfRemovedRoute(lowest.cause, to: address, over: Array(usedInterfaces), in: turn.localState)
        pathless(
            removed?.cause ?? lowest.cause, Place(address: address, interface: removed?.interface ?? lowest.interface), &turn)
    }

    /// Fails the target, because the kernel would certainly not send a packet to it.
    private mutating func pathless(_ cause: Cause, _ place: Place, _ turn: inout Turn) {
        let cause = onTheWay(cause)
        switch phase {
        case .connecting(let run, _), .examining(let run, _), .redirected(let run, _): report(run, cause, place, &turn)
        case .asking(let run, _) where settings.isScheduledOnly: report(run, cause, place, &turn)
        default: break
        }
        abandon(&turn)
        abandonSurvey(&turn)
        quality.reset()
        openRoutes = [:]
        pathNewsDue = .max
        noteMeteredInterface(turn)
        streak.reset()
        restarts = 0
        // The name may have an address with a route now. Lower layers say nothing of the address.
        let failure = cause.layer == .route ? addressFailure(cause, turn) : cause
        _ = verdict.fail(Finding(failure), start: turn.time, at: turn.time)
        self.place = place
        phase = .pathless
        schedule.continueByGrid(at: turn.time)
        publish(&turn)
    }
}

// MARK: Connection attempts

extension TargetMachine {
    private mutating func startAttempt(_ run: ProbeRun, _ race: AttemptRace, _ turn: inout Turn) {
        var (run, race) = (run, race)
        defer { phase = .connecting(run, race) }
        guard let entry = race.takeNext(at: turn.time, allowsRepetition: turn.allowances.repetition && mayRepeat) else { return }
        let isFirst = run.connecting == nil
        run.connecting = run.connecting ?? turn.now
        var attempt = attempt(entry, until: run.deadline, turn)
        attempt.hasHandshakePlace = hasHandshakePlace && !race.hasConnection
        race.running.append(AttemptRace.Running(id: attempt.id, entry: entry, started: turn.now))
        turn.effects.append(.connect(attempt))
        if isFirst, isTunnel(entry.route, turn) {
            // The counters at the start show at the end whether the tunnel has carried anything in between.
            turn.effects.append(.readCounters(entry.route.interface))
        }
    }

    /// Whether silent attempts are repeated. After the verdict a lost packet only delays the recovery, while each packet to a host that
    /// is off uses up a router's messages, which other targets need.
    private var mayRepeat: Bool { settings.isScheduledOnly || !isHostSilent }

    /// Whether the verdict is that the target's host is silent.
    private var isHostSilent: Bool {
        verdict.isFailing
            && (verdict.cause?.isSilence == true || [.timeout, .hostUnreachable, .upstreamSilent].contains(verdict.cause?.code))
    }

    /// Returns the attempt to an address, with a new number.
    private mutating func attempt(_ entry: AttemptRace.Entry, until deadline: Int64, _ turn: Turn) -> ProbeAttempt {
        let address = entry.candidate.address
        // A link-local IPv6 address needs an interface. If the user named none, it is the interface of the route.
        let isScoped = address.family == .v6 && address.isLinkLocal
        let selector = entry.candidate.selector
        var attempt = ProbeAttempt(
            id: makeNumber(), address: address,
            zone: entry.candidate.zone != 0 ? entry.candidate.zone : isScoped ? entry.route.interface : 0,
            port: peer.port, interface: boundName(in: turn.localState),
            latestStart: turn.time.addingSaturated((deadline - turn.time) / 2),
            plan: isConnectionAlone ? nil : endpoint.scheme.kind.plan(for: endpoint, settings, after: continuation?.value),
            deadline: deadline,
            hasSmallSegments: segments == .suspected)
        if let selector {
            attempt.selector = selector
            attempt.sourceZone = selector.source?.isLinkLocal == true ? entry.route.interface : 0
        }
        return attempt
    }

    /// Returns the primary name of the interface to bind to: SO_BINDTODEVICE accepts no alternative name of more than 15 bytes.
    private func boundName(in localState: LocalState) -> String? {
        settings.interface.map { name in localState.interfaces.values.first { $0.hasName(name) }?.name ?? name }
    }

    private func isTunnel(_ route: ChosenRoute, _ turn: Turn) -> Bool {
        turn.localState.interfaces[route.interface]?.type == .tunnel
    }

    private mutating func attemptEnded(_ result: ProbeResult, _ turn: inout Turn) {
        guard case .connecting(let run, var race) = phase,
            let index = race.running.firstIndex(where: { $0.id == result.id })
        else { return }
        let ended = race.running.remove(at: index)
        if result.errno != 0 || result.levels?.isAtDeadline == true {
            phase = .connecting(run, race)
            if repeatOverslept(run, &turn) { return }
        }
        if result.errno == 0 {
            guard !isConnectionAlone else { return succeed(run, race, ended, result, &turn) }
            guard let levels = result.levels else { return connected(run, race, ended, &turn) }
            return levelsEnded(levels, run, race, ended, result, &turn)
        }
        // Nothing was sent, so the result is no evidence.
        if result.call != ProbeResult.queue {
            let failure = failure(of: ended, result, turn)
            race.failures.append(failure)
            noteAnswer(failure, &turn)
            // The other attempts to this address would fail alike.
            for other in race.running where other.entry.candidate == ended.entry.candidate {
                turn.effects.append(.cancel(attempt: other.id))
            }
            race.running.removeAll { $0.entry.candidate == ended.entry.candidate }
        }
        phase = .connecting(run, race)
        if !race.waiting.isEmpty {
            startAttempt(run, race, &turn)
        } else if race.running.isEmpty {
            experience = .answered
            allFailed(run, race.failures, &turn)
        }
    }

    /// Notes what an answer from beyond this machine proves for other targets: the first hop is alive, and perhaps a router has
    /// reported why it does not forward.
    private func noteAnswer(_ failure: FailedAttempt, _ turn: inout Turn) {
        guard let answer = failure.answer(in: turn.localState) else { return }
        switch answer {
        case .target: noteTargetAnswer(failure.candidate.address, failure.route, &turn)
        case .router:
            guard let hop = failure.firstHop(in: turn.localState) else { return }
            if failure.route.gateway != nil { turn.effects.append(.noteAlive(hop, by: .router)) }
            if let report = failure.report(in: turn.localState, at: turn.time) {
                turn.effects.append(.note(report, behind: hop))
            }
        }
    }

    /// Notes that the target itself has answered, over a gateway or on the link.
    private func noteTargetAnswer(_ address: IPAddress, _ route: ChosenRoute, _ turn: inout Turn) {
        guard let hop = route.firstHop(to: address, in: turn.localState) else { return }
        turn.effects.append(.noteAlive(hop, by: .target(address, port: peer.port)))
    }

    private func failure(of attempt: AttemptRace.Running, _ result: ProbeResult?, _ turn: Turn) -> FailedAttempt {
        FailedAttempt(
            candidate: attempt.entry.candidate, route: attempt.entry.route, result: result,
            elapsedNanoseconds: turn.now.elapsed(since: attempt.started).saturatingNanoseconds, scheme: endpoint.scheme)
    }

    /// The time after which a router or this machine reports that the next hop does not answer, in nanoseconds.
    private static let resolutionFailure: Int64 = 3_090_000_000
    /// The maximum time for which a silent probe is extended, in nanoseconds.
    static let extensionLimit: Int64 = 100_000_000

    /// The time after a probe's deadline from which this process has overslept it, in nanoseconds: it was stopped, or had no processor.
    private static let oversleep: Int64 = 500_000_000

    /// Repeats a probe whose deadline this process has overslept: the answers may have come in time. A process that does so again and again must use
    /// what it has.
    ///
    /// - Returns: whether another probe runs.
    private mutating func repeatOverslept(_ run: ProbeRun, _ turn: inout Turn) -> Bool {
        guard turn.time >= run.deadline.addingSaturated(Self.oversleep), restarts < Self.restartLimit else { return false }
        restarts += 1
        startProbe(&turn)
        return true
    }

    /// Ends the attempts at the probe's deadline. Attempts without an answer count as silent. A probe is extended by up to 100 ms if
    /// reports of a silent next hop are about to arrive. One that confirms the first of a streak is not, so that the verdict does not
    /// wait.
    private mutating func deadlineReached(_ run: ProbeRun, _ race: AttemptRace, _ turn: inout Turn) {
        guard run.failedLevels.isEmpty else {
            cancelAttempts(&turn)
            return allFailed(run, race.failures, &turn)
        }
        let report = (run.connecting ?? run.started).monotonicNanoseconds.addingSaturated(Self.resolutionFailure)
        if streak.began == nil || isHostSilent, report > run.deadline, report - run.deadline <= Self.extensionLimit {
            var (run, race) = (run, race)
            run.deadline = report
            race.startNoMore()
            if run.hosts == nil { return askHosts(run, race, &turn) }
            phase = .connecting(run, race)
            return
        }
        cancelAttempts(&turn)
        experience = .silent
        isConnectedInSilence = race.hasConnection || run.connected != nil
        examine(run, race.failures + race.silentAttempts.map { failure(of: $0, nil, turn) }, &turn)
    }
}

// MARK: Conversations on a connection

extension TargetMachine {
    /// Notes that the connection is established. The levels follow on it, so that no other attempt is needed while they proceed.
    private mutating func connected(
        _ run: ProbeRun, _ race: AttemptRace, _ attempt: AttemptRace.Running, _ turn: inout Turn
    ) {
        var (run, race) = (run, race)
        for other in race.established(attempt, at: turn.now) { turn.effects.append(.cancel(attempt: other.id)) }
        run.connected = turn.now
        noteTargetAnswer(attempt.entry.candidate.address, attempt.entry.route, &turn)
        phase = .connecting(run, race)
    }

    /// Ends the probe with the result of its levels, or tries another address if they have failed.
    private mutating func levelsEnded(
        _ levels: LevelResult, _ run: ProbeRun, _ race: AttemptRace, _ attempt: AttemptRace.Running, _ result: ProbeResult,
        _ turn: inout Turn
    ) {
        var (run, race) = (run, race)
        run.levels = levels
        if let connected = attempt.connected {
            // The phases of the probe are those of this connection.
            if !run.failedLevels.isEmpty || race.hasConnection { run.connecting = attempt.started }
            run.connected = connected
        }
        let address = attempt.entry.candidate.address
        experience = levels.isAtDeadline ? .silent : .answered
        isConnectedInSilence = true
        if let finding = stall(levels, result, at: address) {
            if finding.cause.code == .latency {
                slowRoundTrip = UInt32(clamping: max(1, levels.progress?.roundTripMicroseconds ?? 0))
            }
            return levelsFailed(FailedLevels(run, attempt, finding, .silence), run, race, &turn)
        }
        // What was sent has not arrived: the network is silent, not the server.
        if levels.isAtDeadline, !levels.isAcknowledged {
            return attemptFailed(failure(of: attempt, nil, turn), run, race, &turn)
        }
        var findings = findings(of: levels, at: address, attempt.entry.route, run, turn)
        if let number = findings.systemError {
            let result = ProbeResult(id: attempt.id, errno: number, call: "handshake", reporter: result.reporter)
            return attemptFailed(failure(of: attempt, result, turn), run, race, &turn)
        }
        judgeSegments(levels, &findings, at: address)
        if segments == .compared, !settings.isScheduledOnly {
            // A success by small segments alone is no result.
            for other in race.stopAll() { turn.effects.append(.cancel(attempt: other.id)) }
            return finishProbe(.refusal, mustConfirm: true, &turn)
        }
        if let continuation = levels.facts.continuation {
            for other in race.stopAll() { turn.effects.append(.cancel(attempt: other.id)) }
            let origin = RedirectedProbe.Origin(race: race, attempt: attempt, result: result)
            return follow(continuation, run, origin, findings, &turn)
        }
        guard let finding = findings.failure else {
            levelDegradation = findings.degradation ?? slowness(run, result, at: address, turn)
            return succeed(run, race, attempt, result, &turn)
        }
        // A costly server is not asked again at once.
        let ending: ProbeSchedule.Ending =
            levels.isAtDeadline ? .silence : finding.cause.code == .excessiveCost ? .other : .refusal
        let failed = FailedLevels(run, attempt, finding, ending)
        levelsFailed(failed, run, race, &turn)
    }

    private func findings(
        of levels: LevelResult, at address: IPAddress, _ route: ChosenRoute, _ run: ProbeRun, _ turn: Turn
    ) -> LevelFindings {
        endpoint.scheme.kind.judge(
            ProbedConnection(
                levels: levels, address: address, route: route, endpoint: endpoint, settings: settings,
                continuation: continuation?.value, started: run.started, now: turn.now))
    }

    /// Finds a network that drops large packets: a gap in what arrived, then silence; then a success with small segments; then a gap and silence again.
    private mutating func judgeSegments(_ levels: LevelResult, _ findings: inout LevelFindings, at address: IPAddress) {
        let isStalled = levels.isAtDeadline && levels.hasGap
        if levels.hasSmallSegments {
            segments = levels.isAtDeadline ? .unlimited : .compared
        } else if !isStalled {
            segments = .unlimited
        } else {
            segments = segments == .compared || segments == .limited ? .limited : .suspected
        }
        if segments == .suspected { findings.failure?.isProvisional = true }
        guard segments == .limited, isStalled else { return }
        let detail = "large packets from \(address) vanish on the way, and packets with segments of 536 bytes arrive"
        let cause = Cause(
            .network, .packetTooBig, detail: detail,
            evidence: ["address": .text("\(address)"), "inferred": .text("TCP_MAXSEG 536")])
        findings = LevelFindings()
        findings.failure = Finding(cause, accusesServer: false)
    }
}

/// Addresses that are connected, and fail above TCP. A server is at fault only if all addresses that were tried fail, whatever their
/// order: after a failure the next address is tried within the same deadline.
extension TargetMachine {
    /// Tries the next address after the levels of one have failed, or ends the probe.
    private mutating func levelsFailed(_ failed: FailedLevels, _ run: ProbeRun, _ race: AttemptRace, _ turn: inout Turn) {
        var (run, race) = (run, race)
        run.failedLevels.append(failed)
        // What this machine cannot do for one address, it cannot do for another.
        if failed.finding.cause.layer == .local { race.waiting = [] }
        continueRace(run, race, &turn)
    }

    /// Tries the next address after an established connection has failed below its levels, or ends the probe.
    private mutating func attemptFailed(_ failure: FailedAttempt, _ run: ProbeRun, _ race: AttemptRace, _ turn: inout Turn) {
        var (run, race) = (run, race)
        if failure.result == nil {
            run.connected = nil
            run.levels = nil
        }
        race.failures.append(failure)
        continueRace(run, race, &turn)
    }

    private mutating func continueRace(_ run: ProbeRun, _ race: AttemptRace, _ turn: inout Turn) {
        phase = .connecting(run, race)
        if turn.time < run.deadline, !race.waiting.isEmpty { return startAttempt(run, race, &turn) }
        guard race.running.isEmpty else { return }
        allFailed(run, race.failures, &turn)
    }

    /// Ends a probe of which all addresses have failed.
    private mutating func allFailed(_ run: ProbeRun, _ failures: [FailedAttempt], _ turn: inout Turn) {
        guard let failed = furthestLevels(run) else { return examine(run, failures, &turn) }
        var run = run
        (run.levels, run.connecting, run.connected) = (failed.levels, failed.connecting, failed.connected)
        experience = failed.ending == .silence ? .silent : .answered
        isConnectedInSilence = true
        // The host has answered, whatever was reported before.
        streak.reset()
        streak.begin(at: run.started.monotonicNanoseconds)
        let place = Place(address: failed.entry.candidate.address, interface: failed.entry.route.interface)
        fail(run, failed.finding, place, failed.ending, of: failures, &turn)
    }

    /// Returns the failure that has come furthest; of equal ones, that of the lowest address, so that the cause stays the same.
    private func furthestLevels(_ run: ProbeRun) -> FailedLevels? {
        func rank(_ failed: FailedLevels) -> Int {
            let layer = failed.finding.cause.layer
            return layer == .local ? 0 : layer.depth * 2 + (failed.ending == .silence ? 1 : 2)
        }
        return run.failedLevels.min {
            (-rank($0), $0.entry.candidate.address) < (-rank($1), $1.entry.candidate.address)
        }
    }

    /// Returns the entries of a race. For targets with levels, addresses that fail come last, and are tried beside the probes. Those of
    /// them whose redirect only a probe follows come first, so that their recovery is noticed.
    private func workingFirst(_ entries: [AttemptRace.Entry]) -> [AttemptRace.Entry] {
        guard !isConnectionAlone, let survey else { return entries }
        let ranked = entries.map { entry in
            let address = entry.candidate.address
            return (entry, rank: !survey.isFailing(address) ? 1 : survey.isUndecided(address) ? 0 : 2)
        }
        return (0...2).flatMap { rank in ranked.filter { $0.rank == rank }.map(\.0) }
    }
}

// MARK: Redirects

/// The part of a probe on another host, to which the target has redirected it.
private struct RedirectedProbe: Sendable {
    /// The connection on which the target redirected the probe.
    struct Origin: Sendable {
        let race: AttemptRace
        let attempt: AttemptRace.Running
        let result: ProbeResult
    }

    let origin: Origin
    /// The verdict of the target's own response.
    let findings: LevelFindings
    /// The machine of the other host, which makes one probe with a lookup, routes and a cause of its own.
    var machine: TargetMachine
}

/// Redirects to another host (RFC 9110 section 15.4), and those within the host whose connection fails: the failure of the destination
/// is the cause, also if an expectation is declared.
extension TargetMachine {
    /// Begins the probe of the URL to which the target redirects.
    private mutating func follow(
        _ continuation: Continuation, _ run: ProbeRun, _ origin: RedirectedProbe.Origin, _ findings: LevelFindings,
        _ turn: inout Turn
    ) {
        var settings = settings
        settings.timeout = .nanoseconds(max(1_000_000, run.deadline - turn.time))
        settings.isScheduledOnly = true
        (settings.failAfter, settings.recoverAfter) = (1, 1)
        var machine = TargetMachine(
            id: id, endpoint: continuation.endpoint, settings: settings, continuing: Boxed(continuation), firstNumber: nextNumber)
        machine.addressFailed = addressFailed
        let redirected = RedirectedProbe(origin: origin, findings: findings, machine: machine)
        phase = .redirected(run, redirected)
        advance(run, redirected, .begin, &turn)
    }

    /// Passes an event to the machine of the other host, if there is one.
    private mutating func passToRedirect(_ event: Event, _ turn: inout Turn) {
        guard case .redirected(let run, let redirected) = phase else { return }
        switch event {
        case .lookup, .route, .probe, .neighbor, .host, .searched, .counters, .tick: advance(run, redirected, event, &turn)
        // The target's own machine reacts to these.
        case .begin, .localStateChanged, .resumed, .reported, .paused, .preempted: break
        }
    }

    private mutating func advance(
        _ run: ProbeRun, _ redirected: RedirectedProbe, _ event: Event, _ turn: inout Turn
    ) {
        var redirected = redirected
        // Both machines take their numbers from one sequence.
        redirected.machine.nextNumber = nextNumber
        let effects = redirected.machine.handle(event, in: turn.localState, at: turn.now)
        nextNumber = redirected.machine.nextNumber
        var report: ProbeReport?
        for effect in effects {
            switch effect {
            case .report(let last): report = last
            case .publish: break
            default: turn.effects.append(effect)
            }
        }
        phase = .redirected(run, redirected)
        guard !redirected.machine.isProbing else { return }
        ended(run, redirected, report, &turn)
    }

    /// Ends the probe with the result of the other host.
    private mutating func ended(
        _ run: ProbeRun, _ redirected: RedirectedProbe, _ report: ProbeReport?, _ turn: inout Turn
    ) {
        let (origin, verdict) = (redirected.origin, redirected.machine.verdict)
        var run = run
        let last = report?.levels
        if let last { run.levels = run.levels?.redirected(last) ?? last }
        if let connection = report?.connection { run.levels?.addConnection(connection) }
        guard let cause = report?.cause ?? (report == nil ? verdict.cause : nil) else {
            levelDegradation = redirected.findings.degradation ?? redirected.machine.levelDegradation
            return succeed(run, origin.race, origin.attempt, origin.result, &turn)
        }
        experience = redirected.machine.experience
        isConnectedInSilence = true
        let isOfServer = cause.layer.isAboveConnection && cause.evidence["proxy"] == nil
        let finding = Finding(
            self.cause(cause, of: redirected), accusesServer: verdict.status == .down || isOfServer, isCertain: false)
        let failed = FailedLevels(run, origin.attempt, finding, experience == .silent ? .silence : .refusal)
        levelsFailed(failed, run, origin.race, &turn)
    }

    /// Returns the cause of the other host as one of the target, which names the redirect.
    private func cause(_ cause: Cause, of redirected: RedirectedProbe) -> Cause {
        cause.behind(redirected.machine.continuation?.value.locations ?? [], of: endpoint.hostText)
    }
}

// MARK: Slow paths and lost packets

extension TargetMachine {
    /// The most times of ``ProbeSettings/timeout`` that a probe over a slow path has.
    private static let longestProbe: Int64 = 3
    /// The number of consecutive failures that a known loss explains. More are no chance.
    private static let lossyFailures: UInt8 = 5

    /// The time of the next probe in nanoseconds: that of the settings, or more over a slow path.
    private var probeTime: Int64 {
        let timeout = settings.timeout.saturatingNanoseconds
        return slowRoundTrip > 0 ? timeout.multipliedSaturated(by: Self.longestProbe) : timeout
    }

    /// The loss before the first failure, in percent, as far as it explains the present one.
    private var knownLoss: Int { failuresSinceSuccess < Self.lossyFailures ? Int(lossAtSuccess) : 0 }

    /// Returns why a connection has made no progress until the deadline; `nil` if the path is not at fault.
    private func stall(_ levels: LevelResult, _ result: ProbeResult, at address: IPAddress) -> Finding? {
        // A client that waits for the server's first words has sent nothing that could be lost.
        guard levels.isAtDeadline, levels.bytesSent > 0, let progress = levels.progress else { return nil }
        let stalled = StalledConnection(
            progress: progress, handshakeRetransmissions: result.retransmissions ?? 0, timeout: probeTime, knownLoss: knownLoss)
        guard let cause = stalled.cause(address, port: peer.port) else { return nil }
        var finding = Finding(cause, accusesServer: false, isCertain: false)
        finding.isProvisional = cause.code == .latency && slowRoundTrip == 0
        return finding
    }

    /// Returns why a target that has answered is degraded: its probe needed more time than the settings have.
    private mutating func slowness(_ run: ProbeRun, _ result: ProbeResult, at address: IPAddress, _ turn: Turn) -> Cause? {
        guard slowRoundTrip > 0 else { return nil }
        let timeout = settings.timeout.saturatingNanoseconds
        let elapsed = turn.now.elapsed(since: run.started).saturatingNanoseconds
        // The round trip of a connection whose SYN was sent twice is not known: the measured one may contain the wait for a lost SYN. The handshake and
        // the first byte of the answer take at least one each.
        let phases = [run.levels?.handshakeNanoseconds, run.levels?.processingNanoseconds].compactMap { $0 }
        let roundTrip = min(
            result.roundTripNanoseconds > 0 ? result.roundTripNanoseconds : Int64(slowRoundTrip) * 1_000, phases.min() ?? .max)
        guard elapsed > timeout, roundTrip >= timeout / StalledConnection.slowPart else {
            slowRoundTrip = 0
            return nil
        }
        let microseconds = Int(roundTrip / 1_000)
        let evidence: [String: Cause.Evidence] = [
            "address": .text("\(address)"), "rtt_us": .number(microseconds), "elapsed_ms": .number(Int(elapsed / 1_000_000)),
        ]
        let time = "\(StalledConnection.text(elapsed)), more than \(StalledConnection.text(timeout))"
        return StalledConnection.slow(roundTrip: microseconds, time, evidence)
    }

    /// Returns the finding of a silent target as one of loss, if packets were lost before.
    private func lossy(_ finding: Finding, at address: IPAddress) -> Finding {
        let isSilence = finding.cause.isSilence || finding.cause.code == .upstreamSilent
        // Several networks that are silent at once have not lost packets by chance.
        guard isSilence, finding.cause.evidence["silent_networks"] == nil, knownLoss >= StalledConnection.decisiveLoss else {
            return finding
        }
        let detail =
            "\(address) does not answer, and \(knownLoss) % of the last packets between this machine and it were lost before"
        let evidence = finding.cause.evidence.merging(["loss_percent": .number(knownLoss)]) { old, _ in old }
        return Finding(Cause(.quality, .loss, detail: detail, evidence: evidence), accusesServer: false)
    }
}

// MARK: The examination of a silent probe

extension TargetMachine {
    /// The time before the probe's deadline at which hosts are asked, so that their replies are known at the deadline.
    private static let hostQueryLead: Int64 = 700_000_000

    /// Asks the first hops of the silent attempts, and the target's host, whether they are alive.
    private mutating func askHosts(_ run: ProbeRun, _ race: AttemptRace, _ turn: inout Turn) {
        var run = run
        let questions = hostQuestions(race.silentAttempts.map { failure(of: $0, nil, turn) }, run, turn)
        run.hosts = HostSurvey(questions)
        phase = .connecting(run, race)
        turn.effects += questions.effects
    }

    private func hostQuestions(_ failures: [FailedAttempt], _ run: ProbeRun, _ turn: Turn) -> HostQuestions {
        var questions = HostQuestions()
        func add(_ failure: FailedAttempt, _ host: Neighbor.Key, isBound: Bool, _ hop: Neighbor.Key) {
            guard !questions.hosts.contains(where: { $0.query.host == host }) else { return }
            questions.hosts.append(
                HopBook.Request(
                    query: HostQuery(host, isBound: isBound, selector: host == hop ? nil : failure.candidate.selector),
                    since: run.started.monotonicNanoseconds,
                    address: failure.candidate.address, port: failure.port, hop: hop))
        }
        for failure in failures where failure.isSilence(in: turn.localState) {
            guard let hop = failure.firstHop(in: turn.localState) else {
                // This machine is silent, which its packet filter may explain.
                add(failure, failure.hostKey, isBound: false, failure.hostKey)
                continue
            }
            if !hop.address.isUnspecified { add(failure, hop, isBound: true, hop) }
            // A silent name server has its own cause, whoever else is silent.
            if hop.address != failure.candidate.address, run.silentLookup == nil,
                !questions.searches.contains(where: { $0.hop == hop })
            {
                let silent = HopSearch.Destination(
                    failure.candidate.address, port: failure.port, interface: boundName(in: turn.localState),
                    selector: failure.candidate.selector)
                questions.searches.append(
                    WitnessBook.Request(hop: hop, silent: silent, since: run.started.monotonicNanoseconds))
            }
            // The target's host is asked until its state is explained; later only the hops.
            if hop.address != failure.candidate.address, !isExplained {
                add(failure, failure.hostKey, isBound: failure.candidate.boundTo != 0, hop)
            }
        }
        return questions
    }

    /// Whether somebody else than the target's host explains the verdict, so that the host need not be asked.
    private var isExplained: Bool {
        guard verdict.status == .down, let cause = verdict.cause else { return false }
        return (cause.isSilence || cause.code == .timeout) && cause.evidence["host"] != .text("answered")
    }

    /// Returns the failure with the times of its probe, and without reports that its explanation excludes.
    private func completed(_ failure: FailedAttempt, _ run: ProbeRun, _ turn: Turn) -> FailedAttempt {
        var failure = failure
        failure.probeStarted = run.started.monotonicNanoseconds
        failure.ended = turn.now
        failure.streakBegan = streak.began
        // A host that is alive contradicts reports about other ports, but is not asked any more.
        if isExplained {
            if failure.hop?.report?.port != failure.port { failure.hop?.report = nil }
            // The router has sent no report about this host, although it could.
            failure.hop?.hostReport = nil
        }
        return failure
    }

    private mutating func hostAnswered(_ host: Neighbor.Key, _ state: HopBook.State, _ turn: inout Turn) {
        survey?.running?.hosts?.receive(host, state)
        continueSurvey(&turn)
        updateHosts(&turn) { $0?.receive(host, state) }
    }

    private mutating func searched(_ hop: Neighbor.Key, _ state: WitnessBook.State, _ turn: inout Turn) {
        survey?.running?.hosts?.receive(hop, state)
        continueSurvey(&turn)
        updateHosts(&turn) { $0?.receive(hop, state) }
    }

    private mutating func updateHosts(_ turn: inout Turn, _ update: (inout HostSurvey?) -> Void) {
        switch phase {
        case .connecting(var run, let race):
            update(&run.hosts)
            phase = .connecting(run, race)
        case .examining(var run, let examination):
            update(&run.hosts)
            continueExamination(run, examination, &turn)
        default: break
        }
    }

    private mutating func counted(_ interface: UInt32, _ counters: LinkCounters?, _ turn: inout Turn) {
        switch phase {
        case .connecting(var run, let race):
            run.firstCounters = run.firstCounters ?? counters.map { TunnelTraffic(interface, $0) }
            phase = .connecting(run, race)
        case .examining(let run, var examination):
            examination.receive(interface, counters, since: run.firstCounters)
            continueExamination(run, examination, &turn)
        default: break
        }
    }

    /// Checks in the neighbor table whether the server or its next hop is at fault.
    private mutating func examine(_ run: ProbeRun, _ failures: [FailedAttempt], _ turn: inout Turn) {
        var run = run
        var keys: [Neighbor.Key] = []
        var tunnels: [UInt32] = []
        for failure in failures {
            guard let key = failure.suspectedHop(in: turn.localState) else { continue }
            if isTunnel(failure.route, turn) {
                if !tunnels.contains(key.interface), run.firstCounters?.interface == key.interface {
                    tunnels.append(key.interface)
                }
            } else if !keys.contains(key) {
                keys.append(key)
            }
        }
        var questions = HostQuestions()
        if run.hosts == nil {
            questions = hostQuestions(failures.filter { $0.result == nil }, run, turn)
            run.hosts = HostSurvey(questions)
        }
        let examination = Examination(
            failures: failures, pending: keys, tunnels: tunnels,
            until: turn.time.addingSaturated(
                questions.hosts.isEmpty && questions.searches.isEmpty ? Examination.timeLimit : Self.hostQueryLead))
        guard !keys.isEmpty || !tunnels.isEmpty || run.hosts?.isComplete == false else {
            return conclude(run, run.hosts?.explain(failures, turn.localState) ?? failures, &turn)
        }
        phase = .examining(run, examination)
        turn.effects += questions.effects
        turn.effects += keys.map { .askNeighbor($0) }
        turn.effects += tunnels.map { .readCounters($0) }
    }

    private mutating func neighborAnswered(_ key: Neighbor.Key, _ answer: NeighborAnswer, _ turn: inout Turn) {
        survey?.running?.examination?.receive(key, answer, in: turn.localState)
        continueSurvey(&turn)
        guard case .examining(let run, var examination) = phase else { return }
        examination.receive(key, answer, in: turn.localState)
        continueExamination(run, examination, &turn)
    }

    private mutating func otherHopsAnswered(_ query: RouteQuery, _ answer: RouteAnswer, _ turn: inout Turn) {
        guard case .examining(let run, var examination) = phase else { return }
        turn.effects += examination.receive(query, answer).map { .askNeighbor($0) }
        continueExamination(run, examination, &turn)
    }

    private mutating func continueExamination(_ run: ProbeRun, _ examination: Examination, _ turn: inout Turn) {
        var examination = examination
        if examination.pending.isEmpty {
            turn.effects += examination.routesToAsk(in: turn.localState).map { .askRoute($0) }
        }
        phase = .examining(run, examination)
        if examination.isComplete, run.hosts?.isComplete != false { finishExamination(run, examination, &turn) }
    }

    private mutating func finishExamination(_ run: ProbeRun, _ examination: Examination, _ turn: inout Turn) {
        conclude(run, run.hosts?.explain(examination.failures, turn.localState) ?? examination.failures, &turn)
    }
}

// MARK: The end of a probe

extension TargetMachine {
    private mutating func succeed(
        _ run: ProbeRun, _ race: AttemptRace, _ attempt: AttemptRace.Running, _ result: ProbeResult, _ turn: inout Turn
    ) {
        for other in race.running { turn.effects.append(.cancel(attempt: other.id)) }
        var run = run
        run.connecting = attempt.started
        let route = attempt.entry.route
        let address = attempt.entry.candidate.address
        // After a retransmission the last measured value holds. Without one, the time of the connection is its upper limit.
        let measured: Duration? = result.roundTripNanoseconds > 0 ? .nanoseconds(result.roundTripNanoseconds) : nil
        var place = Place(
            address: address, interface: route.interface,
            roundTrip: measured ?? (self.place.address == address ? self.place.roundTrip : nil)
                ?? turn.now.elapsed(since: attempt.started))
        let retransmissions = result.retransmissions ?? 0
        noteTargetAnswer(address, route, &turn)
        lastAnswered = place.address
        experience = .answered
        addressFailed = .min
        streak.reset()
        let report = report(
            run, nil, Place(address: address, interface: route.interface, roundTrip: measured),
            lost: retransmissions + lostPackets(race, beside: attempt, measured, turn), &turn)
        let responseTime = report.responseTime
        (place.responseNanoseconds, place.phases) = (responseTime?.saturatingNanoseconds, PhaseTimes(report))
        // What was lost before a recovery belongs to the outage.
        let lost = verdict.isFailing ? 0 : retransmissions + lostAttempts(race, before: attempt)
        recordQuality(place.roundTrip, responseTime, lost: lost)
        (lossAtSuccess, failuresSinceSuccess) = (quality.knownLoss, 0)
        noteOtherAddresses(run, race, attempt, turn)
        _ = flaps.record(true)
        verdict.succeed(start: schedule.countedStart)
        _ = judgeQuality(after: report)
        if verdict.status == .up || verdict.status == .degraded { self.place = place }
        finishProbe(.other, &turn)
        publish(&turn)
        surveyOthers(&turn)
    }

    /// Returns the number of earlier attempts to the same address that are still unanswered.
    private func lostAttempts(_ race: AttemptRace, before attempt: AttemptRace.Running) -> Int {
        race.running.count { $0.entry.candidate == attempt.entry.candidate && $0.started < attempt.started }
    }

    /// Returns the number of packets of the other attempts to the same address that are lost: SYN segments that are still unanswered,
    /// although more than two round trips have passed. The kernel sends the second one after a second.
    private func lostPackets(
        _ race: AttemptRace, beside attempt: AttemptRace.Running, _ roundTrip: Duration?, _ turn: Turn
    ) -> Int {
        let patience = max((roundTrip ?? .zero) * 2, .milliseconds(50))
        return race.running.filter { $0.entry.candidate == attempt.entry.candidate }.reduce(0) { count, other in
            let elapsed = turn.now.elapsed(since: other.started)
            return count + (elapsed > patience ? 1 : 0) + (elapsed > .seconds(1) + patience ? 1 : 0)
        }
    }

    /// Notes the results of the addresses that were tried in the same probe.
    private mutating func noteOtherAddresses(
        _ run: ProbeRun, _ race: AttemptRace, _ attempt: AttemptRace.Running, _ turn: Turn
    ) {
        guard openRoutes.count > 1 else { return }
        var survey = survey ?? AddressSurvey()
        // What was noted while no address answered is no reason to be degraded.
        if !isReachable { survey.reset() }
        survey.succeed(attempt.entry.candidate.address)
        for (address, cause) in causes(run, race.failures, turn) where cause.layer != .local {
            _ = survey.fail(address, addressFailure(cause, turn), failAfter: settings.failAfter)
        }
        self.survey = survey
    }

    /// Notes the results of all addresses after a probe that none has answered, if the status of each is published.
    private mutating func noteAllFailed(_ run: ProbeRun, _ failures: [FailedAttempt], _ turn: Turn) {
        guard settings.addresses == .each, !isReachable, survey?.running == nil else { return }
        var survey = AddressSurvey()
        for (address, cause) in causes(run, failures, turn) { survey.note(address, cause) }
        self.survey = survey
    }

    private func causes(_ run: ProbeRun, _ failures: [FailedAttempt], _ turn: Turn) -> [(IPAddress, Cause)] {
        failures.map { ($0.candidate.address, $0.cause(in: turn.localState)) }
            + run.failedLevels.map { ($0.entry.candidate.address, $0.finding.cause) }
    }

    private mutating func conclude(_ run: ProbeRun, _ failures: [FailedAttempt], _ turn: inout Turn) {
        if run.silentLookup != nil { return endTrace(run, failures, &turn) }
        streak.begin(at: run.started.monotonicNanoseconds)
        let failures = failures.map { completed($0, run, turn) }
        let isDown = verdict.status == .down
        let findings = failures.map { ($0, streak.finding(of: $0, isDown: isDown, in: turn.localState)) }
        guard let (failure, finding) = furthest(findings) else { return finishProbe(.other, &turn) }
        let place = Place(address: failure.candidate.address, interface: failure.route.interface)
        let ending: ProbeSchedule.Ending = experience == .silent ? .silence : .refusal
        fail(run, lossy(finding, at: failure.candidate.address), place, ending, of: failures, &turn)
    }

    private mutating func fail(
        _ run: ProbeRun, _ finding: Finding, _ place: Place, _ ending: ProbeSchedule.Ending, of failures: [FailedAttempt] = [],
        _ turn: inout Turn
    ) {
        var finding = finding
        finding.isProvisional = !settings.isScheduledOnly && (finding.isProvisional || isSingleReport(finding.cause))
        // The failure of a redirect's destination names the proxy itself, if it uses one.
        let layer = finding.cause.layer
        if peer != endpoint, !layer.isAboveConnection, layer != .local, finding.cause.evidence["redirects"] == nil {
            finding = finding.with(onTheWay(finding.cause), accusesServer: false)
        }
        if run.silentLookup == nil, finding.cause.layer != .dns, finding.cause.layer != .local {
            finding = finding.with(addressFailure(finding.cause, turn), accusesServer: finding.accusesServer)
        }
        report(run, finding.cause, place, isProvisional: finding.isProvisional, &turn)
        failuresSinceSuccess = max(failuresSinceSuccess, failuresSinceSuccess &+ 1)
        // An interruption is one lost result, however many packets fell into it: loss means that packets are lost again and again.
        // Those of an outage are not the path's loss.
        if ending == .silence, run.levels == nil, !verdict.isFailing { recordQuality(nil, lost: 1) }
        _ = flaps.record(false)
        if verdict.fail(finding, start: schedule.countedStart, at: turn.time) {
            self.place = place
            // The results of an outage do not describe the quality of the working connection.
            quality.reset()
            abandonSurvey(&turn)
        }
        noteAllFailed(run, failures, turn)
        finishProbe(ending, mustConfirm: finding.isProvisional, &turn)
        publish(&turn)
    }

    /// Whether the cause is the first message of a router, and one failure suffices for a verdict.
    private func isSingleReport(_ cause: Cause) -> Bool {
        verdict.failAfter == 1 && failuresSinceSuccess == 0 && cause.layer == .network && cause.evidence["icmp_type"] != nil
            && cause.evidence["inferred"] == nil
    }

    /// Notes that an address of the name has failed, so that the name is asked for again. Returns the cause with the age of the name server's
    /// answer as evidence.
    private mutating func addressFailure(_ cause: Cause, _ turn: Turn) -> Cause {
        addressFailed = turn.time
        // The failure of a redirect's destination has the age of that host's answer.
        guard let answered, cause.evidence["redirects"] == nil, cause.evidence[Self.answerAge] == nil else { return cause }
        let seconds = max(0, turn.time - answered) / 1_000_000_000
        let evidence = cause.evidence.merging([Self.answerAge: .number(Int(seconds))]) { old, _ in old }
        return Cause(cause.layer, cause.code, detail: cause.detail, evidence: evidence)
    }

    /// Returns a cause before the connection, which names the proxy if there is one.
    private func onTheWay(_ cause: Cause) -> Cause {
        peer == endpoint ? cause : endpoint.scheme.kind.cause(cause, onTheWayTo: peer, settings)
    }

    private static let answerAge = "answer_age_s"

    /// Ends a probe, and schedules the next one.
    private mutating func finishProbe(_ ending: ProbeSchedule.Ending, mustConfirm: Bool = false, _ turn: inout Turn) {
        phase = .waiting
        pathNewsDue = .max
        if !settings.isScheduledOnly, isOutdated || mustConfirm || verdict.needsConfirmation {
            schedule.confirm(isOutdated ? .other : ending, timeout: settings.timeout, at: turn.time)
        } else {
            schedule.continueByGrid(at: turn.time, factor: intervalFactor)
            if !settings.isScheduledOnly, let due = verdict.countDue { schedule.count(from: due, at: turn.time) }
        }
        isOutdated = false
        restarts = 0
    }
}

// MARK: Changes of the local state

extension TargetMachine {
    private mutating func localStateChanged(_ turn: inout Turn) {
        // The interface in the published update may have another name or type now.
        publish(&turn)
        guard recheckDue == nil else { return }
        let due = lastRecheck?.addingSaturated(needsLookup ? Self.lookupGap : Self.recheckGap) ?? turn.time
        if turn.time >= due {
            recheck(&turn)
        } else {
            recheckDue = due
        }
    }

    /// Whether the name must be resolved first, because it has no address or the last lookup failed.
    private var needsLookup: Bool { addresses.isEmpty || verdict.lastLayer == .dns || isCutOffFromNames }

    /// Whether a lookup runs, or its failure is examined.
    private var isResolving: Bool {
        switch phase {
        case .resolving, .tracing: true
        case .examining(let run, _): run.silentLookup != nil
        default: false
        }
    }

    private mutating func recheck(_ turn: inout Turn) {
        (recheckDue, retryDue) = (nil, nil)
        lastRecheck = turn.time
        if isResolving {
            isOutdated = true
            if !addresses.isEmpty { startCheck(&turn) }
            return
        }
        switch phase {
        case .idle, .resolving, .tracing: break
        case .asking(let run, _): ask(run, &turn)
        case .waiting where needsLookup:
            verdict.pathChanged()
            if !settings.isScheduledOnly { startProbe(&turn) }
        case .waiting, .pathless, .connecting, .examining, .redirected: startCheck(&turn)
        }
    }

    private mutating func startCheck(_ turn: inout Turn) {
        switch candidates(in: turn.localState) {
        case .failure(let failure):
            setQueries([])
            pathless(failure.cause, Place(address: addresses.first), &turn)
        case .success(let candidates):
            let survey = RouteSurvey(candidates)
            check = (survey, turn.time.addingSaturated(settings.timeout.saturatingNanoseconds))
            setQueries(survey.queries)
            turn.effects += survey.queries.map { .askRoute($0) }
        }
    }

    /// Notes that the target has a path. If it had none, this is published soon, also if the target stays silent.
    private mutating func pathFound(_ turn: Turn) {
        guard pathNewsDue == .max, verdict.lacksPath else { return }
        pathNewsDue = turn.time.addingSaturated(Self.pathNews)
    }

    /// Handles the routes that a check found.
    private mutating func checked(_ candidateRoutes: [(Candidate, CandidateRoute)], _ turn: inout Turn) {
        let routes = Self.openRoutes(candidateRoutes)
        guard !routes.isEmpty else { return pathless(candidateRoutes, &turn) }
        let isChanged = routes != openRoutes
        if isChanged {
            schedule.restartGrowth(at: turn.time)
            verdict.pathChanged()
        }
        openRoutes = routes
        pathFound(turn)
        noteMeteredInterface(turn)
        streak.keep { routes[$0] }
        dropSurveyWithoutRoute(&turn)
        if isResolving { return }
        switch phase {
        case .idle, .asking, .resolving, .tracing: break
        case .pathless where settings.isScheduledOnly: phase = .waiting
        case .pathless: startProbe(&turn, knowing: candidateRoutes)
        case .waiting:
            if isChanged, !settings.isScheduledOnly {
                startProbe(&turn, knowing: candidateRoutes)
            } else {
                schedule.hurry(at: turn.time)
            }
        case .connecting, .examining, .redirected:
            guard isChanged else { return }
            // Running attempts keep their routes.
            guard restarts < Self.restartLimit, !settings.isScheduledOnly else {
                isOutdated = true
                if case .connecting(let run, var race) = phase {
                    race.reroute(by: routes)
                    phase = .connecting(run, race)
                }
                return
            }
            restarts += 1
            startProbe(&turn, knowing: candidateRoutes)
        }
    }
}

// MARK: Attempts to the addresses that the probes do not use

extension TargetMachine {
    /// The addresses with an open route, in the order of resolution.
    private var openAddresses: [IPAddress] { addresses.filter { openRoutes[$0] != nil } }

    /// Tries the other addresses of the target after a successful probe: the next one, or all.
    private mutating func surveyOthers(_ turn: inout Turn) {
        if settings.addresses == .each, openRoutes.count > 1 {
            var survey = survey ?? AddressSurvey()
            survey.tryEach(of: openAddresses.filter { $0 != lastAnswered })
            self.survey = survey
        }
        surveyNextAddress(&turn)
    }

    /// Tries the next of the addresses that are all to be tried after a successful probe.
    private mutating func continueSurveyOfEach(_ turn: inout Turn) {
        guard survey?.isUnderWay == true, survey?.running == nil, isReachable else { return }
        surveyNextAddress(&turn)
    }

    /// Tries another address of the target.
    private mutating func surveyNextAddress(_ turn: inout Turn) {
        let isEach = settings.addresses == .each
        guard turn.allowances.survey, !settings.isScheduledOnly, openRoutes.count > 1, survey?.running == nil,
            isEach || !AddressSurvey.areOneHost(openAddresses)
        else { return }
        let others = openAddresses.filter { $0 != lastAnswered }
        var survey = survey ?? AddressSurvey()
        defer { self.survey = survey }
        let next =
            isEach
            ? survey.nextOfEach(of: others, failAfter: settings.failAfter)
            : survey.next(of: others, failAfter: settings.failAfter)
        guard let address = next,
            case .success(let candidates) = candidates(in: turn.localState),
            let candidate = candidates.first(where: { $0.address == address }), let route = openRoute(of: candidate, turn)
        else { return }
        let run = ProbeRun(
            started: turn.now, deadline: turn.time.addingSaturated(settings.timeout.saturatingNanoseconds))
        let race = AttemptRace([AttemptRace.Entry(candidate: candidate, route: route)], deadline: run.deadline)
        survey.running = AddressSurvey.Running(run: run, race: race)
        advance(&survey, &turn)
    }

    /// Returns the route by the kernel's last answer; `nil` if the kernel would not send a packet now.
    private func openRoute(of candidate: Candidate, _ turn: Turn) -> ChosenRoute? {
        known[candidate.query].flatMap { candidateRoute(of: candidate, by: $0, in: turn.localState) }?.route
    }

    private mutating func advance(_ survey: inout AddressSurvey, _ turn: inout Turn) {
        guard var running = survey.running, let entry = running.race.takeNext(at: turn.time) else { return }
        // The route may have been removed since the first attempt.
        guard openRoute(of: entry.candidate, turn) != nil else {
            cancelSurveyAttempts(&turn)
            survey.running = nil
            return
        }
        let attempt = attempt(entry, until: running.run.deadline, turn)
        running.race.running.append(AttemptRace.Running(id: attempt.id, entry: entry, started: turn.now))
        survey.running = running
        turn.effects.append(.connect(attempt))
    }

    /// The time of the survey's next step; `.max` if none runs.
    private var surveyDue: Int64 {
        guard let running = survey?.running else { return .max }
        if let examination = running.examination { return examination.until }
        return min(running.run.deadline, running.race.nextStart ?? .max)
    }

    private mutating func tickSurvey(_ turn: inout Turn) {
        guard var survey, let running = survey.running, turn.time >= surveyDue else { return }
        if running.examination != nil { return endSurvey(running, running.explained(turn.localState), &turn) }
        guard turn.time >= running.run.deadline else {
            advance(&survey, &turn)
            self.survey = survey
            return
        }
        cancelSurveyAttempts(&turn)
        examineSurvey(running, running.race.silentAttempts.map { failure(of: $0, nil, turn) }, &turn)
    }

    /// Handles the result of an attempt of the survey. Returns whether the attempt belongs to it.
    private mutating func surveyAttemptEnded(_ result: ProbeResult, _ turn: inout Turn) -> Bool {
        guard var running = survey?.running, running.examination == nil,
            let index = running.race.running.firstIndex(where: { $0.id == result.id })
        else { return false }
        let ended = running.race.running.remove(at: index)
        survey?.running = running
        if result.errno == 0, !isConnectionAlone {
            guard let levels = result.levels else {
                cancelSurveyAttempts(&turn)
                // The levels follow on this connection.
                running.race.running = [ended]
                running.race.startNoMore()
                survey?.running = running
                return true
            }
            if let finding = stall(levels, result, at: ended.entry.candidate.address) {
                survey?.running = nil
                endSurvey(of: ended.entry.candidate.address, finding.cause, &turn)
                return true
            }
            if levels.isAtDeadline, !levels.isAcknowledged {
                examineSurvey(running, [failure(of: ended, nil, turn)], &turn)
                return true
            }
            let found = findings(of: levels, at: ended.entry.candidate.address, ended.entry.route, running.run, turn)
            if let number = found.systemError {
                let result = ProbeResult(id: ended.id, errno: number, call: "handshake", reporter: result.reporter)
                examineSurvey(running, [failure(of: ended, result, turn)], &turn)
                return true
            }
            if let cause = found.failure?.cause {
                survey?.running = nil
                endSurvey(of: ended.entry.candidate.address, cause, &turn)
                return true
            }
            if levels.facts.continuation != nil {
                survey?.running = nil
                survey?.redirect(ended.entry.candidate.address)
                if settings.addresses == .each { publish(&turn) }
                noteTargetAnswer(ended.entry.candidate.address, ended.entry.route, &turn)
                return true
            }
        }
        if result.errno == 0 {
            cancelSurveyAttempts(&turn)
            survey?.running = nil
            survey?.succeed(ended.entry.candidate.address)
            if judgeQuality() || settings.addresses == .each { publish(&turn) }
            noteTargetAnswer(ended.entry.candidate.address, ended.entry.route, &turn)
            return true
        }
        // Nothing was sent: the result is no evidence.
        if result.call == ProbeResult.queue {
            if running.race.running.isEmpty { survey?.running = nil }
            return true
        }
        cancelSurveyAttempts(&turn)
        let failure = failure(of: ended, result, turn)
        noteAnswer(failure, &turn)
        examineSurvey(running, [failure], &turn)
        return true
    }

    private mutating func examineSurvey(
        _ running: AddressSurvey.Running, _ failures: [FailedAttempt], _ turn: inout Turn
    ) {
        let keys = failures.compactMap { $0.suspectedHop(in: turn.localState) }
        guard let key = keys.first else { return endSurvey(running, failures, &turn) }
        let questions = hostQuestions(failures, running.run, turn)
        survey?.running?.race.running = []
        survey?.running?.hosts = HostSurvey(questions)
        survey?.running?.examination = Examination(
            failures: failures, pending: [key], until: turn.time.addingSaturated(Self.hostQueryLead))
        turn.effects += questions.effects
        turn.effects.append(.askNeighbor(key))
    }

    private mutating func continueSurvey(_ turn: inout Turn) {
        guard let running = survey?.running, let failures = running.examined(turn.localState) else { return }
        endSurvey(running, failures, &turn)
    }

    private mutating func endSurvey(
        _ running: AddressSurvey.Running, _ failures: [FailedAttempt], _ turn: inout Turn
    ) {
        survey?.running = nil
        guard let failure = failures.first.map({ completed($0, running.run, turn) }) else { return }
        let cause = failure.cause(in: turn.localState)
        endSurvey(of: failure.candidate.address, cause, &turn)
    }

    private mutating func endSurvey(of address: IPAddress, _ cause: Cause, _ turn: inout Turn) {
        // The limits of this process are no fault of the address.
        guard cause.layer != .local else { return }
        let cause = addressFailure(cause, turn)
        let mustConfirm = survey?.fail(address, cause, failAfter: settings.failAfter) ?? false
        if judgeQuality() || settings.addresses == .each { publish(&turn) }
        if mustConfirm, verdict.status == .up || verdict.status == .degraded { surveyNextAddress(&turn) }
    }

    private func cancelSurveyAttempts(_ turn: inout Turn) {
        turn.effects += surveyAttempts.map { .cancel(attempt: $0) }
    }

    /// Ends the survey without a result, because the routes or the machine's network are others now.
    private mutating func abandonSurvey(_ turn: inout Turn) {
        cancelSurveyAttempts(&turn)
        survey = nil
    }

    /// Ends the survey of an address that has no route any more.
    private mutating func dropSurveyWithoutRoute(_ turn: inout Turn) {
        guard let address = survey?.running?.race.running.first?.entry.candidate.address, openRoutes[address] == nil else {
            return
        }
        cancelSurveyAttempts(&turn)
        survey?.running = nil
    }
}

// MARK: Quality

extension TargetMachine {
    /// Records the round trip and the response time of a probe, and the packets that were lost before it.
    private mutating func recordQuality(_ roundTrip: Duration?, _ responseTime: Duration? = nil, lost: Int) {
        for _ in 0..<min(lost, settings.quality.window) { quality.record(nil, settings.quality) }
        if let roundTrip { quality.record(roundTrip, responseTime: responseTime, settings.quality) }
    }

    /// Determines whether a target that answers is degraded: by an address that fails, or by its quality. `report` is that of the probe that
    /// has just succeeded.
    ///
    /// - Returns: whether the status or its cause has changed.
    private mutating func judgeQuality(after report: ProbeReport? = nil) -> Bool {
        verdict.degrade(
            survey?.cause(openAddresses, answering: lastAnswered, failAfter: settings.failAfter) ?? levelDegradation
                ?? quality.cause(settings.quality, last: report))
    }
}

// MARK: Metered interfaces

extension TargetMachine {
    /// The number of intervals between two scheduled probes. While a failure is pending it is 1, so that its verdict does not wait.
    private var intervalFactor: Int {
        verdict.pending != nil ? 1 : max(meteredInterface == 0 ? 1 : settings.metered.intervalFactor, costFactor)
    }

    /// The number of intervals after which a server is probed again whose handshake costs too much: at least a minute.
    private var costFactor: Int {
        guard verdict.cause?.code == .excessiveCost else { return 1 }
        return Int((Self.costlyInterval - 1) / schedule.interval + 1)
    }

    /// The shortest interval of probes of a costly server, in nanoseconds.
    private static let costlyInterval: Int64 = 60_000_000_000

    /// Notes whether an open route leads over a metered interface.
    private mutating func noteMeteredInterface(_ turn: Turn) {
        let interfaces = turn.localState.interfaces
        meteredInterface = openRoutes.values.first { interfaces[$0.interface]?.isExpensive == true }?.interface ?? 0
        if meteredInterface == 0 { pausedUntil = .min }
    }

    /// Delays the next probe, because the budget of the metered interface is used up. A delay of less than an interval is not
    /// published.
    private mutating func pause(until time: Int64, _ turn: inout Turn) {
        pausedUntil = time
        guard time.addingSaturated(-turn.time) >= schedule.interval else { return }
        isPaused = true
        publish(&turn)
    }
}

// MARK: Passive evidence

/// The evidence of connections that other parts of the program make to the target.
///
/// - A success counts as a successful probe, and the next scheduled probe is skipped. It changes the address and the round trip
///   of the published status only if the target was not up: the addresses of a name may change with each connection.
/// - A target may have many successes in one interval. The one that replaces a probe counts for flapping and quality as a probe does,
///   and is followed by an attempt to another address. A degraded target is probed nevertheless, because only probes show the end
///   of a loss.
/// - A failure counts as no result. It is a reason to probe at once, but not within a second of the start of the last probe.
/// - While the kernel has no route to the target, its probes are certain to fail, so reports are ignored. So are reports of
///   targets that are probed only at the times of the schedule.
extension TargetMachine {
    private mutating func reported(_ outcome: PassiveReport.Outcome, _ turn: inout Turn) {
        if case .pathless = phase { return }
        if settings.isScheduledOnly { return }
        switch outcome {
        case .success(let address, let roundTrip):
            // A target that is bound to an interface, a source address, a mark or a family is not reached by a connection over another one.
            if settings.interface != nil || settings.selector != nil { return }
            if let address, !settings.families.contains(address.family) { return }
            // A status that is up has an address and a round trip.
            guard let address = address ?? lastAnswered ?? addresses.first, (roundTrip ?? place.roundTrip) != nil else {
                return probeSoon(&turn)
            }
            succeed(at: address, measured: roundTrip, &turn)
        case .failure: probeSoon(&turn)
        }
    }

    private mutating func succeed(at address: IPAddress, measured: Duration?, _ turn: inout Turn) {
        let (wasReachable, hadFailed) = (isReachable, verdict.lastLayer != nil)
        experience = .answered
        restarts = 0
        addressFailed = .min
        streak.reset()
        verdict.succeed(start: turn.time)
        if isReachable, !wasReachable {
            lastAnswered = address
            place = Place(address: address, interface: openRoutes[address]?.interface, roundTrip: measured ?? place.roundTrip)
        }
        let isProbe = replacesProbe(turn.time)
        if isProbe { recordQuality(measured, lost: 0) }
        if isProbe || hadFailed { _ = flaps.record(true) }
        _ = judgeQuality()
        publish(&turn)
        if isProbe, isReachable { surveyOthers(&turn) }
    }

    /// Whether the target answers.
    var isReachable: Bool { verdict.status == .up || verdict.status == .degraded }

    /// Schedules the next probe at least one interval from now. Returns whether a scheduled probe is skipped.
    private mutating func replacesProbe(_ now: Int64) -> Bool {
        guard case .waiting = phase, let next = schedule.next, verdict.status != .degraded else { return false }
        schedule.replaced(at: now)
        return schedule.next != next
    }

    /// Moves the next probe forward: to now, or to one second after the start of the last one.
    private mutating func probeSoon(_ turn: inout Turn) {
        guard case .waiting = phase, let next = schedule.next else { return }
        var sooner = schedule
        sooner.confirm(.other, timeout: settings.timeout, at: turn.time)
        if let due = sooner.next, due < next { schedule = sooner }
    }
}

// MARK: Reports and updates

extension TargetMachine {
    @discardableResult
    private mutating func report(
        _ run: ProbeRun, _ cause: Cause?, _ place: Place, lost: Int = 0, isProvisional: Bool = false, _ turn: inout Turn
    ) -> ProbeReport {
        var report = ProbeReport(
            endpoint: endpoint, roundTrip: place.roundTrip, lostPackets: lost, address: place.address,
            resolution: run.resolution, lookup: run.lookup,
            connection: run.connection(at: turn.now), cause: cause, moment: turn.now)
        if let levels = run.levels {
            report.levels = levels
        }
        report.isProvisional = isProvisional
        if peer != endpoint { report.proxy = peer }
        turn.effects.append(.report(report))
        certificateEnd = report.certificateEnd ?? certificateEnd
        return report
    }

    /// Publishes the present status if it differs from the last update in a relevant value.
    private mutating func publish(isInitial: Bool = false, _ turn: inout Turn) {
        let interface = place.interface.flatMap { index in
            turn.localState.interfaces[index] ?? (lastInterface?.index == index ? lastInterface : nil)
        }
        lastInterface = interface
        // Updates are made only for changes: most probes have the result of the one before.
        if let published, !isInitial, isCurrent(published, interface), hasCurrentAddresses(published, turn) { return }
        let failing = verdict.failingSince.map { turn.now.advanced(by: .nanoseconds($0.addingSaturated(-turn.time))) }
        let update = ServerUpdate(
            endpoint: endpoint, statusName: verdict.status, cause: verdict.cause, pending: verdict.pending, failingSince: failing,
            since: published.flatMap { $0.statusName == verdict.status ? $0.statusMoment : nil } ?? turn.now,
            address: place.address,
            interface: interface, roundTrip: place.roundTrip,
            responseTime: place.responseNanoseconds.map { .nanoseconds($0) }, phases: place.phases,
            certificateEnd: certificateEnd, addresses: addressStatuses(turn),
            isFlapping: flaps.isFlapping, isPaused: isPaused,
            isInitial: isInitial, moment: turn.now)
        published = update
        turn.effects.append(.publish(update))
    }

    /// The status of each address of the name, if all of them are probed.
    private func addressStatuses(_ turn: Turn) -> [AddressStatus] {
        guard settings.addresses == .each, case .name = endpoint.host else { return [] }
        return addresses.prefix(AttemptRace.limit).sorted().map { address in
            let (status, cause): (StatusName, Cause?) =
                if openRoutes[address] == nil {
                    (.unreachable, nil)
                } else if address == lastAnswered, isReachable {
                    (.up, nil)
                } else {
                    survey?.status(of: address, failAfter: settings.failAfter) ?? (.unknown, nil)
                }
            let former = published?.addresses.first { $0.address == address }
            return AddressStatus(
                address, status, cause: cause, since: former.flatMap { $0.statusName == status ? $0.since : nil } ?? turn.now)
        }
    }

    private func hasCurrentAddresses(_ update: ServerUpdate, _ turn: Turn) -> Bool {
        guard settings.addresses == .each else { return true }
        let present = addressStatuses(turn)
        return present.count == update.addresses.count && zip(present, update.addresses).allSatisfy { $0.isSame(as: $1) }
    }

    /// Returns whether an update has the present status, cause, address and interface. Round trip, detail and evidence are ignored.
    private func isCurrent(_ update: ServerUpdate, _ interface: NetworkInterface?) -> Bool {
        update.statusName == verdict.status && update.isFlapping == flaps.isFlapping && update.isPaused == isPaused
            && update.cause?.layer == verdict.cause?.layer
            && update.cause?.code == verdict.cause?.code
            && update.pending?.layer == verdict.pending?.layer && update.pending?.code == verdict.pending?.code
            && (verdict.status != .degraded || update.cause?.failingAddresses == verdict.cause?.failingAddresses)
            && update.address == place.address
            && update.interface?.index == interface?.index && update.interface?.name == interface?.name
            && update.interface?.type == interface?.type
    }
}

// MARK: What the fleet reads

// The fleet reads these values around each event. The functions are mutating, because a computed property of a machine in the slab
// copies the machine, and a mutating function does not.
extension TargetMachine {
    struct Routing {
        let queries: [RouteQuery]
        let interfaces: InterfaceSet
    }

    struct Timing {
        let deadline: Int64?
        let socketCount: Int
        let budgetKey: MeteredBudgets.Key?
        let lane: ProbeAdmission.Lane
        let isProbing: Bool
        let isSurveying: Bool
        let isConcernedByEveryChange: Bool
    }

    /// Handles an event, and returns the values around it. One access to the slab is cheaper than one for each value.
    mutating func handleOnce(
        _ event: Event, in localState: LocalState, at now: Moment, allowing allowances: Allowances, fresh: FreshAnswer?
    ) -> (before: Routing, effects: [Effect], after: Routing, timing: Timing) {
        let before = routing()
        let effects = handle(event, in: localState, at: now, allowing: allowances, fresh: fresh)
        return (before, effects, routing(), timing())
    }

    /// The route query of the next probe, if it needs only one and that is known beforehand.
    mutating func queryOfNextProbe() -> RouteQuery? { onlyQuery }

    private mutating func routing() -> Routing { Routing(queries: queries, interfaces: usedInterfaces) }

    private mutating func timing() -> Timing {
        Timing(
            deadline: deadline, socketCount: socketCount, budgetKey: budgetKey(), lane: lane, isProbing: isProbing,
            isSurveying: survey?.running != nil, isConcernedByEveryChange: isConcernedByEveryChange)
    }

    mutating func dueBesideProbe() -> Int64? { dueBeside == .max ? nil : dueBeside }

    /// The budget from which the target's probes take their bytes; `nil` for none.
    mutating func budgetKey() -> MeteredBudgets.Key? {
        guard meteredInterface != 0, let bytes = settings.metered.bytesPerDay else { return nil }
        return MeteredBudgets.Key(interface: meteredInterface, bytesPerDay: bytes)
    }

    /// The budget of ``budgetKey()``, and the scheme by which the bytes of a probe are estimated.
    mutating func budgetUse() -> (MeteredBudgets.Key, Endpoint.Scheme)? { budgetKey().map { ($0, endpoint.scheme) } }

    /// The target's number, and whether a tick at this time starts a probe.
    mutating func startsProbe(at time: Int64) -> (id: TargetID, isDue: Bool) { (id, wouldStartProbe(at: time)) }

    /// The numbers of the running attempts.
    var runningAttempts: [UInt64] { probeAttempts + surveyAttempts }

    private var probeAttempts: [UInt64] {
        switch phase {
        case .connecting(_, let race): race.running.map(\.id)
        case .redirected(_, let redirected): redirected.machine.runningAttempts
        default: []
        }
    }

    /// The numbers of the running attempts to addresses that the probes do not use.
    var surveyAttempts: [UInt64] { survey?.running?.race.running.map(\.id) ?? [] }

    /// Whether the machine has handled ``Event/begin``.
    var hasBegun: Bool {
        if case .idle = phase { return false }
        return true
    }

    /// Whether a probe runs.
    private var isProbing: Bool {
        switch phase {
        case .idle, .waiting, .pathless: false
        case .resolving, .asking, .tracing, .connecting, .examining, .redirected: true
        }
    }

    /// Whether the next tick at this time starts a probe.
    private func wouldStartProbe(at now: Int64) -> Bool {
        switch phase {
        case .waiting, .pathless: nextProbe.map { $0 <= now } ?? false
        case .idle, .resolving, .asking, .tracing, .connecting, .examining, .redirected: false
        }
    }

    /// The time of the next probe in nanoseconds; `nil` for none.
    private var nextProbe: Int64? { schedule.next.map { max($0, pausedUntil) } }

    /// ``deadline`` of a target whose probe is due and has to wait, `.max` for never: only checks and attempts to further addresses continue.
    private var dueBeside: Int64 {
        min(min(pathNewsDue, surveyDue), min(recheckDue ?? .max, retryDue ?? .max), check?.until ?? .max)
    }

    /// The route query of the next probe, if it needs only one and that is known beforehand.
    private var onlyQuery: RouteQuery? {
        if !queries.isEmpty { return queries.count == 1 ? queries[0] : nil }
        guard case .address(let address, nil) = peer.host, settings.interface == nil else { return nil }
        return RouteQuery(address, port: peer.port, selector: settings.selector)
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
    private var hasHandshakePlace: Bool {
        endpoint.scheme.form.usesTLS && continuation == nil && (experience != .silent || isConnectedInSilence)
    }

    /// Whether any change of the local state may concern the target, because no route query represents it: the name has no address,
    /// the last lookup failed, or the interface that the user named is missing.
    private var isConcernedByEveryChange: Bool { hasBegun && (queries.isEmpty || needsLookup) }

    private func hostQueryDue(_ run: ProbeRun) -> Int64 {
        run.deadline - min(Self.hostQueryLead, (run.deadline - run.started.monotonicNanoseconds) / 2)
    }

    /// The number of sockets in use, or reserved for the probe that runs.
    private var socketCount: Int {
        let others = survey?.running?.race.running.count ?? 0
        if case .connecting(_, let race) = phase { return max(race.running.count, 1) + others }
        if case .redirected(_, let redirected) = phase { return redirected.machine.socketCount + others }
        return (isProbing ? 1 : 0) + others
    }
}

extension Cause {
    /// Returns the cause with further evidence. Values that are `nil` are not added.
    fileprivate func adding(_ further: [String: Evidence?]) -> Cause {
        var evidence = evidence
        for (key, value) in further { if let value { evidence[key] = value } }
        return Cause(layer, code, detail: detail, evidence: evidence)
    }
}
