internal import Certificates

/// Determines the cause of a failed TLS handshake from its facts.
///
/// | facts | cause |
/// |---|---|
/// | no byte before the deadline | handshake-stalled |
/// | some bytes before the deadline | handshake-timeout |
/// | bytes that are no TLS record, or no common version | protocol-mismatch |
/// | the server closes, resets or sends an alert | handshake-refused |
/// | alert 116, or any alert after the server has requested a certificate | client-certificate-required |
/// | the verification has errors | the first of chain, revocation, name, dates |
struct CauseOfTLS {
    let facts: TLSHandshakeFacts
    let result: LevelResult
    let settings: TLSProbeSettings
    /// The name or address that the certificate must have.
    let name: String
    let address: IPAddress
    let port: UInt16
    /// The present time in seconds since 1970.
    let now: Int64

    /// Alerts with a meaning of their own (RFC 8446 section 6.2).
    private enum Alert {
        static let protocolVersion: UInt8 = 70
        static let certificateRequired: UInt8 = 116
    }

    /// X509_V_ERR_… (openssl/x509_vfy.h).
    private enum VerifyCode {
        static let names: Set<Int32> = [62, 64]
        static let notYetValid: Int32 = 9
        static let expired: Int32 = 10
        static let revoked: Int32 = 23
        static let noIssuer: Int32 = 20
        static let noList: Int32 = 3
        static let selfSigned: Set<Int32> = [18, 19]
    }

    /// Returns the cause of the failure; `nil` if the handshake is complete and trusted.
    var cause: Cause? {
        if let alert = facts.alert { return refused(by: alert) }
        if facts.isComplete { return settings.isInsecure ? nil : untrusted }
        if let first = facts.firstBytes {
            return make(.protocolMismatch, "\(subject) does not speak TLS: its answer begins with '\(HTTPExchange.excerpt(first))'")
        }
        switch result.ending {
        case .deadline:
            if facts.receivedBytes > 0 {
                return make(.handshakeTimeout, "\(subject) has sent \(facts.receivedBytes) bytes of its TLS handshake before the deadline")
            }
            return make(.handshakeStalled, "\(subject) accepts the connection and does not answer the TLS handshake")
        case .closed:
            return make(.handshakeRefused, "\(subject) closes the connection during the TLS handshake", ["closed": .flag(true)])
        case .error:
            return make(
                .handshakeRefused, "\(subject) resets the connection during the TLS handshake",
                ["reset": .flag(true), "errno": .text(SystemErrorNumber.name(of: result.errno))])
        case .failed, .completed:
            let reason = facts.reasonText.isEmpty ? "the handshake fails" : facts.reasonText
            return make(.protocolMismatch, "\(subject) has no TLS version in common, or does not speak TLS: \(reason)")
        }
    }

    /// Returns the cause for which a server that works is degraded: a certificate that expires soon; `nil` if none does.
    var degradation: Cause? {
        guard settings.certificateDays > 0, let certificate = facts.certificate else { return nil }
        let left = certificate.chainNotAfter - now
        guard left < Int64(settings.certificateDays) * 86_400, left >= 0 else { return nil }
        let whose = certificate.chainNotAfter < certificate.notAfter ? "a certificate in the chain of" : "the certificate of"
        let days = left / 86_400
        return make(
            .certificateExpiring,
            "\(whose) \(subject) expires on \(Self.date(certificate.chainNotAfter)), in \(days == 1 ? "1 day" : "\(days) days")")
    }

    private var subject: String { "\(address)" }

    private func refused(by alert: UInt8) -> Cause {
        let text = TLSContext.text(ofAlert: Int32(alert))
        let evidence: [String: Cause.Evidence] = ["alert": .text("\(alert) \(text)")]
        if alert == Alert.certificateRequired || facts.isCertificateRequested {
            return make(.clientCertificateRequired, "\(subject) demands a client certificate", evidence)
        }
        if alert == Alert.protocolVersion {
            return make(.protocolMismatch, "\(subject) has no TLS version in common with this machine (1.2 or newer)", evidence)
        }
        return make(.handshakeRefused, "\(subject) refuses the TLS handshake: \(text) (alert \(alert))", evidence)
    }

    // The first of chain, revocation, name, dates.
    private var untrusted: Cause? {
        guard !facts.verifyErrors.isEmpty, let certificate = facts.certificate else { return nil }
        let codes = facts.verifyErrors.map(\.code)
        let dates: Set<Int32> = [VerifyCode.notYetValid, VerifyCode.expired]
        let chain = facts.verifyErrors.first {
            !VerifyCode.names.contains($0.code) && !dates.contains($0.code) && $0.code != VerifyCode.revoked
        }
        if let chain { return make(.certificateUntrusted, chainSentence(chain, certificate)) }
        if codes.contains(VerifyCode.revoked) {
            return make(.certificateRevoked, "the certificate of \(subject) is revoked by its authority \(certificate.issuer)")
        }
        if codes.contains(where: VerifyCode.names.contains) {
            return make(.hostnameMismatch, "the certificate of \(subject) is for \(Self.list(certificate)), not for \(name)")
        }
        let error = facts.verifyErrors.first { dates.contains($0.code) }
        let whose = (error?.depth ?? 0) > 0 ? "a certificate in the chain of \(subject)" : "the certificate of \(subject)"
        if error?.code == VerifyCode.notYetValid {
            return make(.certificateNotYetValid, "\(whose) is not valid before \(Self.date(certificate.notBefore))")
        }
        let days = max(0, now - certificate.chainNotAfter) / 86_400
        return make(
            .certificateExpired, "\(whose) expired on \(Self.date(certificate.chainNotAfter)), \(days == 1 ? "1 day" : "\(days) days") ago")
    }

    private func chainSentence(_ error: TLSHandshakeFacts.VerifyError, _ certificate: TLSHandshakeFacts.Certificate) -> String {
        let codes = Set(facts.verifyErrors.map(\.code))
        if !codes.isDisjoint(with: VerifyCode.selfSigned) {
            return codes.contains(18)
                ? "the certificate of \(subject) is self-signed and not trusted"
                : "the chain of \(subject) ends with an authority that is not trusted: \(certificate.issuer)"
        }
        if error.code == VerifyCode.noList {
            return "no revocation list of the authority \(certificate.issuer) is given"
        }
        if codes.contains(VerifyCode.noIssuer) {
            return certificate.chainLength == 1
                ? "\(subject) sends its certificate alone, and its issuer \(certificate.issuer) is not a trusted authority: an intermediate "
                    + "certificate is missing, or the authority is not trusted"
                : "the authority of \(subject) is not trusted: \(certificate.issuer)"
        }
        return "the certificate chain of \(subject) is not trusted: \(error.text)"
    }

    private static func list(_ certificate: TLSHandshakeFacts.Certificate) -> String {
        guard !certificate.names.isEmpty else { return "no name" }
        let shown = certificate.names.prefix(3).joined(separator: ", ")
        return certificate.nameCount > 3 ? "\(shown) and \(certificate.nameCount - 3) more" : shown
    }

    private func make(_ code: Cause.Code, _ detail: String, _ more: [String: Cause.Evidence] = [:]) -> Cause {
        var evidence = facts.evidence(name: name)
        evidence["address"] = .text("\(address)")
        evidence["port"] = .number(Int(port))
        evidence.merge(more) { _, new in new }
        return Cause(.tls, code, detail: detail, evidence: evidence)
    }

    /// Returns a time as a date in UTC.
    static func date(_ seconds: Int64) -> String {
        // Days from 1970 to the civil calendar, by Howard Hinnant's algorithm civil_from_days.
        let days = Int(seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400) + 719_468
        let era = (days >= 0 ? days : days - 146_096) / 146_097
        let dayOfEra = days - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shifted + 2) / 5 + 1
        let month = shifted < 10 ? shifted + 3 : shifted - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        func pad(_ number: Int, _ width: Int) -> String {
            String(repeating: "0", count: max(0, width - "\(number)".count)) + "\(number)"
        }
        return "\(pad(year, 4))-\(pad(month, 2))-\(pad(day, 2))"
    }
}

extension TLSHandshakeFacts {
    /// The evidence of the handshake, by the contract's names.
    func evidence(name: String) -> [String: Cause.Evidence] {
        var evidence: [String: Cause.Evidence] = ["server_name": .text(name)]
        if let version { evidence["version"] = .text(version) }
        if let cipher { evidence["cipher"] = .text(cipher) }
        if let applicationProtocol { evidence["alpn"] = .text(applicationProtocol) }
        if let firstBytes { evidence["first_bytes"] = .text(HTTPExchange.excerpt(firstBytes)) }
        if !verifyErrors.isEmpty { evidence["verify_errors"] = .texts(verifyErrors.map { "\($0.code) \($0.text)" }) }
        guard let certificate else { return evidence }
        evidence["subject"] = .text(certificate.subject)
        evidence["names"] = .texts(certificate.names)
        evidence["issuer"] = .text(certificate.issuer)
        evidence["not_before"] = .text(CauseOfTLS.date(certificate.notBefore))
        evidence["not_after"] = .text(CauseOfTLS.date(certificate.notAfter))
        evidence["sha256"] = .text(certificate.sha256)
        evidence["chain_length"] = .number(certificate.chainLength)
        evidence["chain_not_after"] = .text(CauseOfTLS.date(certificate.chainNotAfter))
        return evidence
    }
}
