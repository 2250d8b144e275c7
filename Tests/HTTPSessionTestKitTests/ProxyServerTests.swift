import Expectations
import FoundationEssentials
import HTTPSessionTestKit
import NetworkLab
import Testing
import TestServers

@Suite(.timeLimit(.minutes(20)))
struct ProxyServerTests {
    let origin: TestServer

    init() throws {
        origin = try TestServer { StubResponse(body: .text("\($0.method) \($0.target) \($0.text)")) }
    }

    @Test func `CONNECT makes a tunnel`() async throws {
        let proxy = try ProxyServer()
        let client = try RawClient(port: proxy.port)
        try client.send("CONNECT localhost:\(origin.port) HTTP/1.1\r\nHost: localhost\r\n\r\n")
        expectEqual(client.read(until: "\r\n\r\n"), "HTTP/1.1 200 Connection established\r\n\r\n")
        for _ in 0..<2 {
            try client.get("/through")
            #expect(client.read(until: "GET /through ").contains("200 OK"))
        }
        let passage = try #require(proxy.passages.first)
        #expect(passage.kind == .connect && passage.host == "localhost" && passage.port == origin.port)
        #expect(passage.outcome == .forwarded && proxy.passages.count == 1)
        expectEqual(origin.seen.connections, 1)
        #expect(proxy.seen.bytesUp > 0)
    }

    @Test func `a request in absolute form is forwarded with its body`() async throws {
        let proxy = try ProxyServer(names: ["example.test": "127.0.0.1"])
        let client = try RawClient(port: proxy.port)
        try client.send(
            "POST http://example.test:\(origin.port)/a?b HTTP/1.1\r\nHost: example.test\r\nProxy-Connection: x\r\n"
                + "Content-Length: 2\r\n\r\nhi")
        let answer = String(decoding: client.readToEnd().bytes, as: UTF8.self)
        #expect(answer.hasSuffix("\r\n\r\nPOST /a?b hi"))
        let request = try #require(origin.requests.first)
        #expect(request["via"] == "1.1 proxy" && request["proxy-connection"] == nil)
        expectEqual(proxy.passages.map(\.kind), [.absoluteForm])
        expectEqual(proxy.passages.first?.request?.text, "hi")
    }

    @Test func `a proxy asks for credentials and records them`() async throws {
        let proxy = try ProxyServer(credentials: .init(user: "me", password: "secret"))
        let client = try RawClient(port: proxy.port)
        try client.send("CONNECT localhost:\(origin.port) HTTP/1.1\r\n\r\n")
        #expect(client.read(until: "\r\n\r\n").contains("Proxy-Authenticate: Basic realm=\"proxy\""))
        try client.send("CONNECT localhost:\(origin.port) HTTP/1.1\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n")
        #expect(client.read(until: "\r\n\r\n").contains("200 "))
        expectEqual(proxy.passages.map(\.outcome), [.unauthorized, .forwarded])
    }

    @Test func `a proxy forwards to loopback addresses only`() async throws {
        let proxy = try ProxyServer()
        for (target, outcome) in [("198.51.100.1:80", ProxyServer.Passage.Outcome.foreignHost), ("127.0.0.1:1", .unreachable)] {
            let client = try RawClient(port: proxy.port)
            try client.send("CONNECT \(target) HTTP/1.1\r\n\r\n")
            #expect(String(decoding: client.readToEnd().bytes, as: UTF8.self).hasPrefix("HTTP/1.1 502 "))
            expectEqual(proxy.passages.last?.outcome, outcome)
        }
    }

    @Test(.requires("/usr/bin/curl")) func `curl sends requests through the proxy`() async throws {
        let curl = Curl()
        let proxy = try ProxyServer(credentials: .init(user: "me", password: "secret"), names: ["example.test": "127.0.0.1"])
        let url = "http://example.test:\(origin.port)/x"
        for scheme in ["http", "socks5h", "socks4a"] {
            let way = "\(scheme)://me:secret@127.0.0.1:\(proxy.port)"
            try expectEqual(curl.run(["--proxy", way, url]).output, "GET /x ")
            if scheme == "http" { try expectEqual(curl.run(["--proxy", way, "--proxytunnel", url]).output, "GET /x ") }
            #expect(try curl.run(["--proxy", "\(scheme)://127.0.0.1:\(proxy.port)", "--fail", url]).code != 0)
        }
        // A client that resolves names itself sends an address.
        try expectEqual(
            curl.run(["--proxy", "socks5://me:secret@127.0.0.1:\(proxy.port)", "http://127.0.0.1:\(origin.port)/y"]).output,
            "GET /y ")
        #expect(proxy.passages.map(\.host).contains("127.0.0.1"))
        try expectEqual(
            curl.run(["--proxy", "socks4://me@127.0.0.1:\(proxy.port)", "http://127.0.0.1:\(origin.port)/y"]).output,
            "GET /y ")
        expectEqual(Set(proxy.passages.map(\.kind)), [.connect, .absoluteForm, .socks5, .socks4])
    }

    @Test(.requires("/usr/bin/curl")) func `the connection to the proxy can be encrypted`() throws {
        let curl = Curl()
        let proxy = try ProxyServer(tls: SelfSignedCertificate().serverTLS)
        let result = try curl.run(["--proxy-insecure", "--proxy", proxy.url().absoluteString, origin.url("/z").absoluteString])
        expectEqual(result.output, "GET /z ")
    }
}
