/// A network interface as a person knows it: what it is, how far it is up, and which addresses it has.
public struct NetworkInterface: Hashable, Sendable {
    /// The name, which may be changed while the interface exists.
    public let name: String
    /// The kernel's number (32 bits), which identifies it within its network namespace.
    public let index: UInt32
    /// What carries its packets.
    public let type: InterfaceType
    /// Whether it is made by software rather than hardware.
    public let isVirtual: Bool
    /// Whether its traffic is likely to cost money by volume: cellular, and what is tethered or stacked on it.
    public let isExpensive: Bool
    /// How far it is on its way to carrying packets.
    public let level: LinkLevel
    /// Its addresses with their prefixes, IPv4 first.
    public let addresses: [IPPrefix]
    /// What its type was told from, for a person who asks why.
    public let evidence: [String]

    /// An interface with all that is known of it.
    public init(
        name: String, index: UInt32, type: InterfaceType, isVirtual: Bool, isExpensive: Bool, level: LinkLevel,
        addresses: [IPPrefix], evidence: [String] = []
    ) {
        self.name = name
        self.index = index
        self.type = type
        self.isVirtual = isVirtual
        self.isExpensive = isExpensive
        self.level = level
        self.addresses = addresses
        self.evidence = evidence
    }
}
