import Expectations
import FoundationEssentials
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import Testing

/// Faults of a scripted transport, compared with those that libcurl reports of a real server.
@Suite(.timeLimit(.minutes(5)))
struct ScriptedFaultTests {
    /// The parts of an error that a program sees.
    private struct Seen: Equatable, CustomStringConvertible {
        var code: HTTPSessionError.Code?
        var reason = ""
        var curlCode: Int32?
        var systemError: Int32?

        init(_ error: HTTPSessionError?) {
            code = error?.code
            reason = error?.reason ?? ""
            (curlCode, systemError) = (error?.context.curlCode, error?.context.systemError)
        }

        var description: String { "\(code?.rawValue ?? "none") \(reason) curl \(curlCode ?? 0) errno \(systemError ?? 0)" }
    }

    private static var configuration: SessionConfiguration {
        var configuration = SessionConfiguration()
        configuration.retryPolicy = .never
        configuration.insecureHTTP = .allowed
        configuration.proxy = .none
        return configuration
    }

    private static func error(of task: TransferTask) async -> HTTPSessionError? {
        do throws(HTTPSessionError) {
            _ = try await task.response
            return nil
        } catch { return error }
    }

    private static func scripted(_ reply: StubResponse, at url: String = "http://api.example.com/") async throws
        -> HTTPSessionError?
    {
        let transport = ScriptedTransport { _ in reply }
        let session = try HTTPSessionManager(configuration: configuration, transport: transport)
        return await error(of: session.get(url))
    }

    private static let faults: [(String, StubResponse)] = [
        ("a reset within the body", StubResponse(body: .pattern(100_000)).cut(afterBodyBytes: 50_000, .reset)),
        ("an end within the body", StubResponse(body: .pattern(100_000)).cut(afterBodyBytes: 50_000, .orderly)),
        ("more promised than sent", StubResponse(body: .pattern(1_000)).declaredLength(2_000)),
        ("an end within the head", StubResponse(body: "x").cut(afterHeadBytes: 20)),
        ("no response", .none()),
        ("no response, but a reset", .none(.reset)),
        ("something that is not HTTP", .raw("SSH-2.0-OpenSSH_9.2\r\n")),
        ("a chunk without a size", StubResponse(body: .pattern(1_000)).brokenChunks(.sizeIsNoNumber)),
        ("an end within a chunk", StubResponse(body: .pattern(1_000)).brokenChunks(.cutInChunk)),
        ("an end before the last chunk", StubResponse(body: .pattern(1_000)).brokenChunks(.lastChunkIsMissing)),
        ("the end of the connection as the end of the body", StubResponse(body: .pattern(1_000)).untilClose()),
        ("a reset instead of the end of the connection", StubResponse(body: .pattern(1_000)).untilClose().closing(.reset)),
        ("a head that is too long", StubResponse(body: "x").headerFlood(40, valueBytes: 10_000)),
        ("two lengths", StubResponse(fields: ["Content-Length": "3", "content-length": "4"], body: "abcd")),
        ("another protocol", StubResponse(101)),
        ("a complete chunked body", StubResponse(body: .pattern(1_000)).chunked()),
    ]

    @Test(arguments: faults.indices)
    func `a broken response is the same error as with libcurl`(_ index: Int) async throws {
        let (name, reply) = Self.faults[index]
        let server = try TestServer { _ in reply }
        let session = try HTTPSessionManager(configuration: Self.configuration)
        let real = await Self.error(of: session.get(server.url().absoluteString))
        let scripted = try await Self.scripted(reply)
        expectEqual(Seen(scripted), Seen(real), "\(name)")
    }

    @Test func `a refused connection is the same error as with libcurl`() async throws {
        let server = try TestServer { _ in StubResponse() }
        server.stop()
        let session = try HTTPSessionManager(configuration: Self.configuration)
        let real = await Self.error(of: session.get(server.url().absoluteString))
        expectEqual(Seen(try await Self.scripted(.failing(.connectionRefused))), Seen(real))
    }

    @Test(arguments: [
        (StubFailure.nameNotFound, HTTPSessionError.Code.cannotFindHost), (.connectionRefused, .cannotConnectToHost),
        (.hostUnreachable, .cannotConnectToHost), (.networkUnreachable, .notConnected), (.connectTimedOut, .timedOut),
        (.handshakeRefused, .secureConnectionFailed), (.certificateExpired, .certificateExpired),
        (.certificateHasUnknownRoot, .certificateHasUnknownRoot), (.certificateForAnotherHost, .certificateUntrusted),
        (.pinMismatch, .pinMismatch), (.clientCertificateRequired, .clientCertificateRequired),
        (.error(HTTPSessionError(.proxyFailed, "the proxy is gone")), .proxyFailed),
    ])
    func `a connection that is not made fails with its code`(_ failure: StubFailure, _ code: HTTPSessionError.Code) async throws {
        let error = try await Self.scripted(.failing(failure), at: "https://api.example.com/")
        expectEqual(error?.code, code)
        expectEqual(error?.context.url, "https://api.example.com/")
    }

    @Test func `a connect timeout passes in scripted time`() async throws {
        let transport = ScriptedTransport()
        transport.stub("/", with: .failing(.connectTimedOut), StubResponse(body: "back"))
        let session = try HTTPSessionManager(baseURL: "https://api.example.com", transport: transport)
        try await expectEqual(session.get("/").string(), "back")
        #expect((.seconds(30) ... .seconds(32)).contains(transport.elapsedTime))
    }

    @Test func `a POST is retried after a refused connection, and not after a lost one`() async throws {
        let transport = ScriptedTransport()
        transport.stub("/refused", with: .failing(.connectionRefused), StubResponse(201))
        transport.stub("/lost", with: .none(.reset), StubResponse(201))
        let session = try HTTPSessionManager(baseURL: "https://api.example.com", transport: transport)
        try await expectEqual(session.post("/refused", parameters: ["a": 1]).response.statusCode, 201)
        await expectEqual(Self.error(of: session.post("/lost", parameters: ["a": 1]))?.code, .connectionLost)
        expectEqual(transport.requests.map(\.path), ["/refused", "/lost"])
    }

    @Test func `HTTPS detects a body that was cut at the end of the connection`() async throws {
        let reply = StubResponse(body: "half").untilClose().closing(.truncated)
        try await expectEqual(Self.scripted(reply, at: "https://api.example.com/")?.code, .connectionLost)
        try await expectNil(Self.scripted(reply))
    }
}
