/// Returns whether the kernel's answer permits a packet, and otherwise the cause in the lowest failing layer; `nil` if the kernel
/// did not answer.
///
/// The kernel continues to route over a link that has lost carrier, so the link is checked too. Routes to this machine itself
/// need no link.
func candidateRoute(of candidate: Candidate, by answer: RouteAnswer, in localState: LocalState) -> CandidateRoute? {
    if let cause = noHost(candidate.address, by: answer) { return .blocked(cause, interface: nil) }
    // Without it, the kernel sends packets to loopback addresses elsewhere.
    if candidate.address.isLoopback, let index = localState.loopback,
        let cause = fault(of: index, in: localState, for: candidate.address)
    {
        return .blocked(cause, interface: index)
    }
    switch answer {
    case .unanswered: return nil
    case .route(let route):
        switch route.kind {
        case .blackhole: return refusal(of: candidate, .invalid, in: localState)
        case .unreachable: return refusal(of: candidate, .hostUnreachable, in: localState)
        case .prohibit: return refusal(of: candidate, .accessDenied, in: localState)
        case .throw: return refusal(of: candidate, .networkUnreachable, in: localState)
        case .local:
            // The route of an own address leads to the loopback interface.
            guard let index = localState.loopback, let cause = fault(of: index, in: localState, for: candidate.address) else {
                return .open(route)
            }
            return .blocked(cause, interface: index)
        default:
            let cause =
                fault(of: route.interface, in: localState, for: candidate.address)
                ?? sourceFault(of: candidate, route, in: localState)
            return cause.map { .blocked($0, interface: route.interface) } ?? .open(route)
        }
    case .refused(let number):
        return refusal(of: candidate, SystemErrorNumber(rawValue: number) ?? .networkUnreachable, number, in: localState)
    }
}

/// Returns the cause for an address that does not belong to a single host. TCP connects one host to another (RFC 9293 section
/// 3.9.2.3), and connect(2) finds no route to other addresses. The kernel's answer identifies broadcast addresses.
private func noHost(_ address: IPAddress, by answer: RouteAnswer) -> Cause? {
    var kind: Route.Kind?
    if case .route(let route) = answer { kind = route.kind }
    let detail: String
    if address.isMulticast {
        detail = "\(address) is a multicast address, and TCP connects to single hosts only"
    } else if kind == .broadcast || address == IPAddress(v4: .max) {
        detail = "\(address) is a broadcast address, and TCP connects to single hosts only"
    } else {
        return nil
    }
    var evidence: [String: Cause.Evidence] = ["address": .text("\(address)")]
    if case .refused(let number) = answer, number != 0 { evidence["errno"] = .text(SystemErrorNumber.name(of: number)) }
    return Cause(.route, .noRoute, detail: detail, evidence: evidence)
}

/// Returns the cause for a target without an open route: the lowest layer, and within that layer the most specific code.
func lowestCause(_ candidateRoutes: [(Candidate, CandidateRoute)]) -> (candidate: Candidate, cause: Cause, interface: UInt32?)? {
    var lowest: (candidate: Candidate, cause: Cause, interface: UInt32?)?
    var lowestRank = Int.max
    for (candidate, candidateRoute) in candidateRoutes {
        guard case .blocked(let cause, let interface) = candidateRoute else { continue }
        // A refusing route was configured on purpose, and is more specific than a missing route.
        let rank = cause.layer.depth * 2 + (cause.code == .noRoute ? 1 : 0)
        if rank < lowestRank { (lowest, lowestRank) = ((candidate, cause, interface), rank) }
    }
    return lowest
}

/// Returns the cause for an interface name that no interface has.
func noInterface(_ name: String) -> Cause {
    Cause(.link, .noInterface, detail: "there is no interface \(name)", evidence: ["interface": .text(name)])
}

extension Cause.Layer {
    /// The index in the order of layers from this machine outwards: 0 for the link.
    var depth: Int { Cause.Layer.allCases.firstIndex(of: self) ?? 0 }

    /// Whether this machine alone determines a fault in this layer, without sending a packet: link, address, route.
    var isCertain: Bool { self == .link || self == .address || self == .route }
}

extension Cause {
    /// Whether this machine alone determines the fault, so that no second probe can show more: its links, addresses and routes, EPERM and
    /// rejections of its packet filter, its own limits and files.
    var isDeterminedHere: Bool {
        switch layer {
        case .firewall:
            code == .localReject
                || evidence["errno"] == .text(SystemErrorNumber.name(of: SystemErrorNumber.notPermitted.rawValue))
        case .local: true
        default: layer.isCertain
        }
    }

    /// Whether the evidence shows a fault of the server's name: an authority answered that the name has no usable address. A name
    /// server that fails, or that names no authority, accuses nobody but itself.
    var accusesServer: Bool {
        guard layer == .dns, evidence["authoritative"] != .flag(false),
            [.nameNotFound, .noAddressForFamily, .unusableAddress].contains(code)
        else { return false }
        let isAnswered = [LookupAnswer.Source.dns, .nss].contains { evidence["answered_by"] == .text($0.rawValue) }
        return isAnswered
    }
}

private func refusal(
    of candidate: Candidate, _ kind: SystemErrorNumber, _ number: Int32? = nil, in localState: LocalState
) -> CandidateRoute {
    let address = candidate.address
    // These interfaces must carry the packets over any route: the interfaces that the user named, and `lo` for loopback
    // addresses.
    let loopback = address.isLoopback ? localState.loopback : nil
    for index in [candidate.boundTo, candidate.zone, loopback ?? 0] where index != 0 {
        if let cause = fault(of: index, in: localState, for: address) { return .blocked(cause, interface: index) }
    }
    let evidence: [String: Cause.Evidence] = [
        "errno": .text(SystemErrorNumber.name(of: number ?? kind.rawValue)), "call": .text("RTM_GETROUTE"),
        "address": .text("\(address)"),
    ]
    let (code, detail): (Cause.Code, String) =
        switch kind {
        case .hostUnreachable: (.routeUnreachable, "an 'unreachable' route refuses \(address)")
        case .accessDenied, .notPermitted: (.routeProhibited, "a 'prohibit' route or rule refuses \(address)")
        case .invalid: (.routeBlackhole, "a 'blackhole' route drops packets to \(address)")
        default: (.noRoute, "there is no route to \(address)")
        }
    if code == .noRoute, !address.isLoopback, localState.path.status == .unsatisfied, let cause = localState.path.cause,
        cause.layer == .link || cause.layer == .address
    {
        return .blocked(cause, interface: nil)
    }
    return .blocked(Cause(.route, code, detail: detail, evidence: evidence), interface: nil)
}

/// Returns the reason why the route has no usable source address; `nil` if it has one. The kernel then sends IPv4 packets from
/// 0.0.0.0, and IPv6 packets from a link-local address or even from ::1, to which no answer can come back.
private func sourceFault(
    of candidate: Candidate, _ route: ChosenRoute, in localState: LocalState
) -> Cause? {
    let address = candidate.address
    // The kernel names no source for a query with an interface.
    guard candidate.boundTo == 0, candidate.zone == 0, !address.isLinkLocal, !address.isLoopback else { return nil }
    let fault = localState.addressFault(route.interface, address.family)
    switch (address.family, route.source) {
    case (.v4, nil): break
    case (.v6, let source?) where source.isLoopback: break
    // A host on the link can answer to a link-local address, but a proper address may be about to become usable.
    case (.v6, let source?) where source.isLinkLocal && (route.gateway != nil || (fault != nil && fault != .missing)): break
    default: return nil
    }
    return missingAddress(fault ?? .missing, route.interface, address, in: localState)
}

private func missingAddress(
    _ fault: AddressFault, _ index: UInt32, _ address: IPAddress, in localState: LocalState
) -> Cause {
    let name = localState.interfaces[index]?.name ?? "\(index)"
    return Cause(
        .address, fault.code, detail: fault.detail(of: name, address.family),
        evidence: ["interface": .text(name), "address": .text("\(address)"), "family": .number(Int(address.family.rawValue))])
}

/// Returns the cause of a route that has been removed: the fault of the interface that it used, if that has one. The kernel removes
/// the routes of an interface that is switched off, and those of a family with the interface's last address.
func causeOfRemovedRoute(
    _ cause: Cause, to address: IPAddress, over interfaces: [UInt32], in localState: LocalState
) -> (cause: Cause, interface: UInt32)? {
    guard cause.layer == .route, cause.code == .noRoute, !address.isLoopback else { return nil }
    for index in interfaces.sorted() where localState.interfaces[index] != nil {
        if let cause = fault(of: index, in: localState, for: address) { return (cause, index) }
        if let fault = localState.addressFault(index, address.family) {
            return (missingAddress(fault, index, address, in: localState), index)
        }
    }
    return nil
}

/// Returns the reason why an interface carries no packets; `nil` if it does. An interface that is not in the snapshot yet is
/// assumed to work, because the kernel has just named it.
private func fault(of index: UInt32, in localState: LocalState, for address: IPAddress) -> Cause? {
    guard let interface = localState.interfaces[index] else { return nil }
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
