internal import Certificates

/// The evidence of the layer `tls`, by the names of docs/command-line.md ("Causes").
enum TLSEvidence {
    /// Returns the evidence. Facts that are not known have no entry.
    static func evidence(of facts: TLSHandshakeFacts) -> [String: Cause.Evidence] {
        var evidence: [String: Cause.Evidence] = [:]
        evidence["version"] = facts.version.map { .text($0) }
        evidence["cipher"] = facts.cipher.map { .text($0) }
        if facts.isCertificateRequested { evidence["client_subject"] = facts.clientSubject.map { .text($0) } }
        evidence["alpn"] = facts.applicationProtocol.map { .text($0) }
        if let certificate = facts.certificate {
            evidence["subject"] = .text(certificate.subject)
            evidence["issuer"] = .text(certificate.issuer)
            let others = certificate.nameCount &- certificate.names.count
            evidence["names"] = .list(certificate.names + (others > 0 ? ["and \(others) others"] : []))
            evidence["not_before"] = certificate.notBefore.map { .text(CivilDate.timestamp($0)) }
            evidence["not_after"] = certificate.notAfter.map { .text(CivilDate.timestamp($0)) }
            evidence["sha256"] = .text(certificate.sha256)
        }
        if facts.chainLength > 0 { evidence["chain_length"] = .number(facts.chainLength) }
        evidence["chain_not_after"] = facts.chainNotAfter.map { .text(CivilDate.timestamp($0)) }
        if !facts.verificationErrors.isEmpty {
            evidence["verify_errors"] = .list(texts(of: facts.verificationErrors))
        }
        if let response = facts.stapledResponse { evidence.merge(self.evidence(of: response)) { $1 } }
        evidence["alert"] = facts.alert.map { .text("\($0.number) \($0.text)") }
        evidence["first_bytes"] = facts.firstBytes.map { .text(ExternalText.escaped($0)) }
        return evidence
    }

    private static func evidence(of response: StapledResponse) -> [String: Cause.Evidence] {
        var evidence: [String: Cause.Evidence] = ["stapled": .text(response.status.rawValue)]
        evidence["stapled_this_update"] = response.thisUpdate.map { .text(CivilDate.timestamp($0)) }
        evidence["stapled_next_update"] = response.nextUpdate.map { .text(CivilDate.timestamp($0)) }
        evidence["stapled_signer"] = response.signer.map { .text($0) }
        evidence["revoked_at"] = response.revokedAt.map { .text(CivilDate.timestamp($0)) }
        evidence["revocation_reason"] = response.revocationReason.map { .text($0) }
        return evidence
    }

    /// Returns each error as its number and its text, with its depth if it is not that of the server's own certificate.
    static func texts(of errors: [ChainError]) -> [String] { errors.map { "\($0.code) \($0.text)" + depth($0) } }

    private static func depth(_ error: ChainError) -> String { error.depth == 0 ? "" : " (depth \(error.depth))" }
}

/// A date of the Gregorian calendar in UTC, printed as `2026-11-01`.
struct CivilDate: Hashable, Sendable, CustomStringConvertible {
    let year: Int64
    let month: Int64
    let day: Int64

    /// The latest second of four-digit years. Certificates have no later one (RFC 5280 section 4.1.2.5), and no earlier one than
    /// the year 0.
    private static let range: ClosedRange<Int64> = -62_167_219_200...253_402_300_799

    /// Creates the date of a time in seconds since 1970, which is clamped to the years from 0 to 9999.
    init(_ seconds: Int64) {
        let seconds = min(max(seconds, Self.range.lowerBound), Self.range.upperBound)
        // Days since 0000-03-01, so that a leap day is the last day of its year. A cycle of 400 years has 146,097 days.
        let days = (seconds - Self.secondOfDay(seconds)) / 86_400 + 719_468
        let cycle = (days >= 0 ? days : days - 146_096) / 146_097
        let dayOfCycle = days - cycle * 146_097
        let yearOfCycle = (dayOfCycle - dayOfCycle / 1_460 + dayOfCycle / 36_524 - dayOfCycle / 146_096) / 365
        let dayOfYear = dayOfCycle - (365 * yearOfCycle + yearOfCycle / 4 - yearOfCycle / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        year = yearOfCycle + cycle * 400 + (month <= 2 ? 1 : 0)
    }

    var description: String { "\(Self.padded(year, 4))-\(Self.padded(month, 2))-\(Self.padded(day, 2))" }

    /// Returns a time in seconds since 1970 as RFC 3339 text: `2026-11-01T12:00:00Z`.
    static func timestamp(_ seconds: Int64) -> String {
        let seconds = min(max(seconds, range.lowerBound), range.upperBound)
        let second = secondOfDay(seconds)
        return "\(CivilDate(seconds))T\(padded(second / 3600, 2)):\(padded(second / 60 % 60, 2)):\(padded(second % 60, 2))Z"
    }

    private static func secondOfDay(_ seconds: Int64) -> Int64 {
        let remainder = seconds % 86_400
        return remainder < 0 ? remainder + 86_400 : remainder
    }

    private static func padded(_ number: Int64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
