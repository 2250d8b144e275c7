import Expectations
import Foundation
import NetworkLab
import Testing

/// The program's status of a named target, with faults of its name server.
@Suite(.requiresNamespaces, .requiresWritableEtc)
struct ResolverFaultTests {
    /// A host with a resolver's address on its router, and its own files for names. They are removed with this object.
    private final class Fixture {
        let network: Network
        private let directory: String
        private let isFirst: Bool

        convenience init(resolvers: String...) throws { try self.init(resolvers) }

        init(_ resolvers: [String]) throws {
            network = try Network(named: true)
            directory = "/etc/netns/\(network.host.name ?? "")"
            isFirst = !FileManager.default.fileExists(atPath: "/etc/netns")
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            let lines = resolvers.map { "nameserver \($0)\n" }.joined()
            for (name, text) in [
                "resolv.conf": lines, "nsswitch.conf": "hosts: files dns\n", "hosts": "10.1.0.254 known.example\n",
            ] {
                try text.write(toFile: "\(directory)/\(name)", atomically: true, encoding: .utf8)
            }
            try network.host.ip("link set lo up")
            try network.uplink("v0", "10.1.0.1/24", "2001:db8:1::1/64")
            for address in ["10.1.0.254/24", "10.1.0.53/32", "10.1.0.54/32"] {
                try network.router.ip("addr add \(address) dev rv0")
            }
            try network.host.ip("route add default via 10.1.0.254")
        }

        deinit {
            try? FileManager.default.removeItem(atPath: directory)
            if isFirst { rmdir("/etc/netns") }
        }

        func nameServer(_ behavior: NameServer.Behavior, _ address: String = "10.1.0.53") throws -> NameServer {
            try NameServer(behavior, in: network.router.path, address: address)
        }

        func filter(_ rule: String) throws {
            let rules = "table inet t {\n chain c {\n type filter hook output priority 0;\n \(rule)\n }\n}\n"
            try network.host.run("nft", "-f", "-", input: rules)
        }

        /// Runs one status. - Returns: `STATUS LAYER/CODE`, with some of the evidence, and the detail of the cause.
        func status(_ target: String = "server.example:80", _ keys: String...) throws -> (line: String, detail: String) {
            let command = [try Programs.netwatch, "status", "--json", "--netns", network.host.name ?? "", target]
            let program = try Program(command, output: .file)
            _ = try program.wait(within: patience)
            let document = try JSONSerialization.jsonObject(with: Data(program.output.utf8)) as? [String: Any]
            let record = try #require(
                (document?["targets"] as? [[String: Any]])?.first, "\(program.output)\(program.standardError)")
            let cause = record["cause"] as? [String: Any]
            let evidence = cause?["evidence"] as? [String: Any]
            var words = [record["status"] as? String ?? ""]
            if let layer = cause?["layer"] as? String, let code = cause?["code"] as? String { words.append("\(layer)/\(code)") }
            words += keys.map { "\($0)=\(evidence?[$0] ?? "?")" }
            return (words.joined(separator: " "), cause?["detail"] as? String ?? "")
        }
    }

    @Test(
        arguments: [
            (.code(3), "down dns/name-not-found", "there is no name server.example"),
            (.records([]), "down dns/no-address-for-family", "server.example has no address of the families that are tried"),
            (
                .aliasLoop, "down dns/no-address-for-family",
                "server.example has no address: its aliases (CNAME) form a loop, from server.example to x and back"
            ),
            (
                .code(2), "unreachable dns/server-failure", "the name server 10.1.0.53 could not resolve server.example: SERVFAIL"
            ),
            (.code(5), "unreachable dns/resolver-refused", "the name server 10.1.0.53 refuses to resolve server.example"),
            (.silent, "unreachable dns/resolver-silent", "the name server 10.1.0.53 does not answer for server.example"),
            (
                .wrongID("10.1.0.254"), "unreachable dns/server-failure",
                "the name server 10.1.0.53 sends messages that do not answer the question for server.example"
            ),
            (
                .records(["0.0.0.0", "::"]), "down dns/unusable-address",
                "server.example resolves to ::, to which no connection is possible"
            ), (nil, "unreachable dns/resolver-refused", "port 53 of the name server 10.1.0.53 is closed"),
        ] as [(NameServer.Behavior?, String, String)])
    func `a fault of the name server or of the name has its verdict`(
        behavior: NameServer.Behavior?, expected: String, detail: String
    ) throws {
        let fixture = try Fixture(resolvers: "10.1.0.53")
        let server = try behavior.map { try fixture.nameServer($0) }
        let status = try fixture.status("server.example:80", "resolver")
        expectEqual(status.line, "\(expected) resolver=10.1.0.53")
        expectEqual(status.detail, detail)
        #expect(server?.questions.isEmpty != true)
    }

    @Test(arguments: [
        ("udp dport 53 drop", "unreachable firewall/local-drop scope=port"),
        ("ip daddr 10.1.0.53 drop", "unreachable firewall/local-drop scope=address"),
        ("udp dport 53 reject", "unreachable firewall/local-reject scope=?"),
    ])
    func `this machine's filter between a target and its name server has its verdict`(rule: String, expected: String) throws {
        let fixture = try Fixture(resolvers: "10.1.0.53")
        let server = try fixture.nameServer(.records(["10.1.0.254"]))
        try fixture.filter(rule)
        try expectEqual(fixture.status("server.example:80", "scope").line, expected)
        expectEmpty(server.questions)
    }

    @Test func `without a configured name server, the verdict is no-resolver and the hosts file is still used`() throws {
        let fixture = try Fixture([])
        try expectEqual(fixture.status().line, "unreachable dns/no-resolver")
        try expectEqual(fixture.status("known.example:9").line, "down tcp/refused")
    }

    @Test(arguments: [[], ["0.0.0.0"]])
    func `a name server at 127_0_0_1 is asked if resolv_conf is empty or names 0_0_0_0`(resolvers: [String]) throws {
        let fixture = try Fixture(resolvers)
        let server = try NameServer(.records(["10.1.0.254"]), in: fixture.network.host.path, address: "127.0.0.1")
        let target = try fixture.network.router.serve(.queueing, at: "10.1.0.254")
        try expectEqual(fixture.status("server.example:\(target.port)").line, "up")
        #expect(!server.questions.isEmpty)
    }

    @Test(arguments: [.onlyA("10.1.0.254"), .records(["10.1.0.254"])] as [NameServer.Behavior])
    func `a target whose name has IPv4 alone is up, also if AAAA is never answered`(behavior: NameServer.Behavior) throws {
        let fixture = try Fixture(resolvers: "10.1.0.53")
        let server = try fixture.nameServer(behavior)
        let target = try fixture.network.router.serve(.queueing, at: "10.1.0.254")
        try expectEqual(fixture.status("server.example:\(target.port)").line, "up")
        #expect(server.questions.count >= 2)
    }

    @Test func `a target is up if the first of two name servers is dead`() throws {
        let fixture = try Fixture(resolvers: "10.1.0.53", "10.1.0.54")
        let dead = try fixture.nameServer(.silent)
        let server = try fixture.nameServer(.records(["10.1.0.254"]), "10.1.0.54")
        let target = try fixture.network.router.serve(.queueing, at: "10.1.0.254")
        try expectEqual(fixture.status("server.example:\(target.port)").line, "up")
        #expect(!dead.questions.isEmpty && !server.questions.isEmpty)
    }

    /// Kinds of name servers with which getaddrinfo(3) gives the address 10.1.0.254; ResolverDifferenceTests has all kinds.
    private static let kinds: [(name: String, servers: [NameServer.Behavior])] = {
        func replies(_ replies: @escaping @Sendable (_ isTCP: Bool) -> [NameServer.Reply]) -> NameServer.Behavior {
            .scripted { $0.isA ? replies($0.isOverTCP) : [.init([.authority])] }
        }
        let address = NameServer.Reply.Record.address("10.1.0.254")
        let good = replies { _ in [.init([address])] }
        return [
            ("referral first", [.scripted { _ in [.init([.nameServer("ns.example")], isRecursive: false)] }, good]),
            ("REFUSED first", [.code(5), good]), ("SERVFAIL first", [.code(2), good]), ("silent first", [.silent, good]),
            ("wrong id first", [replies { _ in [.init([address], change: .otherID), .init([address])] }]),
            ("wrong question first", [replies { _ in [.init([address], change: .otherQuestion), .init([address])] }]),
            ("AAAA NXDOMAIN", [.scripted { [$0.isA ? .init([address]) : .init([.authority], code: 3)] }]),
            ("AAAA SERVFAIL", [.scripted { [$0.isA ? .init([address]) : .init(code: 2)] }]),
            ("truncated", [replies { [.init([address], isTruncated: !$0)] }]),
            (
                "chain of aliases",
                [
                    replies { _ in
                        let aliases = [NameServer.Reply.Record.alias("B.example"), .alias("c.example", of: "b.example")]
                        return [.init(aliases + [.address("10.1.0.254", of: "c.example")])]
                    }
                ]
            ), ("question in capitals", [replies { _ in [.init([address], change: .upperCase)] }]),
            ("slow", [replies { _ in [.init([address], delay: 900)] }]),
        ]
    }()

    @Test(arguments: kinds.map(\.name))
    func `where getaddrinfo gives an address of a name, its target is up`(kind: String) throws {
        let behaviors = try #require(Self.kinds.first { $0.name == kind }).servers
        let addresses = Array(["10.1.0.53", "10.1.0.54"].prefix(behaviors.count))
        let fixture = try Fixture(addresses)
        let servers = try zip(behaviors, addresses).map { try fixture.nameServer($0, $1) }
        let target = try fixture.network.router.serve(.queueing, at: "10.1.0.254")
        let glibc = try Program(
            ["ip", "netns", "exec", fixture.network.host.name ?? "", "getent", "ahostsv4", "server.example"], output: .file)
        let status = try fixture.status("server.example:\(target.port)")
        try expectEqual(glibc.wait(within: patience), 0, "\(kind): getent: \(glibc.ending)")
        #expect(glibc.output.hasPrefix("10.1.0.254 "), "\(kind): getent: \(glibc.output)")
        expectEqual(status.line, "up", "\(kind): \(status.detail)")
        #expect(servers.allSatisfy { !$0.questions.isEmpty })
    }

    @Test func `why explains a missing name by the way to the name server`() throws {
        let fixture = try Fixture(resolvers: "10.1.0.53")
        let server = try fixture.nameServer(.code(3))
        let words = ["why", "--json", "--netns", fixture.network.host.name ?? "", "server.example:80"]
        let program = try Program([try Programs.netwatch] + words, output: .file)
        try expectEqual(program.wait(within: patience), 1, "\(program.ending)")
        let document = try #require(try JSONSerialization.jsonObject(with: Data(program.output.utf8)) as? [String: Any])
        let layers = try #require(document["layers"] as? [[String: Any]])
        // link, address, route, neighbor, dns, and the layers that are not reached or not used.
        expectEqual(layers.map { $0["ok"] as? Bool }, [true, true, true, true, false, nil, nil, nil, nil, nil])
        let details = layers.map { $0["detail"] as? String ?? "" }
        #expect(details[2] == "the name server 10.1.0.53 is on the link of v0" && details[3] == "10.1.0.53 answers")
        #expect(details[4] == "there is no name server.example" && details[5] == "not reached")
        #expect(!server.questions.isEmpty)
    }

    @Test func `a missing route to the name server is the route's cause`() throws {
        let fixture = try Fixture(resolvers: "192.0.2.53")
        try fixture.network.host.ip("route add unreachable 192.0.2.0/24")
        try expectEqual(
            fixture.status("server.example:80", "resolver").line, "unreachable route/route-unreachable resolver=192.0.2.53")
    }
}
