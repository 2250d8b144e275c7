import Certificates
import Expectations
import Testing

@testable import Reachability

/// The causes of the layer `tls` in docs/command-line.md, tested with facts. `SupportTests` have the same faults with
/// OpenSSL.
@Suite struct CauseOfTLSTests {
    /// 2026-11-25T00:00:00Z.
    private static let now: Int64 = 1_795_564_800
    private static let day: Int64 = 86_400

    private func facts(
        expires: Int64 = now + 100 * day, errors: [ChainError] = [], names: [String] = ["a.test"], nameCount: Int? = nil
    ) -> TLSHandshakeFacts {
        var facts = TLSHandshakeFacts(serverName: "a.test")
        facts.bytesReceived = 3000
        facts.hasBegunRecord = true
        facts.isComplete = true
        facts.version = "TLSv1.3"
        facts.cipher = "TLS_AES_256_GCM_SHA384"
        facts.certificate = TLSCertificateFacts(
            subject: "CN=a.test", issuer: "CN=Issuer", isSelfIssued: false, names: names, nameCount: nameCount ?? names.count,
            notBefore: Self.now - 10 * Self.day, notAfter: expires, sha256: "ab", serialNumber: "01")
        facts.chainLength = 2
        facts.chainNotAfter = expires
        facts.verificationErrors = errors
        facts.nameMatches = !errors.contains { [62, 64].contains($0.code) }
        return facts
    }

    private func handshake(_ facts: TLSHandshakeFacts, _ end: TLSHandshakeEnd = .completed) -> FinishedHandshake {
        FinishedHandshake(facts: facts, end: end, host: "203.0.113.5", now: Self.now)
    }

    private func error(_ code: Int32, depth: Int32 = 0) -> ChainError { ChainError(code: code, text: "error", depth: depth) }

    @Test func `a valid certificate is no cause, and its facts are the evidence`() {
        expectEqual(handshake(facts()).judgment, .passed(degradation: nil))
        let evidence = TLSEvidence.evidence(of: facts(errors: [error(10, depth: 1)]))
        #expect(evidence["names"] == .list(["a.test"]) && evidence["chain_length"] == .number(2))
        #expect(evidence["not_before"] == .text("2026-11-15T00:00:00Z") && evidence["not_after"] == .text("2027-03-05T00:00:00Z"))
        #expect(evidence["verify_errors"] == .list(["10 error (depth 1)"]) && evidence["sha256"] == .text("ab"))
        #expect(evidence["alert"] == nil && evidence["first_bytes"] == nil && evidence["alpn"] == nil)
    }

    @Test(
        arguments: [
            (-24, "certificate-expired", "203.0.113.5 presents a certificate that expired on 2026-11-01, 24 days ago"),
            (0, "certificate-expired", "203.0.113.5 presents a certificate that expired on 2026-11-25, less than a day ago"),
        ] as [(Int64, String, String)])
    func `an expired certificate is named with its date`(days: Int64, code: String, detail: String) {
        let cause = handshake(facts(expires: Self.now + days * Self.day, errors: [error(10)])).cause
        #expect(cause?.code.rawValue == code && cause?.detail == detail)
    }

    @Test func `a certificate that expires within the limit of days is a degradation`() {
        var handshake = handshake(facts(expires: Self.now + 13 * Self.day))
        expectEqual(handshake.cause?.code, .certificateExpiring)
        expectEqual(handshake.cause?.detail, "203.0.113.5 presents a certificate that expires on 2026-12-08, in 13 days")
        handshake.certificateDays = 13
        expectNil(handshake.cause)
        handshake.certificateDays = 14
        handshake.isInsecure = true
        expectNil(handshake.cause)
        handshake.isInsecure = false
        handshake.facts.certificate?.notAfter = Self.now + 100 * Self.day
        expectEqual(
            handshake.cause?.detail, "203.0.113.5 has a chain with a certificate that expires on 2026-12-08, in 13 days")
        handshake.facts.chainNotAfter = Self.now - 1
        expectNil(handshake.cause)
    }

    @Test(
        arguments: [
            ([10, 62, 20], "certificate-untrusted"), ([10, 62], "hostname-mismatch"), ([9, 64], "hostname-mismatch"),
            ([9], "certificate-not-yet-valid"), ([23, 10, 62], "certificate-revoked"), ([12, 23], "certificate-revoked"),
            ([23, 19], "certificate-untrusted"), ([3], "certificate-untrusted"), ([66], "certificate-untrusted"),
        ] as [([Int32], String)])
    func `several errors have the cause of the first of chain, name and dates`(codes: [Int32], expected: String) {
        var handshake = handshake(facts(errors: codes.map { error($0) }))
        expectEqual(handshake.cause?.code.rawValue, expected)
        expectEqual(handshake.cause?.evidence["verify_errors"], .list(codes.map { "\($0) error" }))
        handshake.isInsecure = true
        expectNil(handshake.cause)
    }

    @Test func `names in a sentence are at most six`() {
        let names = (1...9).map { "\($0).test" }
        let many = handshake(facts(errors: [error(62)], names: names, nameCount: 2000)).cause
        expectEqual(
            many?.detail,
            "203.0.113.5 presents a certificate for 1.test, 2.test, 3.test, 4.test, 5.test and 1995 other names, not for a.test"
        )
        expectEqual(many?.evidence["names"], .list(names + ["and 1991 others"]))
        let none = handshake(facts(errors: [error(62)], names: [])).cause
        expectEqual(
            none?.detail,
            "203.0.113.5 presents a certificate without a subject alternative name, so it is not for a.test: "
                + "a common name does not count")
    }

    @Test func `an address that a certificate has as a DNS name does not count`() {
        var facts = facts(errors: [error(64)], names: ["a.test", "127.0.0.1"])
        facts.serverName = "127.0.0.1"
        expectEqual(
            handshake(facts).cause?.detail,
            "203.0.113.5 presents a certificate that has 127.0.0.1 as a DNS name and not as an "
                + "IP address, so it is not for this address")
    }

    @Test func `a failed handshake comes before a bad certificate`() {
        var facts = facts(errors: [error(18)])
        facts.isComplete = false
        facts.isCertificateRequested = true
        facts.alert = TLSAlert(number: 40, text: "handshake failure")
        expectEqual(handshake(facts, .protocolError).cause?.code, .clientCertificateRequired)
        facts.isCertificateRequested = false
        expectEqual(handshake(facts, .protocolError).cause?.code, .handshakeRefused)
        facts.alert?.number = 70
        expectEqual(handshake(facts, .protocolError).cause?.code, .protocolMismatch)
        expectEqual(handshake(facts, .deadline).cause?.code, .handshakeTimeout)
    }

    @Test(arguments: [(113, true), (101, true), (104, false), (32, false), (103, false)] as [(Int32, Bool)])
    func `an errno of the network belongs to a layer below`(number: Int32, isBelow: Bool) {
        expectEqual((handshake(TLSHandshakeFacts(serverName: "a.test"), .systemError(number)).judgment == .failedBelow), isBelow)
    }

    @Test func `times and counts of a damaged recording do not trap`() {
        for time in [Int64.min, -1, 0, .max] {
            for now in [Int64.min, 0, .max] {
                var facts = facts(expires: time, errors: [error(10), error(9)], nameCount: .min)
                facts.certificate?.notBefore = time
                var handshake = FinishedHandshake(facts: facts, end: .completed, host: "h", now: now, certificateDays: .max)
                #expect(handshake.cause != nil)
                handshake.facts.verificationErrors = [error(9)]
                expectEqual(handshake.cause?.code, .certificateNotYetValid)
                handshake.facts.verificationErrors = []
                _ = handshake.cause
            }
        }
    }

    @Test(
        arguments: [
            (0, "1970-01-01"), (-1, "1969-12-31"), (951_782_400, "2000-02-29"), (253_402_300_799, "9999-12-31"),
            (-62_167_219_200, "0000-01-01"), (.max, "9999-12-31"), (4_107_542_400, "2100-03-01"),
        ] as [(Int64, String)])
    func `seconds become dates of the Gregorian calendar`(seconds: Int64, date: String) {
        expectEqual("\(CivilDate(seconds))", date)
    }
}
