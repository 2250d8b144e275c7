import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Reachability
import Testing
import TestServers

/// Connection setup of a session: Unix sockets, host overrides, proxies, network namespaces, interfaces.
@Suite(.timeLimit(.minutes(20))) struct ConnectionSetupTests {
    @Test func `with unixSocketPath every connection uses the Unix socket`() async throws {
        let folder = try ScratchDirectory()
        let server = try TestServer(at: .unix(folder.file("socket"))) { StubResponse(body: .text($0["host"] ?? "-")) }
        let session = try localSession { $0.unixSocketPath = folder.file("socket") }
        let url = try #require(URL(string: "http://nowhere.example/x"))
        try await expectEqual(session.dataTask(for: TransferRequest(url: url)).response.data, Data("nowhere.example".utf8))
        expectEqual(server.requests.map(\.target), ["/x"])
        server.stop()
        await expectEqual(failure(session.dataTask(for: TransferRequest(url: url)))?.code, .cannotConnectToHost)
    }

    @Test func `a host override applies to its port only`() async throws {
        let server = try TestServer { StubResponse(body: .text($0["host"] ?? "-")) }
        let port = Int(server.port)
        let session = try localSession { $0.hostOverrides = [.init(host: "named.example", port: port, addresses: ["127.0.0.1"])] }
        let url = try #require(URL(string: "http://Named.Example:\(port)/"))
        let response = try await session.dataTask(for: TransferRequest(url: url)).response
        expectEqual(String(decoding: response.data, as: UTF8.self).lowercased(), "named.example:\(port)")
    }

    @Test func `if a host has several addresses the first that accepts a connection is used`() async throws {
        let server = try TestServer(at: .loopbackIPv6) { _ in StubResponse(body: "x") }
        let port = Int(server.port)
        let session = try localSession {
            $0.hostOverrides = [.init(host: "named.example", port: port, addresses: ["127.9.9.9", "::1"])]
        }
        let url = try #require(URL(string: "http://named.example:\(port)/"))
        let response = try await session.dataTask(for: TransferRequest(url: url)).response
        expectEqual(response.metrics.transactions.first?.remoteAddress, "::1")
        for (family, isThere) in [(SessionConfiguration.AddressFamily.ipv4, false), (.ipv6, true)] {
            let one = try localSession {
                $0.hostOverrides = [.init(host: "named.example", port: port, addresses: ["127.9.9.9", "::1"])]
                $0.addressFamily = family
            }
            await expectEqual(failure(one.dataTask(for: TransferRequest(url: url)))?.code, (isThere ? nil : .cannotConnectToHost))
        }
    }

    @Test func `a proxy forwards http requests and tunnels https requests`() async throws {
        let proxy = try ProxyServer(names: ["named.example": "127.0.0.1"])
        let certificate = try SelfSignedCertificate(names: ["named.example"])
        let plain = try TestServer { _ in StubResponse(body: "plain") }
        let secure = try TestServer(tls: certificate.serverTLS) { _ in StubResponse(body: "secure") }
        let policy = try SecurityPolicy.trusting(certificate)
        let session = try localSession {
            $0.proxy = .explicit(proxy.url().absoluteString)
            $0.securityPolicy = policy
        }
        let plainURL = try #require(URL(string: "http://named.example:\(plain.port)/a"))
        let secureURL = try #require(URL(string: "https://named.example:\(secure.port)/b"))
        try await expectEqual(session.dataTask(for: TransferRequest(url: plainURL)).response.data, Data("plain".utf8))
        let response = try await session.dataTask(for: TransferRequest(url: secureURL)).response
        expectEqual(response.data, Data("secure".utf8))
        expectEqual(response.metrics.transactions.first?.isProxyConnection, true)
        #expect(response.head.headerFields.allSatisfy { $0.name.rawName != "Proxy-Agent" })
        expectEqual(proxy.passages.map(\.kind), [.absoluteForm, .connect])
        expectEqual(proxy.passages.map(\.host), ["named.example", "named.example"])
    }

    @Test(arguments: [false, true]) func `a proxy's credentials come from its URL or from the challenge handler`(
        _ inAddress: Bool
    )
        async throws
    {
        let proxy = try ProxyServer(credentials: .init(user: "user", password: "word"))
        let certificate = try SelfSignedCertificate()
        let plain = try TestServer { StubResponse(body: .text($0["proxy-authorization"] ?? "-")) }
        let secure = try TestServer(tls: certificate.serverTLS) { StubResponse(body: .text($0["proxy-authorization"] ?? "-")) }
        let policy = try SecurityPolicy.trusting(certificate)
        let spaces = Locked<[Bool]>([])
        let handlers = TransferHandlers(challenge: { challenge in
            spaces.withLock { $0.append(challenge.protectionSpace.isProxy) }
            return challenge.previousFailureCount > 1 ? .cancel : .useCredential(Credential(user: "user", password: "word"))
        })
        let session = try localSession(
            {
                $0.proxy = .explicit(inAddress ? "http://user:word@127.0.0.1:\(proxy.port)" : proxy.url().absoluteString)
                $0.securityPolicy = policy
            }, handlers: inAddress ? .init() : handlers)
        for server in [plain, secure] {
            let response = try await session.dataTask(for: TransferRequest(url: server.url())).response
            expectEqual(response.statusCode, 200)
            expectEqual(response.data, Data("-".utf8))
        }
        expectEqual(spaces.withLock { $0 }, (inAddress ? [] : [true]))
        #expect(proxy.passages.contains { $0.outcome == .forwarded && $0.kind == .connect })
    }

    @Test func `a proxy's 407 is the response if there are no credentials`() async throws {
        let proxy = try ProxyServer(credentials: .init(user: "user", password: "word"))
        let session = try localSession { $0.proxy = .explicit(proxy.url().absoluteString) }
        let server = try TestServer { _ in StubResponse() }
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).response.statusCode, 407)
        let secure = try #require(URL(string: "https://127.0.0.1:\(server.port)/"))
        try await expectEqual(session.dataTask(for: TransferRequest(url: secure)).response.statusCode, 407)
        expectEqual(server.seen.connections, 0)
    }

    @Test func `a proxy that refuses, cannot reach the host or does not listen fails the task as proxyFailed`() async throws {
        let proxy = try ProxyServer()
        let session = try localSession { $0.proxy = .explicit(proxy.url().absoluteString) }
        let foreign = try #require(URL(string: "https://foreign.example/"))
        await expectEqual(failure(session.dataTask(for: TransferRequest(url: foreign)))?.code, .proxyFailed)
        let dead = try #require(URL(string: "https://127.0.0.1:1/"))
        await expectEqual(failure(session.dataTask(for: TransferRequest(url: dead)))?.code, .proxyFailed)
        proxy.stop()
        let error = await failure(session.dataTask(for: TransferRequest(url: try #require(URL(string: "http://127.0.0.1:1/")))))
        expectEqual(error?.code, .proxyFailed)
    }

    @Test func `credentials in a proxy's URL are sent without a challenge`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let proxy = try ProxyServer(credentials: .init(user: "me", password: "word"))
        let (asked, heads) = (Counter(), Counter())
        let handlers = TransferHandlers(
            response: { _ in
                heads.add()
                return .allow
            },
            challenge: { _ in
                asked.add()
                return .performDefaultHandling
            })
        let session = try localSession(
            { $0.proxy = .explicit("http://me:word@127.0.0.1:\(proxy.port)") }, handlers: handlers)
        let response = try await session.dataTask(for: TransferRequest(url: server.url())).response
        expectEqual(response.statusCode, 200)
        expectEqual(response.data, Data("x".utf8))
        expectEqual(asked.count, 0)
        expectEqual(heads.count, 1)
    }

    @Test func `hosts in the proxy's exceptions are connected to directly`() async throws {
        let proxy = try ProxyServer()
        let server = try TestServer { _ in StubResponse(body: "x") }
        let session = try localSession { $0.proxy = .explicit(proxy.url().absoluteString, except: ["127.0.0.1"]) }
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).response.data, Data("x".utf8))
        expectEqual(proxy.seen.connections, 0)
    }

    @Test(arguments: ["trusted", "pinned wrongly", "untrusted"])
    func `an http URL upgraded to https by HSTS is evaluated by the security policy`(_ kind: String) async throws {
        let certificate = try SelfSignedCertificate(names: ["secure.example"])
        let server = try TestServer(tls: certificate.serverTLS) { _ in
            StubResponse(body: "x").field("Strict-Transport-Security", "max-age=1000")
        }
        let folder = try ScratchDirectory()
        let hsts = folder.url("hsts")
        let trusting = try SecurityPolicy.trusting(certificate)
        let pins = try HostPins("secure.example", pins: ["sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="])
        let override = SessionConfiguration.HostOverride(host: "secure.example", port: Int(server.port), addresses: ["127.0.0.1"])
        let log = EventLog()
        let first = try HTTPSessionManager(
            configuration: localConfiguration {
                $0.securityPolicy = trusting
                $0.hostOverrides = [override]
                $0.hstsFile = hsts
            }, eventMonitors: [log])
        let secure = try #require(URL(string: "https://secure.example:\(server.port)/"))
        let plain = try #require(URL(string: "http://secure.example:\(server.port)/"))
        _ = try await first.dataTask(for: TransferRequest(url: secure)).response
        first.cancel(afterTasks: true)
        _ = await log.awaitInvalidation()
        try await server.awaitOpenConnections(0)

        let session = try localSession {
            if kind != "untrusted" { $0.securityPolicy = trusting }
            if kind == "pinned wrongly" { $0.securityPolicy.hostPins = [pins] }
            $0.hostOverrides = [override]
            $0.hstsFile = hsts
        }
        for _ in 0..<2 {
            let task = session.dataTask(for: TransferRequest(url: plain))
            switch kind {
            case "trusted":
                let response = try await task.response
                expectEqual(response.data, Data("x".utf8))
                expectEqual(response.metrics.transactions.last?.negotiatedTLSProtocolVersion, "TLSv1.3")
            case "pinned wrongly": await expectEqual(failure(task)?.code, .pinMismatch)
            default: await expectEqual(failure(task)?.code, .certificateHasUnknownRoot)
            }
        }
        expectEqual(server.requests.count, (kind == "trusted" ? 3 : 1))
    }

    @Test(.requiresNamespaces) func `a session with a network namespace connects inside it`() async throws {
        let host = try Lab().host(loopback: true)
        var configuration = TestServer.Configuration()
        configuration.namespace = NetworkNamespace(host.path)
        // The address is unique to this test: outside the namespace, another test's server may have the same port.
        let server = try TestServer(at: .ip("127.19.68.211", port: 0), configuration: configuration) { _ in
            StubResponse(body: "inside")
        }
        let inside = try localSession { $0.namespace = NetworkNamespace(host.path) }
        try await expectEqual(inside.dataTask(for: TransferRequest(url: server.url())).response.data, Data("inside".utf8))
        await expectEqual(
            failure(try localSession().dataTask(for: TransferRequest(url: server.url())))?.code, .cannotConnectToHost)
        let error = #expect(throws: HTTPSessionError.self) {
            try localSession { $0.namespace = NetworkNamespace("/nowhere") }
        }
        expectEqual(error?.code, .invalidConfiguration)
    }

    @Test(.requiresNamespaces) func `a session with an interface sends from it, regardless of the routes`() async throws {
        let (client, far) = (try Lab().host(loopback: true), try Lab().host(loopback: true))
        for (name, net) in [("up0", "198.18.1"), ("up1", "198.18.2")] {
            try Lab().connect(client, name, far, name)
            for (host, end) in [(client, "2"), (far, "1")] {
                try host.ip("addr add \(net).\(end)/24 dev \(name)")
                try host.ip("link set \(name) up")
            }
            try client.ip("route add default via \(net).1 metric \(name == "up0" ? 10 : 20)")
        }
        try far.ip("addr add 198.18.9.9/32 dev lo")
        var configuration = TestServer.Configuration()
        configuration.namespace = NetworkNamespace(far.path)
        let server = try TestServer(at: .ip("0.0.0.0", port: 0), configuration: configuration) { _ in StubResponse(body: "x") }
        let url = try #require(URL(string: "http://198.18.9.9:\(server.port)/"))
        let alternative = "an-alternative-name-of-more-than-15-bytes"
        try client.ip("link property add dev up1 altname \(alternative) altname short")
        for (interface, address) in [
            (nil, "198.18.1.2"), ("up0", "198.18.1.2"), ("up1", "198.18.2.2"), (alternative, "198.18.2.2"),
            ("short", "198.18.2.2"),
        ] {
            let session = try localSession {
                $0.namespace = NetworkNamespace(client.path)
                $0.interface = interface
            }
            let response = try await session.dataTask(for: TransferRequest(url: url)).response
            expectEqual(response.metrics.transactions.first?.localAddress, address)
        }
        let nowhere = try localSession {
            $0.namespace = NetworkNamespace(client.path)
            $0.interface = "none0"
        }
        await expectEqual(failure(nowhere.dataTask(for: TransferRequest(url: url)))?.code, .notConnected)
    }

    @Test(.requiresNamespaces) func `without a route the task fails as notConnected`() async throws {
        let host = try Lab().host(loopback: true)
        let session = try localSession { $0.namespace = NetworkNamespace(host.path) }
        let url = try #require(URL(string: "http://192.0.2.1/"))
        let error = await failure(session.dataTask(for: TransferRequest(url: url)))
        expectEqual(error?.code, .notConnected)
        expectEqual(error?.context.systemError, ENETUNREACH)
    }
}

/// DNS lookups without an answer, in a network namespace with its own resolv.conf.
@Suite(.requiresNamespaces, .requiresMounts, .timeLimit(.minutes(20))) struct ResolverTests {
    private let host: LabHost
    private let folder: ScratchDirectory

    init() throws {
        host = try Lab().host(loopback: true)
        folder = try ScratchDirectory()
    }

    /// A session that uses the lab host's own name server.
    private func session(
        hosts: String? = nil, _ change: @escaping @Sendable (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> HTTPSessionManager {
        let file = folder.file("resolv.conf")
        // With five attempts, of which each waits twice as long as the one before, a lookup without an answer takes more than ten minutes.
        try Data("nameserver 127.0.0.1\noptions timeout:30 attempts:5\n".utf8).write(to: URL(fileURLWithPath: file))
        let names = folder.file("hosts")
        try Data((hosts ?? "127.0.0.1 localhost").utf8).write(to: URL(fileURLWithPath: names))
        let namespace = host.path
        return try withOwnMounts {
            for (file, place) in [(file, "/etc/resolv.conf"), (names, "/etc/hosts")] {
                guard mount(file, place, "none", UInt(MS_BIND), nil) == 0 else { throw POSIXError(.EPERM) }
            }
            return try localSession {
                $0.namespace = NetworkNamespace(namespace)
                change(&$0)
            }
        }
    }

    private func request(_ host: String) throws -> TransferRequest {
        TransferRequest(url: try #require(URL(string: "http://\(host)/")))
    }

    @Test(.skippedUnderSanitizers)
    func `a DNS lookup without an answer can be canceled, and does not block the session`() async throws {
        let resolver = try SilentResolver(namespace: host.path)
        var configuration = TestServer.Configuration()
        configuration.namespace = NetworkNamespace(host.path)
        let server = try TestServer(configuration: configuration) { _ in StubResponse(body: "x") }
        let session = try session()
        let task = session.dataTask(for: try request("silent.example"))
        try await resolver.awaitQuestions(1)
        let start = ContinuousClock.now
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).response.data, Data("x".utf8))
        task.cancel()
        await expectEqual(failure(task)?.code, .cancelled)
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).response.data, Data("x".utf8))
        #expect(ContinuousClock.now - start < .seconds(120))
    }

    @Test(.skippedUnderSanitizers)
    func `a DNS lookup without an answer ends at the connect timeout, and does not delay invalidation`() async throws {
        let resolver = try SilentResolver(namespace: host.path)
        let log = Counter()
        let session = try session { $0.connectTimeout = .milliseconds(300) }
        let start = ContinuousClock.now
        await expectEqual(failure(session.dataTask(for: try request("silent.example")))?.code, .timedOut)
        let second = session.dataTask(for: try request("other.example"))
        try await resolver.awaitQuestions(2)
        session.cancel()
        #expect(await failure(second) != nil)
        #expect(ContinuousClock.now - start < .seconds(120))
        log.add()
    }

    @Test(.skippedUnderSanitizers) func `maximumConcurrentLookups limits DNS lookups, including abandoned ones`() async throws {
        let resolver = try SilentResolver(namespace: host.path)
        let session = try session { $0.maximumConcurrentLookups = 2 }
        let tasks = try (0..<6).map { session.dataTask(for: try request("h\($0).example")) }
        // A lookup asks for A and AAAA.
        try await resolver.awaitQuestions(2)
        tasks[0].cancel()
        await expectEqual(failure(tasks[0])?.code, .cancelled)
        #expect(tasks.count { $0.state == .running } <= 2)
        #expect(tasks.count { $0.state == .waiting } >= 4)
        #expect(Set(resolver.names).count <= 2)
        session.cancel()
        for task in tasks { await expectEqual(failure(task)?.code, .cancelled) }
    }

    @Test func `all tasks that wait for the same DNS lookup end with it`() async throws {
        let resolver = try SilentResolver(namespace: host.path)
        // Long enough for all tasks to begin during the lookup on a busy machine, and shorter than the time after which c-ares asks again.
        let session = try session { $0.connectTimeout = .milliseconds(1_500) }
        let tasks = try (0..<20).map { _ in session.dataTask(for: try request("silent.example")) }
        for task in tasks { await expectEqual(failure(task)?.code, .timedOut) }
        // The one lookup asks for A and AAAA.
        #expect(resolver.names.count <= 2)
        session.cancel()
    }

    @Test(.skippedUnderSanitizers)
    func `failed DNS lookups do not delay others`() async throws {
        // No server listens on the name server's port: the kernel reports that, and the lookup ends.
        let session = try session { $0.maximumConcurrentLookups = 1 }
        let start = ContinuousClock.now
        for number in 0..<5 {
            let error = await failure(session.dataTask(for: try request("h\(number).example")))
            expectEqual(error?.code, .cannotFindHost, "\(String(describing: error))")
        }
        #expect(ContinuousClock.now - start < .seconds(120))
    }

    @Test func `a connection that is not established does not block DNS lookups of other names`() async throws {
        var configuration = TestServer.Configuration()
        configuration.namespace = NetworkNamespace(host.path)
        configuration.arrival = { $0 == 1 ? .respond(.never) : .serve }
        let server = try TestServer(configuration: configuration) { _ in StubResponse(body: "x") }
        let session = try session(hosts: "127.0.0.1 silent.example other.example") {
            $0.maximumConcurrentLookups = 1
            $0.connectTimeout = .seconds(300)
        }
        let url = try #require(URL(string: "https://silent.example:\(server.port)/"))
        let handshaking = session.dataTask(for: TransferRequest(url: url))
        try await server.awaitSeen { $0.connections == 1 }
        try await expectEqual(session.dataTask(for: try request("other.example:\(server.port)")).response.data, Data("x".utf8))
        expectNil(handshaking.result)
        handshaking.cancel()
        await expectEqual(failure(handshaking)?.code, .cancelled)
    }

    @Test(.requiresNamespaces, arguments: ["http://127.0.0.1:40002/", "https://[::1]:40002/"])
    func `a connection of a socket to itself is a refused one`(text: String) async throws {
        let host = try Lab().host(loopback: true)
        // The kernel has no other port for the socket than that of the URL.
        try host.run("sysctl", "-qw", "net.ipv4.ip_local_port_range=40002 40002")
        let session = try localSession { $0.namespace = NetworkNamespace(host.path) }
        let error = try await failure(session.dataTask(for: TransferRequest(url: #require(URL(string: text)))))
        expectEqual(error?.code, .cannotConnectToHost)
        expectEqual(error?.context.systemError, ECONNREFUSED)
    }
}
