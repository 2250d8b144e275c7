import EventLoop
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// Servers that want a certificate, and a handler that is asked which.
@Suite(.timeLimit(.minutes(20))) struct ClientCertificateTests {
    /// What a handler was asked, and what it says.
    private final class Wallet: Sendable {
        private let questions = Locked<[ClientCertificateChallenge]>([])
        private let answer: @Sendable (Int) async -> ClientCertificateDisposition

        /// `answer` is given the number of the question, from 1 on.
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
        _ wallet: Wallet, _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> HTTPSessionManager {
        let roots = try MintedCertificates.set("root")
        return try localSession(
            {
                $0.securityPolicy.roots = .given(roots)
                change(&$0)
            }, handlers: wallet.handlers)
    }

    private func request(_ server: TestServer) -> TransferRequest {
        TransferRequest(url: server.url(), method: .post, body: .data(Data("said".utf8)))
    }

    @Test(arguments: [ServerTLS.Version.v1_2, .v1_3])
    func `a server that wants a certificate gets what the handler chooses, asked once`(
        _ version: ServerTLS.Version
    ) async throws {
        let (server, identity) = (try server(version), try identity())
        let wallet = Wallet { _ in .use(identity) }
        let session = try session(wallet)
        for _ in 0..<3 { #expect(await failure(session.data(request(server))) == nil) }
        #expect(wallet.asked.map(\.host) == ["127.0.0.1"])
        #expect(wallet.asked.first?.authorities == [try MintedCertificates.one("client-root").subject])
        #expect(server.requests.map(\.text) == ["said", "said", "said"])
        #expect(server.requests.allSatisfy { $0.tls?.clientCertificate.map { Data($0) } == identity.certificate.derBytes })
        // What one session has chosen is not another's.
        let other = Wallet { _ in .cancel }
        #expect(await failure(try self.session(other).data(request(server)))?.code == .clientCertificateRequired)
        #expect(other.asked.count == 1)
    }

    @Test(arguments: [ServerTLS.Version.v1_2, .v1_3]) func `without one the server decides`(_ version: ServerTLS.Version)
        async throws
    {
        let wallet = Wallet { _ in .performDefaultHandling }
        let (kind, strict) = (try server(version, .requested), try server(version))
        #expect(await failure(try session(wallet).data(request(kind))) == nil)
        #expect(kind.requests.map { $0.tls?.clientCertificate == nil } == [true])
        #expect(await failure(try session(wallet).data(request(strict)))?.code == .clientCertificateRequired)
        #expect(strict.requests.isEmpty)
        #expect(wallet.asked.count == 2)
    }

    @Test(arguments: [ServerTLS.Version.v1_2, .v1_3]) func `an identity that is refused is asked for anew by the next task`(
        _ version: ServerTLS.Version
    ) async throws {
        let (server, right, wrong) = (try server(version), try identity(), try identity("foreign-leaf"))
        let wallet = Wallet { $0 == 1 ? .use(wrong) : .use(right) }
        let session = try session(wallet)
        #expect(await failure(session.data(request(server)))?.code == .clientCertificateRejected)
        #expect(await failure(session.data(request(server))) == nil)
        #expect(wallet.asked.count == 2)
        #expect(server.requests.count == 1)
    }

    @Test func `nobody is asked for the sake of a server that is not believed, or that wants none`() async throws {
        let identity = try identity()
        let wallet = Wallet { _ in .use(identity) }
        let (foreign, plain) = (try server(chain: "foreign-leaf-chain"), try server(.v1_3, .ignored))
        let error = await failure(try session(wallet).data(request(foreign)))
        #expect(error?.code == .certificateHasUnknownRoot)
        #expect(await failure(try session(wallet).data(request(plain))) == nil)
        // What is given beforehand is shown unasked.
        let server = try server()
        #expect(await failure(try session(wallet) { $0.clientIdentity = identity }.data(request(server))) == nil)
        #expect(wallet.asked.isEmpty)
    }

    @Test func `a task's own handler chooses for that task alone`() async throws {
        let (server, identity) = (try server(), try identity())
        let (sessions, own) = (Wallet { _ in .cancel }, Wallet { _ in .use(identity) })
        let session = try session(sessions)
        #expect(await failure(session.data(request(server), handlers: own.handlers)) == nil)
        #expect(await failure(session.data(request(server), handlers: own.handlers)) == nil)
        #expect(await failure(session.data(request(server)))?.code == .clientCertificateRequired)
        #expect((own.asked.count, sessions.asked.count) == (2, 1))
    }

    @Test(arguments: [ServerTLS.Version.v1_2, .v1_3])
    func `who is asked has no connection and no session that was made without asking`(_ version: ServerTLS.Version) async throws {
        var tls = try ServerTLS.minted("leaf-chain")
        (tls.minimumVersion, tls.maximumVersion, tls.clientCertificates) = (version, version, .requested)
        let identity = try identity()
        let server = try TestServer(tls: tls) { _ in StubResponse(body: "x") }
        let session = try session(Wallet { _ in .cancel })
        let wallet = Wallet { _ in .use(identity) }
        let url = TransferRequest(url: server.url())
        #expect(await failure(session.data(url, handlers: TransferHandlers())) == nil)
        #expect(await failure(session.data(url, handlers: wallet.handlers)) == nil)
        #expect(await failure(session.data(url, handlers: TransferHandlers())) == nil)
        #expect(wallet.asked.map(\.port) == [Int(server.port)])
        #expect(server.requests.map { $0.tls?.clientCertificate != nil } == [false, true, false])
    }

    @Test func `monitors hear that a certificate is asked for, once`() async throws {
        let (server, identity, log) = (try server(), try identity(), EventLog())
        let roots = try MintedCertificates.set("root")
        let session = try HTTPSessionManager(
            configuration: localConfiguration { $0.securityPolicy.roots = .given(roots) },
            handlers: Wallet { _ in .use(identity) }.handlers, monitors: [log])
        for _ in 0..<2 { #expect(await failure(session.data(request(server))) == nil) }
        session.invalidate(cancelsTasks: false)
        let events = await log.awaitInvalidation()
        #expect(events.filter { $0.hasPrefix("certificate challenged") } == ["certificate challenged 127.0.0.1"])
    }

    @Test func `a handler that never answers is an error`() async throws {
        let server = try server()
        let wallet = Wallet { _ in
            try? await Task.sleep(for: .seconds(3_600))
            return .cancel
        }
        let session = try session(wallet) { $0.handlerTimeout = .milliseconds(200) }
        #expect(await failure(session.data(request(server)))?.code == .handlerTimedOut)
    }
}
