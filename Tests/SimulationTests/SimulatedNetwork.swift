import Pacing

@testable import Reachability

/// Routers, links and hosts behind this machine: a tree whose first routers are this machine's gateways, with faults that come and go.
///
/// A packet walks along the tree. Everything on its way may drop it or report why it does not forward, and the answer walks back. Routers
/// have the default limit of Linux: six ICMP messages at once, then one a second (icmp_ratelimit).
struct SimulatedNetwork {
    enum Port: CaseIterable {
        case open, closed, filtered
    }

    struct Router {
        let address: IPAddress
        let parent: Int?
        /// The hop limit that ends at the router.
        let depth: Int
        /// Whether the router sends ICMP messages at all.
        let sendsMessages: Bool
        var messages = 6.0
        var messageTime: Int64 = 0
    }

    struct Host {
        let address: IPAddress
        /// The last router on the way; `nil` on this machine's own link.
        let router: Int?
        /// Whether the host answers datagrams and connections to closed ports.
        let answersQueries: Bool
        var ports: [UInt16: Port]
    }

    /// The place of a fault on the way.
    enum Place: Hashable {
        case router(Int)
        /// The link that leads to the router or the host.
        case linkToRouter(Int)
        case linkToHost(Int)
        /// The host itself, or one of its ports: the server is at fault.
        case host(Int)
        case port(Int, UInt16)
    }

    enum Effect: Hashable {
        /// Nothing passes, and nobody says so.
        case silence
        /// The part of the packets that are lost in each direction.
        case loss(percent: Int)
        /// The router before the link reports that it has no route.
        case noRoute
    }

    struct Fault: Hashable {
        var place: Place
        var effect: Effect
        var since: Int64

        var isLoss: Bool { if case .loss = effect { true } else { false } }
    }

    /// What becomes of a packet.
    enum Fate {
        case lost
        /// At the host, with the time until an answer is back.
        case arrives(Int64)
        /// The hop limit ended at the router, whose message arrives after the time.
        case exceeded(IPAddress, Int64)
        /// A router reports an ICMP code 0 (network) or 1 (host) of type 3.
        case reported(IPAddress, code: UInt8, Int64)
    }

    static let hopTime: Int64 = 3_000_000
    static let resolution: Int64 = 3_060_000_000

    private(set) var routers: [Router] = []
    private(set) var hosts: [Host] = []
    private(set) var faults: [Fault] = []
    /// The last faults that have ended, with the times.
    private var ended: [(fault: Fault, time: Int64)] = []
    /// The time at which something of a host or a port last changed.
    private var changed: [Place: Int64] = [:]

    init(using dice: inout SplitMix64) {
        for gateway in 0..<Int.random(in: 1...2, using: &dice) {
            routers.append(
                Router(
                    address: IPAddress(v4: 0x0a00_0001 + UInt32(gateway) << 8), parent: nil, depth: 1,
                    sendsMessages: Int.random(in: 0..<10, using: &dice) > 0))
        }
        for number in 0..<Int.random(in: 1...12, using: &dice) {
            let parent = Int.random(in: 0..<routers.count, using: &dice)
            guard routers[parent].depth < 10 else { continue }
            routers.append(
                Router(
                    address: IPAddress(v4: 0xc612_0001 + UInt32(number) << 8), parent: parent, depth: routers[parent].depth + 1,
                    sendsMessages: Int.random(in: 0..<4, using: &dice) > 0))
        }
        for number in 0..<Int.random(in: 1...10, using: &dice) {
            let isOnLink = Int.random(in: 0..<8, using: &dice) == 0
            // Some hosts share a network of 24 bits.
            let network = 0xcb00_0000 + UInt32(Int.random(in: 0...number, using: &dice)) << 8
            let ports = (0..<Int.random(in: 1...3, using: &dice)).map { (UInt16(80 + $0), Port.open) }
            hosts.append(
                Host(
                    address: IPAddress(v4: isOnLink ? 0x0a00_0040 + UInt32(number) : network + 10 + UInt32(number)),
                    router: isOnLink ? nil : Int.random(in: 0..<routers.count, using: &dice),
                    answersQueries: Int.random(in: 0..<3, using: &dice) > 0, ports: Dictionary(uniqueKeysWithValues: ports)))
        }
    }

    // MARK: The way

    func host(_ address: IPAddress) -> Int? { hosts.firstIndex { $0.address == address } }

    /// The routers on the way to a host, the gateway first.
    func way(to host: Int) -> [Int] {
        var way: [Int] = []
        var next = hosts[host].router
        while let router = next {
            way.append(router)
            next = routers[router].parent
        }
        return way.reversed()
    }

    /// The gateway to an address; `nil` on the link.
    func gateway(to address: IPAddress) -> IPAddress? {
        host(address).flatMap { way(to: $0).first }.map { routers[$0].address }
    }

    /// The hop limit at which a fault stops packets to a host; `nil` if it is not on the way.
    func depth(of fault: Fault, towards host: Int) -> Int? {
        switch fault.place {
        case .router(let router), .linkToRouter(let router): way(to: host).contains(router) ? routers[router].depth : nil
        case .linkToHost(host), .host(host): way(to: host).count + 1
        default: nil
        }
    }

    /// The number of routers that the ways to two hosts share.
    func sharedDepth(_ one: Int, _ other: Int) -> Int {
        if one == other { return way(to: one).count + 1 }
        return zip(way(to: one), way(to: other)).prefix { $0 == $1 }.count
    }

    /// The server's part of its fault: `nil` if it is healthy, and since when.
    func isHealthy(_ host: Int, _ port: UInt16, since time: Int64) -> Bool {
        guard hosts[host].ports[port] == .open, !faults.contains(where: { $0.place == .host(host) }) else { return false }
        return [Place.host(host), .port(host, port)].allSatisfy { changed[$0].map { $0 < time } ?? true }
    }

    // MARK: Packets

    /// Sends a packet and its answer.
    mutating func send(to address: IPAddress, limit: Int = 64, at now: Int64, using dice: inout SplitMix64) -> Fate {
        guard let host = host(address) else { return .lost }
        for router in way(to: host) {
            let (depth, parent) = (routers[router].depth, routers[router].parent)
            switch passes(.linkToRouter(router), &dice) {
            case .lost?: return .lost
            case .noRoute?:
                guard let parent, report(parent, at: now) else { return .lost }
                return .reported(routers[parent].address, code: 0, Int64(depth) * 2 * Self.hopTime)
            case nil: break
            }
            if passes(.router(router), &dice) != nil { return .lost }
            if depth == limit {
                return report(router, at: now)
                    ? .exceeded(routers[router].address, Int64(depth) * 2 * Self.hopTime) : .lost
            }
        }
        if let stop = passes(.linkToHost(host), &dice) {
            guard stop == .noRoute, let last = hosts[host].router, report(last, at: now) else { return .lost }
            return .reported(routers[last].address, code: 0, Int64(way(to: host).count) * 2 * Self.hopTime)
        }
        if faults.contains(where: { $0.place == .host(host) }) {
            guard let last = hosts[host].router, report(last, at: now) else { return .lost }
            return .reported(routers[last].address, code: 1, Self.resolution)
        }
        return .arrives(Int64(way(to: host).count + 1) * 2 * Self.hopTime)
    }

    private enum Stop {
        case lost, noRoute
    }

    private func passes(_ place: Place, _ dice: inout SplitMix64) -> Stop? {
        for fault in faults where fault.place == place {
            switch fault.effect {
            case .silence: return .lost
            case .noRoute: return .noRoute
            case .loss(let percent):
                // On the way and on the way back.
                for _ in 0..<2 where Int.random(in: 0..<100, using: &dice) < percent { return .lost }
            }
        }
        return nil
    }

    /// Whether a router sends an ICMP message now.
    mutating func report(_ router: Int, at now: Int64) -> Bool {
        guard routers[router].sendsMessages else { return false }
        let elapsed = Double(now - routers[router].messageTime) / 1e9
        routers[router].messages = min(6, routers[router].messages + elapsed)
        routers[router].messageTime = now
        guard routers[router].messages >= 1 else { return false }
        routers[router].messages -= 1
        return true
    }

    func router(_ address: IPAddress) -> Int? { routers.firstIndex { $0.address == address } }

    /// The time since which a gateway is dead; `nil` if it is not.
    func deadSince(_ address: IPAddress) -> Int64? {
        if let router = router(address) {
            return faults.first { $0.place == .router(router) || $0.place == .linkToRouter(router) && $0.effect == .silence }?
                .since
        }
        guard let host = host(address) else { return nil }
        return faults.first { $0.place == .host(host) || $0.place == .linkToHost(host) && $0.effect == .silence }?.since
    }

    // MARK: Faults

    /// The faults that have lasted until after a time.
    func faults(since time: Int64) -> [Fault] { faults + ended.filter { $0.time >= time }.map(\.fault) }

    /// Begins a random fault. One place has one fault at a time.
    mutating func fail(at now: Int64, using dice: inout SplitMix64) {
        let host = Int.random(in: 0..<hosts.count, using: &dice)
        let router = Int.random(in: 0..<routers.count, using: &dice)
        let loss = Effect.loss(percent: Int.random(in: 1...15, using: &dice))
        var fault: Fault
        switch Int.random(in: 0..<12, using: &dice) {
        case 0..<2: fault = Fault(place: .router(router), effect: .silence, since: now)
        case 2..<4: fault = Fault(place: .linkToRouter(router), effect: .silence, since: now)
        case 4: fault = Fault(place: .linkToRouter(router), effect: loss, since: now)
        case 5: fault = Fault(place: .linkToRouter(router), effect: .noRoute, since: now)
        case 6: fault = Fault(place: .linkToHost(host), effect: .silence, since: now)
        case 7: fault = Fault(place: .linkToHost(host), effect: loss, since: now)
        case 8..<10: fault = Fault(place: .host(host), effect: .silence, since: now)
        default:
            guard let port = hosts[host].ports.keys.sorted().randomElement(using: &dice),
                let state = Port.allCases.randomElement(using: &dice)
            else { return }
            hosts[host].ports[port] = state
            changed[.port(host, port)] = now
            return
        }
        // The first link leads to no router that could report.
        if case .linkToRouter(let router) = fault.place, routers[router].parent == nil, fault.effect == .noRoute {
            fault.effect = .silence
        }
        guard !faults.contains(where: { $0.place == fault.place }) else { return }
        faults.append(fault)
        changed[fault.place] = now
    }

    /// Ends a random fault.
    mutating func mend(at now: Int64, using dice: inout SplitMix64) {
        guard let index = faults.indices.randomElement(using: &dice) else {
            for host in hosts.indices {
                for port in hosts[host].ports.keys where hosts[host].ports[port] != .open {
                    hosts[host].ports[port] = .open
                    changed[.port(host, port)] = now
                }
            }
            return
        }
        let fault = faults.remove(at: index)
        changed[fault.place] = now
        ended.append((fault, now))
        if ended.count > 16 { ended.removeFirst() }
    }
}
