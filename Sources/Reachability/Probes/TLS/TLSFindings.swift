internal import Certificates

extension LevelFindings {
    /// Judges the handshake, if there was one.
    ///
    /// - Parameters:
    ///   - connection: the connection.
    ///   - host: the server in sentences; `nil` for the address to which the connection was made.
    ///   - finding: makes the finding of a failure; `nil` to accuse the server.
    mutating func judgeHandshake(
        _ connection: ProbedConnection, host: String? = nil, finding: ((Cause, TLSHandshakeFacts) -> Finding)? = nil
    ) {
        if let reason = connection.levels.localFailure {
            let cause = Cause(.local, .cannotRead, detail: "the TLS handshake cannot begin: \(reason)")
            failure = Finding(cause, accusesServer: false)
            return
        }
        guard let facts = connection.levels.tls, let end = connection.levels.handshakeEnd else { return }
        let settings = connection.settings.tls
        let handshake = FinishedHandshake(
            facts: facts, end: end, host: host ?? connection.hostText, now: connection.now.wallClockNanoseconds / 1_000_000_000,
            certificateDays: settings.certificateDays, isInsecure: settings.isInsecure)
        switch handshake.judgment {
        case .failed(let cause): failure = finding?(cause, facts) ?? Finding(cause, accusesServer: true)
        case .failedBelow: if case .systemError(let number) = end { systemError = number }
        case .passed(let degradation): self.degradation = degradation
        }
    }
}

extension TLSKind {
    /// Explains the handshake of a target of any kind that may have made one.
    static func step(of endpoint: Endpoint, _ report: ProbeReport?, degradation: Cause?) -> LayerStep {
        // A server may redirect a request from http to https.
        guard let facts = report?.levels?.tls else {
            return endpoint.scheme.usesTLS
                ? LayerStep(.tls, .unproven, "no handshake was attempted")
                : LayerStep(.tls, .notUsed, "not asked: the target is \(endpoint.scheme.rawValue)")
        }
        guard facts.isComplete else { return LayerStep(.tls, .unproven, "the handshake is not complete") }
        let protocols = [facts.version, facts.cipher].compactMap { $0 }.joined(separator: ", ")
        var sentence = "the handshake is complete (\(protocols))"
        if let certificate = facts.certificate {
            let end = certificate.notAfter.map { ", valid until \(CivilDate($0))" } ?? ""
            sentence +=
                facts.verificationErrors.isEmpty
                ? "; the certificate is for \(facts.serverName), by \(certificate.issuer)\(end)"
                : "; the errors of the certificate are ignored: \(TLSEvidence.texts(of: facts.verificationErrors).joined(separator: ", "))"
        }
        if facts.stapledResponse?.status == .revoked { sentence += "; it is revoked, which is ignored" }
        var evidence = TLSEvidence.evidence(of: facts)
        // The certificate that expires may be that of another address than the probe's.
        if let degradation, degradation.layer == .tls { (sentence, evidence) = (degradation.detail, degradation.evidence) }
        return LayerStep(.tls, .works, sentence, duration: report?.levels?.handshake, evidence: evidence)
    }
}
