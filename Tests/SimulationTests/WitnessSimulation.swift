import Pacing

@testable import Reachability

/// All targets of a monitor behind a ``SimulatedNetwork``. Each published `down` is compared with the network: which server is at fault.
struct WitnessSimulation {
    private static let second: Int64 = 1_000_000_000
    /// The duration of the life of one network, in nanoseconds.
    private static let life: Int64 = 600 * second

    private enum Event {
        case segment(UInt64, IPAddress, UInt16, number: Int)
        case probed(ProbeResult)
        case host(HostQuery, HostReply)
        case searched(Neighbor.Key, HopSearchReply)
        case change
    }

    struct Counts: Hashable {
        /// `down`, and the server is at fault.
        var right = 0
        /// `down`, although the server is healthy: a fault beyond the witness, which nothing tells from the server.
        var beyond = 0
        var unreachable = 0
        var up = 0
        /// `down`, although the server is healthy and no fault is beyond the witness.
        var wrong: [String] = []

        static func += (counts: inout Counts, other: Counts) {
            counts.right += other.right
            counts.beyond += other.beyond
            counts.unreachable += other.unreachable
            counts.up += other.up
            counts.wrong += other.wrong
        }
    }

    private var dice: SplitMix64
    private var network: SimulatedNetwork
    private var fleet = Fleet()
    private let snapshot = KernelSnapshot()
    private var now: Int64 = 0
    private var pending: [(due: Int64, event: Event)] = []
    private var attempts: Set<UInt64> = []
    private var names: [TargetID: (host: Int, port: UInt16)] = [:]
    private(set) var counts = Counts()
    private(set) var steps = 0

    init(seed: UInt64) {
        dice = SplitMix64(seed: seed)
        network = SimulatedNetwork(using: &dice)
        fleet.setProbeLimit(1_000)
        fleet.begin(seed: dice.next())
        fleet.setLocalState(
            LocalState(
                interfaces: [:], path: NetworkPath(status: .satisfied, cause: nil), isOwn: { $0 == Self.own }, hasResolver: true),
            at: moment)
        let settings = ProbeSettings(
            interval: .seconds(Int.random(in: 1...5, using: &dice)), timeout: .seconds(Int.random(in: 2...3, using: &dice)),
            failAfter: Int.random(in: 1...3, using: &dice))
        for (index, host) in network.hosts.enumerated() {
            for port in host.ports.keys.sorted() {
                guard let endpoint = try? Endpoint("\(host.address):\(port)") else { continue }
                let id = TargetID(names.count)
                names[id] = (index, port)
                fleet.add(id, endpoint, settings)
            }
        }
    }

    private static let own = IPAddress(v4: 0x0a00_0002)
    private var moment: Moment { Moment(monotonicNanoseconds: now, wallClockNanoseconds: now) }

    /// Runs the network's life, or at most a number of events and turns.
    mutating func run(steps limit: Int) {
        schedule(.change, after: 20 * Self.second)
        while steps < limit, now < Self.life {
            steps += 1
            let next = pending.indices.min { pending[$0].due < pending[$1].due }
            let event = next.map { pending[$0].due } ?? .max
            let deadline = fleet.deadline ?? .max
            now = max(now, min(event, deadline))
            if let next, event <= deadline {
                let last = pending.count - 1
                pending.swapAt(next, last)
                take(pending.removeLast().event)
            } else {
                perform(fleet.turn(snapshot, at: moment))
            }
        }
    }

    private mutating func schedule(_ event: Event, after delay: Int64) { pending.append((now + delay, event)) }

    private mutating func take(_ event: Event) {
        switch event {
        case .segment(let id, let address, let port, let number): sendSegment(id, address, port, number)
        case .probed(let result):
            guard attempts.remove(result.id) != nil else { return }
            perform(fleet.probed(result, snapshot, at: moment))
        case .host(let query, let reply): perform(fleet.hostReplied(query, reply, snapshot, at: moment))
        case .searched(let hop, let reply): perform(fleet.searched(hop, reply, snapshot, at: moment))
        case .change: change()
        }
    }

    private mutating func change() {
        if Int.random(in: 0..<5, using: &dice) < 2 {
            network.fail(at: now, using: &dice)
        } else {
            network.mend(at: now, using: &dice)
        }
        // Some changes follow at once, so that an outage of a second and one of a minute occur.
        let delays: [ClosedRange<Int64>] = [50...1_000, 1_000...10_000, 5_000...60_000]
        let range = delays[Int.random(in: 0..<3, using: &dice)]
        schedule(.change, after: Int64.random(in: range, using: &dice) * 1_000_000)
    }

    // MARK: Effects

    private mutating func perform(_ effects: [MonitorMachine.Effect]) {
        for effect in effects {
            switch effect {
            case .askRoute(let query):
                let route = ChosenRoute(interface: 2, gateway: network.gateway(to: query.destination), source: Self.own)
                perform(fleet.routeAnswered(query, .route(route), snapshot, at: moment))
            case .askNeighbor(let key):
                perform(fleet.neighborAnswered(key, neighbor(key.address), snapshot, at: moment))
            case .connect(let attempt):
                attempts.insert(attempt.id)
                schedule(.segment(attempt.id, attempt.address, attempt.port, number: 0), after: 0)
            case .cancel(let id): attempts.remove(id)
            case .askHost(let query): ask(query)
            case .search(let search): start(search)
            case .emit(.server(let id, let update)): judge(id, update)
            default: break
            }
        }
    }

    /// The entry of a neighbor that has died stays valid for a while.
    private func neighbor(_ address: IPAddress) -> NeighborAnswer {
        guard let since = network.deadSince(address) else { return .state(.reachable, confirmedAgo: 100_000_000) }
        let silence = now - since
        return silence > 20 * Self.second ? .state(.failed) : .state(.reachable, confirmedAgo: silence)
    }

    private mutating func sendSegment(_ id: UInt64, _ address: IPAddress, _ port: UInt16, _ number: Int) {
        guard attempts.contains(id) else { return }
        // The kernel sends the SYN again after each of the first four seconds.
        if number < 4 { schedule(.segment(id, address, port, number: number + 1), after: Self.second) }
        let neighbor = network.gateway(to: address) ?? address
        if number == 0, let since = network.deadSince(neighbor), now - since > 20 * Self.second {
            let own = ProbeResult.Reporter(origin: 2, type: 3, code: 1, offender: Self.own)
            schedule(
                .probed(ProbeResult(id: id, errno: 113, call: "handshake", reporter: own)), after: SimulatedNetwork.resolution)
            return
        }
        switch network.send(to: address, at: now, using: &dice) {
        case .lost, .exceeded: break
        case .reported(let router, let code, let delay):
            let reporter = ProbeResult.Reporter(origin: 2, type: 3, code: code, offender: router)
            let errno: Int32 = code == 0 ? 101 : 113
            schedule(.probed(ProbeResult(id: id, errno: errno, call: "handshake", reporter: reporter)), after: delay)
        case .arrives(let delay):
            let state = network.host(address).flatMap { network.hosts[$0].ports[port] }
            if state == .filtered { return }
            let isOpen = state == .open
            schedule(
                .probed(
                    ProbeResult(
                        id: id, errno: isOpen ? 0 : 111, call: isOpen ? nil : "handshake",
                        roundTripNanoseconds: number == 0 && isOpen ? delay : 0, retransmissions: number)),
                after: delay)
        }
    }

    /// Three datagrams, and a connection to a closed port.
    private mutating func ask(_ query: HostQuery) {
        let address = query.host.address
        var answers: [(Int64, HopAnswers.Question)] = []
        for number in 0..<4 {
            let question: HopAnswers.Question = number == 3 ? .connection : .datagram
            if let router = network.router(address) {
                // A gateway has no limit of resets.
                guard network.deadSince(address) == nil, network.routers[router].sendsMessages,
                    question == .connection || network.report(router, at: now + Int64(number) * 150_000_000)
                else { continue }
                answers.append((Int64(number) * 150_000_000 + SimulatedNetwork.hopTime, question))
            } else if case .arrives(let delay) = network.send(to: address, at: now, using: &dice),
                network.host(address).map({ network.hosts[$0].answersQueries }) ?? false
            {
                answers.append((Int64(number) * 150_000_000 + delay, question))
            }
        }
        if let (delay, question) = answers.min(by: { $0.0 < $1.0 }) {
            schedule(.host(query, HostReply(.answered, errno: 111, to: question)), after: delay)
        } else {
            schedule(.host(query, HostReply(.silent)), after: 650_000_000)
        }
    }

    private mutating func start(_ search: HopSearch) {
        for limit in search.limits {
            switch network.send(to: search.silent.address, limit: limit, at: now, using: &dice) {
            case .lost, .reported: break
            case .exceeded(let router, let delay): answer(search, .init(router, limit: limit), after: delay)
            case .arrives(let delay):
                let isFiltered = network.host(search.silent.address).map {
                    network.hosts[$0].ports[search.silent.port] == .filtered
                }
                if isFiltered == false { answer(search, .init(search.silent.address, limit: limit), after: delay) }
            }
        }
        for other in search.others {
            guard case .arrives(let delay) = network.send(to: other.destination.address, at: now, using: &dice),
                let host = network.host(other.destination.address), network.hosts[host].ports[other.destination.port] != .filtered
            else { continue }
            answer(
                search,
                .init(other.destination.address, target: other.target.number, roundTripNanoseconds: delay), after: delay)
        }
        schedule(.searched(search.hop, HopSearchReply()), after: HopSearcher.patience)
    }

    private mutating func answer(_ search: HopSearch, _ answer: HopSearchReply.Answer, after delay: Int64) {
        schedule(.searched(search.hop, HopSearchReply(answer)), after: delay)
    }

    // MARK: The property

    private mutating func judge(_ id: TargetID, _ update: ServerUpdate) {
        guard !update.isInitial, let (host, port) = names[id] else { return }
        switch update.statusName {
        case .unreachable: counts.unreachable += 1
        case .up: counts.up += 1
        case .down: judgeDown(host, port, update)
        case .unknown, .degraded: break
        }
    }

    private mutating func judgeDown(_ host: Int, _ port: UInt16, _ update: ServerUpdate) {
        guard let cause = update.cause, network.isHealthy(host, port, since: now - 30 * Self.second) else {
            counts.right += 1
            return
        }
        let proven = witnessDepth(cause, host)
        // What cuts the way now, else what did during the probe. A packet that is lost now and then explains nothing beside it.
        let (present, recent) = (network.faults, network.faults(since: now - 4 * Self.second))
        let candidates = [present.filter { !$0.isLoss }, recent.filter { !$0.isLoss }, recent].map { faults in
            faults.compactMap { fault in network.depth(of: fault, towards: host).map { (fault, depth: $0) } }
        }
        let guilty = candidates.first { !$0.isEmpty } ?? []
        if guilty.contains(where: { $0.depth > proven }) {
            counts.beyond += 1
        } else {
            let evidence = cause.evidence.map { "\($0.key) \($0.value)" }.sorted().joined(separator: ", ")
            counts.wrong.append(
                """
                after \(now / 1_000_000) ms: \(update.endpoint.text), behind \(network.way(to: host).count) routers, is \(cause.code.rawValue): \
                \(cause.detail); witness at \(proven), \(guilty.map { "\($0.0) at \($0.depth)" }); \(evidence)
                """)
        }
    }

    /// The number of routers on the way to a host that a witness shows to work.
    private func witnessDepth(_ cause: Cause, _ host: Int) -> Int {
        let end = network.way(to: host).count + 1
        if cause.evidence["host"] == .text("answered") || cause.code != .timeout { return end }
        guard case .text(let text)? = cause.evidence["witness"] else { return end }
        let address = text.split(separator: ":").first.flatMap { IPAddress(String($0)) }
        if let router = network.routers.firstIndex(where: { $0.address == address }) {
            // The packets to the target were answered by a router on their way.
            return zip(network.way(to: host), wayToRouter(router)).prefix { $0 == $1 }.count
        }
        return address.flatMap { network.host($0) }.map { network.sharedDepth(host, $0) } ?? end
    }

    private func wayToRouter(_ router: Int) -> [Int] {
        var way = [router]
        while let parent = network.routers[way[0]].parent { way.insert(parent, at: 0) }
        return way
    }
}
