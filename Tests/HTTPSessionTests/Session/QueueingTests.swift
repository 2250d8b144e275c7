import EventLoop
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import Testing

/// How many requests a server has at the same time, and had at most.
private final class Crowd: Sendable {
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

    @Test func `a host has so many connections and no more`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(body: "x").held(by: gate) }
        let session = try localSession { $0.maximumConnectionsPerHost = 3 }
        let tasks = (0..<10).map { session.data(request(server, "/\($0)")) }
        try await server.awaitRequests(3)
        // The thread has had its turn with all ten when this is answered by another server.
        let other = try TestServer { _ in StubResponse() }
        _ = try await session.data(request(other)).value
        #expect(server.seen.requestCount == 3)
        #expect(server.seen.connections == 3)
        #expect(tasks.count { $0.state == .waiting } == 7)
        #expect(tasks.count { $0.state == .running } == 3)
        gate.open()
        for task in tasks { _ = try await task.value }
        #expect(server.seen.connections == 3)
        #expect(server.requests.count == 10)
    }

    @Test func `all hosts together have so many and no more`() async throws {
        let gate = try Gate()
        let servers = try (0..<4).map { _ in try TestServer { _ in StubResponse().held(by: gate) } }
        let session = try localSession { $0.maximumConnections = 3 }
        let tasks = servers.flatMap { server in (0..<2).map { _ in session.data(request(server)) } }
        try await servers[0].awaitRequests(1)
        #expect(servers.map(\.seen.requestCount).reduce(0, +) <= 3)
        #expect(tasks.count { $0.state == .running } <= 3)
        gate.open()
        for task in tasks { _ = try await task.value }
        #expect(servers.allSatisfy { $0.requests.count == 2 })
    }

    @Test func `the urgent go first, and of equals the older`() async throws {
        let gate = try Gate()
        let server = try TestServer { request in request.path == "/first" ? StubResponse().held(by: gate) : StubResponse() }
        let session = try localSession { $0.maximumConnectionsPerHost = 1 }
        let first = session.data(request(server, "/first"))
        try await server.awaitRequests(1)
        let tasks = [("/low", TransferRequest.Priority.low), ("/one", .default), ("/two", .default), ("/high", .high)]
            .map { session.data(request(server, $0.0, $0.1)) }
        gate.open()
        for task in tasks + [first] { _ = try await task.value }
        #expect(server.requests.map(\.path) == ["/first", "/high", "/one", "/two", "/low"])
        #expect(server.seen.connections == 1)
    }

    @Test func `a redirect goes before those that have not begun`() async throws {
        let gate = try Gate()
        let server = try TestServer { request in
            request.path == "/first" ? StubResponse.redirect(to: "/second").held(by: gate) : StubResponse()
        }
        let session = try localSession { $0.maximumConnectionsPerHost = 1 }
        let first = session.data(request(server, "/first"))
        try await server.awaitRequests(1)
        let third = session.data(request(server, "/third"))
        gate.open()
        _ = try await (first.value, third.value)
        #expect(server.requests.map(\.path) == ["/first", "/second", "/third"])
    }

    @Test(arguments: ["http", "https", "https with ALPN"]) func `a slow answer does not keep others of its host waiting`(
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
        let slow = session.data(request(server, "/slow"))
        try await server.awaitRequests(1)
        #expect(try await session.data(request(server, "/quick")).value.data == Data("x".utf8))
        gate.open()
        _ = try await slow.value
    }

    @Test func `a thousand tasks all end, within the limits`() async throws {
        let crowd = Crowd()
        let server = try TestServer { request in
            crowd.enter()
            defer { crowd.leave() }
            return StubResponse(body: .text(request.path))
        }
        let session = try localSession { $0.maximumConnectionsPerHost = 8 }
        let tasks = (0..<1_000).map { session.data(request(server, "/\($0)", TransferRequest.Priority.allCases[$0 % 3])) }
        for (number, task) in tasks.enumerated() { #expect(try await task.value.data == Data("/\(number)".utf8)) }
        #expect(crowd.most <= 8)
        #expect(server.seen.connections <= 8)
        #expect(server.requests.count == 1_000)
    }
}
