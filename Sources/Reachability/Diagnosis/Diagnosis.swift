/// The explanation of a target's verdict, or of the path: one step for each layer from the link to HTTP, with its evidence, and one
/// sentence. It is a pure function of its evidence.
///
/// The verdict names the layer that fails. A layer before it works only if something proves it: the kernel's own state, or a packet
/// that came back. The layers after it are not reached.
package struct Diagnosis: Hashable, Sendable {
    /// The result of a step.
    package enum Finding: Hashable, Sendable {
        /// The evidence proves that the layer works.
        case works
        /// The layer fails.
        case fails
        /// The target does not need the layer.
        case notUsed
        /// A layer before this one fails, so nothing is known of this one.
        case notReached
        /// The layer was used, and nothing proves whether it works.
        case unproven

        /// Whether the layer works; `nil` if that is not known.
        package var isWorking: Bool? {
            switch self {
            case .works: true
            case .fails: false
            case .notUsed, .notReached, .unproven: nil
            }
        }
    }

    /// The explanation of one layer.
    package struct Step: Hashable, Sendable {
        package var layer: Cause.Layer
        package var finding: Finding
        /// The time that the layer took; `nil` if it was not measured.
        package var duration: Duration?
        /// One sentence for a person, without a final period.
        package var detail: String
        package var evidence: [String: Cause.Evidence]

        init(
            _ layer: Cause.Layer, _ finding: Finding, _ detail: String, duration: Duration? = nil,
            evidence: [String: Cause.Evidence] = [:]
        ) {
            self.layer = layer
            self.finding = finding
            self.duration = duration
            self.detail = detail
            self.evidence = evidence
        }
    }

    /// The layers in the order of a packet's way.
    package static let layers: [Cause.Layer] = [
        .link, .address, .route, .neighbor, .dns, .firewall, .network, .tcp, .tls, .http,
    ]

    /// The target's state after the examination; unknown for the path.
    package let state: ServerState
    /// The steps, in the order of ``layers``.
    package let steps: [Step]
    /// The conclusion in one sentence, without a final period.
    package let sentence: String
    /// The cause of the verdict, with the last hop that answered; `nil` if nothing fails.
    package let cause: Cause?

    package init(_ evidence: DiagnosisEvidence) {
        let evidence = evidence.withConclusion
        state = evidence.state
        steps = Self.layers.map { layer in
            if let failure = evidence.failure(in: layer) { return failure }
            let step = evidence.step(layer)
            guard evidence.isBehindFailure(layer) else { return step }
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
    /// The layers that a packet of the path, rather than of a target, does not concern.
    private static let layersOfTargets: Set<Cause.Layer> = [.firewall, .network, .tcp, .tls, .http]

    fileprivate func step(_ layer: Cause.Layer) -> Diagnosis.Step {
        if endpoint == nil, Self.layersOfTargets.contains(layer) {
            return Diagnosis.Step(layer, .notUsed, "not asked: no target")
        }
        return switch layer {
        case .link: linkStep
        case .address: addressStep
        case .route: routeStep
        case .neighbor: neighborStep
        case .dns: dnsStep
        case .firewall: firewallStep
        case .network: networkStep
        case .tcp: tcpStep
        case .tls: tlsStep
        default: httpStep
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
    fileprivate func isBehindFailure(_ layer: Cause.Layer) -> Bool {
        guard let failing = cause?.layer, !isDegraded, let place = Diagnosis.layers.firstIndex(of: failing),
            let own = Diagnosis.layers.firstIndex(of: layer)
        else { return false }
        return own > place
    }

    /// The time of the probe's phase in which the layer was used.
    func duration(of layer: Cause.Layer) -> Duration? {
        switch layer {
        case .link, .address, .route: nil
        // Without a name server, nothing was asked.
        case .dns: cause?.code == .noResolver ? nil : report?.resolution
        case .tls: report?.levels?.handshake
        case .http: report?.levels?.exchange ?? report?.levels?.processing
        default: report?.connection
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
