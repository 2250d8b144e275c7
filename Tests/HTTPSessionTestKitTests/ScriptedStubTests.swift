import Expectations
import FoundationEssentials
import HTTPSession
import HTTPSessionTestKit
import Synchronization
import Testing

/// The requests that a stub of a ``ScriptedTransport`` matches, and the requests with bodies that a closure answers.
@Suite(.timeLimit(.minutes(5)))
struct ScriptedStubTests {
    private static var configuration: SessionConfiguration {
        var configuration = SessionConfiguration()
        configuration.insecureHTTP = .allowed
        return configuration
    }

    private static func matches(_ stub: String, _ url: String) async throws -> Bool {
        let transport = ScriptedTransport { _ in StubResponse(404) }
        transport.stub(stub, with: StubResponse())
        let session = try HTTPSessionManager(configuration: configuration, transport: transport)
        return try await session.get(url).response.statusCode == 200
    }

    @Test(arguments: [
        // Paths
        ("/v1/a", "https://a.example/v1/a"), ("v1/a", "https://a.example/v1/a"), ("/v1/a", "http://b.example:8080/v1/a?x=1"),
        ("/v1/a#part", "https://a.example/v1/a#other"), ("", "https://a.example"), ("/", "https://a.example"),
        ("", "https://a.example/?x=1"), ("/a//b", "https://a.example/a//b"), ("//a", "https://a.example//a"),
        ("/a:b@c", "https://a.example/a:b@c"), ("a:b/c", "https://a.example/a:b/c"),
        // Percent-encoding
        ("/café", "https://a.example/caf%C3%A9"), ("/caf%c3%a9", "https://a.example/caf%C3%A9"),
        ("/%41b", "https://a.example/Ab"),
        ("/Ab", "https://a.example/%41%62"), ("/a b", "https://a.example/a%20b"), ("/100%", "https://a.example/100%25"),
        ("/a%2fb", "https://a.example/a%2Fb"), ("/[a]", "https://a.example/%5Ba%5D"),
        // Queries
        ("/a?x=1&y=2", "https://a.example/a?y=2&x=1"), ("/a?x=%31", "https://a.example/a?x=1"),
        ("/a?x=a b", "https://a.example/a?x=a%20b"),
        ("/a?t=10:30", "https://a.example/a?t=10%3A30"), ("?x=1", "https://a.example/?x=1"), ("/a?", "https://a.example/a"),
        ("/a?x=1&x=2&y", "https://a.example/a?y&x=1&x=2"), ("/a?x=1#part", "https://a.example/a?x=1"),
        ("/a?x=1&", "https://a.example/a?x=1"),
        ("/a?u=http://b/c", "https://a.example/a?u=http://b/c"),
        // Absolute URLs
        ("https://a.example/a", "https://a.example:443/a"), ("https://a.example:443/a", "https://a.example/a"),
        ("http://a.example:80", "http://a.example"), ("HTTPS://A.Example/a", "https://a.eXample/a"),
        ("https://a.example", "https://a.example/"), ("https://a.example?x=1", "https://a.example/?x=1"),
        ("https://user:secret@a.example/a", "https://a.example/a"),
        ("https://bücher.example/a", "https://xn--bcher-kva.example/a"),
        ("https://[2001:DB8::1]/a", "https://[2001:db8::1]/a"), ("https://a.example/a#part", "https://a.example/a?x=1"),
    ])
    func `a stub matches URLs that mean the same`(_ stub: String, _ url: String) async throws {
        #expect(try await Self.matches(stub, url))
    }

    @Test(arguments: [
        ("/v1/a", "https://a.example/v1/a/"), ("/v1/a/", "https://a.example/v1/a"), ("/v1/A", "https://a.example/v1/a"),
        ("/a", "https://a.example/v1/a"), ("/a/b", "https://a.example/a%2Fb"), ("/cafe\u{301}", "https://a.example/caf%C3%A9"),
        ("/a?x=1", "https://a.example/a"), ("/a?x=1", "https://a.example/a?x=1&y=2"),
        ("/a?x=1&x=2", "https://a.example/a?x=2&x=1"),
        ("/a?x=1&y=2", "https://a.example/a?x=1%26y=2"), ("/a?", "https://a.example/a?x=1"),
        ("/a?x=a+b", "https://a.example/a?x=a%20b"),
        ("https://a.example/a", "http://a.example/a"), ("https://a.example/a", "https://a.example:8443/a"),
        ("https://a.example/a", "https://b.example/a"), ("https://a.example/a", "https://a.example/b"),
        ("ftp://a.example/a", "https://a.example/a"), ("//a.example/a", "https://a.example/a"),
    ])
    func `a stub does not match URLs that mean something else`(_ stub: String, _ url: String) async throws {
        #expect(try await !Self.matches(stub, url))
    }

    @Test func `a stub with a method answers requests with this method only`() async throws {
        let transport = ScriptedTransport { _ in StubResponse(404) }
        transport.stub("/a", method: .post, with: StubResponse(201))
        let session = try HTTPSessionManager(baseURL: "https://api.example.com", transport: transport)
        try await expectEqual(session.post("/a").response.statusCode, 201)
        try await expectEqual(session.get("/a").response.statusCode, 404)
    }

    @Test func `a stub without responses has no effect`() async throws {
        let transport = ScriptedTransport()
        transport.stub("/a", with: StubResponse(204))
        transport.stub("/a")
        let session = try HTTPSessionManager(baseURL: "https://api.example.com", transport: transport)
        try await expectEqual(session.get("/a").response.statusCode, 204)
    }

    // MARK: Closures and bodies

    @Test(arguments: [true, false])
    func `a connection that a closure refuses is retried for a POST, which counts as not sent`(_ isStub: Bool) async throws {
        let bodies = Mutex<[String]>([])
        let choose: @Sendable (ReceivedRequest) -> Bool = { request in
            bodies.withLock { $0.append(request.text) }
            return true
        }
        let first = Mutex(true)
        let respond: @Sendable (ReceivedRequest) -> StubResponse = { request in
            _ = choose(request)
            return first.withLock { isFirst in
                defer { isFirst = false }
                return isFirst ? .failing(.connectionRefused) : StubResponse(201)
            }
        }
        let transport = ScriptedTransport(respond: respond)
        if isStub { transport.stub(where: choose, with: .failing(.connectionRefused), StubResponse(201)) }
        let session = try HTTPSessionManager(baseURL: "https://api.example.com", transport: transport)
        let response = try await session.post("/events", parameters: ["kind": "start"]).response
        #expect(response.statusCode == 201 && response.metrics.retryCount == 1)
        expectEqual(bodies.withLock { $0 }, ["kind=start", "kind=start"])
        expectEqual(transport.requests.map(\.text), ["kind=start"])
    }

    @Test func `a connect timeout that a closure chooses passes in scripted time`() async throws {
        let transport = ScriptedTransport(time: .manual)
        transport.stub(where: { $0.method == "POST" }, with: .failing(.connectTimedOut), StubResponse(201))
        let session = try HTTPSessionManager(baseURL: "https://api.example.com", transport: transport)
        let task = session.post("/events", parameters: ["kind": "start"])
        await transport.waitUntilIdle()
        #expect(task.state == .running && transport.requests.isEmpty)
        await transport.advance(by: .seconds(29))
        expectEqual(task.state, .running)
        await transport.advance(by: .seconds(10))
        try await expectEqual(task.response.statusCode, 201)
        expectEqual(transport.requests.count, 1)
    }

    @Test(arguments: ["GET", "POST"])
    func `a closure does not see its own request among the requests`(_ method: String) async throws {
        let counts = Mutex<[Int]>([])
        let box = Mutex<ScriptedTransport?>(nil)
        let transport = ScriptedTransport { _ in
            let count = box.withLock { $0 }?.requests.count ?? -1
            counts.withLock { $0.append(count) }
            return StubResponse()
        }
        box.withLock { $0 = transport }
        let session = try HTTPSessionManager(baseURL: "https://api.example.com", transport: transport)
        for _ in 0..<2 {
            let task = method == "GET" ? session.get("/") : session.post("/", parameters: ["a": 1])
            _ = try await task.response
        }
        expectEqual(counts.withLock { $0 }, [0, 1])
        session.cancel()
        await session.waitUntilEnded()
        box.withLock { $0 = nil }
    }

    @Test func `a POST that no stub matches is not among the requests`() async throws {
        let transport = ScriptedTransport()
        transport.stub(where: { $0.text == "other" }, with: StubResponse())
        let session = try HTTPSessionManager(baseURL: "https://api.example.com", transport: transport)
        let error = await #expect(throws: HTTPSessionError.self) { try await session.post("/", parameters: ["a": 1]).response }
        #expect(error?.code == .misuse && transport.requests.isEmpty && transport.unmatchedRequests.map(\.text) == ["a=1"])
    }
}
