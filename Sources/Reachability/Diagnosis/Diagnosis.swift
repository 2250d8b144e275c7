internal import Certificates
internal import Pacing

/// The explanation of a target's verdict, or of the path: one step for each layer from the link to HTTP, with its evidence, and one
/// sentence. It is a pure function of its evidence.
///
/// The verdict names the layer that fails. A layer before it works only if something proves it: the kernel's own state, or a packet
/// that came back. The layers after it are not reached.
package struct Diagnosis: Hashable, Sendable {
    package typealias Step = LayerStep
    package typealias Finding = LayerStep.Finding

    /// The layers of the path's diagnosis.
    private static let layersOfPath = TCPKind().layers
    /// The layers of all diagnoses, in the order of a packet's way. A target has those of its kind.
    package static let layers = Cause.Layer.allCases.filter { layer in ProbeKinds.all.contains { $0.layers.contains(layer) } }

    /// The target's status after the examination; unknown for the path.
    package let status: StatusName
    /// The steps, in the order of a packet's way.
    package let steps: [Step]
    /// The conclusion in one sentence, without a final period.
    package let sentence: String
    /// The cause of the verdict, with the last hop that answered; `nil` if nothing fails.
    package let cause: Cause?

    package init(_ evidence: DiagnosisEvidence) {
        let evidence = evidence.withConclusion
        status = evidence.status
        let layers = evidence.endpoint?.scheme.kind.layers ?? Self.layersOfPath
        steps = layers.map { layer in
            if let failure = evidence.failure(in: layer) { return failure }
            let step = evidence.step(layer)
            guard evidence.isBehindFailure(layer, in: layers) else { return step }
            // The kernel still names a route over a link without carrier. Only the name may have been resolved before the failure.
            let isReached = layer == .dns && step.finding == .works
            let isKnown = isReached || step.finding == .notUsed || step.finding == .fails
            return isKnown ? step : Step(layer, .notReached, "not reached")
        }
        sentence = evidence.sentence
        cause = evidence.cause.map { $0.adding(evidence.lastHopEvidence) }
    }
}

extension DiagnosisEvidence {
    /// Whether a packet of the path, rather than of a target, does not concern the layer.
    private func isOfTargets(_ layer: Cause.Layer) -> Bool {
        layer == .firewall || layer == .network || layer == .tcp || layer.isAboveConnection
    }

    fileprivate func step(_ layer: Cause.Layer) -> Diagnosis.Step {
        guard let endpoint else {
            return isOfTargets(layer) ? Diagnosis.Step(layer, .notUsed, "not asked: no target") : stepOfPath(layer)
        }
        let kind = endpoint.scheme.kind
        guard !kind.owns(layer) else {
            return kind.step(layer, of: endpoint, report, degradation: isDegraded ? cause : nil)
        }
        var step = stepOfPath(layer)
        if let report, report.succeeded { step.evidence.merge(kind.evidence(of: layer, in: report)) { own, _ in own } }
        return step
    }

    private func stepOfPath(_ layer: Cause.Layer) -> Diagnosis.Step {
        switch layer {
        case .link: linkStep
        case .address: addressStep
        case .route: routeStep
        case .neighbor: neighborStep
        case .dns: dnsStep
        case .firewall: firewallStep
        case .network: networkStep
        default: tcpStep
        }
    }

    /// Returns the step of the layer that the cause names; `nil` for other layers.
    fileprivate func failure(in layer: Cause.Layer) -> Diagnosis.Step? {
        // A certificate that expires soon still works.
        guard let cause, cause.layer == layer, cause.code != .certificateExpiring else { return nil }
        return Diagnosis.Step(
            layer, .fails, cause.detail, duration: duration(of: layer), evidence: cause.adding(lastHopEvidence).evidence)
    }

    /// Whether the layer comes after the one that fails.
    fileprivate func isBehindFailure(_ layer: Cause.Layer, in layers: [Cause.Layer]) -> Bool {
        guard let failing = cause?.layer, !isDegraded, let place = layers.firstIndex(of: failing),
            let own = layers.firstIndex(of: layer)
        else { return false }
        return own > place
    }

    /// The time of the probe's phase in which the layer was used.
    func duration(of layer: Cause.Layer) -> Duration? {
        switch layer {
        case .link, .address, .route: nil
        case .dns where endpoint?.scheme.kind.owns(.dns) == true && cause?.isOfLookup != true:
            report?.levels?.answerNanoseconds.map { .nanoseconds($0) } ?? report?.levels?.exchange
        // Without a name server, nothing was asked.
        case .dns: cause?.code == .noResolver ? nil : report?.resolution
        case .tls: report?.levels?.handshake
        default:
            layer.isAboveConnection ? report?.levels?.exchange ?? report?.levels?.processing : report?.connection
        }
    }

    /// The evidence of a sweep: the last router that answered, and its distance.
    var lastHopEvidence: [String: Cause.Evidence] {
        guard let last = hops?.last(where: { !$0.isServer }) else { return [:] }
        return ["last_hop": .text("\(last.address)"), "last_hop_ttl": .number(last.distance)]
    }
}

extension Cause {
    /// Returns the cause with further evidence.
    fileprivate func adding(_ facts: [String: Evidence]) -> Cause {
        facts.isEmpty ? self : Cause(layer, code, detail: detail, evidence: evidence.merging(facts) { own, _ in own })
    }
}

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
        let text = name(destination) + (inspection.query.selector?.phrase ?? "")
        var evidence = inspection.query.selector?.evidence ?? [:]
        evidence["destination"] = .text("\(destination.address)")
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
            cause.isSilence || [.timeout, .resolverSilent, .tunnelSilent, .upstreamSilent].contains(cause.code)
                || cause.evidence["inferred"] != nil
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

/// The layers between this machine and the server.
extension DiagnosisEvidence {
    var dnsStep: Diagnosis.Step {
        guard let endpoint else { return pathNamesStep }
        guard case .name(let name) = (proxy ?? endpoint).host else {
            return Diagnosis.Step(.dns, .notUsed, "not used: the \(proxy == nil ? "target" : "proxy") is an address")
        }
        guard let lookup = report?.lookup, lookup.code == 0, !lookup.addresses.isEmpty else {
            return Diagnosis.Step(.dns, .unproven, "\(name) was not resolved", duration: report?.resolution)
        }
        let addresses = lookup.addresses.map { "\($0)" }.joined(separator: ", ")
        var evidence: [String: Cause.Evidence] = ["name": .text(name), "addresses": .text(addresses)]
        if let source = lookup.answeredBy { evidence["answered_by"] = .text(source.rawValue) }
        if let server = lookup.server { evidence["resolver"] = .text("\(server)") }
        if let age = lookup.ageNanoseconds { evidence["answer_age_s"] = .number(Int(age / 1_000_000_000)) }
        let source =
            switch lookup.answeredBy {
            case .dns: lookup.server.map { ", by the name server \($0)" } ?? ", by a name server"
            case .hosts: ", by the hosts file"
            case .nss: ", by getaddrinfo"
            case .notAsked, nil: ""
            }
        let listed = lookup.addresses.count > 3 ? "\(lookup.addresses.count) addresses" : addresses
        return Diagnosis.Step(
            .dns, .works, "\(name) is resolved to \(listed)\(source)", duration: report?.resolution, evidence: evidence)
    }

    private var pathNamesStep: Diagnosis.Step {
        let implicit = ResolverConfiguration.Nameserver.implicit
        return Diagnosis.Step(
            .dns, .unproven,
            path.supportsDNS
                ? "\(path.resolvers.isEmpty ? "a name server" : path.resolvers.map(\.description).joined(separator: ", ")) is configured; "
                    + "no name was looked up"
                : "no name server is configured; names need one at \(implicit), which was not asked")
    }

    var firewallStep: Diagnosis.Step {
        guard case .server(let address)? = destination else { return Diagnosis.Step(.firewall, .unproven, "no packet was sent") }
        let evidence: [String: Cause.Evidence] = ["address": .text("\(address)")]
        // A filter may drop a TCP port and let the datagram of a query pass. An answer to a sweep is one to TCP.
        let isPassed =
            switch answerer {
            case .destination, .router: true
            case .host: hops?.isEmpty == false
            case .firstHop, .unknown: false
            }
        let detail =
            isPassed
            ? "this machine's packet filter lets packets to \(address) pass"
            : "no packet was refused; a filter that drops silently leaves no evidence"
        return Diagnosis.Step(.firewall, isPassed ? .works : .unproven, detail, evidence: evidence)
    }

    var networkStep: Diagnosis.Step {
        guard case .server(let address)? = destination else { return Diagnosis.Step(.network, .unproven, "no packet was sent") }
        if isLocal { return Diagnosis.Step(.network, .notUsed, "not used: the target is this machine") }
        if isOnLink { return Diagnosis.Step(.network, .notUsed, "not used: the target is on the link") }
        if answerer == .destination || answerer == .host {
            return Diagnosis.Step(
                .network, .works, "packets reach \(address), and its answers return",
                evidence: lastHopEvidence.merging(["address": .text("\(address)")]) { one, _ in one })
        }
        guard let hops else { return Diagnosis.Step(.network, .unproven, "no router reported a failure") }
        guard let last = hops.last else {
            return Diagnosis.Step(.network, .unproven, "no hop answered a sweep of \(Hop.limits) hop limits")
        }
        let list = hops.map { "\($0.address) (hop \($0.distance))" }.joined(separator: ", ")
        let evidence = lastHopEvidence.merging(["hops_answered": .number(hops.count)]) { one, _ in one }
        let answered = hops.count == 1 ? "only \(list) answers" : "\(list) answer"
        return Diagnosis.Step(
            .network, .unproven, "\(answered); nothing beyond hop \(last.distance) does", duration: last.roundTrip,
            evidence: evidence)
    }

    var tcpStep: Diagnosis.Step {
        guard let endpoint, case .server(let address)? = destination else {
            return Diagnosis.Step(.tcp, .unproven, "no connection was attempted")
        }
        guard let report, report.cause == nil || report.levels != nil else {
            return Diagnosis.Step(.tcp, .unproven, "no connection was attempted")
        }
        let port = (proxy ?? endpoint).port
        var sentence = "\(report.address ?? address) accepts connections to port \(port)"
        var evidence: [String: Cause.Evidence] = ["address": .text("\(report.address ?? address)"), "port": .number(Int(port))]
        if let proxy {
            sentence = "the proxy \(sentence)"
            evidence["proxy"] = .text(proxy.hostAndPort)
            if report.levels?.tunnelNanoseconds != nil {
                sentence += ", and opens a tunnel to \(endpoint.hostAndPort)"
            }
        }
        return Diagnosis.Step(.tcp, .works, sentence, duration: report.connection ?? report.roundTrip, evidence: evidence)
    }
}

/// The closing sentence of a diagnosis.
extension DiagnosisEvidence {
    var sentence: String {
        guard let endpoint else { return pathSentence }
        let text = endpoint.text
        switch status {
        case .up: return "\(text) is up: \(answer)"
        case .degraded: return "\(text) is degraded: \(cause.map(explanation) ?? "it does not meet its limits"); \(answer)"
        case .down, .unreachable: return "\(text) is \(status.rawValue): \(cause.map(explanation) ?? "the cause is not known")"
        case .unknown:
            guard let cause else { return "the status of \(text) is not known: no probe has ended" }
            return "the status of \(text) is not confirmed; the last probe: \(explanation(cause))"
        }
    }

    private var pathSentence: String {
        if let cause = path.cause { return "the path is unsatisfied: \(explanation(cause))" }
        var sentence = "the path is satisfied: \(routeStep.detail)"
        if !path.supportsDNS { sentence += "; no name server is configured" }
        return sentence
    }

    /// The answer of a target that is up or degraded.
    private var answer: String {
        let address = update?.address.map { "\($0)" } ?? "it"
        let who = isLocal ? "this machine (\(address))" : address
        let over = interface.map { " over \($0.name)" } ?? ""
        let via = inspection?.chosen?.gateway.map { " via \($0)" } ?? ""
        if let proxy { return "it answers through the proxy \(proxy.hostAndPort)\(isLocal ? "" : over + via)" }
        return "\(who) answers\(isLocal ? "" : over + via)"
    }

    /// The cause with its layer, its code and the hop at fault, and the last hop that answered.
    private func explanation(_ cause: Cause) -> String {
        var names = cause.name
        // Before the network, the ICMP message is this machine's own, and the first hop is at fault.
        let keys: [Cause.Layer: String] = [.network: "hop", .neighbor: "gateway"]
        if let key = keys[cause.layer], case .text(let hop)? = cause.evidence[key] { names += ", hop \(hop)" }
        var sentence = "\(cause.detail) (\(names))"
        if let hops, cause.layer == .tcp || cause.layer == .network || cause.isSilence {
            if let last = hops.last(where: { !$0.isServer }) {
                let role = answerer == .host ? "the last hop before it" : "the last hop that answers"
                sentence += "; \(role) is \(last.address), hop \(last.distance)"
            } else {
                sentence += "; no hop answers"
            }
        }
        return sentence
    }
}
