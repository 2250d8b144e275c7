import Expectations
import FoundationEssentials
import MemoryCertificates
import Testing

@testable import Certificates
@testable import Reachability

/// Servers that make their clients compute: the handshake ends before the computation, with a cause of its own.
@Suite struct HandshakeCostTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// Makes a handshake with a server. Returns the client, and the last bytes that it sends.
    private func handshake(
        _ leaf: MemoryCertificate, _ chain: [MemoryCertificate] = [], _ server: MemoryServer.Settings = .init(),
        isInsecure: Bool = false
    ) throws -> (client: TLSClient, last: [UInt8]) {
        var settings = try SupportTests.settings()
        settings.isInsecure = isInsecure
        let client = try TLSClient(
            context: TLSClientContext.of(settings), serverName: "a.test", nanosecondsSpent: patientStart)
        let server = try MemoryServer(leaf, chain: chain, server)
        var (toServer, last) = (client.start(), [UInt8]())
        for _ in 0..<20 where !toServer.isEmpty {
            last = toServer
            toServer = client.receive(server.receive(toServer)).bytesToSend
        }
        return (client, last)
    }

    /// Checks that a handshake has ended because of its cost, and returns the sentence behind the server's address.
    private func refusal(_ result: (client: TLSClient, last: [UInt8])) -> String {
        expectEqual(result.client.state, .failed)
        expectEqual(name(causeOf(result.client)), "tls/excessive-cost")
        // The client answers with an alert (RFC 8446 section 5.1), and with no part of a key exchange.
        expectEqual(result.last.first, 21)
        return causeOf(result.client)?.detail.replacing("203.0.113.5 ", with: "") ?? ""
    }

    @Test(arguments: [4104, 8192, 10_000]) func `a Diffie-Hellman group above 4,096 bits is refused before the exponentiation`(
        bits: Int
    ) throws {
        let leaf = try MemoryCertificate("leaf", issuer: certificates.root, names: ["DNS:a.test"], algorithm: .rsa2048)
        let server = MemoryServer.Settings(
            versions: TLS12.number...TLS12.number, ciphers: "DHE-RSA-AES128-GCM-SHA256", groupBits: bits)
        try expectEqual(
            refusal(handshake(leaf, [], server)), "chooses a Diffie-Hellman group of \(bits) bits, and the limit is 4096")
    }

    @Test func `a Diffie-Hellman group of 2,048 bits is accepted`() throws {
        let leaf = try MemoryCertificate("leaf", issuer: certificates.root, names: ["DNS:a.test"], algorithm: .rsa2048)
        let server = MemoryServer.Settings(
            versions: TLS12.number...TLS12.number, ciphers: "DHE-RSA-AES128-GCM-SHA256", groupBits: 2048)
        let client = try handshake(leaf, [], server).client
        #expect(client.state == .established && client.facts.cipher == "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256", "\(client.facts)")
        expectNil(causeOf(client))
    }

    @Test func `the groups of RFC 7919 above 4,096 bits are not offered`() throws {
        let client = try TLSClient(context: TLSClientContext.of(SupportTests.settings()), serverName: "a.test")
        let hello = client.start()
        // ffdhe2048, ffdhe3072, ffdhe4096, and neither ffdhe6144 nor ffdhe8192: the end of the list of groups.
        let groups: [UInt8] = [1, 0, 1, 1, 1, 2]
        let end = try #require(hello.indices.first { hello[$0...].starts(with: groups) }) + groups.count
        #expect(hello[end..<(end + 2)] != [1, 3], "\(hello)")
    }

    @Test(
        arguments: [
            (
                .rsa(bits: 8200, exponentBits: 17),
                "sends a certificate with an RSA key of 8200 bits, and the limit is 8192"
            ),
            (
                .rsa(bits: 3072, exponentBits: 3071),
                "sends a certificate with an RSA key whose exponent has 3071 bits, and the limit is 33"
            ),
            (
                .rsa(bits: 2048, exponentBits: 34),
                "sends a certificate with an RSA key whose exponent has 34 bits, and the limit is 33"
            ),
            (.dsa(bits: 2048), "sends a certificate with a DSA key of 2048 bits, which no authority uses"),
        ] as [(CostlyKey, String)])
    func `a costly key of any certificate is refused before a signature is verified`(key: CostlyKey, sentence: String) throws {
        // The certificate need not belong to the chain: the server chooses where it stands.
        let costly = try MemoryCertificate("Intermediate", issuer: certificates.root, isAuthority: true, publicKey: key)
        for isInsecure in [false, true] {
            let result = try handshake(certificates.leaf, [costly, certificates.intermediate], isInsecure: isInsecure)
            expectEqual(refusal(result), sentence)
            let facts = result.client.facts
            #expect(facts.certificate?.subject == "CN=leaf" && facts.chainLength == 3 && facts.verificationErrors.isEmpty)
        }
    }

    @Test func `large keys below the limits are verified`() throws {
        let large = try MemoryCertificate(
            "Intermediate", issuer: certificates.root, isAuthority: true, publicKey: .rsa(bits: 8192, exponentBits: 33))
        let client = try handshake(certificates.leaf, [large, certificates.intermediate]).client
        #expect(client.state == .established && client.facts.excess == nil)
    }

    @Test func `names times constraints above 10,000 are refused before they are compared`() throws {
        let authority = try MemoryCertificate(
            "Constrained", issuer: certificates.root, isAuthority: true,
            constraints: (1...101).map { "permitted;DNS:\($0).test" })
        func leaf(names: Int) throws -> MemoryCertificate {
            try MemoryCertificate("leaf", issuer: authority, names: (1...names).map { "DNS:\($0).test" })
        }
        // The subjects of the two certificates count, and their common names.
        try expectEqual(
            refusal(handshake(leaf(names: 96), [authority])),
            "sends certificates with 100 names and 101 constraints on names, and the limit for the product is 10000")
        try expectNil(handshake(leaf(names: 95), [authority]).client.facts.excess)
    }

    @Test func `more than 32 KiB of certificates are refused before they are decoded`() throws {
        let names = (1...600).map { "DNS:host-\($0).a-rather-long-name-of-a-domain-for-tests.example.test" }
        let long = try MemoryCertificate("long", issuer: certificates.root, names: names)
        try #require(long.derBytes.count > 32 << 10)
        let result = try handshake(long)
        expectEqual(
            refusal(result),
            "sends a message of the handshake that is too long; the limit is 32 KiB for certificates, and 16 KiB for others")
        expectNil(result.client.facts.certificate)
    }

    @Test func `a chain with more than ten certificates between the server's and the authority is not verified`() throws {
        func chain(_ count: Int) throws -> (leaf: MemoryCertificate, others: [MemoryCertificate]) {
            var others = [try MemoryCertificate("1", issuer: certificates.root, isAuthority: true)]
            for number in 1..<count {
                others.insert(try MemoryCertificate("\(number + 1)", issuer: others[0], isAuthority: true), at: 0)
            }
            return (try MemoryCertificate("leaf", issuer: others[0], names: ["DNS:a.test"]), others)
        }
        let ten = try chain(10)
        try expectNil(causeOf(handshake(ten.leaf, ten.others).client))
        let eleven = try chain(11)
        let cause = try #require(try causeOf(handshake(eleven.leaf, eleven.others).client))
        #expect(
            name(cause) == "tls/excessive-cost"
                && cause.detail == "203.0.113.5 sends a chain with more certificates than this machine verifies")
    }

    @Test func `signatures of a chain that leads to no authority are not verified`() throws {
        // The signature of the leaf is not that of the certificate above it, which no authority has signed.
        let strange = try MemoryCertificate("Intermediate", issuer: certificates.strangeRoot, isAuthority: true)
        let client = try handshake(certificates.leaf, [strange, certificates.strangeRoot]).client
        expectEqual(name(causeOf(client)), "tls/certificate-untrusted")
        // 19: self-signed certificate in chain. 7 would be a signature that is not valid.
        expectEqual(client.facts.verificationErrors.map(\.code), [19])
        // With the root that is trusted, the signature counts.
        let forged = try MemoryCertificate("Intermediate", issuer: certificates.root, isAuthority: true)
        try expectEqual(handshake(certificates.leaf, [forged]).client.facts.verificationErrors.map(\.code), [7])
    }

    @Test func `a handshake that has used up its processor time ends`() throws {
        let client = try TLSClient(
            context: TLSClientContext.of(SupportTests.settings()), serverName: "a.test",
            nanosecondsSpent: HandshakeCost.maximumNanoseconds)
        converse(client, try MemoryServer(certificates.leaf, chain: [certificates.intermediate]))
        #expect(client.state == .failed && client.nanosecondsSpent > HandshakeCost.maximumNanoseconds)
        expectEqual(name(causeOf(client)), "tls/excessive-cost")
        let detail = causeOf(client)?.detail ?? ""
        let limit = HandshakeCost.maximumNanoseconds / 1_000_000
        #expect(detail.hasPrefix("203.0.113.5 takes ") && detail.hasSuffix(" for TLS, and the limit is \(limit) ms"), "\(detail)")
    }

    @Test func `the user's own revocation lists do not count as the server's cost`() throws {
        let list = try certificates.intermediate.revocationList(of: [certificates.leaf])
        let context = TLSClientContext.of(
            try TLSClientSettings.reading(authorities: (certificates.root.derBytes, "root"), revocationLists: (list, "list")))
        try expectEqual(context.load().authorities?.revocationListBytes, list.count)
        // 200,000 entries have about 8 MB, whose signature takes 20 ms and more.
        let (limit, long) = (HandshakeCost.maximumNanoseconds, HandshakeCost.limit(plaintextBytes: 0, listBytes: 8_000_000))
        expectEqual(HandshakeCost.limit(plaintextBytes: 0, listBytes: 0), limit)
        expectEqual(long, limit + 80_000_000)
    }

    // MARK: The dates of the verified path

    @Test func `a superfluous certificate that expires soon, or has expired, does not count`() throws {
        for days in [-1...5, -40 ... -10] {
            let superfluous = try MemoryCertificate("Cross", issuer: certificates.strangeRoot, isAuthority: true, days: days)
            let client = try handshake(certificates.leaf, [certificates.intermediate, superfluous]).client
            expectNil(causeOf(client))
            expectEqual(client.facts.chainLength, 3)
        }
    }

    @Test func `the root of the verified path counts, which the server does not send`() throws {
        let root = try MemoryCertificate("Old Root", isAuthority: true, days: -1...5)
        let leaf = try MemoryCertificate("leaf", issuer: root, names: ["DNS:a.test"])
        let settings = try TLSClientSettings.reading(authorities: (root.derBytes, "root"), revocationLists: nil)
        let client = try TLSClient(context: TLSClientContext.of(settings), serverName: "a.test")
        converse(client, try MemoryServer(leaf))
        expectEqual(name(causeOf(client)), "tls/certificate-expiring")
        #expect(causeOf(client)?.detail.hasPrefix("203.0.113.5 has a chain with a certificate that expires on ") == true)
    }
}
