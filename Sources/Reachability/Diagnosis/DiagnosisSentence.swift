/// The closing sentence of a diagnosis.
extension DiagnosisEvidence {
    var sentence: String {
        guard let endpoint else { return pathSentence }
        let text = endpoint.text
        switch state {
        case .up: return "\(text) is up: \(answer)"
        case .degraded: return "\(text) is degraded: \(cause.map(explanation) ?? "it does not meet its limits"); \(answer)"
        case .down, .unreachable: return "\(text) is \(state.rawValue): \(cause.map(explanation) ?? "the cause is not known")"
        case .unknown:
            guard let cause else { return "the state of \(text) is not known: no probe has ended" }
            return "the state of \(text) is not confirmed; the last probe: \(explanation(cause))"
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
        if let hops, cause.layer == .tcp || cause.layer == .network {
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
