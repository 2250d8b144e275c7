/// Returns whether the kernel's answer permits a packet, and otherwise the cause in the lowest failing layer; `nil` if the kernel
/// did not answer.
///
/// The kernel continues to route over a link that has lost carrier, so the link is checked too. Routes to this machine itself
/// need no link.
func candidateRoute(of candidate: Candidate, by answer: RouteAnswer, in localState: LocalState) -> CandidateRoute? {
    if let cause = noHost(candidate.address, by: answer) { return .blocked(cause, interface: nil) }
    if let blocked = blockedSource(of: candidate, by: answer, in: localState) { return blocked }
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

/// Returns the cause for a source address that packets cannot have now; `nil` if nothing is wrong with it.
///
/// For IPv4, a route shows that the kernel accepts the source: it also knows those of local routes to prefixes. For IPv6, the kernel compares the
/// source with rules only.
private func blockedSource(of candidate: Candidate, by answer: RouteAnswer, in localState: LocalState) -> CandidateRoute? {
    guard let selector = candidate.selector, let source = selector.source, answer != .unanswered else { return nil }
    var route: ChosenRoute?
    if case .route(let found) = answer { route = found }
    if source.family == .v4, route != nil { return nil }
    if candidate.boundTo != 0, let cause = fault(of: candidate.boundTo, in: localState, for: candidate.address) {
        return .blocked(cause, interface: candidate.boundTo)
    }
    if !source.isLoopback, let fault = localState.sourceFault(source) {
        return .blocked(unusableSource(source, fault, candidate.address, selector), interface: nil)
    }
    guard source.isLoopback, route?.kind != .local, !candidate.address.isLoopback else { return nil }
    let detail =
        "packets from \(source), a loopback address, do not leave this machine, so that none reaches \(candidate.address)"
    let evidence = selector.evidence.merging(["address": .text("\(candidate.address)")]) { own, _ in own }
    return .blocked(Cause(.route, .noRoute, detail: detail, evidence: evidence), interface: nil)
}

/// Returns the cause for a source address that this machine does not have, or cannot use.
func unusableSource(
    _ source: IPAddress, _ fault: AddressFault, _ address: IPAddress, _ selector: RouteSelector
) -> Cause {
    let detail =
        switch fault {
        case .missing: "no interface has \(source), the source address of the probes of \(address)"
        case .tentative: "\(source), the source address of the probes of \(address), is still being checked for duplicates"
        case .duplicate: "\(source), the source address of the probes of \(address), is in use by another host"
        }
    var evidence = selector.evidence
    evidence["address"] = .text("\(address)")
    evidence["family"] = .number(Int(address.family.rawValue))
    return Cause(.address, fault.code, detail: detail, evidence: evidence)
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
    var evidence = candidate.selector?.evidence ?? [:]
    evidence["errno"] = .text(SystemErrorNumber.name(of: number ?? kind.rawValue))
    evidence["call"] = .text("RTM_GETROUTE")
    evidence["address"] = .text("\(address)")
    let packets = candidate.selector?.phrase ?? ""
    let (code, detail): (Cause.Code, String) =
        switch kind {
        case .hostUnreachable: (.routeUnreachable, "an 'unreachable' route refuses \(address)\(packets)")
        case .accessDenied, .notPermitted: (.routeProhibited, "a 'prohibit' route or rule refuses \(address)\(packets)")
        case .invalid: (.routeBlackhole, "a 'blackhole' route drops packets to \(address)\(packets)")
        default: (.noRoute, "there is no route to \(address)\(packets)")
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
    // The kernel names no source for a query with an interface or a source.
    guard candidate.selector?.source == nil, candidate.boundTo == 0, candidate.zone == 0, !address.isLinkLocal,
        !address.isLoopback
    else { return nil }
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
