import COpenSSL
import Expectations
import HTTPSessionTestKit
import NetworkLab
import Testing

@Suite(.timeLimit(.minutes(20)))
struct TLSTests {
    let identity: SelfSignedCertificate

    init() throws {
        identity = try SelfSignedCertificate()
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func `sessions are resumed, and counted`(_ version: Int32) async throws {
        let server = try TestServer(tls: identity.serverTLS) { _ in StubResponse(body: "x").closing() }
        let context = try ClientContext(maximumVersion: version)
        let first = try RawClient(server)
        try first.startTLS(context)
        try first.get("/")
        // TLS 1.3 sends its tickets after the handshake.
        #expect(first.read(until: "\r\n\r\nx").contains("200 OK"))
        expectEqual(first.readToEnd().end, .closed)
        let session = try #require(first.session)
        defer { SSL_SESSION_free(session) }
        let second = try RawClient(server)
        try second.startTLS(context, resuming: session)
        try second.get("/")
        #expect(second.read(until: "\r\n\r\nx").contains("200 OK"))
        #expect(second.isResumed)
        #expect(server.seen.handshakes == 2 && server.seen.resumedHandshakes == 1)
        expectEqual(server.requests.map(\.tls?.isResumed), [false, true])
        expectEqual(server.requests[0].tls?.serverName, "localhost")
        expectEqual(server.requests[0].tls?.version, (version == TLS1_2_VERSION ? "TLSv1.2" : "TLSv1.3"))
    }

    @Test func `a server without session resumption resumes no TLS session`() async throws {
        var tls = identity.serverTLS
        tls.resumesSessions = false
        let server = try TestServer(tls: tls) { _ in StubResponse(body: "x").closing() }
        let context = try ClientContext()
        let first = try RawClient(server)
        try first.startTLS(context)
        try first.get("/")
        expectEqual(first.readToEnd().end, .closed)
        let session = try #require(first.session)
        defer { SSL_SESSION_free(session) }
        let second = try RawClient(server)
        try second.startTLS(context, resuming: session)
        #expect(!second.isResumed)
    }

    @Test func `a handshake outside the range of TLS versions fails`() async throws {
        var tls = identity.serverTLS
        tls.minimumVersion = .v1_3
        let new = try TestServer(tls: tls) { _ in StubResponse() }
        #expect(throws: RawClient.Failure.self) {
            try RawClient(new).startTLS(ClientContext(maximumVersion: TLS1_2_VERSION))
        }
        try await new.awaitSeen { $0.failedHandshakes == 1 }

        tls.minimumVersion = .v1_0
        tls.maximumVersion = .v1_0
        let old = try TestServer(tls: tls) { _ in StubResponse(body: "x") }
        let client = try RawClient(old)
        try client.startTLS(ClientContext(minimumVersion: TLS1_VERSION))
        try client.get("/")
        #expect(client.read(until: "\r\n\r\nx").contains("200 OK"))
        expectEqual(old.requests.first?.tls?.version, "TLSv1")
    }

    @Test(arguments: [(StubResponse.Ending.orderly, RawClient.End.closed), (.truncated, .truncated), (.reset, .reset)])
    func `how a connection ends is seen through TLS`(_ ending: StubResponse.Ending, _ end: RawClient.End) throws {
        let server = try TestServer(tls: identity.serverTLS) { _ in StubResponse(body: "hello").untilClose().closing(ending) }
        let context = try ClientContext()
        let client = try RawClient(server)
        try client.startTLS(context)
        try client.get("/")
        expectEqual(client.readToEnd().end, end)
    }

    @Test func `a client certificate is recorded, or required`() async throws {
        let mine = try SelfSignedCertificate(names: ["client"])
        var tls = identity.serverTLS
        func serve(_ mode: ServerTLS.ClientCertificates) throws -> TestServer {
            tls.clientCertificates = mode
            tls.maximumVersion = .v1_2
            return try TestServer(tls: tls) { _ in StubResponse(body: "x") }
        }
        func certificate(_ server: TestServer, _ context: ClientContext) throws -> [UInt8]? {
            let client = try RawClient(server)
            try client.startTLS(context)
            try client.get("/")
            #expect(client.read(until: "\r\n\r\nx").contains("200 OK"))
            return server.requests.last?.tls?.clientCertificate
        }
        let (with, without) = try (ClientContext(), ClientContext())
        try with.use(mine)
        let requested = try serve(.requested)
        try expectNil(certificate(requested, without))
        #expect(try certificate(requested, with)?.isEmpty == false)
        let required = try serve(.required(authorities: nil))
        #expect(throws: RawClient.Failure.self) { try certificate(required, without) }
        #expect(try certificate(required, with)?.isEmpty == false)
        let known = try serve(.required(authorities: .text(mine.certificate)))
        #expect(try certificate(known, with)?.isEmpty == false)
        let foreign = try serve(.required(authorities: .text(identity.certificate)))
        #expect(throws: RawClient.Failure.self) { try certificate(foreign, with) }
    }

    @Test func `a server does not start without a usable certificate`() throws {
        let other = try SelfSignedCertificate()
        #expect(throws: TestServerError.self) {
            try TestServer(
                tls: ServerTLS(certificateChain: .text(identity.certificate), privateKey: .text(other.privateKey))
            ) { _ in StubResponse() }
        }
        #expect(throws: TestServerError.self) {
            try TestServer(tls: ServerTLS(certificateChain: .text("no PEM"), privateKey: .text(other.privateKey))) { _ in
                StubResponse()
            }
        }
        #expect(throws: TestServerError.self) {
            try TestServer(tls: ServerTLS(certificateChain: .file("/nonexistent"), privateKey: .text(other.privateKey))) {
                _ in StubResponse()
            }
        }
    }

    @Test func `a plain client and a TLS server do not connect, nor the reverse`() async throws {
        let server = try TestServer(tls: identity.serverTLS) { _ in StubResponse() }
        let plain = try RawClient(server)
        try plain.get("/")
        #expect(!String(decoding: plain.readToEnd().bytes, as: UTF8.self).contains("HTTP/1.1"))
        try await server.awaitSeen { $0.failedHandshakes == 1 }

        let text = try TestServer { _ in StubResponse() }
        #expect(throws: RawClient.Failure.self) { try RawClient(text).startTLS(ClientContext()) }
    }
}
