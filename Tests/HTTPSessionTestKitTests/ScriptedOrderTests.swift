import Expectations
import FoundationEssentials
import Glibc
import HTTPSession
import HTTPSessionTestKit
import NetworkLab
import Reachability
import ReachabilityTestKit
import Testing

/// The order of a scripted session's steps: paths that a test publishes, random delays, and the end of one session before the next.
@Suite(.timeLimit(.minutes(5)))
struct ScriptedOrderTests {
    private static let noCarrier = NetworkPath.unsatisfied(Cause(.link, .noCarrier, detail: "interface wlan0 has no carrier"))
    private static let wifi = NetworkPath.satisfied(over: .wifi())
    private static let rounds = 200

    private static func session(
        _ transport: ScriptedTransport, _ network: ScriptedNetwork? = nil,
        _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> HTTPSessionManager {
        var configuration = SessionConfiguration()
        change(&configuration)
        return try HTTPSessionManager(
            baseURL: "https://api.example.com", configuration: configuration, monitor: network?.monitor,
            transport: transport)
    }

    // MARK: Paths

    @Test(arguments: [ScriptedTransport.Time.automatic, .manual])
    func `waitUntilIdle returns after the session has handled a published path`(_ time: ScriptedTransport.Time) async throws {
        let (transport, network) = (ScriptedTransport(time: time), ScriptedNetwork(Self.wifi))
        transport.stub("/", with: StubResponse(body: "hello"))
        let session = try Self.session(transport, network)
        for round in 1...Self.rounds {
            network.publish(Self.noCarrier)
            let task = session.get("/")
            await transport.waitUntilIdle()
            try #require(task.state == .waitingForConnectivity, "round \(round)")
            network.publish(Self.wifi)
            await transport.waitUntilIdle()
            try #require(try task.result?.get().statusCode == 200, "round \(round)")
        }
        expectEqual(transport.elapsedTime, .zero)
    }

    @Test func `a path is handled before the time that a test lets pass`() async throws {
        let (transport, network) = (ScriptedTransport(time: .manual), ScriptedNetwork(Self.wifi))
        transport.stub("/", with: StubResponse(body: "hello"))
        let session = try Self.session(transport, network) { $0.resourceTimeout = .seconds(60) }
        for round in 1...Self.rounds {
            network.publish(Self.noCarrier)
            let task = session.get("/")
            await transport.waitUntilIdle()
            network.publish(Self.wifi)
            await transport.advance(by: .seconds(120))
            try #require(try task.result?.get().statusCode == 200, "round \(round)")
        }
    }

    @Test func `in automatic time no time passes between a published path and its effects`() async throws {
        // The loss of the path ends one task and makes the next one wait, without time. After the path is back, only the response's delay passes.
        let (transport, network) = (ScriptedTransport(), ScriptedNetwork(Self.wifi))
        transport.stub("/", with: StubResponse(body: "hello").delayed(.seconds(10)))
        let session = try Self.session(transport, network) { $0.retryPolicy = .never }
        for round in 1...Self.rounds {
            let gate = try Gate()
            transport.stub("/held", with: StubResponse(body: "held").held(by: gate))
            let held = session.get("/held")
            await transport.waitUntilIdle()
            network.publish(Self.noCarrier)
            let before = transport.elapsedTime
            let task = session.get("/")
            await transport.waitUntilIdle()
            try #require(held.result != nil && task.state == .waitingForConnectivity, "round \(round)")
            try #require(transport.elapsedTime == before, "round \(round)")
            network.publish(Self.wifi)
            try await expectEqual(task.response.statusCode, 200)
            try #require(transport.elapsedTime == before + .seconds(10), "round \(round)")
            gate.open()
        }
    }

    @Test func `a path that a callback publishes reaches the session`() async throws {
        let (transport, network) = (ScriptedTransport(), ScriptedNetwork(Self.noCarrier))
        transport.stub("/", with: StubResponse(body: "hello"))
        let session = try Self.session(transport, network)
        let task = session.get("/")
        await transport.waitUntilIdle()
        let token = network.monitor.onChange { update in
            if update.path.status == .unsatisfied { network.publish(Self.wifi) }
        }
        try await expectEqual(task.string(), "hello")
        token.cancel()
    }

    // MARK: Random numbers

    /// The times after each of some requests that are retried.
    private static func retryTimes(seed: UInt64?) async throws -> [Duration] {
        let transport = seed.map { ScriptedTransport(seed: $0) } ?? ScriptedTransport()
        let replies = (0..<4).map { _ in StubResponse(503) }
        transport.stub("/", with: replies[0], replies[1], replies[2], replies[3], StubResponse())
        transport.stub("/paid", with: StubResponse(503))
        let session = try session(transport) {
            $0.retryPolicy = RetryPolicy(maximumRetries: 20, baseDelay: .milliseconds(100), maximumDelay: .seconds(60))
        }
        var times: [Duration] = []
        for path in ["/", "/paid"] {
            _ = try await session.get(path).response
            times.append(transport.elapsedTime)
        }
        session.cancel()
        await session.waitUntilEnded()
        return times
    }

    @Test func `two runs have the same elapsed time, and another seed has another one`() async throws {
        let times = try await Self.retryTimes(seed: nil)
        #expect(times.allSatisfy { $0 > .zero } && Set(times).count == 2)
        try await expectEqual(Self.retryTimes(seed: nil), times)
        try await expectEqual(Self.retryTimes(seed: 0), times)
        #expect(try await Self.retryTimes(seed: 1) != times)
    }

    /// The number of requests after each millisecond since the network is back, with many tasks that waited for it.
    private static func releases() async throws -> [[String]] {
        let (transport, network) = (ScriptedTransport(time: .manual), ScriptedNetwork(noCarrier))
        for number in 0..<40 { transport.stub("/\(number)", with: StubResponse(503), StubResponse()) }
        let session = try session(transport, network)
        let tasks = (0..<40).map { session.get("https://host\($0 % 4).example/\($0)") }
        await transport.waitUntilIdle()
        #expect(tasks.allSatisfy { $0.state == .waitingForConnectivity })
        network.publish(wifi)
        var paths: [[String]] = []
        for _ in 0..<200 {
            await transport.advance(by: .milliseconds(50))
            paths.append(transport.requests.map(\.path))
        }
        #expect(tasks.allSatisfy { $0.result != nil } && transport.requests.count == 80)
        session.cancel()
        await session.waitUntilEnded()
        return paths
    }

    @Test func `tasks that waited for the network are released at the same times in two runs`() async throws {
        let first = try await Self.releases()
        try await expectEqual(Self.releases(), first)
    }

    // MARK: One session after another

    @Test func `a transport is free for another session when close returns`() async throws {
        let transport = ScriptedTransport()
        transport.stub("/", with: StubResponse(body: "hello"))
        transport.stub("/never", with: .never)
        for round in 0..<100 {
            let session = try Self.session(transport)
            try await expectEqual(session.get("/").string(), "hello")
            let gate = try Gate()
            transport.stub("/held", with: StubResponse(body: "held").held(by: gate))
            let held = session.get("/held")
            switch round % 3 {
            case 0:
                session.cancel()
                await session.waitUntilEnded()
            case 1:
                session.cancel()
                session.cancel()
                await session.waitUntilEnded()
            default:
                gate.open()
                session.cancel(afterTasks: true)
                await session.waitUntilEnded()
                try await expectEqual(held.string(), "held")
            }
        }
        expectEqual(transport.elapsedTime, .zero)
    }

    @Test func `two calls of waitUntilEnded return when the transport is free`() async throws {
        let transport = ScriptedTransport()
        transport.stub("/", with: StubResponse(body: "hello"))
        for _ in 0..<100 {
            let session = try Self.session(transport)
            session.cancel()
            async let other: Void = session.waitUntilEnded()
            await session.waitUntilEnded()
            let next = try Self.session(transport)
            await other
            try await expectEqual(next.get("/").string(), "hello")
            next.cancel()
            await next.waitUntilEnded()
        }
    }

    // MARK: Certificates

    @Test func `a scripted session loads no certificate authorities`() async {
        await #expect(processExitsWith: .success) {
            setenv("SSL_CERT_FILE", "/nonexistent/authorities.pem", 1)
            // A session that loads them fails.
            let error = #expect(throws: HTTPSessionError.self) { try HTTPSessionManager(baseURL: "https://api.example.com") }
            expectEqual(error?.code, .invalidConfiguration)
            let transport = ScriptedTransport()
            transport.stub("/", with: StubResponse(body: "hello"))
            let session = try HTTPSessionManager(baseURL: "https://api.example.com", transport: transport)
            try await expectEqual(session.get("/").string(), "hello")
        }
    }

    @Test func `a scripted session refuses an invalid security policy`() {
        let error = #expect(throws: HTTPSessionError.self) {
            try Self.session(ScriptedTransport()) {
                $0.securityPolicy.minimumTLSVersion = .v1_3
                $0.securityPolicy.maximumTLSVersion = .v1_2
            }
        }
        expectEqual(error?.code, .invalidConfiguration)
        let other = #expect(throws: HTTPSessionError.self) {
            try Self.session(ScriptedTransport()) { $0.securityPolicy.cipherSuites = "NO_SUCH_SUITE" }
        }
        expectEqual(other?.code, .invalidConfiguration)
    }
}
