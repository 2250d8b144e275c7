import Expectations
import Foundation
import Glibc
import HTTPSession
import HTTPSessionTestKit
import NetworkLab
import Testing
import TestServers

/// Connections that are idle between two requests, whose sockets stay in the session's loop.
@Suite(.timeLimit(.minutes(10))) struct IdleConnectionTests {
    private static let answer = Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK".utf8)

    @Test(arguments: ["http", "https", "tunnel", "HTTPS proxy"])
    func `a connection that the server closes while it is idle is replaced`(_ kind: String) async throws {
        let certificate = try SelfSignedCertificate(names: ["127.0.0.1"])
        let gates = try (0..<4).map { _ in try Gate() }
        let server = try TestServer(tls: kind == "http" || kind == "HTTPS proxy" ? nil : certificate.serverTLS) { request in
            .raw(StubBody([.bytes(Self.answer), .wait(.gate(gates[request.arrival - 1]))]))
        }
        let proxy =
            try kind == "tunnel" || kind == "HTTPS proxy"
            ? ProxyServer(tls: kind == "tunnel" ? nil : certificate.serverTLS) : nil
        let policy = try SecurityPolicy.trusting(certificate)
        let session = try localSession {
            $0.securityPolicy = policy
            if let proxy { $0.proxy = .explicit("\(kind == "tunnel" ? "http" : "https")://127.0.0.1:\(proxy.port)") }
            $0.proxySecurityPolicy = policy
        }
        for (number, gate) in gates.enumerated() {
            let response = try await session.dataTask(for: TransferRequest(url: server.url("/\(number)"))).response
            #expect(response.data == Data("OK".utf8) && response.metrics.retryCount == 0)
            gate.open()
            try await server.awaitOpenConnections(0)
        }
        expectEqual(server.requests.map(\.target), ["/0", "/1", "/2", "/3"])
        expectEqual(server.requests.map(\.connection), [1, 2, 3, 4])
    }

    @Test(arguments: [false, true]) func `idle connections are reused in turn, and closed with their session`(isSecure: Bool)
        async throws
    {
        let certificate = try SelfSignedCertificate(names: ["127.0.0.1"])
        let server = try TestServer(tls: isSecure ? certificate.serverTLS : nil) { StubResponse(body: .text($0.target)) }
        let policy = try SecurityPolicy.trusting(certificate)
        var session: HTTPSessionManager? = try localSession { $0.securityPolicy = policy }
        for round in 0..<20 {
            let tasks = (0..<6).compactMap { session?.dataTask(for: TransferRequest(url: server.url("/\(round)-\($0)"))) }
            for (number, task) in tasks.enumerated() {
                try await expectEqual(task.response.data, Data("/\(round)-\(number)".utf8))
            }
        }
        expectEqual(server.requests.count, 120)
        session = nil
        try await server.awaitOpenConnections(0)
    }

    /// A socket that listens at ::1 and never answers.
    private func silentListener(port: UInt16) throws -> Int32 {
        let listener = socket(AF_INET6, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in6()
        (address.sin6_family, address.sin6_port, address.sin6_addr) = (sa_family_t(AF_INET6), port.bigEndian, in6addr_loopback)
        let isListening = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_in6>.size)) == 0 && listen(listener, 1) == 0
            }
        }
        try #require(isListening && DeafServer.dropSegments(of: listener))
        return listener
    }

    /// libcurl tries both families (Happy Eyeballs, RFC 8305), and closes the socket of the slower one without a report.
    @Test func `connections are made while sockets of a silent address are closed`() async throws {
        let server = try TestServer { $0.arrival % 2 == 0 ? StubResponse(body: "x") : StubResponse(body: "x").closing() }
        let listener = try silentListener(port: server.port)
        defer { close(listener) }
        let names = (0..<3).map { "host\($0).example" }
        let session = try localSession {
            $0.hostOverrides = names.map { .init(host: $0, port: Int(server.port), addresses: ["::1", "127.0.0.1"]) }
        }
        for _ in 0..<8 {
            let tasks = try names.map { name in
                session.dataTask(for: TransferRequest(url: try #require(URL(string: "http://\(name):\(server.port)/"))))
            }
            for task in tasks {
                try await expectEqual(task.response.metrics.transactions.last?.remoteAddress, "127.0.0.1")
            }
        }
    }
}
