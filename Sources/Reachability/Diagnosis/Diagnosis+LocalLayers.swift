internal import Pacing

/// The layers of this machine and its link.
extension DiagnosisEvidence {
    var linkStep: Diagnosis.Step {
        guard let interface else { return Diagnosis.Step(.link, .unproven, "no interface leads to the destination") }
        let evidence: [String: Cause.Evidence] = [
            "interface": .text(interface.name), "type": .text(interface.type.rawValue),
            "level": .text(interface.level.rawValue),
        ]
        switch interface.level {
        case .off, .noCarrier, .dormant:
            return Diagnosis.Step(
                .link, .unproven, "\(interface.name) has the level \(interface.level.rawValue)", evidence: evidence)
        case .degradedCarrier, .carrier, .degraded, .enslaved, .routable:
            let carrier = interface.type == .loopback ? "" : " and has carrier"
            return Diagnosis.Step(
                .link, .works, "\(interface.name) (\(interface.type.rawValue)) is switched on\(carrier)", evidence: evidence)
        }
    }

    var addressStep: Diagnosis.Step {
        var evidence: [String: Cause.Evidence] = [:]
        if let interface { evidence["interface"] = .text(interface.name) }
        if let source = inspection?.chosen?.source {
            evidence["source"] = .text("\(source)")
            return Diagnosis.Step(.address, .works, "packets are sent from \(source)", evidence: evidence)
        }
        if let interface, let address = ownAddress {
            evidence["address"] = .text("\(address)")
            return Diagnosis.Step(.address, .works, "\(interface.name) has the address \(address)", evidence: evidence)
        }
        if answerer != .unknown {
            return Diagnosis.Step(.address, .works, "answers reach the source address", evidence: evidence)
        }
        return Diagnosis.Step(.address, .unproven, "no source address is known", evidence: evidence)
    }

    /// The first address of the interface that is of the destination's family and scope.
    private var ownAddress: IPAddress? {
        let family = destination?.address.family ?? (path.supportsIPv4 || !path.supportsIPv6 ? .v4 : .v6)
        let isLinkLocal = destination?.address.isLinkLocal ?? false
        return interface?.addresses.map(\.address).first { $0.family == family && (isLinkLocal || !$0.isLinkLocal) }
    }

    var routeStep: Diagnosis.Step {
        guard endpoint != nil else { return defaultRouteStep }
        guard let inspection, let destination else {
            return Diagnosis.Step(.route, .unproven, "no destination is known")
        }
        let text = name(destination)
        var evidence: [String: Cause.Evidence] = ["destination": .text("\(destination.address)")]
        guard let route = inspection.chosen else {
            if case .refused(let number) = inspection.route, number != 0 {
                evidence["errno"] = .text(SystemErrorNumber.name(of: number))
                return Diagnosis.Step(.route, .unproven, "the kernel now refuses \(text)", evidence: evidence)
            }
            return Diagnosis.Step(.route, .unproven, "the kernel named no route to \(text)", evidence: evidence)
        }
        if let interface { evidence["interface"] = .text(interface.name) }
        let over = interface.map { " over \($0.name)" } ?? ""
        if inspection.isLocal {
            return Diagnosis.Step(.route, .works, "\(text) is this machine", evidence: evidence)
        }
        if let gateway = route.gateway {
            evidence["gateway"] = .text("\(gateway)")
            return Diagnosis.Step(.route, .works, "\(text) is routed\(over) via \(gateway)", evidence: evidence)
        }
        let way =
            isOnLink
            ? "\(text) is on the link of \(interface?.name ?? "the interface")" : "\(text) is routed\(over)"
        return Diagnosis.Step(.route, .works, way, evidence: evidence)
    }

    private var defaultRouteStep: Diagnosis.Step {
        guard path.status == .satisfied else { return Diagnosis.Step(.route, .unproven, "no route is usable") }
        var evidence: [String: Cause.Evidence] = ["ipv4": .flag(path.supportsIPv4), "ipv6": .flag(path.supportsIPv6)]
        if let gateway = path.gateways.first { evidence["gateway"] = .text("\(gateway)") }
        let families = [(path.supportsIPv4, "IPv4"), (path.supportsIPv6, "IPv6")].filter(\.0).map(\.1)
        let gateways = path.gateways.map(\.description).joined(separator: " and ")
        let via = gateways.isEmpty ? "" : " via \(gateways)"
        let over = path.interface.map { " over \($0.name)" } ?? ""
        return Diagnosis.Step(
            .route, .works, "\(families.joined(separator: " and ")) \(families.count > 1 ? "are" : "is") routed\(over)\(via)",
            evidence: evidence)
    }

    var neighborStep: Diagnosis.Step {
        if isLocal { return Diagnosis.Step(.neighbor, .notUsed, "not used: the \(destinationNoun) is this machine") }
        guard let inspection, let hop = inspection.nextHop else {
            let detail =
                endpoint == nil && path.status == .satisfied ? "not used: the path has no gateway" : "no neighbor is known"
            return Diagnosis.Step(.neighbor, endpoint == nil && path.status == .satisfied ? .notUsed : .unproven, detail)
        }
        let isGateway = inspection.chosen?.gateway != nil || endpoint == nil
        let place = isGateway ? "the gateway \(hop.address)" : "\(hop.address)"
        var evidence: [String: Cause.Evidence] = [isGateway ? "gateway" : "address": .text("\(hop.address)")]
        if let state = inspection.neighbor.stateName { evidence["neighbor_state"] = .text(state) }
        if inspection.neighbor.needsNoResolution { return withoutNeighbors }
        if interface?.type == .tunnel { return withoutNeighbors }
        if let facts = cause?.evidence["first_hop"] { evidence["first_hop"] = facts }
        switch answerer {
        case .destination, .host, .router, .firstHop:
            return Diagnosis.Step(.neighbor, .works, "\(place) answers", evidence: evidence)
        case .unknown:
            if inspection.neighbor.isConfirmed(within: confirmationLimit) {
                return Diagnosis.Step(.neighbor, .works, "\(place) answered on its link recently", evidence: evidence)
            }
            let detail =
                inspection.neighbor.isSilent
                ? "\(place) did not answer on its link" : "nothing shows whether \(place) answers"
            return Diagnosis.Step(.neighbor, .unproven, detail, evidence: evidence)
        }
    }

    /// The greatest age of a neighbor's confirmation that counts, in nanoseconds. The entry of a gateway that dies stays REACHABLE for
    /// half a minute, so behind silence only a confirmation during the probe counts.
    private var confirmationLimit: Int64 {
        guard let cause,
            [.timeout, .resolverSilent, .tunnelSilent, .upstreamSilent].contains(cause.code) || cause.evidence["inferred"] != nil
        else {
            return 30_000_000_000
        }
        return (examined ?? report?.connection ?? report?.resolution ?? .zero).saturatingNanoseconds
    }

    private var withoutNeighbors: Diagnosis.Step {
        Diagnosis.Step(.neighbor, .notUsed, "not used: \(interface?.name ?? "the interface") resolves no addresses")
    }

    /// The destination in a sentence.
    func name(_ destination: Destination) -> String {
        switch destination {
        case .server(let address): "\(address)"
        case .resolver(let server): "the name server \(server)"
        case .gateway(let gateway): "the gateway \(gateway)"
        }
    }

    private var destinationNoun: String {
        if case .resolver? = destination { "name server" } else { "target" }
    }
}
