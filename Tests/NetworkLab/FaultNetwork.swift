import EventLoop
import Glibc

/// A client, its router and the site of the servers, all of them working: the network in which a test makes one fault. Duplicate
/// address detection is off. No packet leaves the machine.
///
/// ```
/// client v0 10.1.0.2, 2001:db8:1::2 ─── .1, ::1 rv0 router rs0 203.0.113.1, 2001:db8:9::1 ─── .9, ::9 s0 site
///        v1 10.2.0.2, 2001:db8:2::2 ─── .1, ::1 rv1
/// ```
public final class FaultNetwork: Sendable {
    /// A family of addresses, with the addresses of this network.
    public enum Family: String, Sendable, CaseIterable {
        case ipv4 = "IPv4"
        case ipv6 = "IPv6"

        /// The option of ip(8).
        public var option: String { self == .ipv4 ? "-4" : "-6" }
        /// The network of the site.
        public var network: String { self == .ipv4 ? "203.0.113.0/24" : "2001:db8:9::/64" }
        /// The server's address.
        public var server: String { self == .ipv4 ? "203.0.113.9" : "2001:db8:9::9" }
        /// An address of the site that no host has.
        public var absentServer: String { self == .ipv4 ? "203.0.113.99" : "2001:db8:9::99" }
        /// The network of the far site, behind the provider of ``addProvider()``.
        public var farNetwork: String { self == .ipv4 ? "198.51.100.0/24" : "2001:db8:51::/64" }
        /// The address of the server of the far site.
        public var farServer: String { self == .ipv4 ? "198.51.100.7" : "2001:db8:51::7" }
        /// The provider's address on the router's uplink.
        public var provider: String { self == .ipv4 ? "10.9.0.2" : "2001:db8:a::2" }
        /// The address of this machine that only it can reach.
        public var loopback: String { self == .ipv4 ? "127.0.0.1" : "::1" }
        /// The name of the family in nft(8).
        public var protocolName: String { self == .ipv4 ? "ip" : "ip6" }
        /// The address of a server that is absent from the client's link.
        public var absentNeighbor: String { self == .ipv4 ? "10.1.0.99" : "2001:db8:1::99" }
        /// The router's address on an uplink, 1 or 2.
        public func gateway(_ uplink: Int = 1) -> String { self == .ipv4 ? "10.\(uplink).0.1" : "2001:db8:\(uplink)::1" }
        /// The client's address on an uplink, 1 or 2.
        public func client(_ uplink: Int = 1) -> String { self == .ipv4 ? "10.\(uplink).0.2" : "2001:db8:\(uplink)::2" }
        /// An address with the length of its network's prefix, as `ip addr` takes it.
        public func withPrefix(_ address: String) -> String { self == .ipv4 ? "\(address)/24" : "\(address)/64 nodad" }
        /// Echo requests in a rule of nft.
        public var echoRequest: String { self == .ipv4 ? "icmp type echo-request" : "icmpv6 type echo-request" }

        /// The target whose probes are echo requests to an address.
        public func ping(_ address: String) -> String { self == .ipv4 ? "ping://\(address)" : "ping://[\(address)]" }

        /// An address and a port, as a target.
        public func target(_ address: String, _ port: UInt16 = FaultNetwork.port) -> String {
            self == .ipv4 ? "\(address):\(port)" : "[\(address)]:\(port)"
        }
    }

    /// The port of the server.
    public static let port: UInt16 = 8080
    /// The addresses of the site's name servers.
    public static let nameServers = ["203.0.113.53", "203.0.113.54"]
    /// A name for which the site's name servers are asked.
    public static let name = "server.example"

    /// The machine that is observed.
    public let client: LabHost
    /// The client's next hop.
    public let router: LabHost
    /// The host of the servers.
    public let site: LabHost
    /// The client's /etc.
    public let etc: EtcDirectory
    private let lab = Lab()
    private let server: Server
    private let vpn = Locked<UserTunnel?>(nil)
    private let upstream = Locked<Upstream?>(nil)
    private let held = Locked<[any Sendable]>([])

    /// Makes the network, with a server that accepts connections over both families.
    public init(nameServers: [String] = []) throws {
        let (client, router, site) = try (lab.host(), lab.host(), lab.host())
        (self.client, self.router, self.site) = (client, router, site)
        etc = try EtcDirectory(nameServers: nameServers)
        for host in [client, router, site] {
            for scope in ["all", "default"] { try host.set("ipv6.conf.\(scope).accept_dad", "0") }
        }
        try router.set("ipv4.ip_forward", "1")
        try router.set("ipv6.conf.all.forwarding", "1")
        try lab.connect(client, "v0", router, "rv0")
        try lab.connect(router, "rs0", site, "s0")
        try router.ipBatch(Self.up("rv0", { $0.gateway() }) + Self.up("rs0", { $0 == .ipv4 ? "203.0.113.1" : "2001:db8:9::1" }))
        try site.ipBatch(
            Self.up("s0", { $0.server }) + FaultNetwork.nameServers.map { "addr add \($0)/24 dev s0" }
                + ["route add default via 203.0.113.1", "route add default via 2001:db8:9::1"])
        try client.ipBatch(Self.up("v0", { $0.client() }))
        try client.awaitCarrier("v0")
        try client.ipBatch(Family.allCases.map { "route add default via \($0.gateway())" })
        try site.awaitCarrier("s0")
        server = try site.serve(port: FaultNetwork.port)
    }

    /// Adds a second router behind the first one, the provider, and a far site behind it with a server. A packet to the far site passes
    /// the router and the provider.
    public func addProvider() throws {
        let (provider, far) = try (lab.host(), lab.host())
        for host in [provider, far] {
            for scope in ["all", "default"] { try host.set("ipv6.conf.\(scope).accept_dad", "0") }
        }
        try provider.set("ipv4.ip_forward", "1")
        try provider.set("ipv6.conf.all.forwarding", "1")
        try lab.connect(router, "rp0", provider, "p0")
        try lab.connect(provider, "pf0", far, "f0")
        try router.ipBatch(Self.up("rp0", { $0 == .ipv4 ? "10.9.0.1" : "2001:db8:a::1" }))
        try provider.ipBatch(
            Self.up("p0", { $0.provider }) + Self.up("pf0", { $0 == .ipv4 ? "198.51.100.1" : "2001:db8:51::1" })
                + ["route add default via 10.9.0.1", "route add default via 2001:db8:a::1"])
        try router.awaitCarrier("rp0")
        try router.ipBatch(Family.allCases.map { "route add \($0.farNetwork) via \($0.provider)" })
        try far.ipBatch(
            Self.up("f0", { $0.farServer }) + ["route add default via 198.51.100.1", "route add default via 2001:db8:51::1"])
        try far.awaitCarrier("f0")
        hold(try far.serve(port: FaultNetwork.port))
        upstream.withLock { $0 = Upstream(provider: provider, far: far) }
    }

    /// The hosts of ``addProvider()``.
    public struct Upstream: Sendable {
        /// The second router.
        public let provider: LabHost
        /// The host of the far servers.
        public let far: LabHost
    }

    /// The hosts behind the router that ``addProvider()`` has added.
    public var beyond: Upstream {
        get throws {
            guard let hosts = upstream.withLock({ $0 }) else { throw LabError("there is no provider") }
            return hosts
        }
    }

    /// Connects `v1` to the router. Its default routes have a metric of 2000, so that no packet takes them while `v0` has some.
    public func addSecondUplink() throws {
        try lab.connect(client, "v1", router, "rv1")
        try router.ipBatch(Self.up("rv1", { $0.gateway(2) }))
        try client.ipBatch(Self.up("v1", { $0.client(2) }))
        try client.awaitCarrier("v1")
        try client.ipBatch(Family.allCases.map { "route add default via \($0.gateway(2)) metric 2000" })
    }

    /// Routes everything through a VPN, whose far end is the router. Its program is a thread of this process.
    public func addTunnel(persistent: Bool = false) throws {
        let tunnel = try UserTunnel(client, "tun0", router, "rtun0", persistent: persistent)
        vpn.withLock { $0 = tunnel }
        try router.ipBatch([
            "link set rtun0 up", "addr add 10.8.0.1/24 dev rtun0", "addr add 2001:db8:8::1/64 dev rtun0 nodad",
        ])
        try client.ipBatch([
            "link set tun0 up", "addr add 10.8.0.2/24 dev tun0", "addr add 2001:db8:8::2/64 dev tun0 nodad",
            "route replace default dev tun0", "route replace ::/0 dev tun0",
        ])
    }

    /// The tunnel of ``addTunnel(persistent:)``.
    public var tunnel: UserTunnel {
        get throws {
            guard let tunnel = vpn.withLock({ $0 }) else { throw LabError("there is no tunnel") }
            return tunnel
        }
    }

    /// Ends the server. The port is closed from then on.
    public func closeServer() {
        server.close()
    }

    /// Keeps an object, such as a name server, as long as the network exists.
    public func hold(_ object: some Sendable) {
        held.withLock { $0.append(object) }
    }

    /// The objects of a type that ``hold(_:)`` keeps.
    public func held<Object: Sendable>(_ type: Object.Type) -> [Object] {
        held.withLock { $0.compactMap { $0 as? Object } }
    }

    /// Starts a name server at one of the addresses of ``nameServers``.
    @discardableResult
    public func resolver(_ behavior: NameServer.Behavior, _ number: Int = 0) throws -> NameServer {
        let server = try NameServer(behavior, in: site.path, address: FaultNetwork.nameServers[number])
        hold(server)
        return server
    }

    /// Starts a program on the client, as an ordinary user of it.
    public func start(_ command: [String], output: Program.Output = .pipe) throws -> Program {
        try Program(unprivileged: command, on: client, etc: etc, output: output)
    }

    /// The lines for ip(8) that switch an interface on and give it an address of each family.
    private static func up(_ interface: String, _ address: (Family) -> String) -> [String] {
        ["link set lo up", "link set \(interface) up"]
            + Family.allCases.map { "addr add \($0.withPrefix(address($0))) dev \(interface)" }
    }
}

extension LabHost {
    /// Waits until the kernel has announced the carrier, a moment after the second end of the cable is up.
    func awaitCarrier(_ name: String) throws {
        let end = Deadline(in: .seconds(30))
        while try !ip("link show \(name)").contains("state UP") {
            guard !end.hasPassed else { throw LabError("\(name) has no carrier") }
        }
    }
}
