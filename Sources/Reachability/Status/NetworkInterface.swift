/// A network interface as a person knows it: what it is, how far it is up, and which addresses it has.
public struct NetworkInterface: Hashable, Sendable {
    /// The name, which may be changed while the interface exists.
    public var name: String { values.value.name }
    /// The names beside ``name`` that the kernel also knows it by (`ip link property add dev eth0 altname uplink`).
    public var alternativeNames: [String] { values.value.alternativeNames }
    /// The kernel's number (32 bits), which identifies it within its network namespace.
    public var index: UInt32 { values.value.index }
    /// What carries its packets.
    public var type: InterfaceType { values.value.type }
    /// Whether it is made by software rather than hardware.
    public var isVirtual: Bool { values.value.isVirtual }
    /// Whether its traffic is likely to cost money by volume: cellular, and what is tethered or stacked on it.
    public var isExpensive: Bool { values.value.isExpensive }
    /// How far it is on its way to carrying packets.
    public var level: LinkLevel { values.value.level }
    /// Its addresses with their prefixes, IPv4 first.
    public var addresses: [IPPrefix] { values.value.addresses }
    /// What its type was told from, for a person who asks why.
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

    /// An interface with all that is known of it.
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

    /// Whether the kernel knows it by this name.
    package func hasName(_ name: String) -> Bool { self.name == name || alternativeNames.contains(name) }
}
