/// Returns why none of an interface's addresses can be a source; `nil` if one can. Link-local IPv6 addresses do not count.
func addressFault(of addresses: [Address]) -> AddressFault? {
    let global = addresses.filter { !($0.address.family == .v6 && $0.address.isLinkLocal) }
    if global.contains(where: \.isUsable) { return nil }
    if addresses.contains(where: { $0.flags.contains(.duplicate) }) { return .duplicate }
    return global.contains { $0.flags.contains(.tentative) } ? .tentative : .missing
}
