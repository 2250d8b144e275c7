import EventLoop
import Expectations
import Foundation
import HTTPSessionTestKit
import HTTPTypes
import Testing

@testable import HTTPSession

/// Counts the requests that a server handles at the same time.
private final class ConcurrencyCounter: Sendable {
    private let numbers = Locked((present: 0, most: 0))
    var most: Int { numbers.withLock { $0.most } }

    func enter() {
        numbers.withLock { numbers in
            numbers.present += 1
            numbers.most = max(numbers.most, numbers.present)
        }
    }
    func leave() { numbers.withLock { $0.present -= 1 } }
}

@Suite(.timeLimit(.minutes(20))) struct QueueingTests {
    private func request(_ server: TestServer, _ path: String = "/", _ priority: TransferRequest.Priority = .default)
        -> TransferRequest
    {
        var request = TransferRequest(url: server.url(path))
        request.options.priority = priority
        return request
    }

    @Test func `maximumConnectionsPerHost limits the connections of a host`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(body: "x").held(by: gate) }
        let session = try localSession { $0.maximumConnectionsPerHost = 3 }
        let tasks = (0..<10).map { session.dataTask(for: request(server, "/\($0)")) }
        try await server.awaitRequests(3)
        // When another server has responded, the session's thread has handled all ten tasks.
        let other = try TestServer { _ in StubResponse() }
        _ = try await session.dataTask(for: request(other)).response
        expectEqual(server.seen.requestCount, 3)
        expectEqual(server.seen.connections, 3)
        expectEqual(tasks.count { $0.state == .waiting }, 7)
        expectEqual(tasks.count { $0.state == .running }, 3)
        gate.open()
        for task in tasks { _ = try await task.response }
        expectEqual(server.seen.connections, 3)
        expectEqual(server.requests.count, 10)
    }

    @Test func `suspended tasks yield their places after a second, and continue on their connections`() async throws {
        let gate = try Gate()
        let server = try TestServer { request in
            request.path == "/get" ? StubResponse(body: "x") : StubResponse(body: .pattern(1_000)).bodyHeld(by: gate)
        }
        let clock = ManualClock()
        let session = try HTTPSessionManager(
            configuration: localConfiguration {
                $0.transport = clock
                $0.maximumConnectionsPerHost = 2
            })
        // A POST and a stream could not start over.
        let post = session.dataTask(for: TransferRequest(url: server.url("/post"), method: .post, body: .data(Data("x".utf8))))
        let paused = [post, session.dataTask(for: request(server, "/data"))]
        try await server.awaitRequests(2)
        for task in paused { task.suspend() }
        let waiting = (0..<3).map { _ in session.dataTask(for: request(server, "/get")) }
        let other = try TestServer { _ in StubResponse() }
        // When another server has responded, the session's thread has handled all of them.
        _ = try await session.dataTask(for: request(other)).response
        clock.advance(by: .seconds(1))
        for task in waiting { try await expectEqual(task.response.data, Data("x".utf8)) }
        for task in paused { task.resume() }
        gate.open()
        for task in paused {
            let response = try await task.response
            expectEqual(response.data.count, 1_000)
            expectEqual(response.metrics.transactions.count, 1)
        }
        expectEqual(server.requests.count, 5)
        #expect(server.seen.connections <= 4)
        // The places are those of before.
        let held = (0..<4).map { _ in session.dataTask(for: request(server, "/get")) }
        for task in held { _ = try await task.response }
    }

    @Test func `streams that nobody reads yield their places, and continue when somebody does`() async throws {
        let body = pattern(20_000_000)
        let server = try TestServer { request in
            request.path == "/get" ? StubResponse(body: "x") : StubResponse(body: .pattern(20_000_000))
        }
        let other = try TestServer { _ in StubResponse() }
        let clock = ManualClock()
        let session = try HTTPSessionManager(
            configuration: localConfiguration {
                $0.transport = clock
                $0.maximumConnectionsPerHost = 2
            })
        let streams = (0..<2).map { _ in session.streamTask(for: request(server, "/stream")) }
        try await server.awaitRequests(2)
        let waiting = session.dataTask(for: request(server, "/get"))
        for _ in 0..<1_000 where waiting.state == .waiting || waiting.state == .running {
            _ = try await session.dataTask(for: request(other)).response
            clock.advance(by: .milliseconds(100))
        }
        try await expectEqual(waiting.response.data, Data("x".utf8))
        for stream in streams {
            var data = Data()
            for try await chunk in stream.chunks { data += chunk }
            #expect(data == body)
        }
        expectEqual(server.requests.count, 3)
    }

    @Test func `a place is yielded only if a task waits for it, and no more connections are made than maximumConnections`()
        async throws
    {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(body: .pattern(1_000)).bodyHeld(by: gate) }
        let clock = ManualClock()
        let session = try HTTPSessionManager(
            configuration: localConfiguration {
                $0.transport = clock
                ($0.maximumConnectionsPerHost, $0.maximumConnections) = (2, 3)
            })
        let tasks = (0..<5).map { session.dataTask(for: request(server, "/\($0)")) }
        try await server.awaitRequests(2)
        let first = tasks.filter { $0.state == .running }
        for task in first { task.suspend() }
        clock.advance(by: .seconds(2))
        try await server.awaitRequests(3)
        clock.advance(by: .seconds(5))
        expectEqual(server.seen.connections, 3)
        for task in first { task.resume() }
        gate.open()
        for task in tasks { try await expectEqual(task.response.data.count, 1_000) }
        expectEqual(server.requests.count, 5)
        #expect(server.seen.connections <= 3)
    }

    @Test func `maximumConnections limits the connections of all hosts together`() async throws {
        let gate = try Gate()
        let servers = try (0..<4).map { _ in try TestServer { _ in StubResponse().held(by: gate) } }
        let session = try localSession { $0.maximumConnections = 3 }
        let tasks = servers.flatMap { server in (0..<2).map { _ in session.dataTask(for: request(server)) } }
        try await servers[0].awaitRequests(1)
        #expect(servers.map(\.seen.requestCount).reduce(0, +) <= 3)
        #expect(tasks.count { $0.state == .running } <= 3)
        gate.open()
        for task in tasks { _ = try await task.response }
        #expect(servers.allSatisfy { $0.requests.count == 2 })
    }

    @Test func `queued tasks start by priority, and oldest first within a priority`() async throws {
        let gate = try Gate()
        let server = try TestServer { request in request.path == "/first" ? StubResponse().held(by: gate) : StubResponse() }
        let session = try localSession { $0.maximumConnectionsPerHost = 1 }
        let first = session.dataTask(for: request(server, "/first"))
        try await server.awaitRequests(1)
        let tasks = [("/low", TransferRequest.Priority.low), ("/one", .default), ("/two", .default), ("/high", .high)]
            .map { session.dataTask(for: request(server, $0.0, $0.1)) }
        gate.open()
        for task in tasks + [first] { _ = try await task.response }
        expectEqual(server.requests.map(\.path), ["/first", "/high", "/one", "/two", "/low"])
        expectEqual(server.seen.connections, 1)
    }

    @Test func `a redirected task gets a connection before queued tasks`() async throws {
        let gate = try Gate()
        let server = try TestServer { request in
            request.path == "/first" ? StubResponse.redirect(to: "/second").held(by: gate) : StubResponse()
        }
        let session = try localSession { $0.maximumConnectionsPerHost = 1 }
        let first = session.dataTask(for: request(server, "/first"))
        try await server.awaitRequests(1)
        let third = session.dataTask(for: request(server, "/third"))
        gate.open()
        _ = try await (first.response, third.response)
        expectEqual(server.requests.map(\.path), ["/first", "/second", "/third"])
    }

    @Test(arguments: ["http", "https", "https with ALPN"]) func `a slow response does not delay other requests of its host`(
        _ kind: String
    ) async throws {
        let gate = try Gate()
        let certificate = try SelfSignedCertificate()
        var tls = kind == "http" ? nil : certificate.serverTLS
        if kind == "https with ALPN" { tls?.applicationProtocol = "http/1.1" }
        let server = try TestServer(tls: tls) { request in
            request.path == "/slow" ? StubResponse().held(by: gate) : StubResponse(body: "x")
        }
        let policy = try SecurityPolicy.trusting(certificate)
        let session = try localSession { $0.securityPolicy = policy }
        let slow = session.dataTask(for: request(server, "/slow"))
        try await server.awaitRequests(1)
        try await expectEqual(session.dataTask(for: request(server, "/quick")).response.data, Data("x".utf8))
        gate.open()
        _ = try await slow.response
    }

    @Test func `a thousand tasks finish within the connection limits`() async throws {
        let crowd = ConcurrencyCounter()
        let server = try TestServer { request in
            crowd.enter()
            defer { crowd.leave() }
            return StubResponse(body: .text(request.path))
        }
        let session = try localSession { $0.maximumConnectionsPerHost = 8 }
        let tasks = (0..<1_000).map {
            session.dataTask(for: request(server, "/\($0)", TransferRequest.Priority.allCases[$0 % 3]))
        }
        for (number, task) in tasks.enumerated() { try await expectEqual(task.response.data, Data("/\(number)".utf8)) }
        #expect(crowd.most <= 8)
        #expect(server.seen.connections <= 8)
        expectEqual(server.requests.count, 1_000)
    }
}
