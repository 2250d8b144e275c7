internal import Pacing

/// The answers from behind each first hop, shared by all targets. One of them is the witness that the way behind the hop works, while a
/// target there is silent.
///
/// A live gateway is no such proof: the commonest outage is that of the provider behind it. Therefore silence accuses a server only if
/// somebody beyond the first hop has answered since the failing probe began: the server's host, another target, a router from the second
/// hop on, or a name server. If nobody has, a search asks (``HopSearch``), at most once a second for each hop. Routers limit their
/// ICMP messages to about one a second for each receiver (RFC 1812 section 4.3.2.8), and such a search needs one of each.
struct WitnessBook: Sendable {
    /// The minimum time between the starts of two searches behind the same hop, in nanoseconds.
    static let searchGap: Int64 = 1_000_000_000
    /// The number of searches in a row without an answer after which a server that is down by a former witness is so no longer.
    static let searchesWithoutAnswer = 3
    /// The maximum number of hops of which something is known. A machine has few gateways.
    static let hopLimit = 64
    /// The maximum number of networks behind a hop of which something is known.
    static let networkLimit = 64
    /// The number of answering targets that are remembered for each hop, each in another network.
    private static let answererLimit = 4
    /// The number of targets that a search connects to.
    private static let otherLimit = 2
    /// The time after which a search without a reply counts as lost, in nanoseconds.
    private static let replyLimit: Int64 = 2_000_000_000

    /// An answer from behind a first hop.
    struct Witness: Hashable, Sendable {
        enum Kind: String, Hashable, Sendable {
            /// Another target, or the same host at another port.
            case target
            case router
            case nameServer
        }

        var kind: Kind
        var address: IPAddress
        /// The port that answered; `nil` for a router.
        var port: UInt16?
        /// The hop limit that ended at the router; `nil` if the distance is not known.
        var distance: Int?
        /// The time of the answer in nanoseconds.
        var time: Int64

        /// The witness as evidence: `10.8.2.2`, `198.51.100.7:443`.
        var text: String {
            guard let port else { return "\(address)" }
            return address.family == .v4 ? "\(address):\(port)" : "[\(address)]:\(port)"
        }

        /// The witness in a sentence.
        var sentence: String {
            switch kind {
            case .router: "\(address) (hop \(distance ?? 2))"
            case .nameServer: "the name server \(address)"
            case .target: text
            }
        }
    }

    /// A silent target's request for a witness.
    struct Request: Hashable, Sendable {
        var hop: Neighbor.Key
        var silent: HopSearch.Destination
        /// Answers before this time do not count, in nanoseconds.
        var since: Int64
    }

    /// What is known about the way behind a hop.
    struct State: Hashable, Sendable {
        /// The last answer since the time of the request; `nil` if there is none.
        var witness: Witness?
        /// The last answer at any time.
        var last: Witness?
        /// Whether a router behind the hop has ever answered a search.
        var hasRouters = false
        /// Whether a target in another network, or a name server, has ever answered over the hop.
        var hasOthers = false
        /// The number of searches in a row that found nothing, and of which the last one asked the way to this target's network.
        var emptySearches = 0
        /// The number of networks (/24, /64) whose targets are silent since the last answer.
        var silentNetworks = 0
    }

    private struct Answerer: Sendable {
        var target: TargetID
        var address: IPAddress
        var port: UInt16
        var time: Int64
    }

    private struct Record: Sendable {
        let hop: Neighbor.Key
        var last: Witness?
        var hasRouters = false
        var hasNameServer = false
        var answerers: [Answerer] = []
        var waiting: [(target: TargetID, request: Request)] = []
        /// The last search.
        var search: HopSearch?
        /// Whether its reply is awaited.
        var isSearching = false
        var lastSearch: Int64?
        /// Searches without an answer, by the network of the silent target, and the time of the last one.
        var empty: [IPPrefix: (count: Int, time: Int64)] = [:]
        var silent: Set<IPPrefix> = []
        /// The time at which something was last noted, for the limit of hops.
        var used: Int64 = .min

        func witness(since time: Int64) -> Witness? { last.flatMap { $0.time >= time ? $0 : nil } }

        mutating func answered(_ witness: Witness) {
            last = witness
            if !empty.isEmpty { empty = [:] }
            if !silent.isEmpty { silent = [] }
        }

        mutating func state(_ request: Request) -> State {
            let network = request.silent.address.network
            let witness = witness(since: request.since)
            if witness == nil, silent.count < WitnessBook.networkLimit { silent.insert(network) }
            let hasOthers = hasNameServer || answerers.contains { !network.contains($0.address) }
            return State(
                witness: witness, last: last, hasRouters: hasRouters, hasOthers: hasOthers,
                emptySearches: empty[network]?.count ?? 0,
                silentNetworks: silent.count)
        }
    }

    // A list: a machine has few gateways, and the one of every probe's answer is found without hashing.
    private var records: [Record] = []
    /// Whether ``takeSearches(at:isUp:)`` has something to return.
    private(set) var mustSearch = false

    /// The number of hops of which something is known.
    var hopCount: Int { records.count }

    private func index(of hop: Neighbor.Key) -> Int? { records.firstIndex { $0.hop == hop } }

    private mutating func place(of hop: Neighbor.Key) -> Int {
        if let index = index(of: hop) { return index }
        if records.count >= Self.hopLimit,
            let oldest = records.indices.filter({ records[$0].waiting.isEmpty && !records[$0].isSearching })
                .min(by: { records[$0].used < records[$1].used })
        {
            records.remove(at: oldest)
        }
        records.append(Record(hop: hop))
        return records.count - 1
    }

    // MARK: Answers

    /// Notes that a target behind the hop has answered.
    mutating func noteTarget(_ target: TargetID, _ address: IPAddress, port: UInt16, behind hop: Neighbor.Key, at now: Int64) {
        // The hop itself is no witness of what is behind it.
        guard address != hop.address else { return }
        let index = place(of: hop)
        Self.note(Answerer(target: target, address: address, port: port, time: now), &records[index])
    }

    // Every answer of a target comes here.
    private static func note(_ answerer: Answerer, _ record: inout Record) {
        record.used = answerer.time
        record.answered(Witness(kind: .target, address: answerer.address, port: answerer.port, time: answerer.time))
        // Usually a target answers again and again.
        for index in record.answerers.indices where record.answerers[index].target == answerer.target {
            return record.answerers[index] = answerer
        }
        let network = answerer.address.network
        if let former = record.answerers.firstIndex(where: { network.contains($0.address) }) {
            record.answerers[former] = answerer
        } else if record.answerers.count < answererLimit {
            record.answerers.append(answerer)
        } else if let oldest = record.answerers.indices.min(by: { record.answerers[$0].time < record.answerers[$1].time }) {
            record.answerers[oldest] = answerer
        }
    }

    /// Notes that a name server behind the hop has answered.
    mutating func noteNameServer(
        _ address: IPAddress, port: UInt16 = NameServerAddress.usualPort, behind hop: Neighbor.Key, at now: Int64
    ) {
        guard address != hop.address else { return }
        let index = place(of: hop)
        records[index].used = now
        records[index].answered(Witness(kind: .nameServer, address: address, port: port, time: now))
        records[index].hasNameServer = true
    }

    // MARK: Searches

    /// Returns what is known about the way behind a hop; `nil` if the target must wait for a search.
    mutating func state(_ request: Request, for target: TargetID, at now: Int64) -> State? {
        let index = place(of: request.hop)
        records[index].used = now
        if records[index].witness(since: request.since) != nil { return records[index].state(request) }
        let lastSearch = records[index].lastSearch
        let isRunning = records[index].isSearching && lastSearch.map { now - $0 < Self.replyLimit } ?? false
        // A search a moment ago has asked already.
        if !isRunning, let lastSearch, now - lastSearch < Self.searchGap { return records[index].state(request) }
        records[index].waiting.append((target, request))
        if !isRunning {
            records[index].isSearching = false
            mustSearch = true
        }
        return nil
    }

    /// Returns the searches for the hops whose targets wait. `isUp` is whether a target answered its last probe.
    mutating func takeSearches(at now: Int64, isUp: (TargetID) -> Bool) -> [HopSearch] {
        guard mustSearch else { return [] }
        mustSearch = false
        var searches: [HopSearch] = []
        for index in records.indices where !records[index].isSearching && !records[index].waiting.isEmpty {
            let record = records[index]
            // Of several networks, the way to the one that was searched for least recently is asked.
            let requests = record.waiting.map(\.request)
            func lastAsked(_ request: Request) -> Int64 { record.empty[request.silent.address.network]?.time ?? .min }
            guard let request = requests.min(by: { lastAsked($0) < lastAsked($1) }) else { continue }
            let network = request.silent.address.network
            let others = record.answerers.filter { !network.contains($0.address) && isUp($0.target) }
                .sorted { $0.time > $1.time }.prefix(Self.otherLimit)
                .map { answerer in
                    var destination = request.silent
                    (destination.address, destination.port) = (answerer.address, answerer.port)
                    return HopSearch.Other(answerer.target, destination)
                }
            let search = HopSearch(record.hop, request.silent, others: Array(others))
            records[index].search = search
            records[index].isSearching = true
            records[index].lastSearch = now
            searches.append(search)
        }
        return searches
    }

    /// The outcome of a search for the targets.
    struct Outcome {
        /// The targets that waited for it, in order.
        var waiting: [(target: TargetID, state: State)] = []
        /// The target that it connected to and that has answered, with its round trip.
        var answered: (target: TargetID, address: IPAddress, roundTrip: Int64)?
        /// Targets that it connected to, and that did not answer.
        var silent: [TargetID] = []
    }

    /// Stores a reply of a search, which the first witness ends. `isOwn` is whether an address belongs to this machine.
    mutating func receive(_ hop: Neighbor.Key, _ reply: HopSearchReply, isOwn: (IPAddress) -> Bool, at now: Int64) -> Outcome {
        guard let index = index(of: hop), let search = records[index].search else { return Outcome() }
        var outcome = Outcome()
        // The packets were sent then. Their answers may have waited for this process.
        let sent = records[index].lastSearch ?? now
        if let answer = reply.answer, !isOwn(answer.sender), answer.sender != hop.address {
            if let target = answer.target {
                outcome.answered = (TargetID(target), answer.sender, answer.roundTripNanoseconds)
                let port = search.others.first { $0.target.number == target }?.destination.port
                records[index].answered(Witness(kind: .target, address: answer.sender, port: port, time: sent))
            } else if let limit = answer.limit, answer.sender == search.silent.address {
                records[index].answered(
                    Witness(
                        kind: .target, address: answer.sender, port: search.silent.port, distance: max(1, limit), time: sent))
            } else if let limit = answer.limit, limit >= 2 {
                records[index].answered(Witness(kind: .router, address: answer.sender, distance: limit, time: sent))
                records[index].hasRouters = true
            }
        }
        guard records[index].isSearching, let started = records[index].lastSearch else { return outcome }
        let isWitnessed = records[index].witness(since: started) != nil
        guard isWitnessed || reply.answer == nil else { return outcome }
        records[index].isSearching = false
        if reply.wasSent, !isWitnessed {
            let network = search.silent.address.network
            if records[index].empty.count >= Self.networkLimit { records[index].empty = [:] }
            records[index].empty[network] = ((records[index].empty[network]?.count ?? 0) + 1, now)
            outcome.silent = search.others.map(\.target)
        }
        let waiting = records[index].waiting
        records[index].waiting = []
        outcome.waiting = waiting.map { ($0.target, records[index].state($0.request)) }
        return outcome
    }

    // MARK: Other networks

    /// Forgets everything about the hops behind an interface, which may now be attached to another network.
    mutating func forget(_ interface: UInt32) { forget { $0.interface == interface } }

    /// Forgets everything after a suspend: the machine may be elsewhere.
    mutating func forgetAll() { forget { _ in true } }

    private mutating func forget(_ isForgotten: (Neighbor.Key) -> Bool) {
        records = records.compactMap { record in
            guard isForgotten(record.hop) else { return record }
            guard !record.waiting.isEmpty || record.isSearching else { return nil }
            var rest = Record(hop: record.hop)
            (rest.waiting, rest.search, rest.isSearching) = (record.waiting, record.search, record.isSearching)
            rest.lastSearch = record.lastSearch
            return rest
        }
    }
}
