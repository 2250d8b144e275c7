internal import Pacing

/// `ping://HOST`: ICMP echo requests. One answer is enough.
struct PingKind: ProbeKind {
    let schemes = [
        SchemeForm(name: "ping", meaning: "answers an ICMP echo request", defaultPort: 0, hasPort: false, estimatedBytes: 84)
    ]
    let codes: [(layer: Cause.Layer, codes: [Cause.Code])] = [(.network, [.noEcho])]
    let settings: [any KindSettings.Type] = [PingSettings.self]
    let facts: [any ProbeFacts.Type] = [EchoFacts.self]
    let silence: (layer: Cause.Layer, code: Cause.Code) = (.network, .noEcho)
    let usesTCP = false
    let request: String? = "pings"
    let permission: String? =
        "this process may not send pings: allow its group in the sysctl net.ipv4.ping_group_range, or give it CAP_NET_RAW"

    func plan(for endpoint: Endpoint, _ settings: ProbeSettings, after continuation: Continuation?) -> AnyProbePlan? {
        let ping = settings.ping
        return AnyProbePlan(
            EchoBurst(
                scheme: endpoint.scheme, count: ping.count, spacing: ping.spacing.saturatingNanoseconds, size: ping.size,
                hopLimit: ping.hopLimit.map { UInt8(clamping: $0) }, forbidsFragments: ping.forbidsFragments))
    }

    func evidence(of layer: Cause.Layer, in report: ProbeReport) -> [String: Cause.Evidence] {
        guard layer == .network, let facts = report.levels?.facts[EchoFacts.self], !facts.isEmpty else { return [:] }
        func microseconds(_ time: Int64?) -> Cause.Evidence? { time.map { .number(Int($0 / 1_000)) } }
        var evidence: [String: Cause.Evidence] = ["sent": .number(facts.sent), "received": .number(facts.received)]
        evidence["least_rtt_us"] = microseconds(facts.least)
        evidence["greatest_rtt_us"] = microseconds(facts.greatest)
        evidence["jitter_us"] = microseconds(facts.jitter)
        return evidence
    }
}

extension Endpoint.Scheme {
    /// ICMP echo requests (RFC 792, RFC 4443 section 4).
    public static let ping = Endpoint.Scheme("ping")
}

extension Cause.Code {
    /// The host does not answer echo requests.
    public static let noEcho = Cause.Code("no-echo")
}
