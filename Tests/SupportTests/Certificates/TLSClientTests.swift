import Certificates
import Expectations
import FoundationEssentials
import MemoryCertificates
import NetworkLab
import Pacing
import Testing

@testable import Reachability

@Suite struct TLSClientTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func client(
        _ settings: TLSClientSettings? = nil, name: String = "a.test", protocols: [String] = []
    ) throws -> TLSClient {
        let context = TLSClientContext.of(try settings ?? SupportTests.settings())
        return try TLSClient(
            context: context, serverName: name, applicationProtocols: protocols, nanosecondsSpent: patientStart)
    }

    private func server(_ certificate: MemoryCertificate? = nil, _ settings: MemoryServer.Settings = .init()) throws
        -> MemoryServer
    {
        try MemoryServer(certificate ?? certificates.leaf, chain: [certificates.intermediate], settings)
    }

    // MARK: Handshakes that work

    @Test(arguments: [TLS12, TLS13])
    func `a handshake gives the facts of the connection and of the certificate`(version: Version) throws {
        let server = try server(nil, .init(versions: version.number...version.number, applicationProtocol: "h2"))
        let client = try client(protocols: ["h2", "http/1.1"])
        converse(client, server)
        #expect(client.state == .established && client.handshakeEnd == .completed)
        let facts = client.facts
        #expect(facts.version == version.name && facts.isComplete && facts.applicationProtocol == "h2")
        #expect(facts.cipher?.hasPrefix("TLS_") == true)
        #expect(facts.chainLength == 2 && facts.verificationErrors.isEmpty && facts.nameMatches == true)
        #expect(facts.hasBegunRecord && facts.firstBytes == nil && !facts.isEcho && !facts.isCertificateRequested)
        let certificate = try #require(facts.certificate)
        #expect(certificate.subject == "CN=leaf" && certificate.issuer == "CN=Intermediate" && !certificate.isSelfIssued)
        #expect(certificate.names == ["a.test", "*.b.test", "192.0.2.1", "2001:db8::1"] && certificate.nameCount == 4)
        #expect(certificate.sha256.count == 64 && certificate.serialNumber.count == 16)
        let validity = (certificate.notAfter ?? 0) - (certificate.notBefore ?? 0)
        expectEqual(validity, 101 * 86_400 + 43_200)
        expectEqual(server.serverName, "a.test")
        #expect(!client.mayStillBeRefused)
        expectNil(causeOf(client))
    }

    @Test(arguments: [TLS12, TLS13])
    func `data flows in both directions until close_notify`(version: Version) throws {
        let server = try server(nil, .init(versions: version.number...version.number))
        let client = try client()
        converse(client, server)
        expectEqual(client.send([]), [])
        let sent = [UInt8](repeating: 7, count: 100_000)
        _ = server.receive(client.send(sent))
        expectEqual(server.received, sent)
        expectEqual(client.receive(server.send([1, 2, 3])).plaintext, [1, 2, 3])
        #expect(!client.hasReceivedCloseNotify)
        expectEqual(client.receive(server.send([4]) + server.close()).plaintext, [4])
        #expect(client.state == .closed && client.hasReceivedCloseNotify && client.handshakeEnd == .completed)
        #expect(!client.close().isEmpty)
    }

    @Test(arguments: ["192.0.2.1", "[2001:DB8::1]", "2001:db8::1%eth0", "WWW.B.Test."])
    func `addresses and wildcards match, and addresses are not sent as names`(name: String) throws {
        let server = try server()
        let client = try client(name: name)
        converse(client, server)
        expectEqual(client.facts.nameMatches, true)
        expectEqual(server.serverName, (name.hasPrefix("W") ? "www.b.test" : nil))
    }

    @Test func `bytes that arrive one by one give the same facts`() throws {
        let server = try server()
        let client = try client()
        // A sanitizer makes single bytes cost more processor time than a server may.
        converse(client, server, size: Sanitizer.isUsed ? 16 : 1)
        #expect(client.state == .established && causeOf(client) == nil)
    }

    // MARK: The table of faults

    @Test(
        arguments: [
            (
                "HTTP/1.1 400 Bad Request\r\n",
                "speaks HTTP instead of TLS: its first bytes are \"HTTP/1.1 400 Bad Request\\r\\n\""
            ),
            ("SSH-2.0-OpenSSH_9.2p1\r\n", "speaks SSH instead of TLS: its first bytes are \"SSH-2.0-OpenSSH_9.2p1\\r\\n\""),
            ("220 mail.test ESMTP\r\n", "speaks SMTP or FTP instead of TLS: its first bytes are \"220 mail.test ESMTP\\r\\n\""),
            ("ab", "does not speak TLS: its first bytes are \"ab\""),
        ])
    func `a server of another protocol is a protocol mismatch`(bytes: String, detail: String) throws {
        for end in [nil, .deadline, .endOfFile, .systemError(104)] as [TLSHandshakeEnd?] {
            let client = try client()
            _ = client.start()
            _ = client.receive(Array(bytes.utf8))
            let cause = try #require(causeOf(client, end))
            #expect(cause.code == .protocolMismatch && cause.detail == "203.0.113.5 \(detail)")
            expectEqual(cause.evidence["first_bytes"], .text(ExternalText.escaped(bytes.utf8.prefix(32))))
        }
    }

    @Test func `an echo server is a protocol mismatch`() throws {
        let client = try client()
        _ = client.receive(client.start())
        #expect(client.state == .failed && client.facts.isEcho && client.facts.protocolError?.reason == 244)
        expectEqual(name(causeOf(client)), "tls/protocol-mismatch")
    }

    @Test func `silence is stalled, and a trickle is a timeout`() throws {
        let silent = try client()
        _ = silent.start()
        #expect(name(causeOf(silent)) == "tls/handshake-stalled" && silent.handshakeEnd == nil)
        let trickle = try client()
        let bytes = try server().receive(trickle.start())
        for byte in bytes.prefix(3) { _ = trickle.receive([byte]) }
        #expect(trickle.facts.hasBegunRecord && trickle.facts.bytesReceived == 3)
        expectEqual(name(causeOf(trickle)), "tls/handshake-timeout")
    }

    @Test func `closing and resetting the connection is a refusal`() throws {
        let client = try client()
        _ = client.start()
        expectEqual(name(causeOf(client, .endOfFile)), "tls/handshake-refused")
        expectEqual(causeOf(client, .endOfFile)?.evidence["closed"], .flag(true))
        expectEqual(causeOf(client, .systemError(104))?.evidence["reset"], .flag(true))
        expectNil(causeOf(client, .systemError(113)))
        // close_notify in place of a hello.
        expectEqual(client.receive([21, 3, 3, 0, 2, 1, 0]).state, .closed)
        #expect(client.handshakeEnd == .endOfFile && name(causeOf(client)) == "tls/handshake-refused")
    }

    @Test func `a server of TLS 1.1 alone is a protocol mismatch`() throws {
        let client = try client()
        converse(client, try server(nil, .init(versions: TLS11...TLS11)))
        expectEqual(client.state, .failed)
        expectEqual(name(causeOf(client)), "tls/protocol-mismatch", "\(client.facts)")
        // A server that answers with its version, instead of an alert.
        let offered = try self.client()
        _ = offered.start()
        _ = offered.receive([22, 3, 2, 0, 42, 2, 0, 0, 38, 3, 2] + [UInt8](repeating: 9, count: 32) + [0, 0xC0, 0x13, 0])
        expectEqual(causeOf(offered)?.detail, "203.0.113.5 offers TLSv1.1, and TLS 1.2 or newer is required", "\(offered.facts)")
    }

    @Test func `no common cipher is a refusal by alert 40`() throws {
        let client = try client()
        converse(client, try server(nil, .init(versions: TLS12.number...TLS12.number, ciphers: "AES128-SHA")))
        expectEqual(name(causeOf(client)), "tls/handshake-refused")
        expectEqual(causeOf(client)?.evidence["alert"], .text("40 handshake failure"))
    }

    @Test func `an unknown name is a refusal by alert 112`() throws {
        let client = try client()
        converse(client, try server(nil, .init(onlyName: "b.test")))
        expectEqual(name(causeOf(client)), "tls/handshake-refused")
        expectEqual(causeOf(client)?.detail, "203.0.113.5 has no certificate for a.test (alert 112, unrecognized name)")
    }

    @Test func `a client certificate is required by alert 40 in TLS 1.2 and alert 116 after the handshake in TLS 1.3`() throws {
        let old = try client()
        converse(old, try server(nil, .init(versions: TLS12.number...TLS12.number, requiresCertificate: true)))
        #expect(old.facts.alert?.number == 40 && old.facts.isCertificateRequested && !old.facts.isComplete)
        expectEqual(name(causeOf(old)), "tls/client-certificate-required")

        let new = try client()
        let server = try server(nil, .init(versions: TLS13.number...TLS13.number, requiresCertificate: true))
        let step = new.receive(server.receive(new.start()))
        #expect(step.state == .established && new.mayStillBeRefused && causeOf(new) == nil)
        expectEqual(name(causeOf(new, .endOfFile)), "tls/client-certificate-required")
        expectEqual(name(causeOf(new, .deadline)), "none")
        expectEqual(new.receive(server.receive(step.bytesToSend)).state, .failed)
        #expect(!new.mayStillBeRefused && new.facts.alert?.number == 116 && new.facts.isComplete)
        expectEqual(name(causeOf(new)), "tls/client-certificate-required")
    }

    @Test func `a client with a certificate sends it to a server that is trusted, and an empty one to others`() throws {
        let leaf = certificates.leaf
        let identity = try ClientCertificate(
            CertificateDecoding.certificates(in: Data(leaf.pem.utf8), named: "leaf"),
            PrivateKey(pem: Data(leaf.keyPEM.utf8), passphrase: nil, named: "key"), named: "leaf")
        for version in [TLS12.number, TLS13.number] {
            for (isTrusted, isInsecure) in [(true, false), (false, false), (false, true)] {
                var settings = isTrusted ? try SupportTests.settings() : TLSClientSettings()
                (settings.identity, settings.isInsecure) = (identity, isInsecure)
                let client = try client(settings)
                converse(client, try server(nil, .init(versions: version...version, requestsCertificate: true)))
                let isSent = isTrusted || isInsecure
                expectEqual(client.facts.clientSubject != nil, isSent)
                expectEqual(client.facts.isIdentityWithheld == true, !isSent)
            }
        }
    }

    @Test func `a server that requests a certificate and needs none shows that it accepts the client`() throws {
        let client = try client()
        let server = try server(nil, .init(requestsCertificate: true))
        let step = client.receive(server.receive(client.start()))
        #expect(client.mayStillBeRefused)
        _ = client.receive(server.receive(step.bytesToSend))
        #expect(client.state == .established && !client.mayStillBeRefused && client.facts.isCertificateRequested)
        expectNil(causeOf(client))
    }

    @Test func `an invalid certificate is named by the first of chain, name and dates`() throws {
        func run(
            _ certificate: MemoryCertificate, chain: [MemoryCertificate], name: String = "a.test",
            _ settings: TLSClientSettings? = nil
        ) throws -> (String, String, [Int32]) {
            let client = try client(settings, name: name)
            converse(client, try MemoryServer(certificate, chain: chain))
            expectEqual(client.state, .established)
            let cause = causeOf(client)
            return (SupportTests.name(cause), cause?.detail ?? "", client.facts.verificationErrors.map(\.code))
        }
        let chain = [certificates.intermediate]
        var result = try run(certificates.expired, chain: chain)
        #expect(result.0 == "tls/certificate-expired" && result.1.hasSuffix(", 23 days ago") && result.2 == [10], "\(result)")
        result = try run(certificates.future, chain: chain)
        #expect(result.0 == "tls/certificate-not-yet-valid" && result.2 == [9], "\(result)")
        result = try run(certificates.early, chain: chain)
        #expect(result.0 == "tls/certificate-expiring" && result.1.hasSuffix("in 5 days") && result.2 == [], "\(result)")
        result = try run(certificates.other, chain: chain)
        #expect(result.0 == "tls/hostname-mismatch" && result.2 == [62])
        expectEqual(result.1, "203.0.113.5 presents a certificate for other.test and www.other.test, not for a.test")
        result = try run(certificates.leaf, chain: chain, name: "192.0.2.9")
        #expect(result.0 == "tls/hostname-mismatch" && result.2 == [64])
        result = try run(certificates.expired, chain: chain, name: "x.test")
        #expect(result.0 == "tls/hostname-mismatch" && result.2 == [10, 62])
        result = try run(certificates.leaf, chain: [])
        #expect(result.0 == "tls/certificate-untrusted" && result.2.contains(20))
        let sentence = "203.0.113.5 sends its certificate without the intermediate certificate of the issuer"
        expectEqual(result.1, "\(sentence) CN=Intermediate, or this issuer is not trusted")
        // A certificate that a root signed directly has the same facts.
        result = try run(certificates.strangeExpiredOther, chain: [])
        expectEqual(result.1, "\(sentence) CN=Strange Root, or this issuer is not trusted")
        result = try run(certificates.selfSigned, chain: [])
        #expect(result.0 == "tls/certificate-untrusted" && result.2 == [18] && result.1.contains("self-signed"), "\(result)")
        result = try run(certificates.strangeExpiredOther, chain: [certificates.strangeRoot])
        #expect(result.0 == "tls/certificate-untrusted" && result.2 == [19, 10, 62], "\(result)")
        result = try run(certificates.leaf, chain: chain, settings(revoking: [certificates.leaf]))
        #expect(result.0 == "tls/certificate-revoked" && result.2 == [23], "\(result)")
        result = try run(certificates.leaf, chain: chain, settings(revoking: [certificates.other]))
        #expect(result.0 == "none" && result.2 == [])
    }

    @Test func `an insecure context keeps all errors of the certificates`() throws {
        func codes(_ certificate: MemoryCertificate, chain: [MemoryCertificate], revoking: [MemoryCertificate]? = nil) throws
            -> [Int32]
        {
            var settings = try settings(revoking: revoking)
            settings.isInsecure = true
            let client = try client(settings)
            converse(client, try MemoryServer(certificate, chain: chain))
            #expect(client.state == .established && causeOf(client, isInsecure: true) == nil)
            return client.facts.verificationErrors.map(\.code)
        }
        let chain = [certificates.intermediate]
        try expectEqual(codes(certificates.leaf, chain: chain), [])
        try expectEqual(codes(certificates.expired, chain: chain), [10])
        try expectEqual(codes(certificates.future, chain: chain), [9])
        try expectEqual(codes(certificates.selfSigned, chain: []), [18])
        #expect(try codes(certificates.leaf, chain: []).contains(20))
        try expectEqual(codes(certificates.leaf, chain: chain, revoking: [certificates.leaf]), [23])
        try expectEqual(codes(certificates.strangeExpiredOther, chain: [certificates.strangeRoot]), [19, 10, 62])
    }

    // MARK: Servers that misbehave

    @Test func `a fatal alert 0 is named`() throws {
        let client = try client()
        _ = client.start()
        expectEqual(client.receive([21, 3, 3, 0, 2, 2, 0]).state, .failed)
        let cause = causeOf(client)
        expectEqual(cause?.detail, "203.0.113.5 refuses the TLS handshake (alert 0, close notify)", "\(cause?.detail ?? "")")
        expectEqual(name(cause), "tls/handshake-refused")
    }

    @Test func `a certificate that cannot be parsed is named`() throws {
        let client = try client()
        var flight = try server(nil, .init(versions: TLS12.number...TLS12.number)).receive(client.start())
        let range = try #require(flight.firstRange(of: Array(certificates.leaf.derBytes)))
        flight[range.lowerBound] = 0x31
        expectEqual(client.receive(flight).state, .failed)
        let cause = causeOf(client)
        expectEqual(
            cause?.detail, "203.0.113.5 breaks the TLS protocol: its certificate cannot be parsed", "\(cause?.detail ?? "")")
    }

    @Test(.skippedByThreadSanitizer) func `a flight that is cut after any byte ends sensibly`() throws {
        for version in [TLS12, TLS13] {
            let client = try client()
            let flight = try server(nil, .init(versions: version.number...version.number)).receive(client.start())
            for count in flight.indices {
                let client = try self.client()
                _ = client.start()
                _ = client.receive(Array(flight.prefix(count)))
                let facts = client.facts
                #expect(facts.bytesReceived <= count && (facts.bytesReceived > 0) == (count > 0) && facts.firstBytes == nil)
                // The flight answers the hello of another client, so TLS 1.3 may fail to decrypt it.
                let expected =
                    client.state == .failed ? "protocol-mismatch" : count == 0 ? "handshake-stalled" : "handshake-timeout"
                expectEqual(name(causeOf(client)), "tls/\(expected)")
                expectEqual(name(causeOf(client, .endOfFile)), "tls/handshake-refused")
            }
        }
    }

    @Test func `random bytes and changed bytes never trap`() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var random = SplitMix64(seed: seed)
        for round in 0..<300 {
            let client = try client()
            let server = try server()
            var bytes = server.receive(client.start())
            if round % 3 == 0 {
                bytes = (0..<Int.random(in: 1...2000, using: &random)).map { _ in .random(in: 0...255, using: &random) }
                if round % 2 == 0 { bytes.replaceSubrange(0..<min(3, bytes.count), with: [22, 3, 3]) }
            } else {
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    bytes[Int.random(in: bytes.indices, using: &random)] = .random(in: 0...255, using: &random)
                }
            }
            let step = client.receive(bytes)
            _ = client.receive(server.receive(step.bytesToSend))
            _ = client.send([1])
            _ = client.close()
            for end in [.deadline, .endOfFile, .protocolError, .systemError(104)] as [TLSHandshakeEnd] {
                _ = causeOf(client, end)
            }
            #expect(client.facts.bytesReceived > 0, "seed \(seed), round \(round)")
        }
    }

    @Test func `endless messages reach a limit`() throws {
        // Certificates of TLS 1.2 whose length is more than OpenSSL accepts; then empty records; then warnings.
        let endless: [[UInt8]] = [
            [22, 3, 3, 0, 5, 2, 0, 0, 0, 0], [22, 3, 3, 0, 0], [21, 3, 3, 0, 2, 1, 90], [20, 3, 3, 0, 1, 1],
        ]
        for record in endless {
            let client = try client()
            _ = client.start()
            for _ in 0..<20_000 where client.state == .handshaking { _ = client.receive(record) }
            expectEqual(client.state, .failed, "\(record)")
            #expect(client.facts.bytesReceived <= TLSClient.maximumBytesWithoutPlaintext + record.count)
            expectEmpty(client.receive(record).bytesToSend)
        }
    }

    @Test func `HelloRequests before the server's hello reach a limit`() throws {
        let client = try client()
        _ = client.start()
        for _ in 0..<40_000 where client.state == .handshaking { _ = client.receive([22, 3, 3, 0, 4, 0, 0, 0, 0]) }
        expectEqual(client.state, .failed)
        // The limit of bytes, or of processor time.
        #expect(["tls/protocol-mismatch", "tls/excessive-cost"].contains(name(causeOf(client))))
    }

    @Test func `a renegotiation is declined, and the connection stays`() throws {
        let server = try server(nil, .init(versions: TLS12.number...TLS12.number))
        let client = try client()
        converse(client, server)
        let step = client.receive(server.requestRenegotiation())
        #expect(step.state == .established && !step.bytesToSend.isEmpty)
        #expect(client.facts.isComplete)
    }
}

struct Version: Sendable {
    let number: Int32
    let name: String
}
let TLS11: Int32 = 0x0302
let TLS12 = Version(number: 0x0303, name: "TLSv1.2")
let TLS13 = Version(number: 0x0304, name: "TLSv1.3")

@Suite struct TLSClientMemoryTests {
    // In a process of its own: tests beside it would use memory too.
    @Test(.skippedUnderSanitizers) func `a handshake in flight takes less than 64 kB`() async {
        await #expect(processExitsWith: .success) {
            let certificates = try TestCertificates.shared.get()
            let context = TLSClientContext.of(try settings())
            let first = try TLSClient(context: context, serverName: "a.test", nanosecondsSpent: patientStart)
            let flight = try MemoryServer(certificates.leaf, chain: [certificates.intermediate]).receive(first.start())
            var clients: [TLSClient] = []
            let before = anonymousBytes()
            for _ in 0..<1000 {
                let client = try TLSClient(context: context, serverName: "a.test", nanosecondsSpent: patientStart)
                _ = client.start()
                _ = client.receive(Array(flight.prefix(60)))
                clients.append(client)
            }
            let count = (anonymousBytes() - before) / clients.count
            try #require(count > 1_000 && count < 64_000, "a handshake in flight takes \(count) bytes")
        }
    }
}

/// The resident memory of this process without the pages of files, of which code and libraries have more on a busy machine (proc_pid_statm(5)).
func anonymousBytes() -> Int {
    let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
    let pages = text.split(separator: " ").prefix(3).compactMap { Int($0) }
    return pages.count == 3 ? (pages[1] - pages[2]) * 4096 : 0
}
