import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import Testing
import TestServers

/// SOCKS proxies, which forward bytes without knowledge of HTTP.
@Suite(.timeLimit(.minutes(20))) struct SOCKSTests {
    private let proxy: ProxyServer
    private let server: TestServer

    init() throws {
        proxy = try ProxyServer(names: ["named.example": "127.0.0.1"])
        server = try TestServer { _ in StubResponse(body: "x") }
    }

    private func request(_ host: String, _ port: UInt16? = nil) throws -> TransferRequest {
        TransferRequest(url: try #require(URL(string: "http://\(host):\(port ?? server.port)/")))
    }

    @Test(arguments: ["socks4", "socks4a", "socks5", "socks5h"])
    func `a SOCKS proxy is used, and the scheme decides whether the client or the proxy resolves the name`(_ scheme: String)
        async throws
    {
        let port = Int(server.port)
        let session = try localSession {
            $0.proxy = .explicit(proxy.url(scheme: scheme).absoluteString)
            // If the client resolves the name, this override gives the address.
            $0.hostOverrides = [.init(host: "named.example", port: port, addresses: ["127.0.0.1"])]
        }
        let response = try await session.dataTask(for: request("named.example")).response
        expectEqual(response.data, Data("x".utf8))
        expectEqual(response.metrics.transactions.first?.isProxyConnection, true)
        let looksUpThere = ["socks4a", "socks5h"].contains(scheme)
        expectEqual(proxy.passages.map(\.host), [looksUpThere ? "named.example" : "127.0.0.1"])
        expectEqual(proxy.passages.map(\.kind), [scheme.hasPrefix("socks4") ? .socks4 : .socks5])
        expectEqual(server.requests.map { $0["host"] }, ["named.example:\(server.port)"])
    }

    @Test(arguments: ["socks4a", "socks5h"])
    func `a SOCKS proxy that refuses or cannot reach the host fails the task as proxyFailed`(_ scheme: String) async throws {
        let session = try localSession { $0.proxy = .explicit(proxy.url(scheme: scheme).absoluteString) }
        for (host, port) in [("unknown.example", nil), ("named.example", 1)] as [(String, UInt16?)] {
            let error = await failure(session.dataTask(for: try request(host, port)))
            expectEqual(error?.code, .proxyFailed, "\(String(describing: error))")
        }
        expectEqual(proxy.passages.map(\.outcome), [.foreignHost, .unreachable])
        expectEqual(server.seen.connections, 0)
    }

    @Test(arguments: ["socks4", "socks5"]) func `the user and password of a SOCKS proxy's URL are sent to the proxy`(
        _ scheme: String
    ) async throws {
        let proxy = try ProxyServer(credentials: .init(user: "me", password: "word"))
        for (user, isRight) in [("me:word@", true), ("you:word@", false)] {
            let session = try localSession { $0.proxy = .explicit("\(scheme)://\(user)127.0.0.1:\(proxy.port)") }
            let error = await failure(session.dataTask(for: try request("127.0.0.1")))
            expectEqual(error?.code, (isRight ? nil : .proxyFailed), "\(String(describing: error))")
        }
        expectEqual(proxy.passages.map(\.outcome), [.forwarded, .unauthorized])
    }
}
