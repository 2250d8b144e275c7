import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import Testing

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
