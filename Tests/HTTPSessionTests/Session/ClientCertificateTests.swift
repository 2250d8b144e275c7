import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// Servers that request a client certificate, and a handler that chooses it.
@Suite(.timeLimit(.minutes(20))) struct ClientCertificateTests {
    /// Records the client certificate challenges and answers them.
    private final class IdentityChooser: Sendable {
        private let questions = Locked<[ClientCertificateChallenge]>([])
        private let answer: @Sendable (Int) async -> ClientCertificateDisposition

        /// `answer` receives the number of the challenge, starting with 1.
        init(_ answer: @escaping @Sendable (Int) async -> ClientCertificateDisposition) { self.answer = answer }

        var asked: [ClientCertificateChallenge] { questions.withLock { $0 } }

        var handlers: TransferHandlers {
            TransferHandlers(clientCertificate: { challenge in
                let number = self.questions.withLock { questions in
                    questions.append(challenge)
                    return questions.count
                }
                return await self.answer(number)
            })
        }
    }

    private func identity(_ name: String = "client") throws -> ClientIdentity {
        try ClientIdentity(
            certificate: MintedCertificates.data("\(name).pem"), privateKey: MintedCertificates.data("\(name).key"))
    }

    private func server(
        _ version: ServerTLS.Version = .v1_3, _ kind: ServerTLS.ClientCertificates? = nil, chain: String = "leaf-chain"
    ) throws -> TestServer {
        var tls = try ServerTLS.minted(chain)
        (tls.minimumVersion, tls.maximumVersion) = (version, version)
        let root = String(decoding: try MintedCertificates.data("client-root.pem"), as: UTF8.self)
        tls.clientCertificates = kind ?? .required(authorities: .text(root))
        return try TestServer(tls: tls) { request in StubResponse(body: "x").closing() }
    }

    private func session(
        _ chooser: IdentityChooser, _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> HTTPSessionManager {
        let roots = try MintedCertificates.set("root")
        return try localSession(
            {
                $0.securityPolicy.roots = .given(roots)
                change(&$0)
            }, handlers: chooser.handlers)
    }

    private func request(_ server: TestServer) -> TransferRequest {
        TransferRequest(url: server.url(), method: .post, body: .data(Data("said".utf8)))
    }

    @Test(arguments: [ServerTLS.Version.v1_2, .v1_3])
    func `a server that requires a client certificate gets the handler's choice, asked for once per session`(
        _ version: ServerTLS.Version
    ) async throws {
        let (server, identity) = (try server(version), try identity())
        let chooser = IdentityChooser { _ in .use(identity) }
        let session = try session(chooser)
        for _ in 0..<3 { await expectNil(failure(session.dataTask(for: request(server)))) }
        expectEqual(chooser.asked.map(\.host), ["127.0.0.1"])
        expectEqual(chooser.asked.first?.authorities, [try MintedCertificates.one("client-root").subject])
        expectEqual(server.requests.map(\.text), ["said", "said", "said"])
        #expect(server.requests.allSatisfy { $0.tls?.clientCertificate.map { Data($0) } == identity.certificate.derBytes })
        // The choice is not shared with another session.
        let other = IdentityChooser { _ in .cancel }
        await expectEqual(failure(try self.session(other).dataTask(for: request(server)))?.code, .clientCertificateRequired)
        expectEqual(other.asked.count, 1)
    }

    @Test(arguments: [ServerTLS.Version.v1_2, .v1_3])
    func `without a client certificate the server decides whether the request succeeds`(_ version: ServerTLS.Version)
        async throws
    {
        let chooser = IdentityChooser { _ in .performDefaultHandling }
        let (kind, strict) = (try server(version, .requested), try server(version))
        await expectNil(failure(try session(chooser).dataTask(for: request(kind))))
        expectEqual(kind.requests.map { $0.tls?.clientCertificate == nil }, [true])
        await expectEqual(failure(try session(chooser).dataTask(for: request(strict)))?.code, .clientCertificateRequired)
        expectEmpty(strict.requests)
        expectEqual(chooser.asked.count, 2)
    }

    @Test(arguments: [ServerTLS.Version.v1_2, .v1_3])
    func `after a client certificate is rejected the next task asks the handler again`(
        _ version: ServerTLS.Version
    ) async throws {
        let (server, right, wrong) = (try server(version), try identity(), try identity("foreign-leaf"))
        let chooser = IdentityChooser { $0 == 1 ? .use(wrong) : .use(right) }
        let session = try session(chooser)
        await expectEqual(failure(session.dataTask(for: request(server)))?.code, .clientCertificateRejected)
        await expectNil(failure(session.dataTask(for: request(server))))
        expectEqual(chooser.asked.count, 2)
        expectEqual(server.requests.count, 1)
    }

    @Test func `the client certificate handler is not called for an untrusted server or without a certificate request`()
        async throws
    {
        let identity = try identity()
        let chooser = IdentityChooser { _ in .use(identity) }
        let (foreign, plain) = (try server(chain: "foreign-leaf-chain"), try server(.v1_3, .notRequested))
        let error = await failure(try session(chooser).dataTask(for: request(foreign)))
        expectEqual(error?.code, .certificateHasUnknownRoot)
        await expectNil(failure(try session(chooser).dataTask(for: request(plain))))
        // An identity in the configuration is presented without calling the handler.
        let server = try server()
        await expectNil(failure(try session(chooser) { $0.clientIdentity = identity }.dataTask(for: request(server))))
        expectEmpty(chooser.asked)
    }

    @Test func `a task's own client certificate handler chooses for that task only`() async throws {
        let (server, identity) = (try server(), try identity())
        let (sessions, own) = (IdentityChooser { _ in .cancel }, IdentityChooser { _ in .use(identity) })
        let session = try session(sessions)
        await expectNil(failure(session.dataTask(for: request(server), handlers: own.handlers)))
        await expectNil(failure(session.dataTask(for: request(server), handlers: own.handlers)))
        await expectEqual(failure(session.dataTask(for: request(server)))?.code, .clientCertificateRequired)
        expectEqual(own.asked.count, 2)
        expectEqual(sessions.asked.count, 1)
    }

    @Test(arguments: [ServerTLS.Version.v1_2, .v1_3])
    func `a task with a client certificate handler does not reuse connections or TLS sessions made without one`(
        _ version: ServerTLS.Version
    ) async throws {
        var tls = try ServerTLS.minted("leaf-chain")
        (tls.minimumVersion, tls.maximumVersion, tls.clientCertificates) = (version, version, .requested)
        let identity = try identity()
        let server = try TestServer(tls: tls) { _ in StubResponse(body: "x") }
        let session = try session(IdentityChooser { _ in .performDefaultHandling })
        let chooser = IdentityChooser { _ in .use(identity) }
        let url = TransferRequest(url: server.url())
        await expectNil(failure(session.dataTask(for: url)))
        await expectNil(failure(session.dataTask(for: url, handlers: chooser.handlers)))
        await expectNil(failure(session.dataTask(for: url, handlers: TransferHandlers())))
        expectEqual(chooser.asked.map(\.port), [Int(server.port)])
        expectEqual(server.requests.map { $0.tls?.clientCertificate != nil }, [false, true, false])
    }

    @Test func `monitors are notified once of a client certificate challenge`() async throws {
        let (server, identity, log) = (try server(), try identity(), EventLog())
        let roots = try MintedCertificates.set("root")
        let session = try HTTPSessionManager(
            configuration: localConfiguration { $0.securityPolicy.roots = .given(roots) },
            handlers: IdentityChooser { _ in .use(identity) }.handlers, eventMonitors: [log])
        for _ in 0..<2 { await expectNil(failure(session.dataTask(for: request(server)))) }
        session.cancel(afterTasks: true)
        let events = await log.awaitInvalidation()
        expectEqual(events.filter { $0.hasPrefix("certificate challenged") }, ["certificate challenged 127.0.0.1"])
    }

    @Test func `a client certificate handler that never returns fails the task after the handler timeout`() async throws {
        let server = try server()
        let chooser = IdentityChooser { _ in
            try? await Task.sleep(for: .seconds(3_600))
            return .cancel
        }
        let session = try session(chooser) { $0.handlerTimeout = .milliseconds(200) }
        await expectEqual(failure(session.dataTask(for: request(server)))?.code, .handlerTimedOut)
    }
}
