import EventLoop
import Expectations
import Foundation
import HTTPSessionTestKit
import NetworkLab
import Reachability
import Testing

/// The example programs, each in a network namespace in which api.example.com is this machine.
@Suite(.requiresNamespaces, .requiresMounts, .timeLimit(.minutes(20))) struct ExamplesTests {
    private let host: LabHost
    private let folder: ScratchDirectory

    init() throws {
        host = try Lab().host(loopback: true)
        folder = try ScratchDirectory()
    }

    private func run(_ words: String..., environment: [String: String?] = [:]) throws -> Program {
        let hosts = folder.file("hosts")
        try Data("127.0.0.1 localhost api.example.com canary.example.com\n".utf8).write(to: URL(fileURLWithPath: hosts))
        let command = [try Programs.built("Examples")] + words
        return try withOwnMounts { [host] in
            guard mount(hosts, "/etc/hosts", "none", UInt(MS_BIND), nil) == 0 else { throw POSIXError(.EPERM) }
            // Output to a terminal is written line by line.
            return try Program(command, on: host, environment: environment, output: .terminal)
        }
    }

    /// A server as api.example.com, for programs with the environment ``trusting``.
    private func serve(_ reply: @escaping @Sendable (ReceivedRequest) -> StubResponse) throws -> TestServer {
        let certificate = try SelfSignedCertificate(names: ["api.example.com"])
        try Data(certificate.certificate.utf8).write(to: folder.url("root.pem"))
        var configuration = TestServer.Configuration()
        configuration.namespace = NetworkNamespace(host.path)
        return try TestServer(
            at: .ip("127.0.0.1", port: 443), tls: certificate.serverTLS, configuration: configuration, reply: reply)
    }

    private var trusting: [String: String?] {
        ["SSL_CERT_FILE": folder.file("root.pem"), "https_proxy": nil, "HTTPS_PROXY": nil, "all_proxy": nil]
    }

    /// Adds a default route. - Returns: the host at its other end.
    private func addUplink() throws -> LabHost {
        let router = try Lab().host()
        try Lab().connect(host, "up0", router, "down0")
        for (end, name, number) in [(host, "up0", 2), (router, "down0", 1)] {
            try end.ip("addr add 198.18.0.\(number)/24 dev \(name)")
            try end.ip("link set \(name) up")
        }
        try host.ip("route add default via 198.18.0.1")
        return router
    }

    @Test func `the path example prints an unsatisfied and a satisfied path`() throws {
        let program = try run("Reachability", "path")
        #expect(try program.nextLine()?.hasPrefix("unsatisfied") == true)
        let router = try addUplink()
        defer { withExtendedLifetime(router) {} }
        #expect(try program.nextLine { $0.hasPrefix("satisfied") }.contains("wired"))
    }

    @Test func `the server example prints that the server is up, and then that it refuses connections`() throws {
        var server: Server? = try host.serve(at: "127.0.0.1", port: 443)
        let program = try run("Reachability", "server")
        #expect(try program.nextLine { $0.hasPrefix("up via") }.hasPrefix("up via lo "))
        server = nil
        expectNil(server)
        #expect(try program.nextLine(within: .seconds(60)) { !$0.hasPrefix("up via") }.contains("refuses"))
    }

    @Test func `the canary example prints that the canary is up, and then that a captive portal answers`() throws {
        let isOpen = Locked(true)
        var configuration = TestServer.Configuration()
        configuration.namespace = NetworkNamespace(host.path)
        let server = try TestServer(at: .ip("127.0.0.1", port: 80), configuration: configuration) { _ in
            isOpen.withLock { $0 } ? StubResponse(204) : StubResponse(302).field("Location", "http://portal.example/")
        }
        let program = try run("Reachability", "canary")
        _ = try program.nextLine { $0.hasPrefix("up") }
        isOpen.withLock { $0 = false }
        _ = try program.nextLine { $0.hasPrefix("down: a captive portal answers") }
        #expect(server.requests.allSatisfy { $0.target == "/generate_204" && $0["host"] == "canary.example.com" })
    }

    @Test func `the callbacks example prints path updates by callback and by notification`() throws {
        let program = try run("Reachability", "callbacks")
        // The first path may be posted before the example observes it; a callback always starts with the current path.
        _ = try program.nextLine { $0.hasPrefix("unsatisfied") }
        let router = try addUplink()
        defer { withExtendedLifetime(router) {} }
        let lines = try (0..<2).map { _ in try program.nextLine { !$0.contains("unsatisfied") } }
        expectEqual(lines.map { $0.filter { $0 != "\r" } }.sorted(), ["posted satisfied", "satisfied"])
    }

    @Test func `the README's values and download arrive, and a callback receives its response`() throws {
        let server = try serve { request in
            switch (request.method, request.path) {
            case ("GET", "/v1/users/7"): StubResponse(body: #"{"name": "Ada"}"#).field("Content-Type", "application/json")
            case ("GET", "/v1/models/big.bin"): StubResponse(body: .pattern(300_000))
            case ("POST", "/v1/orders"):
                StubResponse(body: #"{"id": 1, "item": "tea"}"#).field("Content-Type", "application/json")
            case ("POST", "/v1/events"):
                StubResponse(body: #"{"heard": "\#(request.text)"}"#).field("Content-Type", "application/json")
            default: StubResponse(404)
            }
        }
        let program = try run("HTTPSession", "readme", folder.file("big.bin"), environment: trusting)
        #expect(try program.nextLine { $0.hasPrefix("user") }.hasPrefix("user Ada"))
        #expect(try program.nextLine { $0.hasPrefix("order") }.contains("1"))
        try expectEqual(program.wait(), 0, "\(program.ending)")
        try expectEqual(Data(contentsOf: folder.url("big.bin")), pattern(300_000))
        let callbacks = try run("HTTPSession", "callbacks", environment: trusting)
        #expect(try callbacks.nextLine { $0.contains("heard") }.contains("kind=start"))
        expectEqual(server.requests.map(\.path), ["/v1/users/7", "/v1/orders", "/v1/models/big.bin", "/v1/events"])
    }

    @Test func `the test kit example prints the paths that a test publishes`() throws {
        let program = try run("ReachabilityTestKit")
        #expect(try program.nextLine()?.hasPrefix("satisfied, wifi") == true)
        #expect(try program.nextLine()?.hasPrefix("unsatisfied, no-carrier") == true)
        #expect(try program.nextLine()?.hasPrefix("wlan0") == true)
        #expect(try program.nextLine()?.hasPrefix("eth0") == true)
        #expect(try program.nextLine()?.hasPrefix("refused") == true)
        try expectEqual(program.wait(), 0)
    }

    @Test func `a view model is tested without a socket and without waiting`() throws {
        let start = ContinuousClock.now
        let program = try run("HTTPSessionTestKit")
        var lines: [String] = []
        while lines.count < 7, let line = try program.nextLine() { lines.append(line.filter { $0 != "\r" && $0 != "\n" }) }
        expectEqual(
            lines,
            [
                "satisfied, wifi", "Ada 2", "unsatisfied, no-carrier", "waitingForConnectivity", "200", "Grace true",
                "timed-out: no byte was sent or received for 60.0 seconds (GET https://api.example.com/v1/users/7) true",
            ])
        try expectEqual(program.wait(), 0)
        // The request timeout alone would take 60 s.
        #expect(ContinuousClock.now - start < .seconds(60))
    }

    @Test func `the Foundation example prints a document, a progress and a URLRequest`() throws {
        let server = try serve { request in
            switch request.path {
            case "/v1/feed.xml": StubResponse(body: "<feed/>").field("Content-Type", "text/xml")
            case "/v1/users/7": StubResponse(body: .init(stringLiteral: request["authorization"] ?? ""))
            default: StubResponse(body: .pattern(300_000))
            }
        }
        let program = try run("HTTPSessionFoundation", folder.file("big.bin"), environment: trusting)
        #expect(try program.nextLine { $0.hasPrefix("document") }.contains(#"Optional("feed")"#))
        #expect(try program.nextLine { $0.hasPrefix("progress") }.contains("true"))
        #expect(try program.nextLine { $0.hasPrefix("task") }.contains("signed"))
        try expectEqual(program.wait(), 0, "\(program.ending)")
        try expectEqual(Data(contentsOf: folder.url("big.bin")), pattern(300_000))
        expectEqual(server.requests.count, 3)
    }

    @Test func `the journal example finishes a download of a durable session`() throws {
        let server = try serve { _ in StubResponse(body: .pattern(300_000)) }
        let program = try run("HTTPSessionJournal", folder.file("state"), environment: trusting)
        #expect(try program.nextLine { $0.hasPrefix("https://") }.contains("finished"))
        #expect(try program.nextLine { $0.hasPrefix("photo https://") }.contains("finished"))
        try expectEqual(program.wait(), 0, "\(program.ending)")
        for name in ["big", "private", "photo"] {
            try expectEqual(Data(contentsOf: folder.url("state/\(name).bin")), pattern(300_000))
        }
        expectEqual(server.requests.map { $0["authorization"] }, [nil, "Bearer secret", nil])
    }

    @Test func `the example of a test completes a download that was cut in a second durable session, without a network`() throws {
        let program = try run("HTTPSessionJournal", folder.file("state"), "test")
        try expectEqual(program.nextLine()?.hasPrefix(#"["complete", "bytes=100000-"]"#), true)
        #expect(try program.nextLine()?.hasPrefix("big.bin expired") == true)
        try expectEqual(program.wait(), 0, "\(program.ending)")
        try expectEqual(Data(contentsOf: folder.url("state/big.bin")), pattern(300_000))
    }
}
