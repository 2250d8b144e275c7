/// A network interface: its medium, its operational level, and its addresses.
public struct NetworkInterface: Hashable, Sendable {
    /// The interface's name. It may change while the interface exists.
    public var name: String { values.value.name }
    /// The alternative names under which the kernel also knows the interface (`ip link property add dev eth0 altname uplink`).
    public var alternativeNames: [String] { values.value.alternativeNames }
    /// The kernel's interface index, which identifies the interface within its network namespace.
    public var index: UInt32 { values.value.index }
    /// The medium of the interface.
    public var type: InterfaceType { values.value.type }
    /// Whether the interface is made by software rather than hardware.
    public var isVirtual: Bool { values.value.isVirtual }
    /// Whether the interface's traffic is likely to cost money by volume: cellular interfaces, and devices tethered to or stacked
    /// on one.
    public var isExpensive: Bool { values.value.isExpensive }
    /// The operational level of the interface.
    public var level: LinkLevel { values.value.level }
    /// The interface's addresses with their prefixes, IPv4 first.
    public var addresses: [IPPrefix] { values.value.addresses }
    /// The facts that determined ``type``, for a person who asks for the reason.
    public var evidence: [String] { values.value.evidence }

    private struct Values: Hashable, Sendable {
        let name: String
        let alternativeNames: [String]
        let index: UInt32
        let type: InterfaceType
        let isVirtual: Bool
        let isExpensive: Bool
        let level: LinkLevel
        let addresses: [IPPrefix]
        let evidence: [String]
    }

    private let values: Boxed<Values>

    /// Creates an interface.
    public init(
        name: String, index: UInt32, type: InterfaceType, isVirtual: Bool, isExpensive: Bool, level: LinkLevel,
        addresses: [IPPrefix], evidence: [String] = [], alternativeNames: [String] = []
    ) {
        values = Boxed(
            Values(
                name: name, alternativeNames: alternativeNames, index: index, type: type, isVirtual: isVirtual,
                isExpensive: isExpensive, level: level,
                addresses: addresses, evidence: evidence
            ))
    }

    /// Returns whether `name` is the interface's name or one of its alternative names.
    package func hasName(_ name: String) -> Bool { self.name == name || alternativeNames.contains(name) }
}

extension NetworkInterface: CustomStringConvertible {
    /// The name and the medium, such as `eth0, wired`.
    public var description: String { "\(name), \(type.rawValue)" }
}
