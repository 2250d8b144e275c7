/// Whether the kernel's answer lets a packet out, and if not, why: the lowest layer that fails; `nil` where it gave none.
///
/// The kernel goes on routing over a link that has lost its carrier, so the link is looked at too. Routes to this machine itself
/// need no link.
func way(of candidate: Candidate, by answer: RouteAnswer, in surroundings: TargetMachine.Surroundings) -> Way? {
    if let cause = noHost(candidate.address, by: answer) { return .blocked(cause, interface: nil) }
    switch answer {
    case .unanswered: return nil
    case .route(let route):
        switch route.kind {
        case .blackhole: return refusal(of: candidate, .invalid, in: surroundings)
        case .unreachable: return refusal(of: candidate, .hostUnreachable, in: surroundings)
        case .prohibit: return refusal(of: candidate, .accessDenied, in: surroundings)
        case .throw: return refusal(of: candidate, .networkUnreachable, in: surroundings)
        case .local: return .open(route)
        default:
            guard let cause = fault(of: route.interface, in: surroundings, for: candidate.address) else { return .open(route) }
            return .blocked(cause, interface: route.interface)
        }
    case .refused(let number):
        return refusal(of: candidate, SystemErrorNumber(rawValue: number) ?? .networkUnreachable, number, in: surroundings)
    }
}

/// The cause when an address is no single host's: TCP connects one host to another (RFC 9293, 3.9.2.3), and connect(2) finds no
/// route then. Which addresses of a network are its broadcasts, the kernel's answer tells. `0.0.0.0` is this machine itself to the
/// kernel, which says so and connects; `::` is as well, but has no route.
private func noHost(_ address: IPAddress, by answer: RouteAnswer) -> Cause? {
    var kind: Route.Kind?
    var evidence: [String: Cause.Evidence] = ["address": .text("\(address)")]
    switch answer {
    case .route(let route): kind = route.kind
    case .refused(let number): if number != 0 { evidence["errno"] = .text(SystemErrorNumber.name(of: number)) }
    }
    let detail: String
    if address.isMulticast {
        detail = "\(address) is a multicast address, and TCP connects to single hosts only"
    } else if kind == .broadcast || address == IPAddress(v4: .max) {
        detail = "\(address) is a broadcast address, and TCP connects to single hosts only"
    } else if address.isUnspecified, kind == nil, answer != .unanswered {
        detail = "\(address) is the unspecified address, which is no host's; \(address.loopback) is this machine"
    } else {
        return nil
    }
    return Cause(.route, .noRoute, detail: detail, evidence: evidence)
}

extension IPAddress {
    /// This machine's own address of the same family (RFC 1122, 3.2.1.3; RFC 4291, 2.5.3).
    fileprivate var loopback: IPAddress { family == .v4 ? IPAddress(v4: 0x7f00_0001) : IPAddress(v6: 0, 1) }
}

/// The cause of having no path to any of the candidates: the lowest layer, and within it the most telling code.
func lowestCause(_ ways: [(Candidate, Way)]) -> (candidate: Candidate, cause: Cause, interface: UInt32?)? {
    var lowest: (candidate: Candidate, cause: Cause, interface: UInt32?)?
    var lowestRank = Int.max
    for (candidate, way) in ways {
        guard case .blocked(let cause, let interface) = way else { continue }
        // Somebody put a refusing route there; that there is no route is only the absence of one.
        let rank = cause.layer.depth * 2 + (cause.code == .noRoute ? 1 : 0)
        if rank < lowestRank { (lowest, lowestRank) = ((candidate, cause, interface), rank) }
    }
    return lowest
}

/// The cause when a name that the user gave is that of no interface.
func noInterface(_ name: String) -> Cause {
    Cause(.link, .noInterface, detail: "there is no interface \(name)", evidence: ["interface": .text(name)])
}

extension Cause.Layer {
    /// The place in the order from the machine outwards: 0 for the link.
    var depth: Int { Cause.Layer.allCases.firstIndex(of: self) ?? 0 }

    /// Whether this machine alone decides it and no packet is needed to know: link, address, route.
    var isCertain: Bool { self == .link || self == .address || self == .route }

    /// Whether the server is at fault as far as the evidence goes: it answered, or it is the one that did not.
    var accusesServer: Bool { self == .tcp || self == .tls || self == .http }
}

private func refusal(
    of candidate: Candidate, _ kind: SystemErrorNumber, _ number: Int32? = nil, in surroundings: TargetMachine.Surroundings
) -> Way {
    let address = candidate.address
    // What must carry the packets, whatever routes there are: the interface that the user named, and `lo` for loopback addresses.
    let loopback = address.isLoopback ? surroundings.interfaces.values.first { $0.type == .loopback }?.index : nil
    for index in [candidate.boundTo, candidate.zone, loopback ?? 0] where index != 0 {
        if let cause = fault(of: index, in: surroundings, for: address) { return .blocked(cause, interface: index) }
    }
    let evidence: [String: Cause.Evidence] = [
        "errno": .text(SystemErrorNumber.name(of: number ?? kind.rawValue)), "call": .text("RTM_GETROUTE"),
        "address": .text("\(address)"),
    ]
    let (code, detail): (Cause.Code, String) =
        switch kind {
        case .hostUnreachable: (.routeUnreachable, "an 'unreachable' route refuses \(address)")
        case .accessDenied, .notPermitted: (.routeProhibited, "a 'prohibit' route or rule refuses \(address)")
        case .invalid: (.routeBlackhole, "a 'blackhole' route swallows packets to \(address)")
        default: (.noRoute, "there is no route to \(address)")
        }
    if code == .noRoute, !address.isLoopback, surroundings.path.status == .unsatisfied, let cause = surroundings.path.cause,
        cause.layer == .link || cause.layer == .address
    {
        return .blocked(cause, interface: nil)
    }
    return .blocked(Cause(.route, code, detail: detail, evidence: evidence), interface: nil)
}

/// Why an interface carries no packets; `nil` when it does. An interface that the snapshot does not have yet is believed in: the
/// kernel has just named it.
private func fault(of index: UInt32, in surroundings: TargetMachine.Surroundings, for address: IPAddress) -> Cause? {
    guard let interface = surroundings.interfaces[index] else { return nil }
    let (code, state): (Cause.Code, String)
    switch interface.level {
    case .off: (code, state) = (.interfaceDown, "is switched off")
    case .noCarrier: (code, state) = (.noCarrier, "has no carrier")
    case .dormant: (code, state) = (.dormant, "waits for authentication")
    case .degradedCarrier, .carrier, .degraded, .enslaved, .routable: return nil
    }
    return Cause(
        .link, code, detail: "\(interface.name), which leads to \(address), \(state)",
        evidence: [
            "interface": .text(interface.name), "level": .text(interface.level.rawValue), "address": .text("\(address)"),
        ])
}
