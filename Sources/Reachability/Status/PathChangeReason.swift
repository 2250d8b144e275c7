/// The reason why a path update was published. Later versions may add reasons.
public struct PathChangeReason: RawRepresentable, Hashable, Sendable, CaseIterable, CustomStringConvertible {
    /// The reason's name in records: `interface-changed`, `resumed`, ….
    public let rawValue: String

    /// The index in ``allCases``; `unknown` for a name that is not in the list.
    package let number: UInt32
    private static let unknown: UInt32 = 255

    /// The reason's name in records.
    public var description: String { rawValue }

    /// Creates a reason from its name in records. Unknown names are allowed.
    public init(rawValue: String) {
        self = PathChangeReason.allCases.first { $0.rawValue == rawValue } ?? PathChangeReason(rawValue, PathChangeReason.unknown)
    }

    private init(_ name: String, _ number: UInt32) { (rawValue, self.number) = (name, number) }

    /// The selected interface, its type, or the interface under a tunnel changed.
    public static let interfaceChanged = PathChangeReason("interface-changed", 0)
    /// A physical interface, or an interface with a default route, appeared, disappeared or changed its level; or the order of
    /// preference changed.
    public static let interfacesChanged = PathChangeReason("interfaces-changed", 1)
    /// An address of a physical interface, or of an interface with a default route, was added or removed.
    public static let addressesChanged = PathChangeReason("addresses-changed", 2)
    /// A next hop of the path changed.
    public static let gatewaysChanged = PathChangeReason("gateways-changed", 3)
    /// IPv4 or IPv6 became usable or unusable.
    public static let familiesChanged = PathChangeReason("families-changed", 4)
    /// Name servers were configured or removed.
    public static let dnsChanged = PathChangeReason("dns-changed", 5)
    /// The path's `isExpensive` or `isConstrained` changed.
    public static let costChanged = PathChangeReason("cost-changed", 6)
    /// The cause of an unsatisfied path changed.
    public static let causeChanged = PathChangeReason("cause-changed", 7)
    /// The machine was suspended and resumed. Published even if nothing else changed.
    public static let resumed = PathChangeReason("resumed", 8)
    /// Events were lost or dumps were interrupted, and a later dump showed the change.
    public static let resynced = PathChangeReason("resynced", 9)

    /// The reasons that this version knows, in the order in which updates list them.
    public static let allCases: [PathChangeReason] = [
        .interfaceChanged, .interfacesChanged, .addressesChanged, .gatewaysChanged, .familiesChanged, .dnsChanged, .costChanged,
        .causeChanged, .resumed, .resynced,
    ]
}
