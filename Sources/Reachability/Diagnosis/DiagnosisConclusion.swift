internal import Pacing

/// The status and the cause after the examination of a target's verdict. The examination asks more than a probe does, so it may know
/// more.
extension DiagnosisEvidence {
    struct Conclusion: Hashable, Sendable {
        var status: StatusName
        var cause: Cause?
    }

    /// Returns what the examination adds to the verdict; `nil` if the verdict stands.
    ///
    /// | verdict | evidence | conclusion |
    /// |---|---|---|
    /// | no route | the interface has no usable address of the family | unreachable address/… |
    /// | silence | the first hop did not answer on its link | unreachable neighbor/… |
    /// | silence behind a first hop | a router behind it has answered a packet to the target | down tcp/timeout |
    /// | silence behind a first hop | only the first hop has answered | unreachable network/upstream-silent |
    /// | silence behind a first hop | the gateway has answered no question | unreachable neighbor/gateway-silent, inferred |
    /// | silence of a target on the link | its host has answered a question, or on the link | down tcp/timeout |
    /// | silence of a target on the link | its host has answered no question | unreachable neighbor/host-silent |
    /// | silence of the name server | its gateway has answered no question, or not on its link | unreachable neighbor/gateway-silent |
    /// | up | an address of the name fails | degraded, with its cause |
    func concluded() -> Conclusion? {
        guard endpoint != nil, let update, let present = update.cause ?? addresses.degradation else { return nil }
        switch (update.statusName, present.layer, present.code) {
        case (.up, _, _): return Conclusion(status: .degraded, cause: present)
        case (.unreachable, .route, .noRoute):
            return missingAddress(present).map { Conclusion(status: .unreachable, cause: $0) }
        case (.unreachable, .network, .upstreamSilent): return examinedSilence(present)
        case (.unreachable, .neighbor, .hostSilent): return examinedNeighbor(present)
        case (.unreachable, .dns, .resolverSilent): return examinedResolver(present)
        default: return nil
        }
    }

    // MARK: The address layer

    /// Returns the cause of a route that is missing because the interface has no usable address. The kernel removes the routes of an
    /// interface with its last address, so a program that starts later sees neither.
    private func missingAddress(_ cause: Cause) -> Cause? {
        guard case .server(let address)? = destination, !address.isLoopback, !address.isMulticast, !address.isUnspecified,
            inspection?.query.selector?.source == nil, let ownAddresses, let interface = candidateInterface
        else { return nil }
        let own = ownAddresses.filter { $0.key.interface == interface.index && $0.address.family == address.family }
        guard let fault = addressFault(of: own) else { return nil }
        var evidence = cause.evidence
        evidence["interface"] = .text(interface.name)
        evidence["address"] = .text("\(address)")
        evidence["family"] = .number(Int(address.family.rawValue))
        return Cause(.address, fault.code, detail: fault.detail(of: interface.name, address.family), evidence: evidence)
    }

    /// The interface that would lead to other networks: the one that the user named, that of the path, or the best one with a carrier.
    private var candidateInterface: NetworkInterface? {
        let candidates = path.interfaces.filter { $0.type != .loopback && $0.level >= .degradedCarrier }
        if let boundTo { return candidates.first { $0.hasName(boundTo) } }
        return path.interface ?? candidates.first { !$0.isVirtual } ?? candidates.first
    }

    // MARK: Silence

    /// What the target does not answer, in a sentence: ` on port 443`; empty for the path.
    private var requestText: String {
        endpoint.map { endpoint in endpoint.scheme.kind.request.map { " \($0)" } ?? " on port \(endpoint.port)" } ?? ""
    }

    private func silence(_ detail: String, _ evidence: [String: Cause.Evidence]) -> Cause {
        let silence = (endpoint?.scheme ?? .unwritten).kind.silence
        return Cause(silence.layer, silence.code, detail: detail, evidence: evidence)
    }

    /// Returns the conclusion about a target that does not answer, behind a first hop.
    private func examinedSilence(_ cause: Cause) -> Conclusion? {
        guard let inspection, let route = inspection.chosen, !isLocal else { return nil }
        var evidence = cause.evidence
        if let state = inspection.neighbor.stateName { evidence["neighbor_state"] = .text(state) }
        if inspection.neighbor.isSilent {
            return Conclusion(
                status: .unreachable, cause: Self.neighborSilence(route.gateway, of: inspection.query.destination, evidence))
        }
        if let witness = hops?.last(where: { $0.distance > 1 && !$0.isServer }) {
            evidence["first_hop"] = .text("answered")
            evidence["witness"] = .text("\(witness.address)")
            evidence["witness_hop"] = .number(witness.distance)
            let detail =
                "\(inspection.query.destination) does not answer\(requestText); \(witness.address) (hop \(witness.distance)) does"
            return Conclusion(status: .down, cause: silence(detail, evidence))
        }
        if isFirstHopAlive {
            evidence["first_hop"] = .text("answered")
            return Conclusion(
                status: .unreachable, cause: Cause(cause.layer, cause.code, detail: cause.detail, evidence: evidence))
        }
        return route.gateway.flatMap { inferredSilence(of: $0, evidence) }
    }

    /// Returns the conclusion about a target on the link that does not answer.
    private func examinedNeighbor(_ cause: Cause) -> Conclusion? {
        guard let inspection, inspection.chosen?.gateway == nil, !inspection.neighbor.isSilent else { return nil }
        var evidence = cause.evidence
        if let state = inspection.neighbor.stateName { evidence["neighbor_state"] = .text(state) }
        let destination = inspection.query.destination
        if isFirstHopAlive {
            (evidence["first_hop"], evidence["host"]) = (.text("answered"), .text("answered"))
            let detail = "\(destination) does not answer\(requestText), although the host is alive"
            return Conclusion(status: .down, cause: silence(detail, evidence))
        }
        guard let firstHop, firstHop.asked.count > 1 else { return nil }
        evidence["first_hop"] = .text("silent")
        let questions = firstHop.asked.map { "not to \($0.plural)" }.joined(separator: ", ")
        let detail = "\(cause.detail), and gives no other answer: \(questions)"
        return Conclusion(status: .unreachable, cause: Cause(cause.layer, cause.code, detail: detail, evidence: evidence))
    }

    /// Returns the conclusion that a gateway is silent, if it has answered no question and no packet of a sweep.
    private func inferredSilence(of gateway: IPAddress, _ evidence: [String: Cause.Evidence]) -> Conclusion? {
        guard hops != nil, let firstHop, firstHop.asked.count > 1 else { return nil }
        var evidence = evidence
        evidence["first_hop"] = .text("silent")
        evidence["inferred"] = .text((firstHop.asked.map(\.rawValue) + ["hop-limit"]).joined(separator: ","))
        let questions = firstHop.asked.map { "not to \($0.plural)" }.joined(separator: ", ")
        let subject = silentResolver.map { "the gateway \(gateway), which leads to the name server \($0.address)," }
        let detail =
            "\(subject ?? "the gateway \(gateway)") gives no answer: \(questions), not to packets whose hop limit ends there"
        return Conclusion(status: .unreachable, cause: Cause(.neighbor, .gatewaySilent, detail: detail, evidence: evidence))
    }

    /// Returns the conclusion about a name server that does not answer, if its gateway is silent.
    private func examinedResolver(_ cause: Cause) -> Conclusion? {
        guard let inspection, let route = inspection.chosen, let gateway = route.gateway, !isFirstHopAlive else { return nil }
        var evidence = cause.evidence
        evidence["gateway"] = .text("\(gateway)")
        if let state = inspection.neighbor.stateName { evidence["neighbor_state"] = .text(state) }
        guard inspection.neighbor.isSilent else { return inferredSilence(of: gateway, evidence) }
        return Conclusion(status: .unreachable, cause: Self.neighborSilence(gateway, of: inspection.query.destination, evidence))
    }

    /// The silent name server, if the target's name has no address because of it.
    private var silentResolver: ResolverConfiguration.Nameserver? {
        if case .resolver(let server)? = destination { server } else { nil }
    }

    /// Whether the first hop has answered since the first probe began: on its link, a question, or by letting a packet pass.
    private var isFirstHopAlive: Bool {
        if let hops, !hops.isEmpty { return true }
        if firstHop?.answered != nil { return true }
        guard let examined, let neighbor = inspection?.neighbor else { return false }
        return neighbor.isConfirmed(within: examined.saturatingNanoseconds)
    }

    private static func neighborSilence(
        _ gateway: IPAddress?, of destination: IPAddress, _ evidence: [String: Cause.Evidence]
    ) -> Cause {
        if let gateway {
            let detail = "the gateway \(gateway) does not answer on its link"
            return Cause(.neighbor, .gatewaySilent, detail: detail, evidence: evidence)
        }
        return Cause(.neighbor, .hostSilent, detail: "\(destination) does not answer on its link", evidence: evidence)
    }
}
