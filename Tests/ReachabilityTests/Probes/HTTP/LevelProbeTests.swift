import CLinux
import Certificates
import EventLoop
import Expectations
import Foundation
import Glibc
import HTTPSessionTestKit
import Pacing
import Testing

@testable import Reachability

/// Probes of tls, http and https targets against real servers on loopback: the prober, and the verdict of its result.
@Suite struct LevelProbeTests {
    private static let home = IPAddress(v4: 0x7f00_0001)
    private static let certificate = try? SelfSignedCertificate()

    /// Runs one probe as the monitor's loop does, with the deadline in milliseconds.
    ///
    /// - Returns: the results in their order: that of the connection, and that of the levels.
    private func probe(
        _ target: String, _ settings: ProbeSettings = ProbeSettings(), deadline: Int64 = 10_000, smallSegments: Bool = false
    ) throws -> [ProbeResult] {
        var prober = TCPProber()
        return try probe(target, settings, deadline: deadline, smallSegments: smallSegments, by: &prober)
    }

    private func probe(
        _ target: String, _ settings: ProbeSettings, deadline: Int64 = 10_000, smallSegments: Bool = false,
        by prober: inout TCPProber
    ) throws -> [ProbeResult] {
        let endpoint = try Endpoint(target)
        var loop = try EventLoop()
        let start = MonotonicClock.now()
        let end = start + deadline * 1_000_000
        let attempt = ProbeAttempt(
            id: 1, address: Self.home, port: endpoint.port, plan: probePlan(endpoint, settings), deadline: end,
            hasSmallSegments: smallSegments)
        var results: [ProbeResult] = []
        if let result = prober.start(attempt, on: loop, now: Moment.now) { return [result] }
        while results.last?.levels == nil, results.last.map({ $0.errno == 0 }) ?? true {
            try #require(MonotonicClock.now() < start + 60_000_000_000, "the probe does not end")
            for ready in loop.wait(until: prober.levelDeadline ?? end) {
                if let result = prober.ready(ready, on: loop, now: Moment.now) { results.append(result) }
            }
            results += prober.expireLevels(on: loop, now: Moment.now)
        }
        #expect(prober.count == 0 && prober.levelDeadline ?? .max >= 0)
        return results
    }

    /// Returns the cause of a probe: `up`, or layer and code; and its sentence.
    private func cause(
        _ target: String, _ settings: ProbeSettings = ProbeSettings(), deadline: Int64 = 10_000
    ) throws -> (line: String, cause: Cause?) {
        let results = try probe(target, settings, deadline: deadline)
        let levels = try #require(results.last?.levels, "\(results)")
        let endpoint = try Endpoint(target)
        let findings = endpoint.scheme.kind.judge(
            ProbedConnection(
                levels: levels, address: Self.home, route: ChosenRoute(kind: .local, interface: 1), endpoint: endpoint,
                settings: settings, continuation: nil, started: .now, now: .now))
        let cause = findings.failure?.cause ?? findings.degradation
        return (cause.map { "\($0.layer)/\($0.code)" } ?? "up", cause)
    }

    private func trusting(_ change: (inout ProbeSettings) throws -> Void = { _ in }) throws -> ProbeSettings {
        var settings = ProbeSettings()
        let path = "/tmp/netwatch-levels-\(getpid())-\(UInt64.random(in: 0...UInt64.max)).pem"
        let text = try #require(Self.certificate).certificate
        let file = try #require(fopen(path, "w"))
        fputs(text, file)
        fclose(file)
        defer { unlink(path) }
        try settings.tls.trustAuthorities(in: path)
        settings.tls.certificateDays = 0
        try change(&settings)
        return settings
    }

    private func secure(
        _ change: (inout ServerTLS) -> Void = { _ in }, arrival: TestServer.Arrival? = nil,
        reply: @escaping @Sendable (ReceivedRequest) -> StubResponse = { _ in StubResponse(body: "hello") }
    ) throws -> TestServer {
        var tls = try #require(Self.certificate).serverTLS
        change(&tls)
        var configuration = TestServer.Configuration()
        if let arrival { configuration.arrival = { _ in arrival } }
        return try TestServer(tls: tls, configuration: configuration, reply: reply)
    }

    // MARK: Success

    @Test func `an https probe reports the connection first, then the handshake and the response with their times`() throws {
        let server = try secure()
        defer { server.stop() }
        let results = try probe("\(server.origin)/health", try trusting())
        #expect(results.count == 2 && results[0].levels == nil && results[0].errno == 0)
        let levels = try #require(results[1].levels)
        #expect(levels.tls?.isComplete == true && levels.http?.response.status == 200 && levels.http?.response.bodyBytes == 5)
        #expect(
            levels.handshakeNanoseconds ?? 0 > 0 && levels.processingNanoseconds ?? 0 > 0 && levels.transferNanoseconds != nil)
        #expect(server.requests.first?.target == "/health" && results[1].roundTripNanoseconds == results[0].roundTripNanoseconds)
    }

    @Test func `the bytes of all connections of a probe are counted in both directions`() throws {
        let secure = try secure()
        defer { secure.stop() }
        let target = secure.origin
        let server = try TestServer { request in
            request.target == "/" ? StubResponse(302, fields: ["Location": "\(target)/"]) : StubResponse(body: .pattern(50_000))
        }
        defer { server.stop() }
        let plain = try #require(try probe("\(server.origin)/page").last?.levels)
        #expect(plain.bytesReceived == plain.http?.response.receivedBytes && plain.bytesReceived > 50_000)
        let request = "GET /page HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\nConnection: close\r\n"
        #expect((request.utf8.count..<request.utf8.count + 100).contains(plain.bytesSent))
        let both = try #require(try probe("\(server.origin)/", try trusting()).last?.levels)
        let handshake = try #require(both.tls?.bytesReceived)
        #expect(both.bytesReceived > handshake + 50 && both.bytesSent > 2 * request.utf8.count && handshake > 500)
    }

    @Test func `a tls probe ends with the handshake, and sends no request`() throws {
        let server = try secure()
        defer { server.stop() }
        try expectEqual(cause("tls://127.0.0.1:\(server.port)", try trusting()).line, "up")
        expectEmpty(server.requests)
    }

    @Test func `the authorities are loaded once for all probes with equal settings`() throws {
        let server = try secure()
        defer { server.stop() }
        let settings = try trusting()
        var prober = TCPProber()
        _ = try probe("\(server.origin)/", settings, by: &prober)
        let context = try #require(prober.contexts.first)
        _ = try probe("\(server.origin)/", settings, by: &prober)
        #expect(prober.contexts.count == 1 && prober.contexts.first === context)
        var insecure = ProbeSettings()
        insecure.tls.isInsecure = true
        _ = try probe("\(server.origin)/", insecure, by: &prober)
        expectEqual(prober.contexts.count, 2)
    }

    @Test func `the result of a probe survives a recording`() throws {
        let server = try secure(reply: { request in
            request.target == "/" ? StubResponse(body: "hello") : .redirect(to: "http://other.example/x?y")
        })
        defer { server.stop() }
        for path in ["/", "/other"] {
            let result = try #require(try probe("\(server.origin)\(path)", try trusting()).last)
            expectEqual((result.levels?.redirection != nil), (path == "/other"))
            let line = RecordedInput(moment: Moment.now, input: .probe(result))
            try expectEqual(JSONDecoder().decode(RecordedInput.self, from: JSONEncoder().encode(line)), line)
        }
    }

    // MARK: TLS

    @Test func `an unknown authority, another name, and a missing trust are named`() throws {
        let server = try secure()
        defer { server.stop() }
        try expectEqual(cause("\(server.origin)/").line, "tls/certificate-untrusted")
        let other = try trusting { $0.tls.serverName = "db.example" }
        try expectEqual(cause("\(server.origin)/", other).line, "tls/hostname-mismatch")
        try expectEqual(
            cause(
                "\(server.origin)/",
                {
                    var all = ProbeSettings(); all.tls.isInsecure = true; return all
                }()
            ).line, "up")
        let soon = try trusting { $0.tls.certificateDays = 365 }
        try expectEqual(cause("\(server.origin)/", soon).line, "tls/certificate-expiring")
    }

    @Test func `a server whose certificate is not accepted receives no request and no credentials`() throws {
        let server = try secure()
        defer { server.stop() }
        var untrusting = ProbeSettings()
        try untrusting.http.authorize(by: .bearer("secret"))
        let other = try trusting {
            $0.tls.serverName = "db.example"
            try $0.http.authorize(by: .bearer("secret"))
        }
        try expectEqual(cause("\(server.origin)/", untrusting).line, "tls/certificate-untrusted")
        try expectEqual(cause("\(server.origin)/", other).line, "tls/hostname-mismatch")
        expectEmpty(server.requests)
        untrusting.tls.isInsecure = true
        try expectEqual(cause("\(server.origin)/", untrusting).line, "up")
        expectEqual(server.requests.map { $0["authorization"] }, ["Bearer secret"])
    }

    @Test func `a server that accepts and never speaks is stalled at the deadline, and one that closes refuses`() throws {
        let stalled = try secure(arrival: .respond(.never))
        defer { stalled.stop() }
        try expectEqual(cause("tls://127.0.0.1:\(stalled.port)", deadline: 300).line, "tls/handshake-stalled")
        let closing = try secure(arrival: .end(.truncated))
        defer { closing.stop() }
        let refused = try cause("tls://127.0.0.1:\(closing.port)")
        expectEqual(refused.line, "tls/handshake-refused")
    }

    @Test func `a server that speaks another protocol is shown with its first bytes`() throws {
        let plain = try TestServer { _ in StubResponse(body: "x") }
        defer { plain.stop() }
        let answer = try cause("tls://127.0.0.1:\(plain.port)", deadline: 2_000)
        #expect(["tls/protocol-mismatch", "tls/handshake-refused"].contains(answer.line), "\(answer)")
    }

    @Test(arguments: [ServerTLS.Version.v1_2, .v1_3]) func `a client certificate that is demanded is named in both versions`(
        version: ServerTLS.Version
    ) throws {
        let server = try secure { tls in
            (tls.minimumVersion, tls.maximumVersion) = (version, version)
            tls.clientCertificates = .required(authorities: nil)
        }
        defer { server.stop() }
        try expectEqual(cause("tls://127.0.0.1:\(server.port)", try trusting()).line, "tls/client-certificate-required")
        try expectEqual(cause("\(server.origin)/", try trusting()).line, "tls/client-certificate-required")
    }

    @Test func `a server that requests a client certificate and does not need one is up`() throws {
        let server = try secure { $0.clientCertificates = .requested }
        defer { server.stop() }
        try expectEqual(cause("tls://127.0.0.1:\(server.port)", try trusting()).line, "up")
    }

    // MARK: HTTP

    @Test func `a status, a body and a silent server are named`() throws {
        let server = try TestServer { request in
            request.target == "/down" ? StubResponse(503) : request.target == "/slow" ? .never : StubResponse(body: "hello")
        }
        defer { server.stop() }
        try expectEqual(cause("\(server.origin)/").line, "up")
        try expectEqual(cause("\(server.origin)/down").line, "http/status")
        var settings = ProbeSettings()
        try settings.http.expectBody("^goodbye")
        try expectEqual(cause("\(server.origin)/", settings).line, "http/unexpected-body")
        try expectEqual(cause("\(server.origin)/slow", deadline: 300).line, "http/timeout")
    }

    @Test func `a body that a server compresses unasked is compared without gzip`() throws {
        let server = try TestServer { request in
            StubResponse(fields: ["Content-Encoding": "gzip"], body: .gzip(Array("hello, world".utf8)))
        }
        defer { server.stop() }
        var settings = ProbeSettings()
        try settings.http.expectBody("^hello, world$")
        try expectEqual(cause("\(server.origin)/", settings).line, "up")
        try settings.http.expectBody("^goodbye")
        try expectEqual(cause("\(server.origin)/", settings).line, "http/unexpected-body")
    }

    @Test func `a redirect within the host is followed, also to https, and a loop is named`() throws {
        let secure = try secure()
        defer { secure.stop() }
        let port = secure.port
        let server = try TestServer { request in
            let location = [
                "/a": "/b", "/loop": "/loop", "/tls": "https://127.0.0.1:\(port)/", "/other": "http://other.example/",
            ]
            guard let to = location[request.target] else { return StubResponse(body: "hello") }
            return StubResponse(302, fields: ["Location": to])
        }
        defer { server.stop() }
        try expectEqual(cause("\(server.origin)/a").line, "up")
        expectEqual(server.requests.map(\.target), ["/a", "/b"])
        let redirected = try #require(try probe("\(server.origin)/a").last?.levels)
        #expect(redirected.furtherConnectNanoseconds ?? 0 > 0 && redirected.exchange != nil)
        try expectNil(probe("\(server.origin)/b").last?.levels?.furtherConnectNanoseconds)
        try expectEqual(cause("\(server.origin)/loop").line, "http/invalid-response")
        try expectEqual(cause("\(server.origin)/tls", try trusting()).line, "up")
        try expectEqual(cause("\(server.origin)/tls").line, "tls/certificate-untrusted")
        // The way to another host is not that of this connection.
        let other = try probe("\(server.origin)/other").last?.levels
        #expect(other?.http?.otherHost == "other.example" && other?.http?.response.status == 302)
        expectEqual(other?.redirection?.value.url.description, "http://other.example/")
        try expectEqual(cause("\(server.origin)/other").line, "up")
        var portal = ProbeSettings()
        try portal.http.expectBody("hello")
        try expectEqual(cause("\(server.origin)/other", portal).line, "up")
    }

    @Test func `a TLS failure behind a redirect within the host names the redirect`() throws {
        var configuration = TestServer.Configuration()
        configuration.arrival = { _ in .respond(.raw("SSH-2.0-OpenSSH_9.2\r\n")) }
        let (secure, plain) = (try secure(), try TestServer(configuration: configuration) { _ in .never })
        defer {
            secure.stop()
            plain.stop()
        }
        let (securePort, plainPort) = (secure.port, plain.port)
        let server = try TestServer { request in
            let port = request.target == "/untrusted" ? securePort : plainPort
            return StubResponse(302, fields: ["Location": "https://127.0.0.1:\(port)/x"])
        }
        defer { server.stop() }
        for (path, code, port) in [
            ("untrusted", "certificate-untrusted", securePort), ("plain", "protocol-mismatch", plainPort),
        ] {
            let location = "https://127.0.0.1:\(port)/x"
            let (line, cause) = try cause("\(server.origin)/\(path)")
            expectEqual(line, "tls/\(code)")
            expectEqual(cause?.evidence["redirects"], .list([location]), "\(path): \(cause?.evidence ?? [:])")
            let beginning = "127.0.0.1 redirects to \(location): this machine (127.0.0.1) "
            expectEqual(cause?.detail.hasPrefix(beginning), true, "\(cause?.detail ?? "none")")
        }
        // Without a redirect, the sentence is that of the server alone.
        let direct = try cause("https://127.0.0.1:\(securePort)/").cause
        #expect(direct?.evidence["redirects"] == nil && direct?.detail.contains("redirects") == false)
    }
}
