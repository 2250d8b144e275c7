/// The reason why no address of an interface can be the source of packets to other networks.
enum AddressFault: Hashable, Sendable {
    /// There is no address.
    case missing
    /// Duplicate address detection still runs (RFC 4862 section 5.4).
    case tentative
    /// Another host has the address.
    case duplicate

    var code: Cause.Code {
        switch self {
        case .missing: .noAddress
        case .tentative: .tentativeAddress
        case .duplicate: .duplicateAddress
        }
    }

    func detail(of interface: String) -> String {
        switch self {
        case .missing: "interface \(interface) has no usable address"
        case .tentative: "the addresses of interface \(interface) are still being checked for duplicates"
        case .duplicate: "an address of interface \(interface) is in use by another host"
        }
    }
}

/// Returns why none of an interface's addresses can be a source; `nil` if one can. Link-local IPv6 addresses do not count.
func addressFault(of addresses: [Address]) -> AddressFault? {
    let global = addresses.filter { !($0.address.family == .v6 && $0.address.isLinkLocal) }
    if global.contains(where: \.isUsable) { return nil }
    if addresses.contains(where: { $0.flags.contains(.duplicate) }) { return .duplicate }
    return global.contains { $0.flags.contains(.tentative) } ? .tentative : .missing
}
