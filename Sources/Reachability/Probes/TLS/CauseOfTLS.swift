package import Certificates
internal import Pacing

/// A TLS handshake that has ended. Its cause is a pure function of its facts, by the table of causes in
/// docs/command-line.md.
///
/// The failure of the handshake itself comes first: then the errors of the chain, of the name and of the dates, in this order.
package struct FinishedHandshake: Hashable, Sendable {
    var facts: TLSHandshakeFacts
    var end: TLSHandshakeEnd
    var host: String
    var now: Int64
    var certificateDays = 14
    var isInsecure = false

    /// Creates the judgment of a handshake.
    ///
    /// - Parameters:
    ///   - facts: the facts of the handshake.
    ///   - end: the event that ended it.
    ///   - host: the server in sentences: an address, or "this machine (127.0.0.1)".
    ///   - now: the wall clock in seconds since 1970, to which ages of certificates refer.
    ///   - certificateDays: a certificate that expires in fewer days makes the server `degraded`.
    ///   - isInsecure: whether every certificate is accepted.
    package init(
        facts: TLSHandshakeFacts, end: TLSHandshakeEnd, host: String, now: Int64, certificateDays: Int = 14,
        isInsecure: Bool = false
    ) {
        (self.facts, self.end, self.host, self.now) = (facts, end, host, now)
        (self.certificateDays, self.isInsecure) = (certificateDays, isInsecure)
    }

    /// The judgment of a handshake.
    enum Judgment: Hashable, Sendable {
        /// TLS works. A degradation is the cause of the status `degraded`.
        case passed(degradation: Cause?)
        /// The server is at fault.
        case failed(Cause)
        /// A layer below TLS is at fault. ``FailedAttempt`` has its cause, by the errno.
        case failedBelow
    }

    var judgment: Judgment {
        if let excess = facts.excess { return .failed(cause(.excessiveCost, "\(host) \(excess)")) }
        // A server that has not received the client certificate refuses the client for its own fault.
        if facts.isIdentityWithheld == true, let cause = certificateFault { return .failed(cause) }
        if let failure = failure { return failure }
        if facts.verificationErrors.contains(where: { $0.code == ChainError.tooLong }) {
            return .failed(cause(.excessiveCost, "\(host) sends a chain with more certificates than this machine verifies"))
        }
        guard !isInsecure else { return .passed(degradation: nil) }
        if let cause = certificateFault { return .failed(cause) }
        return .passed(degradation: expiry)
    }

    /// The cause of a failure or of a degradation; `nil` if TLS works, or if a layer below is at fault.
    package var cause: Cause? {
        switch judgment {
        case .passed(let degradation): degradation
        case .failed(let cause): cause
        case .failedBelow: nil
        }
    }

    // MARK: The handshake

    private var failure: Judgment? {
        switch end {
        case .completed:
            return facts.alert?.isFatal == true ? .failed(refusal(by: .alert)) : nil
        case .deadline:
            // The server has had its round trip to refuse the client.
            return facts.isComplete ? nil : .failed(silence)
        case .endOfFile:
            return facts.isComplete && !facts.isCertificateRequested ? nil : .failed(refusal(by: .closed))
        case .systemError(let number):
            switch SystemErrorNumber(rawValue: number) {
            case .connectionReset, .connectionAborted, .brokenPipe: return .failed(refusal(by: .reset))
            // The kernel has given up the connection.
            case .timedOut where facts.bytesReceived > 0: return .failed(silence)
            default: return .failedBelow
            }
        case .protocolError:
            if facts.alert?.isFatal == true { return .failed(refusal(by: .alert)) }
            return .failed(mismatch ?? brokenProtocol)
        }
    }

    private var silence: Cause {
        if let mismatch { return mismatch }
        guard facts.bytesReceived > 0 else {
            return cause(.handshakeStalled, "\(host) accepts the connection and does not answer the TLS handshake")
        }
        let bytes = facts.bytesReceived == 1 ? "1 byte" : "\(facts.bytesReceived) bytes"
        return cause(.handshakeTimeout, "\(host) does not finish the TLS handshake in time: it has sent \(bytes)")
    }

    private enum Refusal { case alert, closed, reset }

    private func refusal(by refusal: Refusal) -> Cause {
        if refusal != .alert, let mismatch { return mismatch }
        let evidence: [String: Cause.Evidence] =
            switch refusal {
            case .alert: [:]
            case .closed: ["closed": .flag(true)]
            case .reset: ["reset": .flag(true)]
            }
        let ending = refusal == .reset ? "resets the connection" : "closes the connection"
        guard let alert = facts.alert else {
            if facts.isCertificateRequested {
                let detail =
                    facts.clientSubject.map { "\(host) does not accept the client certificate of \($0): it \(ending)" }
                    ?? "\(host) requests a client certificate, and \(ending) without one"
                return cause(.clientCertificateRequired, detail, evidence)
            }
            let time = facts.bytesReceived == 0 ? "when the TLS handshake begins" : "during the TLS handshake"
            return cause(.handshakeRefused, "\(host) \(ending) \(time)", evidence)
        }
        let text = "alert \(alert.number), \(alert.text)"
        switch alert.number {
        case Self.certificateRequired:
            return cause(.clientCertificateRequired, clientRefusal(text), evidence)
        case let number where facts.isCertificateRequested && Self.certificateAlerts.contains(number):
            return cause(.clientCertificateRequired, clientRefusal(text), evidence)
        case Self.protocolVersion:
            let detail = "\(host) supports no version of TLS from 1.2 on (\(text))"
            return cause(.protocolMismatch, detail, evidence)
        case Self.unrecognizedName:
            let detail = "\(host) has no certificate for \(facts.serverName) (\(text))"
            return cause(.handshakeRefused, detail, evidence)
        default:
            return cause(.handshakeRefused, "\(host) refuses the TLS handshake (\(text))", evidence)
        }
    }

    private func clientRefusal(_ alert: String) -> String {
        facts.clientSubject.map { "\(host) does not accept the client certificate of \($0) (\(alert))" }
            ?? "\(host) requires a client certificate (\(alert))"
    }

    // Numbers of alerts (RFC 8446 section 6).
    private static let protocolVersion: Int32 = 70
    private static let unrecognizedName: Int32 = 112
    private static let certificateRequired: Int32 = 116
    /// The alerts with which servers refuse a client without a certificate: handshake_failure (RFC 5246 section 7.4.6),
    /// no_certificate_RESERVED, and those that complain about a certificate.
    private static let certificateAlerts: Set<Int32> = [40, 41, 42, 43, 44, 45, 46, 48, 49]

    /// The cause if the server does not speak TLS; `nil` if it does, or if it has sent nothing.
    private var mismatch: Cause? {
        guard let firstBytes = facts.firstBytes else { return nil }
        if facts.isEcho { return cause(.protocolMismatch, "\(host) sends the client's own bytes back instead of TLS") }
        let text = ExternalText.escaped(firstBytes)
        let spoken = [("HTTP/", "HTTP"), ("SSH-", "SSH"), ("220 ", "SMTP or FTP"), ("220-", "SMTP or FTP")]
        if let name = spoken.first(where: { text.hasPrefix($0.0) })?.1 {
            return cause(.protocolMismatch, "\(host) speaks \(name) instead of TLS: its first bytes are \"\(text)\"")
        }
        return cause(.protocolMismatch, "\(host) does not speak TLS: its first bytes are \"\(text)\"")
    }

    private var brokenProtocol: Cause {
        if let version = facts.version, !["TLSv1.2", "TLSv1.3"].contains(version) {
            return cause(.protocolMismatch, "\(host) offers \(version), and TLS 1.2 or newer is required")
        }
        let reason = facts.protocolError.map { ": \($0.text)" } ?? ""
        return cause(.protocolMismatch, "\(host) breaks the TLS protocol\(reason)")
    }

    // MARK: The certificate

    /// The first of chain, name, dates.
    private var certificateFault: Cause? {
        let errors = facts.verificationErrors
        let chain = errors.filter { ![.name, .date].contains(Self.kind($0)) }
        if let error = chain.first(where: \.isUnknownAuthority) { return cause(.certificateUntrusted, untrusted(error)) }
        if let error = chain.first(where: { $0.code == ChainError.revoked }) {
            return cause(.certificateRevoked, "\(host) \(Self.revocation(error, issuer: issuer))")
        }
        if let response = facts.stapledResponse, response.status == .revoked {
            return cause(.certificateRevoked, "\(host) \(Self.revocation(response, issuer: issuer))")
        }
        if let error = chain.first(where: { !$0.isOfRevocationList }) ?? chain.first {
            return cause(.certificateUntrusted, untrusted(error))
        }
        if errors.contains(where: { Self.kind($0) == .name }) || facts.nameMatches == false {
            return cause(.hostnameMismatch, "\(host) presents a certificate \(nameFault)")
        }
        return errors.first { Self.kind($0) == .date }.map(dateFault)
    }

    private enum ErrorKind { case chain, name, date }

    private static func kind(_ error: ChainError) -> ErrorKind {
        switch error.code {
        case ChainError.hostnameMismatch, ChainError.addressMismatch: .name
        case ChainError.notYetValid, ChainError.expired: .date
        default: .chain
        }
    }

    private func untrusted(_ error: ChainError) -> String {
        if facts.isMissingIntermediate {
            // A certificate that an unknown root has signed directly has the same error.
            return "\(host) sends its certificate without the intermediate certificate of the issuer \(issuer), "
                + "or this issuer is not trusted"
        }
        if error.code == ChainError.selfSigned {
            return "\(host) presents a self-signed certificate (\(facts.certificate?.subject ?? "no subject"))"
        }
        if error.isUnknownAuthority {
            return "\(host) presents a certificate that no trusted authority has signed (issuer \(issuer))"
        }
        if error.isOfRevocationList { return Self.fault(ofListIn: error, issuer: issuer, host: host) }
        return "\(host) presents a certificate that is not trusted: \(error.text)"
    }

    private var issuer: String { facts.certificate?.issuer ?? "unknown" }

    /// The reason why the certificate is not for the server: only subject alternative names count, each for its own kind (RFC 9525
    /// section 6.3).
    private var nameFault: String {
        guard let certificate = facts.certificate, !certificate.names.isEmpty else {
            return "without a subject alternative name, so it is not for \(facts.serverName): a common name does not count"
        }
        let isAddress = facts.verificationErrors.contains { $0.code == ChainError.addressMismatch }
        if isAddress, certificate.names.contains(facts.serverName) {
            return "that has \(facts.serverName) as a DNS name and not as an IP address, so it is not for this address"
        }
        return "for \(Self.text(of: certificate)), not for \(facts.serverName)"
    }

    /// Returns the first names of a certificate, in a sentence.
    private static func text(of certificate: TLSCertificateFacts) -> String {
        let shown = certificate.names.prefix(certificate.nameCount == 6 ? 6 : 5)
        let others = certificate.nameCount &- shown.count
        let list = others > 0 ? shown + ["\(others) other names"] : Array(shown)
        return list.count < 2 ? list.joined() : "\(list.dropLast().joined(separator: ", ")) and \(list[list.count - 1])"
    }

    private func dateFault(_ error: ChainError) -> Cause {
        let isOwn = error.depth == 0
        let subject = isOwn ? "presents a certificate" : "has a chain with a certificate"
        if error.code == ChainError.notYetValid {
            let date = isOwn ? facts.certificate?.notBefore : nil
            let time = date.map { " before \(CivilDate($0)), in \(Self.days(from: now, to: $0))" } ?? " yet"
            return cause(.certificateNotYetValid, "\(host) \(subject) that is not valid\(time)")
        }
        let date = isOwn ? facts.certificate?.notAfter : facts.chainNotAfter
        guard let date, date <= now else { return cause(.certificateExpired, "\(host) \(subject) that has expired") }
        let time = "on \(CivilDate(date)), \(Self.days(from: date, to: now)) ago"
        return cause(.certificateExpired, "\(host) \(subject) that expired \(time)")
    }

    /// The cause of a certificate that expires soon: the server's own, or one between it and the authority, or the authority's own. Others that
    /// the server sends do not count: it has been verified without them.
    private var expiry: Cause? {
        guard certificateDays > 0 else { return nil }
        let limit = now.addingSaturated(Int64(certificateDays).multipliedSaturated(by: 86_400))
        func isEarly(_ date: Int64?) -> Bool { date.map { $0 >= now && $0 < limit } ?? false }
        let (own, chain) = (facts.certificate?.notAfter, facts.chainNotAfter)
        guard let date = isEarly(own) ? own : isEarly(chain) ? chain : nil else { return nil }
        let subject = date == own ? "presents a certificate" : "has a chain with a certificate"
        return cause(
            .certificateExpiring, "\(host) \(subject) that expires on \(CivilDate(date)), in \(Self.days(from: now, to: date))")
    }

    private static func days(from start: Int64, to end: Int64) -> String {
        let (seconds, overflow) = end.subtractingReportingOverflow(start)
        let days = overflow ? Int64.max / 86_400 : max(0, seconds) / 86_400
        return days == 0 ? "less than a day" : days == 1 ? "1 day" : "\(days) days"
    }

    private func cause(_ code: Cause.Code, _ detail: String, _ evidence: [String: Cause.Evidence] = [:]) -> Cause {
        Cause(.tls, code, detail: detail, evidence: TLSEvidence.evidence(of: facts).merging(evidence) { $1 })
    }
}

/// The sentences about revocation, and about the lists that the user has given.
extension FinishedHandshake {
    /// Returns the end of a sentence about a certificate that is revoked.
    static func revocation(_ error: ChainError, issuer: String) -> String {
        guard error.depth > 0 else { return "presents a certificate that its issuer \(issuer) has revoked" }
        let certificate = error.subject.map { "the certificate \($0), which" } ?? "a certificate that"
        return "sends a chain with \(certificate) its issuer has revoked"
    }

    /// Returns the end of a sentence about a certificate that the stapled response says is revoked.
    static func revocation(_ response: StapledResponse, issuer: String) -> String {
        let date = response.revokedAt.map { "revoked on \(CivilDate($0))" } ?? "has revoked"
        return "presents a certificate that its issuer \(issuer) \(date), as its stapled response says"
    }

    /// Returns the sentence about a revocation list that cannot be used. The list is at fault, and not the certificate.
    static func fault(ofListIn error: ChainError, issuer: String, host: String) -> String {
        let fault =
            switch error.code {
            case ChainError.missingList:
                "no revocation list that was given is \(error.depth > 0 ? "for this issuer" : "by \(issuer)")"
            case ChainError.missingListIssuer: "the issuer of the revocation list that was given is not known"
            case ChainError.listSignature: "the revocation list that was given has an invalid signature"
            case ChainError.listNotYetValid: "the revocation list that was given is not valid yet"
            case ChainError.listExpired: "the revocation list that was given has expired"
            default: "the revocation list that was given cannot be used (\(error.text))"
            }
        let certificate = error.depth > 0 ? "\(error.subject ?? "a certificate") in the chain" : "the certificate"
        return "\(fault), so it is not known whether \(certificate) of \(host) is revoked"
    }
}
