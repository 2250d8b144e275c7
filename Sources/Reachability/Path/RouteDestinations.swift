/// The destinations of the route queries, one for each family. They represent the entire Internet, and no packet is ever sent to
/// them.
///
/// The first choice is an address for documentation (RFC 5737, RFC 3849). Filters of documentation networks are common, and do
/// not concern other destinations. If a filter covers the address, another address outside all filters is used
/// (docs/command-line.md, "Satisfied paths").
package struct RouteDestinations: Hashable, Sendable {
    /// The destination of IPv4 queries.
    package let v4: IPAddress
    /// The destination of IPv6 queries.
    package let v6: IPAddress

    /// Creates the destinations of a host without filters.
    package init() { self.init(RefusedNetworks()) }

    /// Creates the first destinations that no refused network contains. If all addresses of a family are refused, its first
    /// destination is used.
    init(_ refused: RefusedNetworks) {
        v4 = Self.destination(.v4, refused)
        v6 = Self.destination(.v6, refused)
    }

    package subscript(family: IPAddress.Family) -> IPAddress { family == .v4 ? v4 : v6 }

    // After the address for documentation follow DNS root servers (K, L, A), which no list of bogus networks contains.
    private static let preferred4 = [0xc633_6401, 0xc100_0e81, 0xc707_532a, 0xc629_0004].map { IPAddress(v4: $0) }
    private static let preferred6 = [
        IPAddress(v6: 0x2001_0db8_ffff_0000, 1), IPAddress(v6: 0x2001_07fd_0000_0000, 1),
        IPAddress(v6: 0x2001_0500_009f_0000, 0x42), IPAddress(v6: 0x2001_0503_ba3e_0000, 0x2_0030),
    ]

    // Networks whose addresses do not represent the entire Internet: private, shared, loopback, link-local and special ones. The
    // searched ranges exclude multicast and later IPv4 addresses, and all IPv6 addresses except global unicast.
    private static let unsuitable = RefusedNetworks([
        IPPrefix(IPAddress(v4: 0x0a00_0000), length: 8), IPPrefix(IPAddress(v4: 0x6440_0000), length: 10),
        IPPrefix(IPAddress(v4: 0x7f00_0000), length: 8), IPPrefix(IPAddress(v4: 0xa9fe_0000), length: 16),
        IPPrefix(IPAddress(v4: 0xac10_0000), length: 12), IPPrefix(IPAddress(v4: 0xc0a8_0000), length: 16),
    ])
    private static let searched4 = IPAddress(v4: 0x0100_0001)...IPAddress(v4: 0xdfff_ffff)
    private static let searched6 = IPAddress(v6: 0x2000 << 48, 1)...IPAddress(v6: 0x3fff_ffff_ffff_ffff, .max)

    /// The maximum number of consecutive refused networks that the search skips.
    private static let searchLimit = 4_096

    private static func destination(_ family: IPAddress.Family, _ refused: RefusedNetworks) -> IPAddress {
        let preferred = family == .v4 ? preferred4 : preferred6
        if let free = preferred.first(where: { refused.widest(containing: $0) == nil }) { return free }
        let searched = family == .v4 ? searched4 : searched6
        var candidate = searched.lowerBound
        for _ in 0..<searchLimit {
            guard let network = refused.widest(containing: candidate) ?? unsuitable.widest(containing: candidate) else {
                return candidate
            }
            guard let next = network.following, searched.contains(next) else { break }
            candidate = next
        }
        return preferred[0]
    }
}

/// The networks that routes and rules of type unreachable, prohibit or blackhole refuse, except for default ones.
struct RefusedNetworks: Hashable, Sendable {
    private struct Size: Hashable, Sendable {
        let family: IPAddress.Family
        let length: UInt8
    }

    // The number of refusals by the size and the first address of the network.
    private var counts: [Size: [IPAddress: Int]] = [:]

    init(_ networks: [IPPrefix] = []) {
        for network in networks { add(network) }
    }

    mutating func add(_ network: IPPrefix) {
        counts[Size(family: network.address.family, length: network.length), default: [:]][network.first, default: 0] += 1
    }

    mutating func remove(_ network: IPPrefix) {
        let (size, first) = (Size(family: network.address.family, length: network.length), network.first)
        guard let count = counts[size]?[first] else { return }
        counts[size]?[first] = count > 1 ? count - 1 : nil
        if counts[size]?.isEmpty == true { counts[size] = nil }
    }

    /// Returns the widest network that contains the address; `nil` if none does.
    func widest(containing address: IPAddress) -> IPPrefix? {
        guard !counts.isEmpty else { return nil }
        for length in 1...(address.family == .v4 ? 32 : 128) as ClosedRange<UInt8> {
            guard let sameSize = counts[Size(family: address.family, length: length)] else { continue }
            let network = IPPrefix(address, length: length)
            if sameSize[network.first] != nil { return network }
        }
        return nil
    }
}

extension KernelSnapshot {
    /// The networks that rules, and the routes of any table, refuse.
    var refusedNetworks: RefusedNetworks {
        var refused = index.refused
        for rule in rules {
            if let network = rule.refusedNetwork { refused.add(network) }
        }
        return refused
    }
}

extension Route {
    /// The network that the route refuses; `nil` for a default route, and for a route that does not refuse.
    var refusedNetwork: IPPrefix? {
        !key.destination.isDefault && kind.refuses && kind != .throw ? key.destination : nil
    }
}

extension Rule {
    /// The network that the rule refuses; `nil` for a rule that refuses no destination, all destinations, or all except one.
    fileprivate var refusedNetwork: IPPrefix? {
        let refusing: ClosedRange<UInt8> = 6...8  // FR_ACT_BLACKHOLE, FR_ACT_UNREACHABLE, FR_ACT_PROHIBIT
        guard refusing.contains(action), !isInverted, let destination, !destination.isDefault else { return nil }
        return destination
    }
}

extension IPPrefix {
    /// The first address after the network; `nil` at the end of the address space.
    var following: IPAddress? {
        let first = self.first
        if address.family == .v4 {
            let next = first.low + 1 << (32 - UInt64(length))
            return UInt32(exactly: next).map { IPAddress(v4: $0) }
        }
        let step = length > 64 ? UInt64(1) << (128 - UInt64(length)) : 0
        let (low, carries) = first.low.addingReportingOverflow(step)
        // A network of 64 bits or fewer advances the upper half. The default network does not advance.
        let upper: UInt64 = length > 64 ? (carries ? 1 : 0) : 1 << (64 - UInt64(length))
        let (high, overflows) = first.high.addingReportingOverflow(upper)
        return overflows || length == 0 ? nil : IPAddress(v6: high, low)
    }
}
