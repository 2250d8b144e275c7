import Certificates
import Expectations
import FoundationEssentials
import MemoryCertificates
import Testing

@testable import Reachability

/// Stapled OCSP responses: whose word counts, and how long.
@Suite struct StapledResponseTests {
    private let certificates: TestCertificates
    private let now = Int64(Date().timeIntervalSince1970)

    init() throws { certificates = try TestCertificates.shared.get() }

    /// A response, and what a client makes of it.
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let status: StapledResponse.Status
        let signer: String?
        let response: @Sendable (TestCertificates) throws -> Data

        init(
            _ name: String, _ status: StapledResponse.Status, by signer: String? = nil,
            _ response: @escaping @Sendable (TestCertificates) throws -> Data
        ) {
            (testDescription, self.status, self.signer, self.response) = (name, status, signer, response)
        }
    }

    static let rows: [Row] = [
        Row("good", .good, by: "CN=Intermediate") { try $0.intermediate.response(.good, for: $0.leaf, of: $0.intermediate) },
        Row("revoked", .revoked, by: "CN=Intermediate") {
            try $0.intermediate.response(.revoked, for: $0.leaf, of: $0.intermediate)
        },
        Row("revoked, identified by SHA-256", .revoked, by: "CN=Intermediate") {
            try $0.intermediate.response(.revoked, for: $0.leaf, of: $0.intermediate, usesSHA256: true)
        },
        Row("revoked, says a responder of the issuer", .revoked, by: "CN=Responder") {
            let responder = try MemoryCertificate("Responder", issuer: $0.intermediate, isResponder: true)
            return try responder.response(.revoked, for: $0.leaf, of: $0.intermediate)
        },
        Row("unknown", .unknown, by: "CN=Intermediate") {
            try $0.intermediate.response(.unknown, for: $0.leaf, of: $0.intermediate)
        },
        Row("revoked, without a date of the next response, an hour old", .revoked, by: "CN=Intermediate") {
            try $0.intermediate.response(.revoked, for: $0.leaf, of: $0.intermediate, hasNextUpdate: false)
        },
        Row("revoked, without a date of the next response, two days old", .stale, by: "CN=Intermediate") {
            try $0.intermediate.response(.revoked, for: $0.leaf, of: $0.intermediate, hours: -48...0, hasNextUpdate: false)
        },
        Row("revoked, and stale", .stale, by: "CN=Intermediate") {
            try $0.intermediate.response(.revoked, for: $0.leaf, of: $0.intermediate, hours: -48 ... -1)
        },
        Row("revoked, of tomorrow", .notYetValid, by: "CN=Intermediate") {
            try $0.intermediate.response(.revoked, for: $0.leaf, of: $0.intermediate, hours: 24...48)
        },
        Row("revoked, says a stranger with the issuer's name", .unverified) {
            let stranger = try MemoryCertificate("Intermediate", isAuthority: true)
            return try stranger.response(.revoked, for: $0.leaf, of: $0.intermediate)
        },
        Row("revoked, says a certificate of the issuer that is no responder", .unverified) {
            try $0.other.response(.revoked, for: $0.leaf, of: $0.intermediate)
        },
        Row("revoked, says a responder of the issuer's issuer", .unverified) {
            let responder = try MemoryCertificate("Responder", issuer: $0.root, isResponder: true)
            return try responder.response(.revoked, for: $0.leaf, of: $0.intermediate)
        },
        Row("revoked, says a responder that a stranger with the issuer's name has signed", .unverified) {
            let stranger = try MemoryCertificate("Intermediate", isAuthority: true)
            let responder = try MemoryCertificate("Responder", issuer: stranger, isResponder: true)
            return try responder.response(.revoked, for: $0.leaf, of: $0.intermediate)
        },
        Row("revoked, says a responder whose certificate has expired", .unverified) {
            let responder = try MemoryCertificate("Responder", issuer: $0.intermediate, days: -40 ... -10, isResponder: true)
            return try responder.response(.revoked, for: $0.leaf, of: $0.intermediate)
        },
        Row("revoked, says a responder with a key that costs much", .unverified) {
            let responder = try MemoryCertificate("Responder", issuer: $0.intermediate, isResponder: true)
            let costly = try MemoryCertificate(
                "Responder", issuer: $0.intermediate, publicKey: .rsa(bits: 3072, exponentBits: 3071), isResponder: true)
            return try responder.response(.revoked, for: $0.leaf, of: $0.intermediate, sending: costly)
        },
        Row("revoked, signed over SHA-1", .unverified) {
            try $0.intermediate.response(.revoked, for: $0.leaf, of: $0.intermediate, isWeak: true)
        },
        Row("revoked, with another signature", .unverified) {
            var bytes = try $0.intermediate.response(.revoked, for: $0.leaf, of: $0.intermediate)
            bytes[bytes.count - 1] ^= 1
            return bytes
        },
        Row("another certificate is revoked", .otherCertificate) {
            try $0.intermediate.response(.revoked, for: $0.other, of: $0.intermediate)
        },
        Row("a certificate of another issuer with the same number", .otherCertificate) {
            try $0.root.response(.revoked, for: $0.leaf, of: $0.root)
        },
        Row("try later", .unsuccessful) { _ in try MemoryCertificate.unsuccessfulResponse() },
        Row("no DER", .malformed) { _ in Data([1, 2, 3]) },
        Row("cut", .malformed) { try $0.intermediate.response(.revoked, for: $0.leaf, of: $0.intermediate).dropLast() },
        Row("followed by a byte", .malformed) {
            try $0.intermediate.response(.revoked, for: $0.leaf, of: $0.intermediate) + [0]
        },
    ]

    private func facts(
        _ response: Data?, version: Version = TLS13, _ settings: TLSClientSettings? = nil, in context: TLSClientContext? = nil,
        leaf: MemoryCertificate? = nil, at time: Int64? = nil
    ) throws -> TLSHandshakeFacts {
        let server = try MemoryServer(
            leaf ?? certificates.leaf, chain: [certificates.intermediate],
            .init(versions: version.number...version.number, stapledResponse: response.map { Array($0) }))
        let context = try context ?? TLSClientContext.of(settings ?? SupportTests.settings())
        let client = try TLSClient(
            context: context, serverName: "a.test", verificationTime: time, nanosecondsSpent: patientStart)
        converse(client, server)
        expectEqual(client.state, .established)
        return client.facts
    }

    private func cause(_ facts: TLSHandshakeFacts, isInsecure: Bool = false) -> Cause? {
        FinishedHandshake(facts: facts, end: .completed, host: "203.0.113.5", now: now, isInsecure: isInsecure).cause
    }

    @Test(arguments: rows)
    func `a stapled response counts if the issuer or its responder has signed it, and in its time`(row: Row) throws {
        let response = try row.response(certificates)
        for version in [TLS12, TLS13] {
            let facts = try facts(response, version: version)
            let found = facts.stapledResponse
            expectEqual(found?.status, row.status)
            expectEqual(found?.signer, row.signer)
            expectEqual(facts.isCertificateAccepted, row.status != .revoked)
            expectEqual(found?.thisUpdate == nil, row.signer == nil)
            expectEqual(name(cause(facts)), row.status == .revoked ? "tls/certificate-revoked" : "none")
        }
    }

    @Test func `the cause of a revoked certificate says when, why and by whom`() throws {
        let responder = try MemoryCertificate("Responder", issuer: certificates.intermediate, isResponder: true)
        let response = try responder.response(.revoked, for: certificates.leaf, of: certificates.intermediate, at: Int(now))
        let facts = try facts(response, at: now)
        let cause = try #require(self.cause(facts))
        let (hour, day): (Int64, Int64) = (3_600, 86_400)
        expectEqual(
            cause.detail,
            "203.0.113.5 presents a certificate that its issuer CN=Intermediate revoked on \(CivilDate(now - 2 * day)), "
                + "as its stapled response says"
        )
        let keys = ["stapled", "stapled_signer", "stapled_this_update", "stapled_next_update", "revoked_at", "revocation_reason"]
        expectEqual(
            keys.compactMap { cause.evidence[$0] },
            [
                .text("revoked"), .text("CN=Responder"), .text(CivilDate.timestamp(now - hour)),
                .text(CivilDate.timestamp(now + day)), .text(CivilDate.timestamp(now - 2 * day)), .text("keyCompromise"),
            ])
        #expect(facts.verificationErrors.isEmpty)
    }

    @Test func `without a response there are no facts, and an untrusted chain makes a response unverified`() throws {
        try expectNil(facts(nil).stapledResponse)
        let response = try certificates.intermediate.response(.revoked, for: certificates.leaf, of: certificates.intermediate)
        let strange = try TLSClientSettings.reading(
            authorities: (certificates.strangeRoot.derBytes, "root"), revocationLists: nil)
        let facts = try facts(response, strange)
        expectEqual(facts.stapledResponse?.status, .unverified)
        expectEqual(name(cause(facts)), "tls/certificate-untrusted")
    }

    @Test func `an expired certificate that is also revoked is revoked`() throws {
        let expired = certificates.expired
        let response = try certificates.intermediate.response(.revoked, for: expired, of: certificates.intermediate)
        let facts = try facts(response, leaf: expired)
        expectEqual(facts.verificationErrors.map(\.code), [10])
        expectEqual(name(cause(facts)), "tls/certificate-revoked")
        expectEqual(name(cause(facts, isInsecure: true)), "none")
    }

    // In TLS 1.2, the message with the certificates is the same for all responses.
    @Test(arguments: [TLS12, TLS13])
    func `facts that were kept do not hide another response, and end with the response's time`(version: Version) throws {
        let issuer = certificates.intermediate
        let context = TLSClientContext.of(
            try TLSClientSettings.reading(authorities: (certificates.root.derBytes, "root"), revocationLists: nil))
        let good = try issuer.response(.good, for: certificates.leaf, of: issuer, at: Int(now))
        let revoked = try issuer.response(.revoked, for: certificates.leaf, of: issuer, at: Int(now))
        let day: Int64 = 86_400
        let steps: [(Data?, Int64, StapledResponse.Status?)] = [
            (good, 0, .good), (good, 60, .good), (revoked, 60, .revoked), (nil, 60, nil), (good, 60, .good),
            (revoked, day + 299, .revoked), (revoked, day + 300, .stale), (revoked, 0, .revoked), (revoked, -3900, .revoked),
            (revoked, -3901, .notYetValid), (revoked, 0, .revoked),
        ]
        for (response, later, status) in steps {
            let facts = try facts(response, version: version, in: context, at: now + later)
            expectEqual(facts.stapledResponse?.status, status, "\(later)")
            expectEqual(facts.verificationErrors, [])
        }
    }

    @Test func `a client certificate is withheld from a server whose certificate is revoked`() throws {
        let leaf = certificates.leaf
        var settings = try settings()
        settings.identity = try ClientCertificate(
            CertificateDecoding.certificates(in: Data(leaf.pem.utf8), named: "leaf"),
            PrivateKey(pem: Data(leaf.keyPEM.utf8), passphrase: nil, named: "key"), named: "leaf")
        let response = try certificates.intermediate.response(.revoked, for: leaf, of: certificates.intermediate)
        for version in [TLS12.number, TLS13.number] {
            let client = try TLSClient(context: TLSClientContext.of(settings), serverName: "a.test")
            let server = try MemoryServer(
                leaf, chain: [certificates.intermediate],
                .init(versions: version...version, requestsCertificate: true, stapledResponse: Array(response)))
            converse(client, server)
            expectEqual(client.facts.isIdentityWithheld, true)
            expectEqual(name(causeOf(client)), "tls/certificate-revoked")
        }
    }
}
