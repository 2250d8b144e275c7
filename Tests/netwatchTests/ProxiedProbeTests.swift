import Expectations
import Foundation
import HTTPSessionTestKit
import NetworkLab
import Testing
import TestServers

/// Probes of the built program through a proxy, and with a client certificate. All servers are on loopback addresses.
@Suite(.timeLimit(.minutes(10))) struct ProxiedProbeTests {
    private let scratch: ScratchDirectory
    private let certificate: SelfSignedCertificate

    init() throws {
        scratch = try ScratchDirectory()
        certificate = try SelfSignedCertificate(names: ["named.example", "127.0.0.1"])
        try write(certificate.certificate, to: "ca.pem")
    }

    private func write(_ text: String, to name: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: scratch.file(name)))
    }

    private struct Document: Decodable {
        struct Cause: Decodable {
            var layer: String
            var code: String
            var detail: String
            var evidence: [String: Value]
        }
        struct Target: Decodable {
            var status: String
            var cause: Cause?
        }
        /// A value of the evidence, as text.
        struct Value: Decodable {
            let text: String
            init(from decoder: any Decoder) throws {
                let container = try decoder.singleValueContainer()
                text = (try? container.decode(String.self)) ?? "\((try? container.decode(Int.self)) ?? 0)"
            }
        }
        var targets: [Target]
    }

    /// Returns the state, the cause and the proxy of its evidence.
    private func status(_ target: String, _ options: String...) throws -> (line: String, proxy: String?, detail: String) {
        try status(target, options)
    }

    private func status(_ target: String, _ options: [String]) throws -> (line: String, proxy: String?, detail: String) {
        let arguments = [
            "status", "--json", "--probe-timeout", "2s", "--certificate-days", "0", "--cafile", scratch.file("ca.pem"),
        ]
        let program = try Program(
            [try Programs.netwatch] + arguments + options + [target],
            environment: ["http_proxy": nil, "https_proxy": nil, "all_proxy": nil, "no_proxy": nil, "NO_PROXY": nil])
        let text = try program.remainingLines().joined(separator: "\n")
        let found = try #require(
            JSONDecoder().decode(Document.self, from: Data(text.utf8)).targets.first, "\(text) \(program.ending)")
        let cause = found.cause.map { " \($0.layer)/\($0.code)" } ?? ""
        return (found.status + cause, found.cause?.evidence["proxy"]?.text, found.cause?.detail ?? "")
    }

    // MARK: The proxy

    @Test func `a target is probed through a proxy, which resolves its name`() throws {
        let proxy = try ProxyServer(names: ["named.example": "127.0.0.1"])
        let plain = try TestServer { request in StubResponse(request.target == "/health" ? 200 : 404) }
        let secure = try TestServer(tls: certificate.serverTLS) { _ in StubResponse(200) }
        let option = "--proxy=http://127.0.0.1:\(proxy.port)"
        try expectEqual(status("http://named.example:\(plain.port)/health", option).line, "up")
        try expectEqual(status("https://named.example:\(secure.port)/", option).line, "up")
        try expectEqual(status("https://127.0.0.1:\(secure.port)/", option, "--noproxy=127.0.0.0/8").line, "up")
        // The families are those of the connection to the proxy.
        let version6 = try TestServer(at: .ip("::1", port: 0)) { _ in StubResponse(204) }
        try expectEqual(status("http://[::1]:\(version6.port)/", option, "-4").line, "up")
        let kinds = proxy.passages.map(\.kind)
        #expect(kinds.first == .absoluteForm && kinds.contains(.connect), "\(kinds)")
        #expect(proxy.passages.allSatisfy { ["named.example", "::1"].contains($0.host) && $0.outcome == .forwarded })
        expectEqual(secure.requests.first?.tls?.serverName, "named.example")
        // The server sees neither the URL nor a field of the proxy.
        #expect(plain.requests.allSatisfy { $0["proxy-authorization"] == nil })
    }

    @Test func `redirects go through the proxy too, unless they lead to an exception`() throws {
        let proxy = try ProxyServer(names: ["named.example": "127.0.0.1"])
        let last = try TestServer { _ in StubResponse(200) }
        let first = try TestServer { _ in StubResponse(302, fields: ["Location": "http://127.0.0.1:\(last.port)/last"]) }
        let option = "--proxy=http://127.0.0.1:\(proxy.port)"
        try expectEqual(status("http://named.example:\(first.port)/", option).line, "up")
        #expect(proxy.passages.contains { $0.port == last.port })
        let count = proxy.passages.count
        try expectEqual(status("http://named.example:\(first.port)/", option, "--noproxy=127.0.0.1").line, "up")
        #expect(proxy.passages.dropFirst(count).allSatisfy { $0.port == first.port })
        // The same host at another port is an exception alone.
        try expectEqual(
            status("http://127.0.0.1:\(first.port)/", option, "--noproxy=127.0.0.1:\(last.port)").line, "up")
        #expect(proxy.passages.dropFirst(count).allSatisfy { $0.port == first.port })
    }

    @Test
    func `a redirect within the origin keeps the user, the cookies and the certificate, with a proxy and with an exception`()
        throws
    {
        let client = try SelfSignedCertificate(names: ["client"])
        try write(client.certificate + client.privateKey, to: "client.pem")
        try write("ada:secret\n", to: "user")
        var tls = certificate.serverTLS
        tls.clientCertificates = .required(authorities: .text(client.certificate))
        let reply: @Sendable (ReceivedRequest) -> StubResponse = { request in
            guard request["authorization"] != nil, request["x-key"] == "k" else { return StubResponse(401) }
            let isBack = request["cookie"] == "step=1"
            return isBack ? StubResponse(204) : StubResponse(302, fields: ["Location": "/", "Set-Cookie": "step=1"])
        }
        let (plain, secure) = (try TestServer(reply: reply), try TestServer(tls: tls, reply: reply))
        let proxy = try ProxyServer()
        for exception in [[], ["--noproxy=*"]] {
            for target in ["http://127.0.0.1:\(plain.port)/", "https://127.0.0.1:\(secure.port)/"] {
                let options = ["--user=@" + scratch.file("user"), "-H", "X-Key: k", "--cert=" + scratch.file("client.pem")]
                let found = try status(target, options + ["--proxy=http://127.0.0.1:\(proxy.port)"] + exception)
                expectEqual(found.line, "up", "\(target) \(exception): \(found.detail)")
            }
        }
    }

    @Test func `a redirect whose destination fails accuses the proxy only if it has used it`() throws {
        let proxy = try ProxyServer(names: ["named.example": "127.0.0.1"])
        let first = try TestServer { _ in StubResponse(302, fields: ["Location": "http://127.0.0.1:1/"]) }
        let direct = try status(
            "http://named.example:\(first.port)/", "--proxy=http://127.0.0.1:\(proxy.port)", "--noproxy=127.0.0.1")
        expectEqual(direct.line, "down tcp/refused")
        expectNil(direct.proxy)
        #expect(direct.detail.hasPrefix("named.example redirects to http://127.0.0.1:1/: "), "\(direct.detail)")
        // The proxy cannot connect, and the first host is an exception.
        let behind = try status(
            "http://127.0.0.1:\(first.port)/", "--proxy=http://127.0.0.1:\(proxy.port)", "--noproxy=127.0.0.1:\(first.port)")
        expectEqual(behind.line, "unreachable http/status")
        expectEqual(behind.proxy, "127.0.0.1:\(proxy.port)")
    }

    @Test func `an error page of a proxy and an empty tunnel do not accuse the server`() throws {
        let squid = try TestServer { _ in StubResponse(503, fields: ["X-Squid-Error": "ERR_DNS_FAIL 0"]) }
        let found = try status("http://nope.example/", "--proxy=http://127.0.0.1:\(squid.port)")
        expectEqual(found.line, "unreachable http/status")
        expectEqual(found.proxy, "127.0.0.1:\(squid.port)")
        let status503 = try TestServer { _ in StubResponse(503) }
        let ofServer = try status("http://nope.example/", "--proxy=http://127.0.0.1:\(status503.port)")
        expectEqual(ofServer.line, "down http/status")
        expectNil(ofServer.proxy)
        // The proxy connects to a server that closes the connection, and so does the proxy.
        var configuration = TestServer.Configuration()
        configuration.arrival = { _ in .end(.truncated) }
        let closing = try TestServer(configuration: configuration) { _ in StubResponse(200) }
        let empty = try ProxyServer(names: ["named.example": "127.0.0.1"])
        let tunnel = try status("https://named.example:\(closing.port)/", "--proxy=http://127.0.0.1:\(empty.port)")
        #expect(tunnel.line.hasPrefix("unreachable tls/"), "\(tunnel)")
        #expect(
            tunnel.detail.hasPrefix("the tunnel of the proxy 127.0.0.1:\(empty.port) to named.example:\(closing.port) "),
            "\(tunnel)")
    }

    @Test func `a server whose certificate is not accepted does not receive the client certificate`() throws {
        let client = try SelfSignedCertificate(names: ["client"])
        try write(client.certificate + client.privateKey, to: "client.pem")
        try write(client.certificate, to: "ca.pem")
        for version in [ServerTLS.Version.v1_2, .v1_3] {
            var tls = certificate.serverTLS
            (tls.minimumVersion, tls.maximumVersion) = (version, version)
            tls.clientCertificates = .required(authorities: nil)
            let server = try TestServer(tls: tls) { _ in StubResponse(204) }
            let target = "https://127.0.0.1:\(server.port)/"
            try expectEqual(status(target, "--cert=" + scratch.file("client.pem")).line, "down tls/certificate-untrusted")
            expectEqual(server.requests.count, 0)
            try expectEqual(status(target, "--cert=" + scratch.file("client.pem"), "--insecure").line, "up")
        }
    }

    @Test func `a proxy that requires a user is at fault, and the target is unreachable`() throws {
        let proxy = try ProxyServer(credentials: .init(user: "ada", password: "p@ss"))
        let plain = try TestServer { _ in StubResponse(200) }
        let secure = try TestServer(tls: certificate.serverTLS) { _ in StubResponse(200) }
        for target in ["http://127.0.0.1:\(plain.port)/", "https://127.0.0.1:\(secure.port)/"] {
            let text = "127.0.0.1:\(proxy.port)"
            let refused = try status(target, "--proxy=http://\(text)")
            expectEqual(refused.line, "unreachable http/status")
            expectEqual(refused.proxy, text)
            expectEqual(refused.detail, "the proxy \(text) requires a user and a password (407)")
            let wrong = try status(target, "--proxy=http://ada:s3cret@\(text)")
            expectEqual(wrong.detail, "the proxy \(text) does not accept the user and the password (407)")
            try expectEqual(status(target, "--proxy=http://ada:p%40ss@\(text)").line, "up")
        }
        #expect(plain.requests.allSatisfy { $0["proxy-authorization"] == nil })
    }

    @Test func `the cause names a proxy that cannot be reached or opens no tunnel, and does not accuse the server`() throws {
        let proxy = try ProxyServer()
        let silent = try TestServer { _ in StubResponse(200).delayed(.seconds(60)) }
        let broken = try TestServer { _ in StubResponse(503) }
        let target = "https://127.0.0.1:1/"
        let rows: [(port: UInt16, line: String, detail: String)] = [
            (1, "unreachable tcp/refused", "cannot be reached: this machine (127.0.0.1) refuses connections to port 1"),
            (proxy.port, "unreachable http/status", "does not open a tunnel to 127.0.0.1:1: 502"),
            (silent.port, "unreachable http/timeout", "does not answer the request for a tunnel to 127.0.0.1:1 in time"),
            (broken.port, "unreachable http/status", "does not open a tunnel to 127.0.0.1:1: 503"),
        ]
        for row in rows {
            let found = try status(target, "--proxy=http://127.0.0.1:\(row.port)")
            expectEqual(found.line, row.line)
            #expect(found.detail.hasPrefix("the proxy 127.0.0.1:\(row.port) \(row.detail)"), "\(found.detail)")
            expectEqual(found.proxy, "127.0.0.1:\(row.port)")
        }
    }

    // MARK: The client certificate

    @Test(arguments: [ServerTLS.Version.v1_2, .v1_3])
    func `a server that requires a client certificate accepts that of --cert, and refuses another one`(version: ServerTLS.Version)
        throws
    {
        let (client, other) = (try SelfSignedCertificate(names: ["client"]), try SelfSignedCertificate(names: ["other"]))
        try write(client.certificate, to: "client.pem")
        try write(client.privateKey, to: "client.key")
        try write(other.certificate + other.privateKey, to: "other.pem")
        var tls = certificate.serverTLS
        (tls.minimumVersion, tls.maximumVersion) = (version, version)
        tls.clientCertificates = .required(authorities: .text(client.certificate))
        let server = try TestServer(tls: tls) { request in StubResponse(request.tls?.clientCertificate == nil ? 403 : 200) }
        for scheme in ["https", "tls"] {
            let target = "\(scheme)://127.0.0.1:\(server.port)"
            let without = try status(target)
            expectEqual(without.line, "down tls/client-certificate-required")
            #expect(without.detail.contains("client certificate"))
            let key = "--key=" + scratch.file("client.key")
            try expectEqual(status(target, "--cert=" + scratch.file("client.pem"), key).line, "up")
            let refused = try status(target, "--cert=" + scratch.file("other.pem"))
            expectEqual(refused.line, "down tls/client-certificate-required")
            #expect(refused.detail.contains("does not accept the client certificate of CN="), "\(refused.detail)")
        }
    }

    @Test func `a client certificate is not shown to a host to which the target redirects`() throws {
        let client = try SelfSignedCertificate(names: ["client"])
        try write(client.certificate + client.privateKey, to: "client.pem")
        var tls = certificate.serverTLS
        tls.clientCertificates = .requested
        let last = try TestServer(at: .ip("127.0.0.2", port: 0), tls: tls) { _ in StubResponse(200) }
        let first = try TestServer(tls: tls) { _ in StubResponse(302, fields: ["Location": "https://127.0.0.2:\(last.port)/"]) }
        _ = try status("https://127.0.0.1:\(first.port)/", "--insecure", "--cert=" + scratch.file("client.pem"))
        #expect(first.requests.allSatisfy { $0.tls?.clientCertificate != nil } && !first.requests.isEmpty)
        #expect(last.requests.allSatisfy { $0.tls?.clientCertificate == nil } && !last.requests.isEmpty)
    }
}
