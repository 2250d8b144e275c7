import Expectations
import FoundationEssentials
import HTTPSession
import HTTPSessionTestKit
import Testing

/// Deadlines in a scripted transport's time.
@Suite(.timeLimit(.minutes(5)))
struct ScriptedTimeTests {
    private func session(_ transport: ScriptedTransport, _ change: (inout SessionConfiguration) -> Void = { _ in })
        throws -> HTTPSessionManager
    {
        var configuration = SessionConfiguration()
        change(&configuration)
        return try HTTPSessionManager(
            baseURL: "https://api.example.com", configuration: configuration, transport: transport)
    }

    @Test func `Retry-After passes in scripted time`() async throws {
        let transport = ScriptedTransport()
        transport.stub("/", with: StubResponse(429, fields: ["Retry-After": "50"]), StubResponse())
        let response = try await session(transport).get("/").response
        expectEqual(response.statusCode, 200)
        #expect((.seconds(50) ... .seconds(51)).contains(transport.elapsedTime))
        #expect(response.metrics.timeBackingOff >= .seconds(50))
    }

    @Test func `a date in Retry-After is compared with the transport's date`() async throws {
        let transport = ScriptedTransport(startingAt: Date(timeIntervalSince1970: 784_111_777 - 60))
        transport.stub("/", with: StubResponse(503, fields: ["Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"]), StubResponse())
        try await expectEqual(session(transport).get("/").response.statusCode, 200)
        #expect((.seconds(60) ... .seconds(61)).contains(transport.elapsedTime))
    }

    @Test func `the error has the delay until a date in Retry-After`() async throws {
        let transport = ScriptedTransport(startingAt: Date(timeIntervalSince1970: 784_111_777 - 300))
        transport.stub("/", with: StubResponse(503, fields: ["Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"]))
        let session = try session(transport)
        let error = await #expect(throws: HTTPSessionError.self) { try await session.get("/").data() }
        expectEqual(error?.context.retryAfter, .seconds(300))
    }

    @Test func `a silent server trips the request timeout after 60 scripted seconds`() async throws {
        let transport = ScriptedTransport()
        transport.stub("/", with: .never)
        let session = try session(transport) { $0.retryPolicy = .never }
        let error = await #expect(throws: HTTPSessionError.self) { try await session.get("/").response }
        expectEqual(error?.code, .timedOut)
        expectEqual(transport.elapsedTime, .seconds(60))
    }

    @Test func `a silent server is reported after 60 seconds, although four retries are allowed`() async throws {
        let transport = ScriptedTransport()
        transport.stub("/", with: .never)
        let error = await #expect(throws: HTTPSessionError.self) { try await session(transport).get("/").response }
        expectEqual(error?.code, .timedOut)
        expectEqual(transport.elapsedTime, .seconds(60))
        expectEqual(transport.requests.count, 1)
    }

    @Test func `connections that are lost after 25 silent seconds are reported after 60 seconds`() async throws {
        let transport = ScriptedTransport()
        transport.stub("/", with: .none(.reset).delayed(.seconds(25)))
        let error = await #expect(throws: HTTPSessionError.self) { try await session(transport).get("/").response }
        expectEqual(error?.code, .timedOut)
        expectEqual(error?.reason, "the server sent nothing for 60.0 seconds in several attempts")
        // With the waits before two retries.
        #expect((.seconds(60) ... .seconds(62)).contains(transport.elapsedTime), "\(transport.elapsedTime)")
        expectEqual(transport.requests.count, 3)
    }

    @Test func `slow responses are retried by their status as often as the policy allows`() async throws {
        let transport = ScriptedTransport()
        transport.stub("/", with: StubResponse(503).delayed(.seconds(50)))
        try await expectEqual(session(transport).get("/").response.statusCode, 503)
        expectEqual(transport.requests.count, 5)
        #expect(transport.elapsedTime >= .seconds(250))
    }

    @Test func `slow pieces keep a request alive until the resource timeout`() async throws {
        let transport = ScriptedTransport()
        transport.stub("/", with: StubResponse(body: .zeros(1 << 20)).pieces(of: 1_024, after: .delay(.seconds(30))))
        let session = try session(transport) { configuration in
            configuration.resourceTimeout = .seconds(3_600)
            configuration.retryPolicy = .never
        }
        let error = await #expect(throws: HTTPSessionError.self) { try await session.get("/").response }
        expectEqual(error?.code, .timedOut)
        expectEqual(transport.elapsedTime, .seconds(3_600))
    }

    @Test func `a rate is a delay between pieces`() async throws {
        let transport = ScriptedTransport()
        transport.stub("/", with: StubResponse(body: .zeros(10_000)).slow(bytesPerSecond: 1_000))
        try await expectEqual(session(transport).get("/").data().count, 10_000)
        #expect((.milliseconds(9_900) ... .seconds(10)).contains(transport.elapsedTime))
    }

    @Test func `retries end when the policy's number has failed`() async throws {
        let transport = ScriptedTransport()
        transport.stub("/", with: StubResponse(503))
        let response = try await session(transport).get("/").response
        #expect(response.statusCode == 503 && response.metrics.retryCount == 4)
        expectEqual(transport.requests.count, 5)
    }

    @Test func `the retry budget of a host refills in scripted time`() async throws {
        let transport = ScriptedTransport()
        transport.stub("/", with: StubResponse(503))
        let session = try session(transport) {
            $0.retryPolicy = RetryPolicy(
                maximumRetries: 40, baseDelay: .milliseconds(1), maximumDelay: .milliseconds(1))
        }
        try await expectEqual(session.get("/").response.statusCode, 503)
        expectEqual(transport.requests.count, 41)
        // Ten retries are free, and each further one takes a second to pay for.
        #expect(transport.elapsedTime > .seconds(20))
    }

    @Test func `in manual time a task backs off until the time is advanced`() async throws {
        let transport = ScriptedTransport(time: .manual)
        transport.stub("/", with: StubResponse(503, fields: ["Retry-After": "10"]), StubResponse(body: "back"))
        let task = try session(transport).get("/")
        await transport.waitUntilIdle()
        #expect(task.state == .backingOff && transport.requests.count == 1)
        let remaining = try #require(task.timeToNextAttempt)
        #expect(remaining >= .seconds(10))
        await transport.advance(by: .seconds(5))
        #expect(task.state == .backingOff && transport.requests.count == 1)
        expectEqual(task.timeToNextAttempt, remaining - .seconds(5))
        await transport.advance(by: .seconds(6))
        expectEqual(transport.requests.count, 2)
        try await expectEqual(task.string(), "back")
        expectEqual(transport.elapsedTime, .seconds(11))
    }

    @Test func `one advance passes the deadlines that follow from each other`() async throws {
        let transport = ScriptedTransport(time: .manual)
        transport.stub("/", with: StubResponse(503), StubResponse(503), StubResponse(503), StubResponse(body: "back"))
        let task = try session(transport).get("/")
        await transport.advance(by: .seconds(60))
        expectEqual(transport.requests.count, 4)
        try await expectEqual(task.string(), "back")
    }

    @Test func `in manual time a response is delayed until the time is advanced`() async throws {
        let transport = ScriptedTransport(time: .manual)
        transport.stub("/", with: StubResponse(body: "hello").delayed(.seconds(3)))
        let task = try session(transport).get("/")
        await transport.waitUntilIdle()
        #expect(task.state == .running && task.result == nil)
        await transport.advance(by: .milliseconds(2_999))
        expectNil(task.result)
        await transport.advance(by: .milliseconds(1))
        #expect(task.result != nil)
    }

    @Test func `progress follows the pieces of the body`() async throws {
        let transport = ScriptedTransport(time: .manual)
        transport.stub("/", with: StubResponse(body: .zeros(1_000)).pieces(of: 100, after: .delay(.seconds(1))))
        let task = try session(transport).get("/")
        await transport.waitUntilIdle()
        var received: [Int64] = []
        for _ in 0..<10 {
            await transport.advance(by: .seconds(1))
            received.append(task.currentProgress.bytesReceived)
        }
        expectEqual(received, (1...10).map { $0 * 100 })
        expectEqual(task.currentProgress.expectedToReceive, 1_000)
    }

    @Test func `a suspended task keeps time from passing and completes after it is resumed`() async throws {
        let transport = ScriptedTransport()
        let gate = try Gate()
        transport.stub("/", with: StubResponse(body: "hello").held(by: gate))
        let task = try session(transport).get("/")
        await transport.waitUntilIdle()
        task.suspend()
        gate.open()
        await transport.waitUntilIdle()
        #expect(task.state == .suspended && transport.elapsedTime == .zero)
        task.resume()
        try await expectEqual(task.string(), "hello")
        expectEqual(transport.elapsedTime, .zero)
    }

    @Test func `time passes for a retry while another task is suspended`() async throws {
        let transport = ScriptedTransport()
        let gate = try Gate()
        transport.stub("/held", with: StubResponse(body: "held").held(by: gate))
        transport.stub("/", with: StubResponse(503), StubResponse(body: "back"))
        let session = try session(transport)
        let held = session.get("/held")
        await transport.waitUntilIdle()
        held.suspend()
        try await expectEqual(session.get("/").string(), "back")
        gate.open()
        held.resume()
        try await expectEqual(held.string(), "held")
    }

    @Test func `a slow reader applies back-pressure, and no timeout passes`() async throws {
        let transport = ScriptedTransport()
        transport.stub("/", with: StubResponse(body: .pattern(2_000_000)))
        let task = try session(transport).stream("/")
        await transport.waitUntilIdle()
        #expect(task.state == .running && task.currentProgress.bytesReceived < 2_000_000)
        var count = 0
        for try await chunk in task.chunks { count += chunk.count }
        #expect(count == 2_000_000 && transport.elapsedTime == .zero)
    }

    @Test func `a handler keeps its own task's timeouts from passing`() async throws {
        let transport = ScriptedTransport()
        transport.stub("/", with: StubResponse(body: "hello"))
        let handlers = TransferHandlers(response: { _ in
            try? await Task.sleep(for: .milliseconds(50))
            return .allow
        })
        let session = try HTTPSessionManager(baseURL: "https://api.example.com", handlers: handlers, transport: transport)
        try await expectEqual(session.get("/").string(), "hello")
        expectEqual(transport.elapsedTime, .zero)
    }

    @Test func `the queue admits six requests to a host at a time`() async throws {
        let transport = ScriptedTransport()
        let gate = try Gate()
        transport.stub("/", with: StubResponse(body: "hello").held(by: gate))
        let session = try session(transport)
        let tasks = (0..<10).map { _ in session.get("/") }
        await transport.waitUntilIdle()
        #expect(tasks.filter { $0.state == .running }.count == 6 && tasks.filter { $0.state == .waiting }.count == 4)
        #expect(transport.requests.count == 6 && transport.elapsedTime == .zero)
        gate.open()
        for task in tasks { try await expectEqual(task.string(), "hello") }
        expectEqual(transport.requests.count, 10)
    }

    @Test func `a canceled task ends at once, and its delay does not pass`() async throws {
        let transport = ScriptedTransport(time: .manual)
        transport.stub("/", with: StubResponse().delayed(.seconds(30)))
        let task = try session(transport).get("/")
        await transport.waitUntilIdle()
        task.cancel()
        let error = await #expect(throws: HTTPSessionError.self) { try await task.response }
        #expect(error?.code == .cancelled && transport.elapsedTime == .zero)
    }

    @Test func `time passes at once after the session has ended`() async throws {
        let transport = ScriptedTransport(time: .manual)
        transport.stub("/", with: .never)
        let session = try session(transport)
        let task = session.get("/")
        await transport.waitUntilIdle()
        session.cancel()
        await session.waitUntilEnded()
        #expect(task.result != nil)
        await transport.advance(by: .seconds(1))
        await transport.waitUntilIdle()
        expectEqual(transport.elapsedTime, .seconds(1))
    }

    @Test func `time passes at once where there is no session`() async throws {
        let transport = ScriptedTransport(time: .manual)
        await transport.advance(by: .seconds(9))
        expectEqual(transport.elapsedTime, .seconds(9))
    }
}
