/// One probe from its start to its verdict.
struct ProbeRun: Hashable, Sendable {
    let started: Moment
    /// When it is over, whatever has come back, on the monotonic clock in nanoseconds.
    let deadline: Int64
    /// How long the name took; `nil` for addresses.
    var resolution: Duration?
    /// When the first attempt was made; `nil` before: nothing was sent.
    var connecting: Moment?
}

/// The kernel asked for its way to each candidate.
struct RouteSurvey: Hashable, Sendable {
    let candidates: [Candidate]
    private var answers: [RouteQuery: RouteAnswer] = [:]

    init(_ candidates: [Candidate]) { self.candidates = candidates }

    /// Every question once, in order.
    var queries: [RouteQuery] {
        var seen: Set<RouteQuery> = []
        return candidates.map(\.query).filter { seen.insert($0).inserted }
    }

    var isComplete: Bool { candidates.allSatisfy { answers[$0.query] != nil } }

    /// Whether this is one of its questions.
    func asks(_ query: RouteQuery) -> Bool { candidates.contains { $0.query == query } }

    /// Takes an answer to one of its questions.
    mutating func take(_ query: RouteQuery, _ answer: RouteAnswer) { answers[query] = answer }

    /// What the answers mean, in the order of the candidates; without those of which nothing is known.
    func ways(in surroundings: TargetMachine.Surroundings) -> [(Candidate, Way)] {
        candidates.compactMap { candidate in
            answers[candidate.query].flatMap { way(of: candidate, by: $0, in: surroundings) }.map { (candidate, $0) }
        }
    }

    /// Whether there is a way, or certainly none.
    func isTelling(in surroundings: TargetMachine.Surroundings) -> Bool {
        let ways = ways(in: surroundings)
        return ways.count == candidates.count || ways.contains { $0.1.route != nil }
    }
}

/// Attempts that overlap (RFC 8305, section 5): the next one starts when one fails, or after a while; the first success wins.
struct AttemptRace: Hashable, Sendable {
    /// The connection attempt delay that RFC 8305 recommends.
    static let delay: Int64 = 250_000_000
    /// At most this many attempts make a probe.
    static let limit = 4

    struct Entry: Hashable, Sendable {
        var candidate: Candidate
        var route: ChosenRoute
    }

    struct Running: Hashable, Sendable {
        var id: UInt64
        var entry: Entry
        var started: Moment
    }

    var waiting: [Entry]
    var running: [Running] = []
    var failures: [FailedAttempt] = []
    /// When the next one starts though none has failed; `nil` when there is none.
    var nextStart: Int64?

    init(_ entries: [Entry]) { waiting = Array(entries.prefix(AttemptRace.limit)) }

    /// The attempts to come take the routes that there are now; those without one are not made.
    mutating func reroute(by routes: [IPAddress: ChosenRoute]) {
        waiting = waiting.compactMap { entry in
            routes[entry.candidate.address].map { Entry(candidate: entry.candidate, route: $0) }
        }
        if waiting.isEmpty { nextStart = nil }
    }
}

/// The neighbor table asked, after a probe whose failures may be a next hop's. Where the next hop that the kernel named is well, the
/// other ones of a multipath route are looked at: the packet may have gone to any of them.
struct Examination: Hashable, Sendable {
    /// The kernel answers from memory; a lost answer must not hold the probe up.
    static let patience: Int64 = 200_000_000

    var failures: [FailedAttempt]
    var pending: [Neighbor.Key]
    let until: Int64
    /// Questions for all next hops that have no answer yet; `nil` before they are asked.
    private(set) var routes: [RouteQuery]?
    private var others: [IPAddress: [Route.NextHop]] = [:]

    init(failures: [FailedAttempt], pending: [Neighbor.Key], until: Int64) {
        self.failures = failures
        self.pending = pending
        self.until = until
    }

    var isComplete: Bool { pending.isEmpty && routes?.isEmpty ?? true }

    /// The questions for all next hops towards the addresses whose next hop is not to blame; none when they were asked before.
    mutating func routesToAsk(in surroundings: TargetMachine.Surroundings) -> [RouteQuery] {
        guard routes == nil else { return [] }
        var queries: [RouteQuery] = []
        // Also where the kernel named a hop without a gateway: a route may lead over a modem's link and over a router.
        for failure in failures where failure.suspect(in: surroundings) != nil {
            if failure.neighbor.isSilent || failure.neighbor == .unknown { continue }
            var query = failure.candidate.query
            query.showsAll = true
            if !queries.contains(query) { queries.append(query) }
        }
        routes = queries
        return queries
    }

    /// Takes an answer to one of its questions for all next hops; whose neighbor entries are to be asked for now.
    mutating func take(_ query: RouteQuery, _ answer: RouteAnswer) -> [Neighbor.Key] {
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

    /// Takes an answer, if it is to one of its questions.
    mutating func take(_ key: Neighbor.Key, _ answer: NeighborAnswer, in surroundings: TargetMachine.Surroundings) {
        guard let index = pending.firstIndex(of: key) else { return }
        pending.remove(at: index)
        for index in failures.indices where failures[index].suspect(in: surroundings) == key {
            failures[index].neighbor = answer
        }
        guard answer.isSilent else { return }
        for index in failures.indices where !failures[index].neighbor.isSilent {
            let address = failures[index].candidate.address
            let hop = others[address]?.first { $0.interface == key.interface && $0.gateway ?? address == key.address }
            guard let hop, failures[index].suspect(in: surroundings) != nil else { continue }
            failures[index].route.interface = hop.interface
            failures[index].route.gateway = hop.gateway
            failures[index].neighbor = answer
        }
    }
}
