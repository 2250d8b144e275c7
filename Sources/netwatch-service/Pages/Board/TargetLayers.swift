import Reachability

/// The layers of a target as `netwatch why` lists them, from the verdict of its probes.
///
/// The service does not examine each target as `why` does. If the facts of its last probe or the kernel's route are not known, the
/// verdict itself proves some layers: packets passed all layers before the one that answered.
struct TargetLayers: Sendable {
    let steps: [Diagnosis.Step]
    /// The cause of a target that answers all the same, such as a certificate that expires soon; `nil` if the target is not degraded, or if the
    /// layer of its cause is none of ``steps``.
    let warning: Cause?
    /// The cause if its layer is none of ``Diagnosis/layers``: the quality of a target that answers, or a limit of this process.
    let other: Cause?
    /// The facts of the server's certificate; empty if none is known.
    let certificate: [(name: String, value: String)]

    init(_ update: ServerUpdate, path: NetworkPath, _ detail: TargetDetail) {
        let report = detail.report
        // The present route can explain a silence in another way than the verdict, which the page shows.
        let explains = update.statusName != .unreachable && update.statusName != .unknown
        let evidence = DiagnosisEvidence(
            endpoint: update.endpoint, path: path, update: update, report: report, inspection: explains ? detail.inspection : nil)
        warning = update.cause.flatMap { update.statusName == .degraded && Diagnosis.layers.contains($0.layer) ? $0 : nil }
        let steps = Diagnosis(evidence).steps.map { [warning] step -> Diagnosis.Step in
            var step = Self.proven(step, by: update, report: report) ?? step
            guard let warning, step.layer == warning.layer, step.finding == .works || step.finding == .unproven else {
                return step
            }
            (step.finding, step.detail) = (.works, warning.detail)
            step.evidence.merge(warning.evidence) { $1 }
            return step
        }
        self.steps = steps
        other = update.cause.flatMap { Diagnosis.layers.contains($0.layer) || update.statusName == .up ? nil : $0 }
        certificate = Self.certificateFacts(steps.first { $0.layer == .tls }?.evidence ?? [:], update.cause)
    }

    /// Returns the result of a step.
    func finding(of step: Diagnosis.Step) -> ThisComputer.Finding {
        step.layer == warning?.layer && step.finding == .works ? .degraded : step.finding.shown
    }

    /// Returns a step that the verdict proves, in place of one that has no evidence of its own; `nil` if there is none.
    private static func proven(_ step: Diagnosis.Step, by update: ServerUpdate, report: ProbeReport?) -> Diagnosis.Step? {
        guard step.finding == .unproven else { return nil }
        var step = step
        guard let detail = detail(of: step.layer, update, hasFacts: report?.levels?.hasFacts == true)
        else { return nil }
        (step.finding, step.detail) = (.works, detail)
        step.duration = step.duration ?? report?.duration(of: step.layer)
        return step
    }

    private static func detail(of layer: Cause.Layer, _ update: ServerUpdate, hasFacts: Bool) -> String? {
        let answers = update.statusName == .up || update.statusName == .degraded
        guard let address = update.address, isBefore(layer, update, answers: answers) else { return nil }
        let over = update.interface.map { " over \($0.name)" } ?? ""
        switch layer {
        case .address: return "packets have a source address"
        case .route: return "\(address) is routed\(over)"
        case .neighbor: return hasAnswer(update, answers: answers) ? "packets leave the link" : nil
        case .dns where !update.endpoint.scheme.kind.owns(.dns):
            return "\(Self.host(of: update.endpoint)) is resolved to \(address)"
        case .network: return hasAnswer(update, answers: answers) ? "packets reach \(address), and its answers return" : nil
        case .tcp where update.endpoint.scheme.kind.usesTCP:
            return "\(address) accepts connections to port \(update.endpoint.port)"
        default:
            // A handshake has preceded the failure of a layer above it.
            guard !hasFacts, answers || layer == .tls else { return nil }
            return update.endpoint.scheme.kind.statement(of: layer, of: update.endpoint)
        }
    }

    /// Whether the layer is before the one that failed, or all layers work.
    private static func isBefore(_ layer: Cause.Layer, _ update: ServerUpdate, answers: Bool) -> Bool {
        if answers { return true }
        let layers = update.endpoint.scheme.kind.layers
        guard update.statusName != .unknown, let failing = update.cause?.layer, let place = layers.firstIndex(of: failing),
            let own = layers.firstIndex(of: layer)
        else { return false }
        return own < place
    }

    /// Whether the server's host answered, although perhaps by a refusal.
    private static func hasAnswer(_ update: ServerUpdate, answers: Bool) -> Bool {
        guard !answers, let cause = update.cause else { return answers }
        return cause.isAnswer
    }

    private static func host(of endpoint: Endpoint) -> String {
        switch endpoint.host {
        case .name(let name): name
        case .address(let address, _): "\(address)"
        }
    }

    /// The facts of a certificate for people, in their order.
    private static func certificateFacts(_ step: [String: Cause.Evidence], _ cause: Cause?) -> [(name: String, value: String)] {
        let facts = step["subject"] == nil ? cause?.evidence ?? [:] : step
        guard facts["subject"] != nil else { return [] }
        let names: [(String, String)] = [
            ("Subject", "subject"), ("Names", "names"), ("Issuer", "issuer"), ("Valid from", "not_before"),
            ("Valid until", "not_after"), ("SHA-256", "sha256"), ("Certificates of the chain", "chain_length"),
            ("Chain valid until", "chain_not_after"), ("Stapled response", "stapled"),
            ("Stapled response of", "stapled_this_update"), ("Stapled response until", "stapled_next_update"),
            ("Stapled response signed by", "stapled_signer"), ("Revoked at", "revoked_at"),
            ("Reason of the revocation", "revocation_reason"), ("Errors", "verify_errors"), ("TLS version", "version"),
        ]
        return names.compactMap { title, key in facts[key].map { (title, $0.plainText) } }
    }
}

extension Cause.Evidence {
    /// The fact as text for people.
    var plainText: String {
        switch self {
        case .text(let text): text
        case .number(let number): "\(number)"
        case .flag(let flag): flag ? "yes" : "no"
        case .list(let texts): texts.joined(separator: ", ")
        }
    }
}

extension ProbeReport {
    /// Returns the time of a layer; `nil` if it was not measured.
    func duration(of layer: Cause.Layer) -> Duration? {
        switch layer {
        case .dns where !endpoint.scheme.kind.owns(.dns): resolution
        case .dns: levels?.answerNanoseconds.map { .nanoseconds($0) } ?? levels?.exchange
        case .tcp: connect
        case .tls: levels?.handshake
        default: layer.isAboveConnection ? levels?.exchange : nil
        }
    }
}

extension ProbePhase {
    /// The phase in words.
    var words: String { self == .firstByte ? "first byte" : rawValue }
}
