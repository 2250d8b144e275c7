/// The state of this machine's network connectivity at one moment. It has the interface that the kernel chooses for each family,
/// and the cause if no interface is usable.
///
/// A satisfied path means that a connection attempt can be made over an interface. It does not mean that a server answers; see
/// ``ServerMonitor`` for that.
public struct NetworkPath: Hashable, Sendable {
    /// The status of a path: whether a connection attempt can be made. Later versions may add statuses.
    @nonexhaustive public enum Status: String, Hashable, Sendable {
        /// In at least one family, the kernel has a unicast route with a usable source address over a link that carries packets.
        /// The kernel is asked for an address that represents the entire Internet and that no route or rule except a default one
        /// covers.
        case satisfied
        /// The kernel has no such route. ``NetworkPath/cause`` is the reason.
        case unsatisfied
    }

    /// A next hop of the default path.
    public struct Gateway: Hashable, Sendable, CustomStringConvertible {
        /// The router's address.
        public let address: IPAddress
        /// The interface's name for a link-local address; `nil` otherwise.
        public let zone: String?

        /// Creates a gateway. `zone` is the interface's name if `address` is link-local.
        public init(_ address: IPAddress, zone: String? = nil) {
            self.address = address
            self.zone = zone
        }

        /// The address in the form `ADDRESS` or `ADDRESS%ZONE` (RFC 4007).
        public var description: String { zone.map { "\(address)%\($0)" } ?? "\(address)" }
    }

    /// A configured name server. Whether it answers is not known.
    public struct NameServer: Hashable, Sendable, CustomStringConvertible {
        /// The server's address.
        public let address: IPAddress
        /// The interface of a link-local address, by name or number; `nil` otherwise.
        public let zone: String?
        /// The name of the interface that leads to the server: that of the zone, otherwise the one whose network has the address, otherwise
        /// the path's interface of the address's family. `nil` if there is none.
        public let interface: String?

        /// The address in the form `ADDRESS` or `ADDRESS%ZONE` (RFC 4007).
        public var description: String { zone.map { "\(address)%\($0)" } ?? "\(address)" }
    }

    /// Whether a connection attempt can be made.
    public var status: Status { values.value.status }
    /// The interface that the kernel uses: ``interfaceV4`` if IPv4 is usable, otherwise ``interfaceV6``.
    public var interface: NetworkInterface? { values.value.interface }
    /// The interface that the kernel uses for IPv4; `nil` if IPv4 is not usable.
    public var interfaceV4: NetworkInterface? { values.value.interfaceV4 }
    /// The interface that the kernel uses for IPv6; `nil` if IPv6 is not usable.
    public var interfaceV6: NetworkInterface? { values.value.interfaceV6 }
    /// The interface that carries the packets of the selected tunnel; `nil` if the selected interface is not a tunnel or its
    /// carrier is not known.
    public var underlying: NetworkInterface? { values.value.underlying }
    /// The name servers of resolv.conf(5), in the order in which glibc asks them. Without one, glibc asks 127.0.0.1.
    public var nameServers: [NameServer] {
        values.value.resolvers.map { server in
            NameServer(
                address: server.address, zone: server.zone, interface: server.zone ?? interface(leadingTo: server.address)?.name)
        }
    }
    /// The addresses of ``nameServers``.
    package var resolvers: [NameServerAddress] { values.value.resolvers }
    /// Whether at least one name server is configured. It may be unreachable.
    public var supportsDNS: Bool { values.value.supportsDNS }
    /// Whether the path's traffic is likely to cost money by volume.
    public var isExpensive: Bool { values.value.isExpensive }
    /// Whether the system asks applications to save data.
    public var isConstrained: Bool { values.value.isConstrained }
    /// The next hops of the usable families, IPv4 first.
    public var gateways: [Gateway] { values.value.gateways }
    /// All interfaces: the usable ones first, in the kernel's order of preference.
    public var interfaces: [NetworkInterface] { values.value.interfaces }
    /// The reason why the path is unsatisfied; `nil` if it is satisfied.
    public var cause: Cause? { values.value.cause }
    /// Whether the path was computed from complete answers of the kernel. False after repeatedly interrupted dumps, until a later
    /// dump succeeds, and while the kernel refuses netlink.
    public var isConsistent: Bool { values.value.isConsistent }
    /// The indexes of those ``interfaces`` whose changes are published. These are physical interfaces, interfaces with a default
    /// route, the selected interface, and interfaces that a target's packets use.
    package var notable: Set<UInt32> { values.value.notable }

    private struct Values: Hashable, Sendable {
        let status: Status
        let interface: NetworkInterface?
        let interfaceV4: NetworkInterface?
        let interfaceV6: NetworkInterface?
        let underlying: NetworkInterface?
        let supportsDNS: Bool
        let resolvers: [NameServerAddress]
        let isExpensive: Bool
        let isConstrained: Bool
        let gateways: [Gateway]
        let interfaces: [NetworkInterface]
        let cause: Cause?
        let isConsistent: Bool
        let notable: Set<UInt32>
    }

    private let values: Boxed<Values>

    /// Whether the kernel has a usable IPv4 path.
    public var supportsIPv4: Bool { interfaceV4 != nil }
    /// Whether the kernel has a usable IPv6 path.
    public var supportsIPv6: Bool { interfaceV6 != nil }

    /// Returns the interface with the smallest network that has the address, otherwise the path's interface of its family.
    private func interface(leadingTo address: IPAddress) -> NetworkInterface? {
        var found: (interface: NetworkInterface, length: UInt8)?
        for interface in interfaces where interface.level >= .degraded {
            for prefix in interface.addresses where prefix.contains(address) && prefix.length > found?.length ?? 0 {
                found = (interface, prefix.length)
            }
        }
        if let found { return found.interface }
        if address.isLoopback { return interfaces.first { $0.type == .loopback } }
        return address.family == .v4 ? interfaceV4 : interfaceV6
    }

    /// Returns whether the path uses an interface of `type` in either family, directly or under a tunnel.
    public func usesInterfaceType(_ type: InterfaceType) -> Bool {
        interfaceV4?.type == type || interfaceV6?.type == type || underlying?.type == type
    }

    /// Creates a path like those that ``PathMonitor`` publishes, for tests and previews. Omitted values are `nil`, `false` or
    /// empty.
    public init(
        status: Status, interface: NetworkInterface? = nil, interfaceV4: NetworkInterface? = nil,
        interfaceV6: NetworkInterface? = nil, underlying: NetworkInterface? = nil, supportsDNS: Bool = false,
        isExpensive: Bool = false, isConstrained: Bool = false, gateways: [Gateway] = [],
        interfaces: [NetworkInterface] = [], cause: Cause? = nil, isConsistent: Bool = true, nameServers: [IPAddress] = []
    ) {
        self.init(
            status: status, interface: interface, interfaceV4: interfaceV4, interfaceV6: interfaceV6, underlying: underlying,
            supportsDNS: supportsDNS || !nameServers.isEmpty, resolvers: nameServers.map { NameServerAddress($0) },
            isExpensive: isExpensive, isConstrained: isConstrained, gateways: gateways,
            interfaces: interfaces, cause: cause, isConsistent: isConsistent, notable: [])
    }

    package init(
        status: Status, interface: NetworkInterface? = nil, interfaceV4: NetworkInterface? = nil,
        interfaceV6: NetworkInterface? = nil, underlying: NetworkInterface? = nil, supportsDNS: Bool = false,
        resolvers: [NameServerAddress] = [],
        isExpensive: Bool = false, isConstrained: Bool = false, gateways: [Gateway] = [],
        interfaces: [NetworkInterface] = [], cause: Cause? = nil, isConsistent: Bool = true, notable: Set<UInt32>
    ) {
        values = Boxed(
            Values(
                status: status, interface: interface, interfaceV4: interfaceV4, interfaceV6: interfaceV6, underlying: underlying,
                supportsDNS: supportsDNS, resolvers: resolvers, isExpensive: isExpensive, isConstrained: isConstrained,
                gateways: gateways,
                interfaces: interfaces, cause: cause, isConsistent: isConsistent, notable: notable
            ))
    }
}

extension NetworkPath: CustomStringConvertible {
    /// The status, and the interface or the cause, such as `satisfied (eth0, wired)` or `unsatisfied (link: interface eth0 has no carrier)`.
    public var description: String {
        if let cause { return "\(status.rawValue) (\(cause))" }
        return interface.map { "\(status.rawValue) (\($0))" } ?? status.rawValue
    }
}
