internal import Pacing

/// One probe, from its start to its result.
struct ProbeRun: Hashable, Sendable {
    let started: Moment
    /// The time at which the probe ends in any case, on the monotonic clock in nanoseconds.
    var deadline: Int64
    /// The duration of the name's resolution; `nil` for addresses.
    var resolution: Duration?
    /// The answer to the name's lookup; `nil` for addresses.
    var lookup: LookupAnswer?
    /// The start of the first attempt; `nil` if none was made yet.
    var connecting: Moment?
    /// The states of the first hops and of the target's host; `nil` before they are asked.
    var hosts: HostSurvey?
    /// The counters of the tunnel over which the first attempt was sent; `nil` for other interfaces.
    var firstCounters: TunnelTraffic?
    /// The time at which the connection was established, if levels follow it; otherwise `nil`.
    var connected: Moment?
    /// The result of the levels; `nil` before they have ended.
    var levels: LevelResult?
    /// The connections whose levels have failed, in order.
    var failedLevels: [FailedLevels] = []
    /// Whether hosts must be asked if the probe stays silent.
    var mustAskHosts: Bool { hosts == nil && connected == nil }
    /// The lookup whose silence is examined; `nil` if the name was resolved.
    var silentLookup: SilentLookup?
}

extension ProbeRun {
    /// Returns the duration of the connection that the levels use, or until now; `nil` if no attempt was made.
    func connection(at now: Moment) -> Duration? { connecting.map { (connected ?? now).elapsed(since: $0) } }
}

/// A connection whose levels have failed.
struct FailedLevels: Hashable, Sendable {
    let entry: AttemptRace.Entry
    let finding: Finding
    let ending: ProbeSchedule.Ending
    let levels: LevelResult?
    /// The start of the attempt.
    let connecting: Moment?
    let connected: Moment?

    init(_ run: ProbeRun, _ attempt: AttemptRace.Running, _ finding: Finding, _ ending: ProbeSchedule.Ending) {
        entry = attempt.entry
        (self.finding, self.ending) = (finding, ending)
        (levels, connecting, connected) = (run.levels, run.connecting, run.connected)
    }
}

/// The questions about a silent target: to hosts, and to whoever is behind a first hop.
struct HostQuestions: Hashable, Sendable {
    var hosts: [HopBook.Request] = []
    var searches: [WitnessBook.Request] = []

    var effects: [TargetMachine.Effect] { hosts.map { .askHost($0) } + searches.map { .search($0) } }
}

/// The answers to the questions of a probe.
struct HostSurvey: Hashable, Sendable {
    private var pending: [Neighbor.Key]
    private var states: [Neighbor.Key: HopBook.State] = [:]
    private var pendingSearches: [Neighbor.Key]
    private var beyond: [Neighbor.Key: WitnessBook.State] = [:]

    init(_ questions: HostQuestions) {
        pending = questions.hosts.map(\.query.host)
        pendingSearches = questions.searches.map(\.hop)
    }

    var isComplete: Bool { pending.isEmpty && pendingSearches.isEmpty }

    mutating func receive(_ hop: Neighbor.Key, _ state: WitnessBook.State) {
        guard let index = pendingSearches.firstIndex(of: hop) else { return }
        pendingSearches.remove(at: index)
        beyond[hop] = state
    }

    mutating func receive(_ host: Neighbor.Key, _ state: HopBook.State) {
        guard let index = pending.firstIndex(of: host) else { return }
        pending.remove(at: index)
        states[host] = state
    }

    /// Returns the failures with the states of their hosts.
    func explain(_ failures: [FailedAttempt], _ localState: LocalState) -> [FailedAttempt] {
        failures.map { failure in
            var failure = failure
            let hop = failure.firstHop(in: localState)
            failure.hop = hop.flatMap { states[$0] }
            failure.beyond = hop.flatMap { beyond[$0] }
            failure.host = states[failure.hostKey]
            return failure
        }
    }
}

/// The packets that a tunnel has carried.
struct TunnelTraffic: Hashable, Sendable {
    let interface: UInt32
    private let counters: LinkCounters

    init(_ interface: UInt32, _ counters: LinkCounters) {
        self.interface = interface
        self.counters = counters
    }

    /// Returns the numbers of packets since these counters were read.
    func difference(to later: LinkCounters) -> LinkCounters {
        LinkCounters(received: later.received &- counters.received, sent: later.sent &- counters.sent)
    }
}

/// The kernel's answers to the route queries of all candidates.
struct RouteSurvey: Hashable, Sendable {
    let candidates: [Candidate]
    private var answers: [RouteQuery: RouteAnswer] = [:]

    init(_ candidates: [Candidate]) { self.candidates = candidates }

    /// The queries, each once, in order.
    var queries: [RouteQuery] {
        var seen: Set<RouteQuery> = []
        return candidates.map(\.query).filter { seen.insert($0).inserted }
    }

    var isComplete: Bool { candidates.allSatisfy { answers[$0.query] != nil } }

    /// Returns whether the query belongs to the survey.
    func asks(_ query: RouteQuery) -> Bool { candidates.contains { $0.query == query } }

    /// Stores an answer to one of the queries.
    mutating func receive(_ query: RouteQuery, _ answer: RouteAnswer) { answers[query] = answer }

    /// Returns the meaning of the answers in the order of the candidates, without unanswered ones.
    func candidateRoutes(in localState: LocalState) -> [(Candidate, CandidateRoute)] {
        candidates.compactMap { candidate in
            answers[candidate.query].flatMap { candidateRoute(of: candidate, by: $0, in: localState) }.map { (candidate, $0) }
        }
    }

    /// Returns whether a candidate has an open route, or certainly none has one.
    func isDecisive(in localState: LocalState) -> Bool {
        let candidateRoutes = candidateRoutes(in: localState)
        return candidateRoutes.count == candidates.count || candidateRoutes.contains { $0.1.route != nil }
    }
}

/// Overlapping attempts (RFC 8305 section 5): the next attempt starts when one fails or after a delay, and the first success ends
/// the probe.
///
/// While no answer arrives, each address is tried again by new connections. The kernel sends three SYN segments within three
/// seconds. If a fifth of the packets is lost in each direction, all three fail in 5 % of the probes; eight fail in 0.03 %.
struct AttemptRace: Hashable, Sendable {
    /// The connection attempt delay that RFC 8305 section 8 recommends, in nanoseconds.
    static let delay: Int64 = 250_000_000
    /// The maximum number of addresses in one probe.
    static let limit = 16
    /// The maximum number of addresses that are tried again.
    static let repetitionLimit = 2
    /// The times of the repetitions after the first attempt, in twelfths of the time until the probe's deadline.
    static let repetitions: [Int64] = [2, 5]

    struct Entry: Hashable, Sendable {
        var candidate: Candidate
        var route: ChosenRoute
    }

    struct Running: Hashable, Sendable {
        var id: UInt64
        var entry: Entry
        var started: Moment
        /// The time at which the connection was established, if levels run on it; otherwise `nil`.
        var connected: Moment?
    }

    var waiting: [Entry]
    var running: [Running] = []
    var failures: [FailedAttempt] = []
    /// The time at which the next attempt starts even if none has failed; `nil` if none remains.
    private(set) var nextStart: Int64?
    private var start: Int64?
    private let deadline: Int64
    private var round = 0

    /// Creates a race. `deadline` is the end of the probe on the monotonic clock in nanoseconds.
    init(_ entries: [Entry], deadline: Int64) {
        waiting = Array(entries.prefix(AttemptRace.limit))
        self.deadline = deadline
    }

    /// The first running attempt to each address.
    var silentAttempts: [Running] {
        var seen: Set<Candidate> = []
        return running.filter { seen.insert($0.entry.candidate).inserted }
    }

    /// Returns the entry of the attempt that starts now, and schedules the next one. A repetition that is not allowed is left out.
    mutating func takeNext(at now: Int64, allowsRepetition: Bool = true) -> Entry? {
        let start = start ?? now
        self.start = start
        if waiting.isEmpty, round < Self.repetitions.count, nextStart.map({ now >= $0 }) ?? false {
            round += 1
            let silent = silentAttempts.filter { $0.connected == nil }
            if allowsRepetition { waiting = silent.prefix(Self.repetitionLimit).map(\.entry) }
        }
        let entry = waiting.isEmpty ? nil : waiting.removeFirst()
        if !waiting.isEmpty {
            nextStart = now.addingSaturated(Self.delay)
        } else if round < Self.repetitions.count {
            nextStart = max(
                now.addingSaturated(Self.delay), start.addingSaturated((deadline - start) / 12 * Self.repetitions[round]))
        } else {
            nextStart = nil
        }
        return entry
    }

    /// Ends the schedule of further attempts.
    mutating func startNoMore() { nextStart = nil }

    /// Notes that a connection is established, on which levels run. The other addresses wait: the next one is tried if the levels fail,
    /// or after its part of the remaining time.
    ///
    /// - Returns: the attempts that are stopped.
    mutating func established(_ attempt: Running, at now: Moment) -> [Running] {
        let stopped = running.filter { $0.connected == nil }
        running.removeAll { $0.connected == nil }
        var attempt = attempt
        attempt.connected = now
        running.append(attempt)
        holdBack(stopped)
        let (time, count) = (now.monotonicNanoseconds, Int64(waiting.count))
        nextStart = waiting.isEmpty ? nil : time.addingSaturated(max(0, deadline - time) / (count + 1))
        return stopped
    }

    /// Whether levels run on a connection.
    var hasConnection: Bool { running.contains { $0.connected != nil } }

    /// Stops all attempts, whose addresses wait again.
    ///
    /// - Returns: the attempts.
    mutating func stopAll() -> [Running] {
        let stopped = running
        running = []
        holdBack(stopped)
        nextStart = nil
        return stopped
    }

    private mutating func holdBack(_ stopped: [Running]) {
        var seen = Set(running.map(\.entry.candidate))
        waiting = (stopped.map(\.entry) + waiting).filter { seen.insert($0.candidate).inserted }
    }

    /// Assigns the present routes to the waiting attempts. Attempts without a route are dropped.
    mutating func reroute(by routes: SmallMap<IPAddress, ChosenRoute>) {
        waiting = waiting.compactMap { entry in
            routes[entry.candidate.address].map { Entry(candidate: entry.candidate, route: $0) }
        }
    }
}

/// The neighbor queries after a probe that failed, possibly because of a next hop. If the next hop that the kernel named answers,
/// the other next hops of a multipath route are checked too, because the packet may have used any of them.
struct Examination: Hashable, Sendable {
    /// The maximum duration in nanoseconds. The kernel answers from memory, and a lost answer must not delay the probe.
    static let timeLimit: Int64 = 200_000_000

    var failures: [FailedAttempt]
    var pending: [Neighbor.Key]
    /// The tunnels whose counters are awaited.
    private var tunnels: [UInt32]
    let until: Int64
    /// The pending queries for all next hops; `nil` before they are sent.
    private(set) var routes: [RouteQuery]?
    private var others: [IPAddress: [Route.NextHop]] = [:]

    init(failures: [FailedAttempt], pending: [Neighbor.Key], tunnels: [UInt32] = [], until: Int64) {
        self.failures = failures
        self.pending = pending
        self.tunnels = tunnels
        self.until = until
    }

    var isComplete: Bool { pending.isEmpty && tunnels.isEmpty && routes?.isEmpty ?? true }

    /// Stores the counters of a tunnel.
    mutating func receive(_ interface: UInt32, _ counters: LinkCounters?, since first: TunnelTraffic?) {
        tunnels.removeAll { $0 == interface }
        guard let counters, let first, first.interface == interface else { return }
        for index in failures.indices where failures[index].route.interface == interface {
            failures[index].tunnel = first.difference(to: counters)
        }
    }

    /// Returns the queries for all next hops towards the addresses whose known next hop is not at fault; empty if they were sent
    /// before.
    mutating func routesToAsk(in localState: LocalState) -> [RouteQuery] {
        guard routes == nil else { return [] }
        var queries: [RouteQuery] = []
        // Also applies if the kernel named a hop without a gateway: a multipath route may combine a modem's link and a router.
        for failure in failures where failure.suspectedHop(in: localState) != nil {
            if failure.neighbor.isSilent || failure.neighbor == .unknown { continue }
            var query = failure.candidate.query
            query.showsAll = true
            if !queries.contains(query) { queries.append(query) }
        }
        routes = queries
        return queries
    }

    /// Stores an answer to one of the queries for all next hops. Returns the neighbors that must be queried now.
    mutating func receive(_ query: RouteQuery, _ answer: RouteAnswer) -> [Neighbor.Key] {
        guard let index = routes?.firstIndex(of: query) else { return [] }
        routes?.remove(at: index)
        guard case .route(let route) = answer else { return [] }
        let asked = failures.filter { $0.candidate.address == query.destination }.map(\.route)
        let hops = route.nextHops.filter { hop in
            (query.interface == 0 || hop.interface == query.interface)
                && !asked.contains { $0.interface == hop.interface && $0.gateway == hop.gateway }
        }
        others[query.destination] = hops
        let keys = hops.map { Neighbor.Key(interface: $0.interface, address: $0.gateway ?? query.destination) }
            .filter { !pending.contains($0) }
        pending += keys
        return keys
    }

    /// Stores an answer to a neighbor query.
    mutating func receive(_ key: Neighbor.Key, _ answer: NeighborAnswer, in localState: LocalState) {
        guard let index = pending.firstIndex(of: key) else { return }
        pending.remove(at: index)
        for index in failures.indices where failures[index].suspectedHop(in: localState) == key {
            failures[index].neighbor = answer
        }
        guard answer.isSilent else { return }
        for index in failures.indices where !failures[index].neighbor.isSilent {
            let address = failures[index].candidate.address
            let hop = others[address]?.first { $0.interface == key.interface && $0.gateway ?? address == key.address }
            guard let hop, failures[index].suspectedHop(in: localState) != nil else { continue }
            failures[index].route.interface = hop.interface
            failures[index].route.gateway = hop.gateway
            failures[index].neighbor = answer
        }
    }
}
