import EventLoop
import Expectations
import Foundation
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing
import TestServers

@testable import HTTPSession

/// Proxy authentication, and the policy that decides whether a proxy is trusted. ``ConnectionSetupTests`` has connections through
/// proxies.
@Suite(.timeLimit(.minutes(20))) struct ProxyTests {
    private let own: SelfSignedCertificate
    private let proxys: SelfSignedCertificate

    init() throws {
        own = try SelfSignedCertificate(names: ["named.example", "127.0.0.1"])
        proxys = try SelfSignedCertificate(names: ["localhost"])
    }

    /// An HTTPS proxy at `https://localhost:PORT`.
    private func secureProxy(_ credentials: ProxyServer.Credentials? = nil) throws -> (server: ProxyServer, address: String) {
        let server = try ProxyServer(tls: proxys.serverTLS, credentials: credentials, names: ["named.example": "127.0.0.1"])
        return (server, "https://localhost:\(server.port)")
    }

    private func session(
        _ proxy: String, handlers: TransferHandlers = .init(), _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> HTTPSessionManager {
        let (policy, proxyPolicy) = (try SecurityPolicy.trusting(own), try SecurityPolicy.trusting(proxys))
        return try localSession(
            {
                $0.proxy = .explicit(proxy)
                $0.securityPolicy = policy
                $0.proxySecurityPolicy = proxyPolicy
                change(&$0)
            }, handlers: handlers)
    }

    private func request(_ text: String) throws -> TransferRequest { TransferRequest(url: try #require(URL(string: text))) }

    // MARK: TLS to the proxy

    @Test func `an HTTPS proxy forwards http requests and tunnels https requests`() async throws {
        let (proxy, address) = try secureProxy()
        let plain = try TestServer { _ in StubResponse(body: "plain") }
        let secure = try TestServer(tls: own.serverTLS) { _ in StubResponse(body: "secure") }
        let session = try session(address)
        try await expectEqual(
            session.dataTask(for: request("http://named.example:\(plain.port)/")).response.data, Data("plain".utf8))
        for _ in 0..<2 {
            let response = try await session.dataTask(for: request("https://named.example:\(secure.port)/")).response
            expectEqual(response.data, Data("secure".utf8))
            expectEqual(response.metrics.transactions.first?.negotiatedTLSProtocolVersion, "TLSv1.3")
            expectEqual(response.metrics.transactions.first?.isProxyConnection, true)
        }
        expectEqual(proxy.passages.map(\.kind), [.absoluteForm, .connect])
        expectEqual(secure.requests.map(\.tls?.serverName), ["named.example", "named.example"])
    }

    @Test func `an untrusted HTTPS proxy gets no request`() async throws {
        let (proxy, address) = try secureProxy()
        let secure = try TestServer(tls: own.serverTLS) { _ in StubResponse() }
        let session = try session(address) { $0.proxySecurityPolicy = .default }
        for url in ["https://named.example:\(secure.port)/", "http://named.example:\(secure.port)/"] {
            let error = await failure(session.dataTask(for: try request(url)))
            expectEqual(error?.code, .certificateHasUnknownRoot, "\(String(describing: error))")
        }
        // The name of this proxy does not match its certificate.
        let foreign = try self.session("https://127.0.0.1:\(proxy.port)")
        #expect(await failure(foreign.dataTask(for: try request("https://named.example:\(secure.port)/"))) != nil)
        expectEmpty(proxy.passages)
        expectEqual(secure.seen.connections, 0)
    }

    @Test func `behind a trusted HTTPS proxy the server is evaluated by its own security policy`() async throws {
        let (proxy, address) = try secureProxy()
        let secure = try TestServer(tls: own.serverTLS) { _ in StubResponse() }
        let session = try session(address) { $0.securityPolicy = .default }
        let error = await failure(session.dataTask(for: try request("https://named.example:\(secure.port)/")))
        expectEqual(error?.code, .certificateHasUnknownRoot)
        expectEqual(proxy.passages.map(\.outcome), [.forwarded])
        expectEmpty(secure.requests)
    }

    @Test func `host pins apply to servers and never to a proxy`() async throws {
        let (proxy, address) = try secureProxy()
        let secure = try TestServer(tls: own.serverTLS) { _ in StubResponse(body: "x") }
        let nobody = ["sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]
        let pinsOfProxy = try HostPins("localhost", pins: nobody)
        let pinsOfServer = try HostPins("named.example", pins: nobody)
        let url = "https://named.example:\(secure.port)/"
        let unharmed = try session(address) { $0.securityPolicy.hostPins = [pinsOfProxy] }
        try await expectEqual(unharmed.dataTask(for: request(url)).response.data, Data("x".utf8))
        let refused = try session(address) { $0.securityPolicy.hostPins = [pinsOfProxy, pinsOfServer] }
        await expectEqual(failure(refused.dataTask(for: try request(url)))?.code, .pinMismatch)
        expectEqual(secure.requests.count, 1)
        expectEqual(proxy.passages.map(\.outcome), [.forwarded, .forwarded])
    }

    // MARK: Credentials

    @Test(arguments: ProxyServer.Scheme.allCases, [false, true])
    func `a proxy's credential is requested once and used for all servers behind the proxy`(
        _ scheme: ProxyServer.Scheme, _ isSecure: Bool
    ) async throws {
        let credentials = ProxyServer.Credentials(user: "user", password: "word", scheme: scheme)
        let proxy = try ProxyServer(
            tls: isSecure ? proxys.serverTLS : nil, credentials: credentials, names: ["named.example": "127.0.0.1"])
        let plain = try TestServer { StubResponse(body: .text($0["proxy-authorization"] ?? "-")) }
        let secure = try TestServer(tls: own.serverTLS) { StubResponse(body: .text($0["proxy-authorization"] ?? "-")) }
        let asked = Locked<[AuthenticationChallenge]>([])
        let handlers = TransferHandlers(challenge: { challenge in
            asked.withLock { $0.append(challenge) }
            return .useCredential(Credential(user: "user", password: "word"))
        })
        let address = isSecure ? "https://localhost:\(proxy.port)" : proxy.url().absoluteString
        let session = try session(address, handlers: handlers)
        for url in [
            "https://named.example:\(secure.port)/", "http://named.example:\(plain.port)/", "https://127.0.0.1:\(secure.port)/",
            "http://127.0.0.1:\(plain.port)/",
        ] {
            let response = try await session.dataTask(for: request(url)).response
            expectEqual(response.statusCode, 200)
            expectEqual(response.data, Data("-".utf8))
        }
        let challenge = try #require(asked.withLock { $0 }.first)
        expectEqual(asked.withLock { $0.count }, 1)
        expectEqual(challenge.scheme, (scheme == .basic ? .basic : .digest))
        #expect(challenge.protectionSpace.isProxy && challenge.protectionSpace.realm == "proxy")
        expectEqual(challenge.protectionSpace.origin.description, address)
        let said = proxy.passages.compactMap { $0.request?["proxy-authorization"] }
        #expect(!said.isEmpty && (scheme == .basic || !said.contains { $0.contains("word") }))
        #expect((plain.requests + secure.requests).allSatisfy { $0["proxy-authorization"] == nil })
    }

    @Test func `a wrong proxy password gets another challenge, and the same one returned again is not sent again`() async throws {
        let (proxy, address) = try secureProxy(.init(user: "user", password: "word"))
        let secure = try TestServer(tls: own.serverTLS) { _ in StubResponse(body: "x") }
        let url = "https://named.example:\(secure.port)/"
        let counts = Locked<[Int]>([])
        let learning = try session(
            address,
            handlers: TransferHandlers(challenge: { challenge in
                counts.withLock { $0.append(challenge.previousFailureCount) }
                return .useCredential(Credential(user: "user", password: challenge.previousFailureCount == 0 ? "typo" : "word"))
            }))
        try await expectEqual(learning.dataTask(for: request(url)).response.data, Data("x".utf8))
        expectEqual(counts.withLock { $0 }, [0, 1])
        let stubborn = try session(
            address, handlers: TransferHandlers(challenge: { _ in .useCredential(Credential(user: "user", password: "typo")) }))
        try await expectEqual(stubborn.dataTask(for: request(url)).response.statusCode, 407)
        expectEqual(proxy.passages.count { $0.outcome == .forwarded }, 1)
    }

    @Test func `a proxy's credential is kept for the task after a redirect to another server`() async throws {
        let (proxy, address) = try secureProxy(.init(user: "user", password: "word"))
        let secure = try TestServer(tls: own.serverTLS) { _ in StubResponse(body: "there") }
        let plain = try TestServer { [port = secure.port] _ in .redirect(to: "https://named.example:\(port)/") }
        let asked = Counter()
        let session = try session(
            address,
            handlers: TransferHandlers(challenge: { _ in
                asked.add()
                return .useCredential(Credential(user: "user", password: "word", persistence: .none))
            }))
        try await expectEqual(
            session.dataTask(for: request("http://named.example:\(plain.port)/")).response.data, Data("there".utf8))
        expectEqual(asked.count, 1)
        expectEqual(proxy.passages.last?.outcome, .forwarded)
    }

    // MARK: Choosing the proxy of an origin

    @Test func `the proxy of an origin is the one that libcurl uses`() throws {
        let http = try #require(Origin(request("http://a/").url))
        let https = try #require(Origin(request("https://a/").url))
        func proxies(_ proxy: SessionConfiguration.Proxy, _ environment: [String: String] = [:]) -> [String?] {
            let origins = ProxyOrigins(proxy, environment: environment)
            return [origins.httpProxy(for: http)?.description, origins.httpProxy(for: https)?.description]
        }
        expectEqual(proxies(.none, ["http_proxy": "http://p:1"]), [nil, nil])
        expectEqual(proxies(.explicit("https://u:w@P.example")), ["https://p.example", "https://p.example"])
        expectEqual(proxies(.explicit("http://p")), ["http://p:1080", "http://p:1080"])
        expectEqual(proxies(.explicit("socks5://p:1")), [nil, nil])
        expectEqual(proxies(.environment), [nil, nil])
        expectEqual(proxies(.environment, ["http_proxy": "p:1", "https_proxy": "p:2"]), ["http://p:1", "http://p:2"])
        expectEqual(proxies(.environment, ["all_proxy": "p:1", "HTTPS_PROXY": "p:2"]), ["http://p:1", "http://p:2"])
        expectEqual(
            proxies(.environment, ["HTTP_PROXY": "p:1", "http_proxy": "", "ALL_PROXY": "p:3"]), ["http://p:3", "http://p:3"])
    }

    @Test func `the address to connect to is the proxy's, unless the origin is an exception`() throws {
        func address(
            _ origin: String, _ proxy: SessionConfiguration.Proxy, _ environment: [String: String] = [:]
        ) throws -> String? {
            let origins = ProxyOrigins(proxy, environment: environment)
            return origins.proxyURL(for: try #require(Origin(request(origin).url)))?.absoluteString
        }
        try expectNil(address("http://a/", .none, ["http_proxy": "p:1"]))
        try expectEqual(address("http://a/", .explicit("socks5h://p")), "socks5h://p:1080")
        try expectEqual(address("https://a/", .explicit("https://p", except: ["b.example"])), "https://p:443")
        try expectNil(address("https://x.B.example/", .explicit("https://p", except: [".b.example"])))
        try expectEqual(address("https://xb.example/", .explicit("https://p", except: [".b.example"])), "https://p:443")
        let environment = [
            "http_proxy": "p:1", "no_proxy": "10.0.0.0/8,192.0.2.7 [2001:db8::1],fd00::/8, name.", "NO_PROXY": "*",
        ]
        for excepted in ["10.1.2.3", "192.0.2.7", "[2001:db8::1]", "[fd12::1]", "name", "its.name", "name."] {
            try expectNil(address("http://\(excepted)/", .environment, environment), "\(excepted)")
        }
        for other in ["11.1.2.3", "192.0.2.8", "[2001:db8::2]", "surname", "p"] {
            try expectEqual(address("http://\(other)/", .environment, environment), "http://p:1", "\(other)")
        }
        try expectNil(address("http://a/", .environment, ["http_proxy": "p:1", "NO_PROXY": "*"]))
        try expectNil(address("http://a/", .environment, ["http_proxy": "p:1", "no_proxy": "", "NO_PROXY": "*"]))
        try expectNil(address("https://a/", .environment, ["http_proxy": "p:1"]))
    }

    @Test(arguments: [
        ("::1/128", "[::1]", true), ("::1/128", "[::2]", false), ("[::1]", "[::1]", true), ("[::1]/128", "[::1]", true),
        ("::1", "[::1]", true),
        ("0:0:0:0:0:0:0:1", "[::1]", true), ("::/0", "[2001:db8::1]", true), ("::/0", "10.0.0.1", false),
        ("0.0.0.0/0", "10.0.0.1", true),
        ("0.0.0.0/0", "[::1]", false), ("0.0.0.0/0", "name", false), ("10.0.0.0/33", "10.0.0.1", false),
        ("10.0.0.0/", "10.0.0.0", false),
        ("10.0.0.0/+8", "10.0.0.1", false), ("10.1.2.3/8", "10.9.9.9", true), ("10.0.0.1/32", "10.0.0.1", true),
        ("::ffff:10.0.0.0/104", "10.1.2.3", true), ("10.0.0.0/8", "[::ffff:10.1.2.3]", true),
        ("::ffff:10.0.0.1", "10.0.0.1", true),
        ("fe80::/10", "[fe80::1%25eth0]", true), ("fe80::1%eth0", "[fe80::1]", true),
        ("name.example.", "name.example", true), ("name.example", "name.example.", true), ("NAME.Example", "nAme.example", true),
        (".example", "name.example", true), (".name.example", "name.example", true), ("*.example", "a.name.example", true),
        ("*.name.example", "name.example", true), ("me.example", "name.example", false), ("name.example", "example", false),
        ("*", "any", true),
        ("a, *", "any", true), ("*example", "name.example", false), ("", "name", false), (".", "name", false),
        ("a\tname\n", "name", true),
        (",,a , ,name,", "name", true), ("name.example:80", "name.example", true), ("name.example:8080", "name.example", false),
        ("name.example:8080", "name.example:8080", true), ("10.0.0.1:8080", "10.0.0.1:8080", true),
        ("10.0.0.1:8080", "10.0.0.1", false),
        ("[::1]:8080", "[::1]:8080", true), ("[::1]:8080", "[::1]", false), (".example:8080", "a.example:8080", true),
        ("name:", "name", false),
        ("bücher.example", "xn--bcher-kva.example", true), ("1", "10.0.0.1", false), ("0.0.1", "10.0.0.1", false),
    ]) func `an exception of a proxy is a name, an address or a network`(_ list: String, _ host: String, _ isDirect: Bool) throws
    {
        let origin = try #require(Origin(request("http://\(host)/").url))
        for proxies in [
            ProxyOrigins(.environment, environment: ["http_proxy": "p:1", "no_proxy": list]),
            ProxyOrigins(.explicit("http://p:1", except: [list]), environment: [:]),
        ] {
            expectEqual(proxies.proxyText(for: origin, isSecure: false) == nil, isDirect)
            expectEqual(proxies.proxyURL(for: origin) == nil, isDirect)
        }
    }

    @Test func `libcurl connects directly to the exceptions of the session, and to no other host`() async throws {
        let proxy = try ProxyServer(names: ["named.example": "127.0.0.1"])
        let server = try TestServer { _ in StubResponse(body: "x") }
        let other = try TestServer(at: .loopbackIPv6) { _ in StubResponse(body: "x") }
        func isProxied(_ exception: String, _ url: String) async throws -> Bool? {
            let session = try localSession {
                $0.proxy = .explicit(proxy.url().absoluteString, except: [exception])
                $0.hostOverrides = [.init(host: "named.example", port: Int(server.port), addresses: ["127.0.0.1"])]
            }
            let response = try await session.dataTask(for: request(url)).response
            expectEqual(response.data, Data("x".utf8))
            return response.metrics.transactions.last?.isProxyConnection
        }
        let named = "http://named.example:\(server.port)/"
        for exception in ["*.EXAMPLE", "named.example.", "named.example:\(server.port)"] {
            try await expectEqual(isProxied(exception, named), false, "\(exception)")
        }
        for exception in ["::1/128", "[::1]", "::/0", "[::1]:\(other.port)"] {
            try await expectEqual(isProxied(exception, "http://[::1]:\(other.port)/"), false, "\(exception)")
        }
        for exception in ["0.0.0.0/0", "127.1.1.1/8"] {
            try await expectEqual(isProxied(exception, server.url().absoluteString), false, "\(exception)")
        }
        expectEqual(proxy.seen.connections, 0)
        for exception in ["", "named.example:1", "med.example", "0.0.0.0/0", "::/0"] {
            try await expectEqual(isProxied(exception, named), true, "\(exception)")
        }
    }

    @Test func `a redirect to another host decides again about the proxy`() async throws {
        let proxy = try ProxyServer(names: ["named.example": "127.0.0.1"])
        let server = try TestServer { request in
            request.path == "/away" ? .redirect(to: request.query?.removingPercentEncoding ?? "/") : StubResponse(body: "x")
        }
        let session = try localSession { $0.proxy = .explicit(proxy.url().absoluteString, except: ["127.0.0.0/8"]) }
        let (named, direct) = ("http://named.example:\(server.port)/", server.url("/").absoluteString)
        for (from, to, isProxied) in [(named, direct, [true, false]), (direct, named, [false, true])] {
            let response = try await session.dataTask(for: request("\(from)away?\(to)")).response
            expectEqual(response.metrics.transactions.map(\.isProxyConnection), isProxied)
        }
    }

    @Test func `networks in no_proxy are connected to directly`() async throws {
        await #expect(processExitsWith: .success) {
            let server = try TestServer { _ in StubResponse(body: "x") }
            setenv("http_proxy", "http://127.0.0.1:9", 1)
            setenv("no_proxy", "[::1] ,0.0.0.0/0", 1)
            let session = try localSession { $0.proxy = .environment }
            // Only the environment of the session's beginning counts.
            setenv("no_proxy", "", 1)
            try #require(try await session.dataTask(for: TransferRequest(url: server.url())).response.data == Data("x".utf8))
        }
    }

    @Test func `the environment variables choose the proxy and its exceptions`() async throws {
        // The exit test has its own process, because environment variables belong to the process.
        await #expect(processExitsWith: .success) {
            let proxy = try ProxyServer(names: ["named.example": "127.0.0.1"])
            let (other, certificate) = (
                try ProxyServer(names: ["named.example": "127.0.0.1"]), try SelfSignedCertificate(names: ["named.example"])
            )
            let plain = try TestServer { _ in StubResponse(body: "x") }
            let secure = try TestServer(tls: certificate.serverTLS) { _ in StubResponse(body: "x") }
            setenv("http_proxy", proxy.url().absoluteString, 1)
            setenv("https_proxy", other.url().absoluteString, 1)
            setenv("no_proxy", "127.0.0.1,direct.example", 1)
            let policy = try SecurityPolicy.trusting(certificate)
            let session = try localSession {
                $0.proxy = .environment
                $0.securityPolicy = policy
                $0.hostOverrides = [.init(host: "direct.example", port: Int(plain.port), addresses: ["127.0.0.1"])]
            }
            for (url, isProxied) in [
                ("http://named.example:\(plain.port)/", true), ("https://named.example:\(secure.port)/", true),
                ("http://127.0.0.1:\(plain.port)/", false), ("http://direct.example:\(plain.port)/", false),
            ] {
                let url = try #require(URL(string: url))
                let response = try await session.dataTask(for: TransferRequest(url: url)).response
                try #require(response.data == Data("x".utf8))
                try #require(response.metrics.transactions.map(\.isProxyConnection) == [isProxied])
            }
            try #require(proxy.passages.map(\.kind) == [.absoluteForm])
            try #require(other.passages.map(\.kind) == [.connect])
            // A session without a proxy ignores the environment.
            let none = try localSession {
                $0.hostOverrides = [.init(host: "named.example", port: Int(plain.port), addresses: ["127.0.0.1"])]
            }
            let named = try #require(URL(string: "http://named.example:\(plain.port)/"))
            _ = try await none.dataTask(for: TransferRequest(url: named)).response
            try #require(proxy.seen.connections + other.seen.connections == 2)
            // A stopped proxy from the environment fails the task like an explicit one.
            proxy.stop()
            let url = try #require(URL(string: "http://named.example:\(plain.port)/"))
            try #require(await failure(session.dataTask(for: TransferRequest(url: url)))?.code == .proxyFailed)
        }
    }

    @Test func `each of two HTTPS proxies is evaluated by its own name`() async throws {
        await #expect(processExitsWith: .success) {
            let certificates = try [
                SelfSignedCertificate(names: ["localhost"]), SelfSignedCertificate(names: ["127.0.0.1"]),
            ]
            let proxies = try certificates.map {
                try ProxyServer(tls: $0.serverTLS, names: ["named.example": "127.0.0.1", "kept.example": "127.0.0.1"])
            }
            setenv("http_proxy", "https://localhost:\(proxies[0].port)", 1)
            setenv("https_proxy", "https://127.0.0.1:\(proxies[1].port)", 1)
            unsetenv("no_proxy")
            unsetenv("NO_PROXY")
            let own = try SelfSignedCertificate(names: ["named.example", "kept.example"])
            let plain = try TestServer { _ in StubResponse(body: "x") }
            let secure = try TestServer(tls: own.serverTLS) { request in
                request["host"]?.hasPrefix("kept") == true
                    ? StubResponse(body: "x").field("Strict-Transport-Security", "max-age=1000") : StubResponse(body: "x")
            }
            let policy = try SecurityPolicy.trusting(own)
            var proxyPolicy = SecurityPolicy()
            proxyPolicy.roots = .given(Set(try certificates.flatMap { try Certificate.all(in: Data($0.certificate.utf8)) }))
            let session = try localSession { [proxyPolicy] in
                $0.proxy = .environment
                $0.securityPolicy = policy
                $0.proxySecurityPolicy = proxyPolicy
            }
            // The last request is upgraded to https by HSTS.
            for url in [
                "http://named.example:\(plain.port)/", "https://named.example:\(secure.port)/",
                "https://kept.example:\(secure.port)/",
                "http://kept.example:\(secure.port)/a",
            ] {
                let url = try #require(URL(string: url))
                let error = await failure(session.dataTask(for: TransferRequest(url: url)))
                try #require(error == nil, "\(url): \(String(describing: error))")
            }
            try #require(proxies[0].passages.map(\.kind) == [.absoluteForm])
            try #require(Set(proxies[1].passages.map(\.kind)) == [.connect])
            try #require(secure.requests.count == 3)
        }
    }

    @Test func `an explicit proxy uses its own exceptions and ignores no_proxy`() async throws {
        await #expect(processExitsWith: .success) {
            let proxy = try ProxyServer(names: ["named.example": "127.0.0.1"])
            let server = try TestServer { _ in StubResponse(body: "x") }
            for name in ["no_proxy", "NO_PROXY"] { setenv(name, "*", 1) }
            let session = try localSession { $0.proxy = .explicit(proxy.url().absoluteString) }
            let url = try #require(URL(string: "http://named.example:\(server.port)/"))
            try #require(try await session.dataTask(for: TransferRequest(url: url)).response.data == Data("x".utf8))
            try #require(proxy.passages.map(\.kind) == [.absoluteForm])
        }
    }

    @Test func `a Proxy-Authorization field in a request is refused, because a tunnel would send it to the server`() async throws
    {
        let server = try TestServer { _ in StubResponse() }
        let fields: HTTPFields = [.proxyAuthorization: "Basic s3cret"]
        let error = HTTPSessionError.thrown { try localSession { $0.additionalHeaderFields = fields } }
        #expect(error?.code == .invalidConfiguration && error?.reason.contains("challenge handler") == true)
        let refusal = await failure(try localSession().dataTask(for: TransferRequest(url: server.url(), headerFields: fields)))
        #expect(refusal?.code == .invalidRequest && refusal?.reason.contains("s3cret") == false)
        expectEmpty(server.requests)
    }
}
