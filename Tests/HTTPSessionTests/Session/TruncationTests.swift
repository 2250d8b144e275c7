import Expectations
import Foundation
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing
import TestServers

@testable import HTTPSession

/// Ends of TLS connections without close_notify, which an attacker can forge (RFC 9112 section 9.8).
@Suite(.timeLimit(.minutes(20))) struct TruncationTests {
    /// The hops between the session and the server.
    enum Path: String, CaseIterable {
        case direct
        case connectTunnel
        case connectTunnelThroughHTTPSProxy
        /// The TLS connection ends at the proxy, which answers for an http URL.
        case httpThroughHTTPSProxy
    }

    private let certificate: SelfSignedCertificate

    init() throws { certificate = try SelfSignedCertificate(names: ["localhost"]) }

    private static let heads = [
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n",
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: identity\r\n\r\n",
    ]

    private func tls(_ version: ServerTLS.Version = .v1_3) -> ServerTLS {
        var tls = certificate.serverTLS
        (tls.minimumVersion, tls.maximumVersion) = (version, version)
        return tls
    }

    private func session(
        proxy: String? = nil, _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> HTTPSessionManager {
        let policy = try SecurityPolicy.trusting(certificate)
        return try localSession {
            $0.securityPolicy = policy
            $0.proxySecurityPolicy = policy
            if let proxy { $0.proxy = .explicit(proxy) }
            change(&$0)
        }
    }

    private func url(_ scheme: String, _ server: TestServer) throws -> URL {
        try #require(URL(string: "\(scheme)://localhost:\(server.port)/"))
    }

    @Test(arguments: [ServerTLS.Version.v1_2, .v1_3], Path.allCases)
    func `a truncation, an end of TLS without close_notify, fails as connectionLost`(
        _ version: ServerTLS.Version, _ path: Path
    ) async throws {
        for head in Self.heads {
            for ending in [StubResponse.Ending.truncated, .orderly] {
                let server = try TestServer(tls: tls(version)) { _ in .raw(.text(head + "half of it"), ending) }
                let error: HTTPSessionError?
                let task: TransferTask
                switch path {
                case .direct:
                    task = try session().dataTask(for: TransferRequest(url: url("https", server)))
                    error = await failure(task)
                case .connectTunnel, .connectTunnelThroughHTTPSProxy:
                    let proxy = try ProxyServer(tls: path == .connectTunnel ? nil : tls(version))
                    let address = "\(path == .connectTunnel ? "http" : "https")://localhost:\(proxy.port)"
                    task = try session(proxy: address).dataTask(for: TransferRequest(url: url("https", server)))
                    error = await failure(task)
                    expectEqual(proxy.passages.map(\.kind), [.connect])
                case .httpThroughHTTPSProxy:
                    let other = try #require(URL(string: "http://named.example/"))
                    task = try session(proxy: "https://localhost:\(server.port)").dataTask(for: TransferRequest(url: other))
                    error = await failure(task)
                }
                expectEqual(error?.code, (ending == .truncated ? .connectionLost : nil), "\(path) \(ending) \(head)")
                if ending == .orderly { try await expectEqual(task.response.data, Data("half of it".utf8)) }
            }
        }
    }

    @Test func `a truncation after a complete response of known length is ignored`() async throws {
        let server = try TestServer(tls: tls()) { request in
            switch request.path {
            case "/length": StubResponse(body: "all").closing(.truncated)
            case "/chunked": StubResponse(body: "all").chunked().closing(.truncated)
            case "/none": StubResponse(204).closing(.truncated)
            default: .raw("HTTP/1.1 200 OK\r\n\r\n", .truncated)
            }
        }
        let session = try session()
        for path in ["length", "chunked"] {
            let url = try url("https", server).appending(path: path)
            try await expectEqual(session.dataTask(for: TransferRequest(url: url)).response.data, Data("all".utf8))
        }
        let none = try url("https", server).appending(path: "none")
        try await expectEmpty(session.dataTask(for: TransferRequest(url: none)).response.data)
        let head = TransferRequest(url: try url("https", server), method: .head)
        try await expectEqual(session.dataTask(for: head).response.statusCode, 200)
    }

    @Test func `a truncation on a connection used before fails as connectionLost`() async throws {
        let server = try TestServer(tls: tls()) { request in
            request.numberOnConnection == 1 ? StubResponse(body: "all") : .raw("HTTP/1.1 200 OK\r\n\r\nhalf", .truncated)
        }
        let session = try session()
        _ = try await session.dataTask(for: TransferRequest(url: url("https", server))).response
        await expectEqual(failure(session.dataTask(for: TransferRequest(url: try url("https", server))))?.code, .connectionLost)
        expectEqual(server.seen.connections, 1)
    }

    @Test func `a truncation of a download publishes no file, and the next attempt continues to the complete file`() async throws
    {
        let folder = try ScratchDirectory()
        let server = try TestServer(tls: tls()) { request in
            guard request["range"] == nil else {
                return StubResponse(
                    206, fields: ["ETag": "\"1\"", "Content-Range": "bytes 100000-299999/300000"],
                    body: .bytes(Array(pattern(300_000)[100_000...])))
            }
            return StubResponse(fields: ["ETag": "\"1\""], body: .pattern(300_000)).untilClose().cut(afterBodyBytes: 100_000)
        }
        let request = TransferRequest(url: try url("https", server))
        let once = try session()
        await expectEqual(failure(once.downloadTask(for: request, to: .init(folder.url("file"))))?.code, .connectionLost)
        #expect(!folder.names.contains("file"))
        let twice = try session { $0.retryPolicy = RetryPolicy(maximumRetries: 2, baseDelay: .milliseconds(1)) }
        _ = try await twice.downloadTask(for: request, to: .init(folder.url("other"))).response
        try expectEqual(Data(contentsOf: folder.url("other")), pattern(300_000))
        expectEqual(server.requests.last?["if-range"], "\"1\"")
    }

    @Test func `a truncation ends a stream with connectionLost`() async throws {
        let server = try TestServer(tls: tls()) { _ in .raw("HTTP/1.1 200 OK\r\n\r\nhalf", .truncated) }
        let session = try session()
        var received = Data()
        let error = await #expect(throws: HTTPSessionError.self) {
            for try await chunk in session.streamTask(for: TransferRequest(url: try url("https", server))).chunks {
                received += chunk
            }
        }
        expectEqual(error?.code, .connectionLost)
        expectEqual(received, Data("half".utf8))
    }
}
