import EventLoop
import Expectations
import Foundation
import HTTPSessionTestKit
import NetworkLab
import Reachability
import Testing

/// The built program with a canary, in a network whose path is satisfied. The canary's server is on another host of the lab.
@Suite(.requiresNamespaces, .timeLimit(.minutes(20))) struct CanaryProgramTests {
    private static let server = "198.18.0.1"
    /// An address behind the router that no host has.
    private static let absent = "203.0.113.9"

    private let lab = Lab()
    private let host: LabHost
    private let router: LabHost

    init() throws {
        (host, router) = (try lab.namedHost(loopback: true), try lab.host(loopback: true))
        try lab.connect(host, "up0", router, "down0")
        for (end, name, number) in [(router, "down0", 1), (host, "up0", 2)] {
            try end.ip("addr add 198.18.0.\(number)/24 dev \(name)")
            try end.ip("link set \(name) up")
        }
        try host.ip("route add default via \(Self.server)")
    }

    private func serve(
        tls: ServerTLS? = nil, _ reply: @escaping @Sendable (ReceivedRequest) -> StubResponse
    ) throws -> TestServer {
        var configuration = TestServer.Configuration()
        configuration.namespace = NetworkNamespace(router.path)
        return try TestServer(at: .ip(Self.server, port: 0), tls: tls, configuration: configuration, reply: reply)
    }

    private func url(_ server: TestServer) -> String { "http://\(Self.server):\(server.port)/generate_204" }

    private func start(_ words: [String], output: Program.Output = .pipe) throws -> Program {
        try Program([try Programs.netwatch] + words + ["--netns", host.name ?? ""], output: output)
    }

    @Test func `an http probe sends the fields of -H and the user of --user, whose password is in a file`() throws {
        let server = try serve { request in
            let isUser = request["authorization"] == "Basic \(Data("ada:secret".utf8).base64EncodedString())"
            return StubResponse(isUser && request.values("x-key") == ["a: b"] ? 204 : 401)
        }
        let scratch = try ScratchDirectory()
        try Data("ada:secret\n".utf8).write(to: URL(fileURLWithPath: scratch.file("user")))
        let arguments = ["status", "-H", "X-Key: a: b", "--user", "@" + scratch.file("user"), url(server)]
        let program = try start(arguments)
        try expectEqual(program.wait(), 0, "\(program.ending)")
        let other = try start(["status", url(server)])
        try expectEqual(other.wait(), 1, "\(other.ending)")
    }

    private struct Document: Decodable {
        struct Path: Decodable { var status: String }
        struct Cause: Decodable {
            var layer: String
            var code: String
            var detail: String
        }
        struct Canary: Decodable {
            var target: String
            var status: String
            var cause: Cause?

            /// `STATUS` or `STATUS LAYER/CODE`.
            var verdict: String { ([status] + [cause.map { "\($0.layer)/\($0.code)" }].compactMap { $0 }).joined(separator: " ") }
        }

        var canary: Canary?
        /// In the document of `status` only.
        var path: Path?
        /// In the document of `why` only.
        var status: String?
    }

    /// Runs `status` and `why` with a canary. Both must have the same verdict of it, and a satisfied path.
    ///
    /// - Returns: the verdict, the common exit code, and the last line of `why`.
    private func verdict(_ options: String...) throws -> (verdict: String, code: Int32, sentence: String) {
        var verdicts: [String] = []
        var codes: [Int32] = []
        for command in ["status", "why"] {
            let program = try start([command, "--json", "--canary"] + options, output: .file)
            codes.append(try program.wait())
            let document = try JSONDecoder().decode(Document.self, from: Data(program.output.utf8))
            let canary = try #require(document.canary)
            expectEqual(canary.target, options.first)
            expectEqual(document.path?.status ?? document.status, "satisfied", "a canary changes nothing of the path")
            verdicts.append(canary.verdict)
        }
        let text = try start(["why", "--canary"] + options, output: .file)
        codes.append(try text.wait())
        #expect(Set(codes).count == 1 && Set(verdicts).count == 1, "\(codes) \(verdicts)")
        return (verdicts[0], codes[0], text.output.split(separator: "\n").last.map(String.init) ?? "")
    }

    @Test func `a canary that answers 204 is up`() throws {
        let server = try serve { _ in StubResponse(204) }
        let (verdict, code, sentence) = try verdict(url(server))
        expectEqual(verdict, "up")
        expectEqual(code, 0)
        expectEqual(
            sentence,
            "+ the canary \(url(server)) is up: its answer is the known one, so no captive portal answers in its place")
        #expect(server.requests.allSatisfy { $0.target == "/generate_204" } && server.requests.count == 3)
    }

    private static let portals: [(StubResponse, String)] = [
        (
            StubResponse(302).field("Location", "http://portal.example/login"),
            "a login page of the network answers for 198.18.0.1: it redirects to portal.example"
        ),
        (
            StubResponse(307).field("Location", "/login"),
            "a login page of the network answers for 198.18.0.1: it redirects to /login"
        ),
        (StubResponse(body: "log in"), "a login page of the network answers for 198.18.0.1, with 200 OK and another page"),
        (StubResponse(511), "198.18.0.1 answers 511: the network requires a login"),
    ]

    @Test(arguments: portals.indices) func `a foreign answer to the canary is a captive portal`(number: Int) throws {
        let (response, text) = Self.portals[number]
        let server = try serve { _ in response }
        let (verdict, code, sentence) = try verdict(url(server))
        expectEqual(verdict, "down http/captive-portal")
        expectEqual(code, 1)
        expectEqual(sentence, "x the canary \(url(server)) is down: \(text) (http/captive-portal)")
        // The login page is not requested. `why` confirms the answer by a second probe.
        #expect(server.requests.allSatisfy { $0.target == "/generate_204" } && server.requests.count == 5)
    }

    @Test func `a canary with a known body is up only with that body`() throws {
        let server = try serve { _ in StubResponse(body: "success\n") }
        try expectEqual(verdict(url(server), "--canary-body", "success").verdict, "up")
        let foreign = try verdict(url(server), "--canary-body", "NetworkManager is online")
        expectEqual(foreign.verdict, "down http/captive-portal")
        expectEqual(foreign.code, 1)
    }

    @Test func `the known body of a canary is plain text, which occurs in the response`() throws {
        let server = try serve { _ in StubResponse(body: "<p>1+1 = 2 (really)</p>\n") }
        try expectEqual(verdict(url(server), "--canary-body", "1+1 = 2 (").verdict, "up")
        try expectEqual(verdict(url(server), "--canary-body", "1.1 = 2").verdict, "down http/captive-portal")
    }

    @Test func `the expectations of targets do not apply to the canary`() throws {
        let server = try serve { _ in StubResponse(204) }
        let options = ["--expect-status", "200", "--expect-body", "welcome"]
        let program = try start(["status", "--json", "--canary", url(server)] + options, output: .file)
        try expectEqual(program.wait(), 0, "\(program.ending)")
    }

    @Test func `an error of the canary's server is no captive portal`() throws {
        let server = try serve { _ in StubResponse(503) }
        let (verdict, code, _) = try verdict(url(server))
        expectEqual(verdict, "down http/status")
        expectEqual(code, 1)
    }

    @Test func `a canary that the network does not reach has the cause of the network`() throws {
        let target = "http://\(Self.absent)/"
        try router.silence("down0")
        let silent = try verdict(target, "--probe-timeout", "1s")
        #expect(silent.verdict.hasPrefix("unreachable ") && !silent.verdict.contains("http/") && silent.code == 1, "\(silent)")
        try host.ip("route del default")
        // Another satisfied path must not hide it: this one has a route of its own to the destination that the path asks for.
        try host.ip("route add 198.51.100.0/24 dev up0")
        let missing = try verdict(target)
        expectEqual(missing.verdict, "unreachable route/no-route")
        expectEqual(missing.code, 1)
    }

    @Test func `a canary over https whose certificate has another name is a fault of TLS`() throws {
        let certificate = try SelfSignedCertificate(names: ["portal.example"])
        let directory = try Directory()
        let file = "\(directory.path)/ca.pem"
        try certificate.certificate.write(toFile: file, atomically: true, encoding: .utf8)
        let server = try serve(tls: certificate.serverTLS) { _ in StubResponse(204) }
        let target = "https://\(Self.server):\(server.port)/"
        let named = try verdict(target, "--cafile", file)
        expectEqual(named.verdict, "down tls/hostname-mismatch")
        expectEqual(named.code, 1)
        #expect(named.sentence.contains("portal.example"), "\(named.sentence)")
        try expectEqual(verdict(target).verdict, "down tls/certificate-untrusted")
        // A server whose certificate is not accepted receives no request.
        expectEqual(server.requests.count, 0)
        try expectEqual(verdict(target, "--insecure").verdict, "up")
    }

    @Test func `a target that is up does not hide a canary that fails, and text names the canary once`() throws {
        let server = try serve { _ in StubResponse(body: "log in") }
        let target = "\(Self.server):\(server.port)"
        for command in ["status", "why"] {
            let program = try start([command, target, "--canary", url(server)], output: .file)
            try expectEqual(program.wait(), 1, "\(program.ending)")
        }
        let list = try Program(
            [try Programs.netwatch, "why", target, "--targets", "-", "--canary", url(server), "--netns", host.name ?? ""],
            input: .text("\(target)\n"), output: .file)
        try expectEqual(list.wait(), 1, "\(list.ending)")
        let lines = list.output.split(separator: "\n", omittingEmptySubsequences: false)
        expectEqual(lines.count { $0.contains("the canary") }, 1)
        #expect(lines.dropLast().last?.hasPrefix("x the canary ") == true)
    }

    @Test func `watch reports a portal that appears and disappears, and a recording replays to the same records`() throws {
        let isOpen = Locked(true)
        let server = try serve { _ in
            isOpen.withLock { $0 } ? StubResponse(204) : StubResponse(302).field("Location", "http://portal.example/")
        }
        let directory = try Directory()
        let file = "\(directory.path)/recording"
        let recorder = try start(["record", file, "--json", "--interval", "100ms", "--canary", url(server)])
        var lines = [try #require(try recorder.nextLine())]
        #expect(lines[0].hasSuffix("\"targets\":[\"\(url(server))\"]}"))
        func read(_ part: String) throws {
            repeat { lines.append(try #require(try recorder.nextLine())) } while !lines[lines.count - 1].contains(part)
        }
        try read("\"status\":\"up\"")
        isOpen.withLock { $0 = false }
        try read("\"status\":\"down\",\"cause\":{\"layer\":\"http\",\"code\":\"captive-portal\"")
        isOpen.withLock { $0 = true }
        try read("\"status\":\"up\"")
        try recorder.signal(SIGTERM)
        lines += try recorder.remainingLines()
        let replay = try Program([try Programs.netwatch, "replay", "--json", file])
        try expectEqual(replay.remainingLines(), lines)
        try expectEqual(replay.wait(), 0, "\(replay.ending)")
    }

    @Test func `without a canary, status and why without targets send no packet`() throws {
        try host.run("nft", "-f", "-", input: Self.counter)
        for command in ["status", "why"] {
            let program = try start([command, "--json"], output: .file)
            try expectEqual(program.wait(), 0, "\(program.ending)")
            #expect(program.output.contains("\"canary\":null"))
        }
        let watch = try start(["watch", "--for", "300ms"], output: .file)
        try expectEqual(watch.wait(), 0, "\(watch.ending)")
        try expectEqual(sentPackets(), 0)
        // The counter counts what a canary sends.
        let server = try serve { _ in StubResponse(204) }
        try expectEqual(start(["status", "--canary", url(server)], output: .file).wait(), 0)
        #expect(try sentPackets() > 0)
    }

    /// Counts the packets of IP that the host sends, but not those of neighbor discovery and of group membership (ICMPv6).
    private static let counter = """
        table inet count {
        counter sent { }
        chain sending {
        type filter hook output priority 0;
        meta l4proto != ipv6-icmp counter name sent
        }
        }

        """

    private func sentPackets() throws -> Int {
        let text = try host.run("nft", "list", "counters")
        let number = try #require(text.firstMatch(of: /packets (\d+)/))
        return try #require(Int(number.1))
    }
}
