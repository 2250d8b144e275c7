/// An address of a target that may be probed, and the question to the kernel that goes with it.
struct Candidate: Hashable, Sendable {
    var address: IPAddress
    var port: UInt16
    /// The index of the interface that a link-local address is valid on, where the user named it; else 0.
    var zone: UInt32
    /// The index of the interface that probes are bound to; 0 for the kernel's choice.
    var boundTo: UInt32

    /// Which way would a packet go?
    var query: RouteQuery { RouteQuery(address, interface: boundTo != 0 ? boundTo : zone, port: port) }
}

/// What the kernel's answer means for a candidate.
enum Way: Hashable, Sendable {
    /// A packet would get out.
    case open(ChosenRoute)
    /// It certainly would not. The interface is that which fails, where there is one.
    case blocked(Cause, interface: UInt32?)

    var route: ChosenRoute? {
        if case .open(let route) = self { return route }
        return nil
    }
}

/// RFC 8305, section 4: the families take turns, the one that the resolver put first begins. `last`, the address that answered
/// before, goes first within its family, so that servers with many addresses do not look like a change at each probe.
func inAttemptOrder(_ addresses: [IPAddress], last: IPAddress?) -> [IPAddress] {
    guard let first = addresses.first else { return [] }
    let remembered = addresses.filter { $0 == last } + addresses.filter { $0 != last }
    let preferred = remembered.filter { $0.family == first.family }
    let others = remembered.filter { $0.family != first.family }
    var ordered: [IPAddress] = []
    for index in 0..<max(preferred.count, others.count) {
        if index < preferred.count { ordered.append(preferred[index]) }
        if index < others.count { ordered.append(others[index]) }
    }
    return ordered
}
