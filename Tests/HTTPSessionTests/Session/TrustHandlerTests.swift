import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing
import TestServers

/// Server trust handlers, tested through the complete library.
@Suite(.timeLimit(.minutes(20))) struct TrustHandlerTests {
    /// Records the server trust challenges and answers them.
    private final class TrustDecider: Sendable {
        private let questions = Locked<[ServerTrustChallenge]>([])
        private let answer: @Sendable (ServerTrustChallenge) async -> ServerTrustDisposition

        init(_ answer: @escaping @Sendable (ServerTrustChallenge) async -> ServerTrustDisposition) { self.answer = answer }

        convenience init(_ disposition: ServerTrustDisposition) { self.init { _ in disposition } }

        var asked: [ServerTrustChallenge] { questions.withLock { $0 } }

        var handlers: TransferHandlers {
            TransferHandlers(serverTrust: { challenge in
                self.questions.withLock { $0.append(challenge) }
                return await self.answer(challenge)
            })
        }
    }

    private func server(_ chain: String, _ reply: StubResponse = StubResponse(body: "x")) throws -> TestServer {
        try TestServer(tls: .minted(chain)) { _ in reply }
    }

    private func session(
        _ decider: TrustDecider? = nil, _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> HTTPSessionManager {
        let roots = try MintedCertificates.set("root")
        return try localSession(
            {
                $0.securityPolicy.roots = .given(roots)
                change(&$0)
            }, handlers: decider?.handlers ?? .init())
    }

    private func request(_ server: TestServer) -> TransferRequest { TransferRequest(url: server.url("/a?b=c")) }

    @Test func `a server trust handler accepts a certificate that the policy refuses, called once per session`() async throws {
        let server = try server("foreign-leaf-chain")
        let decider = TrustDecider(.accept)
        let session = try session(decider)
        let body = RequestBody.stream(length: 5) {
            AsyncThrowingStream { continuation in
                continuation.yield(Data("abcde".utf8))
                continuation.finish()
            }
        }
        let response = try await session.dataTask(for: TransferRequest(url: server.url(), method: .post, body: body)).response
        expectEqual(response.statusCode, 200)
        expectEqual(server.requests.map(\.text), ["abcde"])
        expectEqual(decider.asked.map(\.host), ["127.0.0.1"])
        expectEqual(decider.asked.first?.policyError?.code, .certificateHasUnknownRoot)
        expectEqual(
            decider.asked.first?.certificates, (try Certificate.all(in: MintedCertificates.data("foreign-leaf-chain.pem"))))
        _ = try await session.dataTask(for: request(server)).response
        expectEqual(decider.asked.count, 1, "and never again")
    }

    @Test func `monitors are notified once of a server trust challenge, before the response`() async throws {
        let server = try server("foreign-leaf-chain")
        let log = EventLog()
        let roots = try MintedCertificates.set("root")
        let session = try HTTPSessionManager(
            configuration: localConfiguration { $0.securityPolicy.roots = .given(roots) },
            handlers: TrustDecider(.accept).handlers,
            eventMonitors: [log])
        for _ in 0..<2 { _ = try await session.dataTask(for: request(server)).response }
        session.cancel(afterTasks: true)
        let events = await log.awaitInvalidation()
        expectEqual(events.filter { $0.hasPrefix("server challenged") }, ["server challenged certificate-has-unknown-root"])
        #expect(events.first { $0.hasPrefix("server") || $0.hasPrefix("response") }?.hasPrefix("server") == true)
    }

    @Test func `a server trust handler rejects a certificate that the policy trusts`() async throws {
        let server = try server("leaf-chain")
        let decider = TrustDecider(.reject)
        let session = try session(decider)
        for _ in 0..<2 {
            let error = await failure(session.dataTask(for: request(server)))
            expectEqual(error?.code, .certificateUntrusted)
            expectEqual(error?.context.url, server.url("/a").absoluteString)
        }
        expectEqual(decider.asked.count, 1)
        expectEmpty(server.requests)
        // For a task with its own handler, that one decides.
        let own = TrustDecider(.performDefaultHandling)
        await expectNil(failure(session.dataTask(for: request(server), handlers: own.handlers)))
    }

    @Test func `with performDefaultHandling the policy decides`() async throws {
        let decider = TrustDecider(.performDefaultHandling)
        let session = try session(decider)
        let (good, bad) = (try server("leaf-chain"), try server("expired-chain"))
        await expectNil(failure(session.dataTask(for: request(good))))
        await expectEqual(failure(session.dataTask(for: request(bad)))?.code, .certificateExpired)
        await expectEqual(failure(session.dataTask(for: request(bad)))?.code, .certificateExpired)
        expectEqual(decider.asked.count, 2)
        expectEmpty(bad.requests)
    }

    @Test func `another certificate chain of the same host, and another session, call the server trust handler again`()
        async throws
    {
        let decider = TrustDecider(.accept)
        let session = try session(decider)
        let (one, other) = (try server("foreign-leaf-chain"), try server("self-signed-san"))
        for server in [one, other, one, other] { await expectNil(failure(session.dataTask(for: request(server)))) }
        expectEqual(decider.asked.map(\.certificates.first?.subject), ["CN=foreign", "CN=somebody"])
        let second = TrustDecider(.reject)
        await expectEqual(failure(try self.session(second).dataTask(for: request(one)))?.code, .certificateHasUnknownRoot)
        expectEqual(second.asked.count, 1)
        // The session's decision does not apply to a task with its own handler.
        let own = TrustDecider(.performDefaultHandling)
        await expectEqual(failure(session.dataTask(for: request(one), handlers: own.handlers))?.code, .certificateHasUnknownRoot)
    }

    @Test func `two tasks that wait for the same server trust decision both succeed`() async throws {
        let server = try server("foreign-leaf-chain")
        let gate = Signal()
        let decider = TrustDecider { _ in
            await gate.wait()
            return .accept
        }
        let session = try session(decider)
        let tasks = (0..<2).map { _ in session.dataTask(for: request(server)) }
        try await server.awaitSeen { $0.failedHandshakes >= 2 }
        gate.fire()
        for task in tasks { await expectNil(failure(task)) }
    }

    @Test func `a server trust handler that never returns fails the task after the handler timeout`() async throws {
        let server = try server("leaf-chain")
        let never = Signal()
        let decider = TrustDecider { _ in
            await never.wait()
            return .accept
        }
        let session = try session(decider) { $0.handlerTimeout = .milliseconds(100) }
        await expectEqual(failure(session.dataTask(for: request(server)))?.code, .handlerTimedOut)
        expectEmpty(server.requests)
    }

    @Test func `a task canceled while its server trust handler runs ends, and the decision is ignored`() async throws {
        let server = try server("leaf-chain")
        let (asked, gate) = (Signal(), Signal())
        let decider = TrustDecider { _ in
            asked.fire()
            await gate.wait()
            return .accept
        }
        let session = try session(decider)
        let task = session.dataTask(for: request(server))
        await asked.wait()
        task.cancel()
        await expectEqual(failure(task)?.code, .cancelled)
        gate.fire()
        expectEmpty(server.requests)
    }

    @Test func `a server with another certificate on each connection fails after ten server trust challenges`() async throws {
        @Sendable func next(at address: ListeningAddress) throws -> TestServer {
            try TestServer(at: address, tls: SelfSignedCertificate().serverTLS) { _ in StubResponse(body: "x") }
        }
        let first = try next(at: .loopback)
        let port = first.port
        let server = Locked(first)
        let decider = TrustDecider { _ in
            server.withLock { server in
                server.stop()
                if let other = try? next(at: .ip("127.0.0.1", port: port)) { server = other }
            }
            return .accept
        }
        let error = await failure(try session(decider).dataTask(for: request(first)))
        expectEqual(error?.code, .certificateUntrusted)
        #expect(error?.reason.contains("other certificates") == true)
        expectEqual(decider.asked.count, 10)
    }

    @Test(arguments: [ServerTLS.Version.v1_2, .v1_3])
    func `a client identity from PEM or PKCS#12 is presented to a server that requires a certificate`(
        _ version: ServerTLS.Version
    ) async throws {
        var tls = try ServerTLS.minted("leaf-chain")
        (tls.minimumVersion, tls.maximumVersion) = (version, version)
        tls.clientCertificates = .required(
            authorities: .text(String(decoding: try MintedCertificates.data("client-root.pem"), as: UTF8.self)))
        let server = try TestServer(tls: tls) { _ in StubResponse(body: "x").closing() }
        let identities = [
            try ClientIdentity(
                certificate: MintedCertificates.data("client.pem"), privateKey: MintedCertificates.data("client.key")),
            try ClientIdentity(
                certificate: MintedCertificates.data("client.pem"), privateKey: MintedCertificates.data("client-encrypted.key"),
                passphrase: "secret"),
            try ClientIdentity(pkcs12: MintedCertificates.data("client.p12"), passphrase: "secret"),
        ]
        for identity in identities {
            let session = try session { $0.clientIdentity = identity }
            for _ in 0..<2 { await expectNil(failure(session.dataTask(for: request(server)))) }
        }
        let der = try MintedCertificates.one("client").derBytes
        expectEqual(server.requests.count, 6)
        #expect(server.requests.allSatisfy { $0.tls?.clientCertificate.map { Data($0) } == der })
        await expectEqual(failure(try session().dataTask(for: request(server)))?.code, .clientCertificateRequired)
        let foreign = try ClientIdentity(
            certificate: MintedCertificates.data("foreign-leaf.pem"), privateKey: MintedCertificates.data("foreign-leaf.key"))
        await expectEqual(
            failure(try session { $0.clientIdentity = foreign }.dataTask(for: request(server)))?.code,
            .clientCertificateRejected)
        await expectEqual(
            failure(
                try session { $0.clientIdentity = foreign }.dataTask(
                    for: TransferRequest(url: server.url(), method: .post, body: .data(Data(count: 3_000_000)))))?.code,
            .clientCertificateRejected)
        expectEqual(server.requests.count, 6)
    }

    @Test func `the minimum and maximum TLS version and the cipher list of the policy are enforced`() async throws {
        for version in [ServerTLS.Version.v1_0, .v1_1, .v1_2, .v1_3] {
            var tls = try ServerTLS.minted("leaf-chain")
            (tls.minimumVersion, tls.maximumVersion) = (version, version)
            let server = try TestServer(tls: tls) { _ in StubResponse(body: "x") }
            for (minimum, maximum) in [
                (SecurityPolicy.TLSVersion.v1_2, SecurityPolicy.TLSVersion.v1_2), (.v1_2, .v1_3), (.v1_3, .v1_3),
            ] {
                let error = await failure(
                    try session {
                        $0.securityPolicy.minimumTLSVersion = minimum
                        $0.securityPolicy.maximumTLSVersion = maximum
                    }.dataTask(for: request(server)))
                let fits = (version == .v1_2 && minimum == .v1_2) || (version == .v1_3 && maximum == .v1_3)
                expectEqual(
                    error?.code, (fits ? nil : .secureConnectionFailed),
                    "\(version) \(minimum) \(maximum): \(String(describing: error))")
            }
        }
        var tls = try ServerTLS.minted("leaf-chain")
        tls.maximumVersion = .v1_2
        let server = try TestServer(tls: tls) { _ in StubResponse(body: "x") }
        let chosen = try await session { $0.securityPolicy.cipherList = "ECDHE-ECDSA-CHACHA20-POLY1305" }.dataTask(
            for: request(server)
        )
        .response
        expectEqual(chosen.metrics.transactions.first?.negotiatedTLSCipherSuite, "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256")
        await expectEqual(
            failure(
                try session { $0.securityPolicy.cipherList = "ECDHE-RSA-AES128-GCM-SHA256" }.dataTask(for: request(server)))?
                .code, .secureConnectionFailed)
        let error = #expect(throws: HTTPSessionError.self) { try session { $0.securityPolicy.cipherList = "NO-SUCH" } }
        expectEqual(error?.code, .invalidConfiguration)
    }

    @Test func `a TLS version mismatch is not retried`() async throws {
        var tls = try ServerTLS.minted("leaf-chain")
        tls.maximumVersion = .v1_2
        let server = try TestServer(tls: tls) { _ in StubResponse(body: "x") }
        let session = try session {
            $0.securityPolicy.minimumTLSVersion = .v1_3
            $0.retryPolicy = RetryPolicy(baseDelay: .milliseconds(1), maximumDelay: .milliseconds(1))
        }
        await expectEqual(failure(session.dataTask(for: request(server)))?.code, .secureConnectionFailed)
        expectEqual(server.seen.connections, 1)
    }

    @Test func `an HTTPS proxy is evaluated by the proxy's security policy, not by the server's pins`() async throws {
        let own = try SelfSignedCertificate()
        let proxy = try ProxyServer(tls: own.serverTLS)
        let server = try server("leaf-chain")
        let pin = try MintedCertificates.one("leaf").publicKeyPin.description
        let wrong = try MintedCertificates.one("foreign-leaf").publicKeyPin.description
        let trusting = try SecurityPolicy.trusting(own)
        func proxiedSession(_ pins: [String], _ proxyPolicy: SecurityPolicy) throws -> HTTPSessionManager {
            let hostPins = try HostPins("127.0.0.1", pins: pins)
            return try session {
                $0.proxy = .explicit(proxy.url().absoluteString)
                $0.securityPolicy.hostPins = [hostPins]
                $0.proxySecurityPolicy = proxyPolicy
            }
        }
        await expectNil(failure(try proxiedSession([pin], trusting).dataTask(for: request(server))))
        expectEqual(server.requests.count, 1)
        await expectEqual(failure(try proxiedSession([wrong], trusting).dataTask(for: request(server)))?.code, .pinMismatch)
        let refused = await failure(try proxiedSession([pin], .default).dataTask(for: request(server)))
        #expect(
            refused?.code == .certificateHasUnknownRoot && refused?.reason.contains("proxy") == true,
            "\(String(describing: refused))")
        expectEqual(server.requests.count, 1)
        // The same applies if the server behind the proxy has no TLS.
        let plain = try TestServer { _ in StubResponse(body: "x") }
        await expectNil(failure(try proxiedSession([wrong], trusting).dataTask(for: request(plain))))
        await expectEqual(
            failure(try proxiedSession([pin], .default).dataTask(for: request(plain)))?.code, .certificateHasUnknownRoot)
        expectEqual(plain.requests.count, 1)
        // The handler is called for servers, not for proxies.
        let decider = TrustDecider(.accept)
        let asking = try session(decider) {
            $0.proxy = .explicit(proxy.url().absoluteString)
            $0.proxySecurityPolicy = trusting
        }
        await expectNil(failure(asking.dataTask(for: request(server))))
        expectEqual(decider.asked.map { $0.certificates.first?.subject }, ["CN=leaf"])
    }

    @Test func `certificate revocation lists are used; expired, forged or unrelated lists make the chain untrusted`() async throws
    {
        let server = try server("revoked-chain")
        let good = try self.server("leaf-chain")
        for (name, forGood, forRevoked) in [
            ("intermediate.crl", HTTPSessionError.Code?.none, HTTPSessionError.Code?.some(.certificateRevoked)),
            ("intermediate-old.crl", .some(.certificateUntrusted), .some(.certificateUntrusted)),
            ("intermediate-forged.crl", .some(.certificateUntrusted), .some(.certificateUntrusted)),
            ("root.crl", .some(.certificateUntrusted), .some(.certificateUntrusted)),
        ] {
            let lists = try RevocationLists(MintedCertificates.data(name))
            let session = try session { $0.securityPolicy.revocation = lists }
            await expectEqual(failure(session.dataTask(for: request(good)))?.code, forGood)
            await expectEqual(failure(session.dataTask(for: request(server)))?.code, forRevoked)
        }
        #expect(throws: HTTPSessionError.self) { try RevocationLists(files: ["/nonexistent/crl.pem"]) }
        #expect(throws: HTTPSessionError.self) { try RevocationLists(Data("garbage".utf8)) }
    }

    @Test func `the decision of a task's own server trust handler applies to that task only`() async throws {
        let server = try server("foreign-leaf-chain")
        let session = try session()
        for _ in 0..<2 {
            let (yes, no) = (TrustDecider(.accept), TrustDecider(.reject))
            await expectNil(failure(session.dataTask(for: request(server), handlers: yes.handlers)))
            #expect(await failure(session.dataTask(for: request(server), handlers: no.handlers)) != nil)
            await expectEqual(failure(session.dataTask(for: request(server)))?.code, .certificateHasUnknownRoot)
            #expect(yes.asked.count == 1 && no.asked.count == 1)
        }
        expectEqual(server.requests.count, 2)
    }
}
