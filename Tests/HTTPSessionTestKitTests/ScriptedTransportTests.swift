import Expectations
import FoundationEssentials
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import Testing

/// Stubs of a ``ScriptedTransport``, and the results of a session.
@Suite(.timeLimit(.minutes(5)))
struct ScriptedTransportTests {
    private struct User: Codable, Equatable { var name: String }

    private let transport = ScriptedTransport()

    private func session(_ configuration: SessionConfiguration = .default, handlers: TransferHandlers = TransferHandlers())
        throws -> HTTPSessionManager
    {
        try HTTPSessionManager(
            baseURL: "https://api.example.com/v1/", configuration: configuration, handlers: handlers, transport: transport)
    }

    @Test func `a 503 is retried and the second response is decoded, without waiting`() async throws {
        transport.stub("/v1/users/7", with: StubResponse(503), StubResponse(body: #"{"name": "Ada"}"#))
        let user: User = try await session().get("users/7").decode()
        expectEqual(user, User(name: "Ada"))
        expectEqual(transport.requests.map(\.path), ["/v1/users/7", "/v1/users/7"])
        expectEqual(transport.requests.map { $0["host"] }, ["api.example.com", "api.example.com"])
        #expect(transport.elapsedTime > .zero)
    }

    @Test func `a closure answers what no stub matches`() async throws {
        let transport = ScriptedTransport { request in request.query == "q=1" ? StubResponse(body: "found") : StubResponse(404) }
        transport.stub("/other", with: StubResponse(body: "stubbed"))
        let session = try HTTPSessionManager(baseURL: "https://api.example.com", transport: transport)
        try await expectEqual(session.get("/search", parameters: ["q": 1]).string(), "found")
        try await expectEqual(session.get("/search").response.statusCode, 404)
        try await expectEqual(session.get("/other").string(), "stubbed")
    }

    @Test func `an unmatched request fails with an error that names it and the stubs`() async throws {
        transport.stub("/v1/users/7", method: .get, with: StubResponse())
        let session = try session()
        let error = await #expect(throws: HTTPSessionError.self) { try await session.get("users/8").response }
        expectEqual(error?.code, .misuse)
        #expect(error?.reason.contains("GET /v1/users/8") == true && error?.reason.hasSuffix("stubs: GET /v1/users/7") == true)
        expectEqual(transport.unmatchedRequests.map(\.path), ["/v1/users/8"])
        expectEmpty(transport.requests)
    }

    @Test func `the latest stub that matches answers, its last response repeats`() async throws {
        transport.stub("/v1/a", with: StubResponse(body: "old"))
        transport.stub("/v1/a", with: StubResponse(body: "1"), StubResponse(body: "2"))
        let session = try session()
        var bodies: [String] = []
        for _ in 0..<3 { bodies.append(try await session.get("a").string()) }
        expectEqual(bodies, ["1", "2", "2"])
    }

    @Test func `stubs match by method, by query and by absolute URL`() async throws {
        transport.stub("/v1/a", with: StubResponse(body: "any"))
        transport.stub("/v1/a", method: .delete, with: StubResponse(body: "delete"))
        transport.stub("/v1/a?x=1", with: StubResponse(body: "x"))
        transport.stub("https://other.example/v1/a", with: StubResponse(body: "other"))
        let session = try session()
        try await expectEqual(session.get("a").string(), "any")
        try await expectEqual(session.get("a?x=1").string(), "x")
        try await expectEqual(session.get("a?x=2").string(), "any")
        try await expectEqual(session.delete("a").string(), "delete")
        try await expectEqual(session.get("https://other.example/v1/a").string(), "other")
    }

    @Test func `a predicate sees the body of the request`() async throws {
        transport.stub(where: { $0.text.contains("stop") }, with: StubResponse(409))
        transport.stub("/v1/events", with: StubResponse(201))
        transport.stub(where: { $0.text.contains("kind=start") }, with: StubResponse(202))
        let session = try session()
        try await expectEqual(session.post("events", parameters: ["kind": "start"]).response.statusCode, 202)
        try await expectEqual(session.post("events", parameters: ["kind": "stop"]).response.statusCode, 201)
        expectEqual(transport.requests.map(\.text), ["kind=start", "kind=stop"])
    }

    @Test func `bodies of data, files and streams are read and recorded`() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("scripted-\(UInt64.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let bytes = Data(StubBody.patternBytes(from: 0, count: 300_000))
        let file = folder.appendingPathComponent("body")
        try bytes.write(to: file)
        transport.stub("/v1/files", with: StubResponse(201))
        let session = try session()
        let make: BodyStreamFactory = {
            AsyncThrowingStream { continuation in
                for start in stride(from: 0, to: bytes.count, by: 100_000) { continuation.yield(bytes[start..<start + 100_000]) }
                continuation.finish()
            }
        }
        for body in [RequestBody.data(bytes), .file(file), .stream(length: nil, make: make)] {
            _ = try await session.upload("files", from: body).response
        }
        #expect(transport.requests.allSatisfy { Data($0.body) == bytes && $0.bodyLength == 300_000 })
        expectEqual(
            transport.requests.map { $0["content-length"] ?? $0["transfer-encoding"] }, ["300000", "300000", "chunked"])
    }

    @Test func `redirects are followed and counted`() async throws {
        transport.stub("/v1/old", with: .redirect(to: "/v1/new"))
        transport.stub("/v1/new", with: StubResponse(body: "here"))
        let response = try await session().get("old").response
        #expect(response.data == Data("here".utf8) && response.metrics.redirectCount == 1)
        expectEqual(transport.requests.map(\.path), ["/v1/old", "/v1/new"])
    }

    @Test func `an unacceptable status is an error with its body`() async throws {
        transport.stub("/v1/a", with: StubResponse(404, body: "no such thing"))
        let session = try session()
        let error = await #expect(throws: HTTPSessionError.self) { try await session.get("a").data() }
        #expect(error?.code == .unacceptableStatus && error?.context.statusCode == 404)
        expectEqual(error?.context.responseBody, Data("no such thing".utf8))
    }

    @Test func `interceptors adapt requests and choose retries`() async throws {
        struct Signing: RequestInterceptor {
            func adapt(_ request: TransferRequest) async throws -> TransferRequest {
                var request = request
                request.headerFields[.authorization] = "Bearer 1"
                return request
            }

            func retry(after attempt: FailedAttempt) async -> InterceptorDecision {
                attempt.response?.statusCode == 401 && attempt.retryCount == 0 ? .retry(after: .seconds(600)) : .proceed
            }
        }
        transport.stub("/v1/a", with: StubResponse(401), StubResponse(body: "in"))
        let session = try session(handlers: TransferHandlers(interceptors: [Signing()]))
        try await expectEqual(session.get("a").string(), "in")
        expectEqual(transport.requests.map { $0["authorization"] }, ["Bearer 1", "Bearer 1"])
        #expect(transport.elapsedTime >= .seconds(600))
    }

    @Test func `a retry that an interceptor chooses after a refused body waits in scripted time`() async throws {
        struct Patient: RequestInterceptor {
            func retry(after attempt: FailedAttempt) async -> InterceptorDecision {
                attempt.retryCount < 2 ? .retry(after: .seconds(3_600)) : .proceed
            }
        }
        transport.stub("/v1/a", with: StubResponse(body: "not JSON"), StubResponse(body: #"{"name": "Ada"}"#))
        let session = try session(handlers: TransferHandlers(interceptors: [Patient()]))
        let user: User = try await session.get("a").decode()
        expectEqual(user.name, "Ada")
        #expect(transport.elapsedTime >= .seconds(3_600))
    }

    @Test func `a challenge is answered by Basic with the handler's credential`() async throws {
        transport.stub("/v1/a", with: .unauthorized(#"Basic realm="r""#), StubResponse(body: "in"))
        let handlers = TransferHandlers(challenge: { _ in .useCredential(Credential(user: "ada", password: "secret")) })
        try await expectEqual(session(handlers: handlers).get("a").string(), "in")
        expectEqual(transport.requests.map { $0["authorization"] }, [nil, "Basic YWRhOnNlY3JldA=="])
    }

    @Test func `interim responses come before the final one`() async throws {
        transport.stub("/v1/a", with: StubResponse(body: "late").interim(103, fields: ["Link": "</style.css>"]))
        try await expectEqual(session().get("a").string(), "late")
    }

    @Test func `a stream's chunks are the body, whatever the size of the pieces`() async throws {
        transport.stub("/v1/log", with: StubResponse(body: .pattern(1_000_000)).pieces(of: 7_000, after: .delay(.seconds(1))))
        var received = Data()
        for try await chunk in try session().stream("log").chunks { received += chunk }
        expectEqual(received, Data(StubBody.patternBytes(from: 0, count: 1_000_000)))
    }

    @Test func `a body longer than the limit is refused`() async throws {
        transport.stub("/v1/a", with: StubResponse(body: .zeros(2_000)))
        var configuration = SessionConfiguration()
        configuration.maximumResponseSize = 1_000
        let session = try session(configuration)
        let error = await #expect(throws: HTTPSessionError.self) { try await session.get("a").response }
        expectEqual(error?.code, .responseTooLarge)
    }

    @Test func `a transport carries one session at a time`() async throws {
        transport.stub("/v1/a", with: StubResponse())
        let first = try session()
        let error = #expect(throws: HTTPSessionError.self) { try session() }
        expectEqual(error?.code, .invalidConfiguration)
        first.cancel()
        await first.waitUntilEnded()
        try await expectEqual(session().get("a").response.statusCode, 200)
    }

    @Test func `fields are recorded, and a request to a refused http URL is not sent`() async throws {
        let session = try session()
        var request = TransferRequest(url: try #require(URL(string: "https://api.example.com/v1/a")))
        request.headerFields[.accept] = "text/plain"
        transport.stub("/v1/a", with: StubResponse(body: "fine"))
        try await expectEqual(session.dataTask(for: request).string(), "fine")
        expectEqual(transport.requests.first?["accept"], "text/plain")
        let insecure = TransferRequest(url: try #require(URL(string: "http://api.example.com/v1/a")))
        let error = await #expect(throws: HTTPSessionError.self) { try await session.dataTask(for: insecure).response }
        expectEqual(error?.code, .insecureConnectionRefused)
        expectEqual(transport.requests.count, 1)
    }

    @Test func `metrics have the transport's dates and the bytes of the exchange`() async throws {
        let start = Date(timeIntervalSince1970: 1_000_000)
        let transport = ScriptedTransport(startingAt: start)
        transport.stub("/", with: StubResponse(body: "hello").delayed(.seconds(5)))
        let response = try await HTTPSessionManager(transport: transport).get("https://api.example.com/").response
        let transaction = try #require(response.metrics.transactions.first)
        #expect(response.metrics.taskInterval.start == start && response.metrics.taskInterval.duration == 5)
        #expect(transaction.fetchStart == start && transaction.responseStart == start.addingTimeInterval(5))
        #expect(transaction.countOfResponseBodyBytesReceived == 5 && transaction.networkProtocolName == "http/1.1")
        expectEqual(transport.currentDate, start.addingTimeInterval(5))
    }
}
