/// What the machine can do with the network at one moment: the kernel's own choice of interface for each family, and why not
/// where there is none.
///
/// A satisfied path says that there is an interface over which an attempt can be made, not that a server answers:
/// see ``ServerMonitor`` for that.
public struct NetworkPath: Hashable, Sendable {
    /// Whether an attempt can be made.
    @nonexhaustive public enum Status: String, Hashable, Sendable {
        /// The kernel has a unicast route with a usable source address, in at least one family, over a link that carries packets: to
        /// an address that stands for everywhere and that no route or rule refuses, defaults apart.
        case satisfied
        /// It has none; ``NetworkPath/cause`` says why.
        case unsatisfied
    }

    /// A next hop of the default path: an address, and for link-local ones the interface that it is valid on.
    public struct Gateway: Hashable, Sendable, CustomStringConvertible {
        /// The router's address.
        public let address: IPAddress
        /// The interface's name, for link-local addresses.
        public let zone: String?

        /// A gateway; `zone` is the interface's name where `address` is link-local.
        public init(_ address: IPAddress, zone: String? = nil) {
            self.address = address
            self.zone = zone
        }

        /// `ADDRESS` or `ADDRESS%ZONE` (RFC 4007).
        public var description: String { zone.map { "\(address)%\($0)" } ?? "\(address)" }
    }

    /// Whether an attempt can be made.
    public var status: Status { values.value.status }
    /// The interface that the kernel uses: that of IPv4 where usable, else that of IPv6.
    public var interface: NetworkInterface? { values.value.interface }
    /// The interface for IPv4, where usable.
    public var interfaceV4: NetworkInterface? { values.value.interfaceV4 }
    /// The interface for IPv6, where usable.
    public var interfaceV6: NetworkInterface? { values.value.interfaceV6 }
    /// The interface under a tunnel: the one that carries the tunnel's own packets.
    public var underlying: NetworkInterface? { values.value.underlying }
    /// Whether at least one name server is configured.
    public var supportsDNS: Bool { values.value.supportsDNS }
    /// Whether traffic is likely to cost money by volume.
    public var isExpensive: Bool { values.value.isExpensive }
    /// Whether the system asks to save data.
    public var isConstrained: Bool { values.value.isConstrained }
    /// The next hops of the usable families, IPv4 first.
    public var gateways: [Gateway] { values.value.gateways }
    /// All interfaces: the usable ones first, in the kernel's order of preference.
    public var interfaces: [NetworkInterface] { values.value.interfaces }
    /// Why the path is unsatisfied; `nil` when it is satisfied.
    public var cause: Cause? { values.value.cause }
    /// Whether all of it rests on complete answers of the kernel. False after dumps that kept being interrupted, until a later
    /// one succeeds, and where netlink is refused.
    public var isConsistent: Bool { values.value.isConsistent }
    /// The indexes of ``interfaces`` whose changes are worth telling: physical ones, those with a default route, the selected,
    /// and those that a target's packets use.
    package var notable: Set<UInt32> { values.value.notable }

    private struct Values: Hashable, Sendable {
        let status: Status
        let interface: NetworkInterface?
        let interfaceV4: NetworkInterface?
        let interfaceV6: NetworkInterface?
        let underlying: NetworkInterface?
        let supportsDNS: Bool
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

    /// Whether the path, in either family, goes over an interface of this type (or a tunnel over one).
    public func usesInterfaceType(_ type: InterfaceType) -> Bool {
        interfaceV4?.type == type || interfaceV6?.type == type || underlying?.type == type
    }

    /// A path as a ``PathMonitor`` finds it, for tests and previews. What is not given is `nil`, `false` or empty.
    public init(
        status: Status, interface: NetworkInterface? = nil, interfaceV4: NetworkInterface? = nil,
        interfaceV6: NetworkInterface? = nil, underlying: NetworkInterface? = nil, supportsDNS: Bool = false,
        isExpensive: Bool = false, isConstrained: Bool = false, gateways: [Gateway] = [],
        interfaces: [NetworkInterface] = [], cause: Cause? = nil, isConsistent: Bool = true
    ) {
        self.init(
            status: status, interface: interface, interfaceV4: interfaceV4, interfaceV6: interfaceV6, underlying: underlying,
            supportsDNS: supportsDNS, isExpensive: isExpensive, isConstrained: isConstrained, gateways: gateways,
            interfaces: interfaces, cause: cause, isConsistent: isConsistent, notable: [])
    }

    package init(
        status: Status, interface: NetworkInterface? = nil, interfaceV4: NetworkInterface? = nil,
        interfaceV6: NetworkInterface? = nil, underlying: NetworkInterface? = nil, supportsDNS: Bool = false,
        isExpensive: Bool = false, isConstrained: Bool = false, gateways: [Gateway] = [],
        interfaces: [NetworkInterface] = [], cause: Cause? = nil, isConsistent: Bool = true, notable: Set<UInt32>
    ) {
        values = Boxed(
            Values(
                status: status, interface: interface, interfaceV4: interfaceV4, interfaceV6: interfaceV6, underlying: underlying,
                supportsDNS: supportsDNS, isExpensive: isExpensive, isConstrained: isConstrained, gateways: gateways,
                interfaces: interfaces, cause: cause, isConsistent: isConsistent, notable: notable
            ))
    }
}
