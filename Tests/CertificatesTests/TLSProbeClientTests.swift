import COpenSSL
import FoundationEssentials
import Testing

@testable import Certificates

/// Handshakes between the client of probes and a server, both in memory.
@Suite struct TLSProbeClientTests {
    private static let root = Issued("Root", isAuthority: true)
    private static let intermediate = Issued("Intermediate", by: root, isAuthority: true)
    private static let leaf = Issued("db", by: intermediate, names: "DNS:db.example,DNS:*.db.example,IP:192.0.2.1")

    private static func trusting(_ given: [Issued] = [root], revoked: Data? = nil) throws -> TLSProbeContext {
        try TLSProbeContext(
            Authorities(
                includesSystem: false, given: Set(given.map(\.certificate)),
                revocation: revoked.map { Authorities.Revocation(lists: [$0], coversCompleteChain: false) }))
    }

    private static func client(
        _ context: TLSProbeContext, _ name: String = "db.example", protocols: [String] = []
    ) throws -> TLSProbeClient {
        try #require(TLSProbeClient(context, serverName: name, isAddress: name.first?.isNumber == true, protocols: protocols))
    }

    /// Exchanges bytes until neither side has more, in pieces of this size for the client.
    @discardableResult
    private static func shake(_ client: TLSProbeClient, _ server: MemoryServer, piece: Int = .max) -> [UInt8] {
        client.start()
        var plaintext: [UInt8] = []
        for _ in 0..<100 {
            let sent = client.takeOutput()
            let answer = server.answer(sent)
            if sent.isEmpty, answer.isEmpty { break }
            plaintext += feed(client, answer, piece: piece)
        }
        return plaintext
    }

    @discardableResult
    private static func feed(_ client: TLSProbeClient, _ bytes: [UInt8], piece: Int = .max) -> [UInt8] {
        var plaintext: [UInt8] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let part = rest.prefix(piece)
            plaintext += part.withUnsafeBytes { client.receive($0) }
            rest = rest.dropFirst(part.count)
        }
        return plaintext
    }

    private func facts(
        _ server: MemoryServer, trusting given: [Issued] = [TLSProbeClientTests.root], name: String = "db.example",
        revoked: Data? = nil
    ) throws -> TLSHandshakeFacts {
        let client = try Self.client(try Self.trusting(given, revoked: revoked), name)
        Self.shake(client, server)
        return client.facts
    }

    private func codes(_ facts: TLSHandshakeFacts) -> Set<Int32> { Set(facts.verifyErrors.map(\.code)) }

    @Test(arguments: [1, 7, Int.max]) func `a trusted server has a complete handshake and its facts, in pieces of any size`(
        piece: Int
    ) throws {
        let client = try Self.client(try Self.trusting(), protocols: ["http/1.1"])
        let server = MemoryServer(Self.leaf, chain: [Self.intermediate], .init(applicationProtocol: "http/1.1"))
        Self.shake(client, server, piece: piece)
        #expect(client.state == .established && client.facts.isComplete && client.facts.verifyErrors.isEmpty)
        #expect(client.facts.version == "TLSv1.3" && client.facts.applicationProtocol == "http/1.1")
        #expect(client.facts.cipher == "TLS_AES_256_GCM_SHA384" && server.serverName == "db.example")
        let certificate = try #require(client.facts.certificate)
        #expect((certificate.subject, certificate.issuer) == ("CN=db", "CN=Intermediate"))
        #expect(certificate.names == ["db.example", "*.db.example", "192.0.2.1"] && certificate.chainLength == 2)
        #expect(certificate.sha256.count == 64 && certificate.notAfter > certificate.notBefore)
        client.send(Array("ping".utf8))
        #expect(Self.feed(client, server.answer(client.takeOutput()), piece: piece) == Array("ping".utf8))
    }

    @Test func `an address is compared with the certificate and is not sent as a name`() throws {
        let server = MemoryServer(Self.leaf, chain: [Self.intermediate])
        #expect(codes(try facts(server, name: "192.0.2.1")).isEmpty && server.serverName == nil)
        #expect(codes(try facts(MemoryServer(Self.leaf, chain: [Self.intermediate]), name: "192.0.2.2")) == [64])
    }

    @Test func `all errors of a certificate are collected, and the handshake continues`() throws {
        #expect(codes(try facts(MemoryServer(Self.leaf, chain: [Self.intermediate]), name: "other.example")) == [62])
        #expect(codes(try facts(MemoryServer(Self.leaf))).contains(20), "the intermediate is missing")
        #expect(try facts(MemoryServer(Self.leaf)).certificate?.chainLength == 1)
        let own = Issued("self", names: "DNS:db.example")
        #expect(codes(try facts(MemoryServer(own))) == [18])
        let expired = Issued("old", by: Self.root, names: "DNS:db.example", days: -30 ... -2)
        #expect(codes(try facts(MemoryServer(expired))) == [10])
        let early = Issued("new", by: Self.root, names: "DNS:db.example", days: 2...30)
        #expect(codes(try facts(MemoryServer(early))) == [9])
        let several = Issued("bad", names: "DNS:a", days: -30 ... -2)
        #expect(codes(try facts(MemoryServer(several))) == [18, 62, 10])
        #expect(try facts(MemoryServer(several)).isComplete)
    }

    @Test func `a revoked certificate is found by a list that is given`() throws {
        let leaf = Issued("db", by: Self.root, names: "DNS:db.example")
        #expect(codes(try facts(MemoryServer(leaf), revoked: Self.root.revocationList([leaf]))) == [23])
        #expect(codes(try facts(MemoryServer(leaf), revoked: Self.root.revocationList([]))).isEmpty)
    }

    @Test func `an old version and a cipher that is not common end with an alert or this side's own reason`() throws {
        let old = try facts(MemoryServer(Self.leaf, .init(versions: TLS1_1_VERSION...TLS1_1_VERSION)))
        #expect(!old.isComplete && (old.alert == 70 || old.reason != 0), "\(old)")
        let cipher = MemoryServer.Settings(versions: TLS1_2_VERSION...TLS1_2_VERSION, ciphers: "NULL-SHA256:@SECLEVEL=0")
        let refused = try facts(MemoryServer(Self.leaf, cipher))
        #expect(!refused.isComplete && refused.alert == 40)
    }

    @Test func `a name that the server does not know ends with its alert`() throws {
        let facts = try facts(MemoryServer(Self.leaf, .init(refusesName: true)))
        #expect(facts.alert == 112 && !facts.isComplete)
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION]) func `a client certificate that is demanded is known`(version: Int32) throws {
        let settings = MemoryServer.Settings(versions: version...version, requiresClientCertificate: true)
        let client = try Self.client(try Self.trusting())
        Self.shake(client, MemoryServer(Self.leaf, chain: [Self.intermediate], settings))
        #expect(client.facts.isCertificateRequested && client.state == .failed)
        #expect(client.facts.alert == (version == TLS1_3_VERSION ? 116 : 40))
        // In TLS 1.3 the client is done before the server has seen that there is no certificate.
        #expect(client.facts.isComplete == (version == TLS1_3_VERSION))
    }

    @Test(arguments: [
        "HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "220 mail.example ESMTP\r\n", "\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}",
    ])
    func `a server that does not speak TLS is known by its first bytes`(text: String) throws {
        let client = try Self.client(try Self.trusting())
        client.start()
        Self.feed(client, Array(text.utf8), piece: 3)
        #expect(client.state == .failed && client.facts.firstBytes == Array(text.utf8.prefix(client.facts.receivedBytes).prefix(32)))
    }

    @Test func `a server that echoes fails without an answer of its own`() throws {
        let client = try Self.client(try Self.trusting())
        client.start()
        Self.feed(client, client.takeOutput())
        #expect(client.state == .failed && client.facts.reason != 0 && client.facts.firstBytes == nil)
    }

    @Test func `a server's flight that ends at any byte leaves the handshake open or failed, and its facts readable`() throws {
        let context = try Self.trusting()
        let first = try Self.client(context)
        first.start()
        let flight = MemoryServer(Self.leaf, chain: [Self.intermediate]).answer(first.takeOutput())
        for count in stride(from: 0, to: flight.count, by: 3) {
            let client = try Self.client(context)
            client.start()
            // The flight answers another hello, so that its keys are wrong from the first encrypted record on.
            Self.feed(client, Array(flight[..<count]), piece: 100)
            #expect(!client.facts.isComplete)
            client.finish()
            client.finish()
            #expect(client.takeOutput().isEmpty && client.receive(UnsafeRawBufferPointer(start: nil, count: 0)).isEmpty)
        }
    }

    @Test func `random bytes never trap`() throws {
        let context = try Self.trusting()
        let seed = UInt64.random(in: 0...UInt64.max)
        var random = Seeded(state: seed)
        for _ in 0..<300 {
            let client = try Self.client(context)
            client.start()
            let kinds: [UInt8] = [20, 21, 22, 23, 24, 0]
            var bytes = [kinds[Int.random(in: 0..<6, using: &random)], 3, 3, 0, UInt8.random(in: 0...80, using: &random)]
            bytes += (0..<200).map { _ in UInt8.random(in: 0...255, using: &random) }
            Self.feed(client, bytes, piece: Int.random(in: 1...64, using: &random))
            #expect(!client.facts.isComplete, "seed \(seed)")
        }
    }

    /// SplitMix64.
    private struct Seeded: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state &+= 0x9e37_79b9_7f4a_7c15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
            return mixed ^ (mixed >> 31)
        }
    }
}
