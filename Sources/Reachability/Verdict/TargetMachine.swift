/// The life of one target: when to resolve, to ask for its route, to probe, and what the results mean.
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
///        │              │      │     goes                                    │
///        │              │      └── silence ───▶ examining (the next hop)     │
///        │   a success, │                          │                         │
///        │   or none    ▼                          │                         │
///        └─ failed ──▶ waiting ◀───────────────────┘ ────────────────────────┘
/// ```
///
/// - **idle** before `begin`; **waiting** for the schedule.
/// - **pathless**: the kernel would certainly not send a packet to any address. Nothing is probed; the routes are asked again
///   when the surroundings change, and once an interval in case that was missed.
/// - Changed surroundings have the routes of the known addresses *checked* in every state, at once and then at least
///   ``recheckGap`` apart. The last route gone makes the target unreachable in that turn. A route that is another than before
///   has the target probed at once.
/// - What results amount to is counted by ``Verdict``; when the next probe comes is up to ``ProbeSchedule``.
///
/// Answers to questions that nobody has asked, or not any more, are passed over. Everything that is waited for has a deadline.
package struct TargetMachine: Sendable {
    /// What the machine may look at when it decides: the present state of this host, as the path machine knows it.
    package struct Surroundings: Sendable {
        /// The interfaces by index, classified.
        package var interfaces: [UInt32: NetworkInterface]
        /// The path of the namespace.
        package var path: NetworkPath
        /// Whether an address belongs to this machine.
        package var isOwn: @Sendable (IPAddress) -> Bool
        /// Whether a name server is configured.
        package var hasResolver: Bool

        package init(
            interfaces: [UInt32: NetworkInterface], path: NetworkPath, isOwn: @escaping @Sendable (IPAddress) -> Bool,
            hasResolver: Bool
        ) {
            self.interfaces = interfaces
            self.path = path
            self.isOwn = isOwn
            self.hasResolver = hasResolver
        }
    }

    /// What happens to a target.
    package enum Event: Hashable, Sendable {
        /// The monitor is settled; the target begins.
        case begin
        /// Links, addresses, routes, rules or the resolver's configuration changed in a way that could matter to any target.
        case surroundingsChanged
        /// The machine woke from suspend.
        case resumed
        case lookup(LookupAnswer)
        case route(RouteQuery, RouteAnswer)
        case probe(ProbeResult)
        /// What the neighbor table says of a next hop.
        case neighbor(Neighbor.Key, NeighborAnswer)
        /// The time of ``deadline`` has come.
        case tick
    }

    /// What the machine wants done.
    package enum Effect: Hashable, Sendable {
        case resolve(LookupRequest)
        case askRoute(RouteQuery)
        case connect(ProbeAttempt)
        case cancel(attempt: UInt64)
        case askNeighbor(Neighbor.Key)
        case publish(ServerUpdate)
        case report(ProbeReport)
    }

    /// The routes are not asked again more often than this.
    static let recheckGap: Int64 = 100_000_000
    /// A name is not resolved again for changed surroundings more often than this.
    static let lookupGap: Int64 = 1_000_000_000
    /// A question that the kernel did not answer is asked again after this.
    static let retryGap: Int64 = 1_000_000_000
    /// A probe that a changed route interrupted begins anew so many times in a row; the next one goes through.
    static let restartLimit = 3

    enum Phase: Hashable, Sendable {
        case idle
        case waiting
        case pathless
        case resolving(ProbeRun, lookup: UInt64)
        case asking(ProbeRun, RouteSurvey)
        case connecting(ProbeRun, AttemptRace)
        case examining(ProbeRun, Examination)
    }

    /// Where the target was last seen, or missed.
    struct Place: Hashable, Sendable {
        var address: IPAddress?
        var interface: UInt32?
        var roundTrip: Duration?
    }

    package let id: TargetID
    package let endpoint: Endpoint
    package let settings: ProbeSettings

    var phase = Phase.idle
    var verdict: Verdict
    var schedule: ProbeSchedule
    /// The target's addresses, as last resolved.
    var addresses: [IPAddress] = []
    /// The addresses that a packet gets out to, and how, as last asked.
    var openRoutes: [IPAddress: ChosenRoute] = [:] {
        didSet {
            guard !openRoutes.isEmpty, openRoutes != oldValue else { return }
            usedInterfaces = Set(openRoutes.values.flatMap { [$0.interface] + $0.nextHops.map(\.interface) })
        }
    }
    /// The interfaces of the routes that a packet got out by, or last did.
    private(set) var usedInterfaces: Set<UInt32> = []
    /// What the kernel answered last, to the questions of the present addresses.
    var known: [RouteQuery: RouteAnswer] = [:]
    /// What was told of the addresses since the target was reached last.
    var streak = FailureStreak()
    /// The address that answered last.
    var lastAnswered: IPAddress?
    /// The routes asked because the surroundings changed, beside what else goes on.
    var check: (survey: RouteSurvey, until: Int64)?
    var lastRecheck: Int64?
    var recheckDue: Int64?
    /// When the routes are asked again because an answer was missing.
    var retryDue: Int64?
    /// Whether the surroundings changed under a probe that goes on nevertheless.
    var isOutdated = false
    var restarts = 0

    var place = Place()
    var lastInterface: NetworkInterface?
    var published: ServerUpdate?
    private var nextNumber: UInt64

    /// `firstNumber`: the attempt and lookup ids of this target count up from here.
    package init(id: TargetID, endpoint: Endpoint, settings: ProbeSettings, firstNumber: UInt64) {
        self.id = id
        self.endpoint = endpoint
        self.settings = settings
        nextNumber = firstNumber
        verdict = Verdict(failAfter: settings.failAfter, recoverAfter: settings.recoverAfter)
        schedule = ProbeSchedule(interval: settings.interval)
    }

    /// When ``Event/tick`` is due, on the monotonic clock in nanoseconds; `nil` for never.
    package var deadline: Int64? {
        let own: Int64? =
            switch phase {
            case .idle: nil
            case .waiting, .pathless: schedule.next
            case .resolving(let run, _), .asking(let run, _): run.deadline
            case .connecting(let run, let race): min(run.deadline, race.nextStart ?? .max)
            case .examining(_, let examination): examination.until
            }
        return [own, recheckDue, retryDue, check?.until].compactMap { $0 }.min()
    }

    /// Takes one event and says what to do.
    package mutating func handle(_ event: Event, in surroundings: Surroundings, at now: Moment) -> [Effect] {
        var turn = Turn(surroundings: surroundings, now: now)
        if case .idle = phase, event != .begin { return [] }
        switch event {
        case .begin: begin(&turn)
        case .surroundingsChanged: surroundingsChanged(&turn)
        case .resumed: resumed(&turn)
        case .lookup(let answer): lookedUp(answer, &turn)
        case .route(let query, let answer): routeAnswered(query, answer, &turn)
        case .probe(let result): attemptEnded(result, &turn)
        case .neighbor(let key, let answer): neighborAnswered(key, answer, &turn)
        case .tick: tick(&turn)
        }
        return turn.effects
    }

    /// What belongs to the handling of one event.
    struct Turn {
        let surroundings: Surroundings
        let now: Moment
        var effects: [Effect] = []

        /// The monotonic clock.
        var time: Int64 { now.monotonicNanoseconds }
    }

    mutating func takeNumber() -> UInt64 {
        defer { nextNumber &+= 1 }
        return nextNumber
    }

    private mutating func begin(_ turn: inout Turn) {
        guard case .idle = phase else { return }
        publish(isInitial: true, &turn)
        startProbe(&turn)
    }

    private mutating func resumed(_ turn: inout Turn) {
        verdict.forgetCounts()
        streak.forget()
        restarts = 0
        (lastRecheck, recheckDue, retryDue) = (nil, nil, nil)
        startProbe(&turn)
    }

    private mutating func tick(_ turn: inout Turn) {
        if let due = [recheckDue, retryDue].compactMap({ $0 }).min(), turn.time >= due { recheck(&turn) }
        if let until = check?.until, turn.time >= until { check = nil }
        switch phase {
        case .idle: break
        case .waiting, .pathless:
            if let next = schedule.next, turn.time >= next { startProbe(&turn) }
        case .resolving(let run, _):
            if turn.time >= run.deadline { lookupFailed(nil, run, &turn) }
        case .asking(let run, _):
            // The kernel owes an answer.
            if turn.time >= run.deadline { wait(&turn) }
        case .connecting(let run, let race):
            if turn.time >= run.deadline {
                timeIsUp(run, race, &turn)
            } else if let next = race.nextStart, turn.time >= next {
                startAttempt(run, race, &turn)
            }
        case .examining(let run, let examination):
            if turn.time >= examination.until { conclude(run, examination.failures, &turn) }
        }
    }
}
