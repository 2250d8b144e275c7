import Expectations
import Foundation
import Glibc
import NetworkLab
import Testing

/// The diagnoses of `why` and the probes of `probe`, with the faults of real networks.
@Suite(.requiresNamespaces)
struct WhyInHostTests {
    /// A client, two routers and a server in a row. The server's address is behind both routers, in both families.
    private struct Row {
        static let server = "10.3.0.9"
        static let server6 = "2001:db8:3::9"

        let lab = Lab()
        let client, near, far, server: LabHost

        init() throws {
            client = try lab.namedHost(loopback: true)
            (near, far, server) = (try lab.host(loopback: true), try lab.host(loopback: true), try lab.host(loopback: true))
            // Without duplicate address detection, which delays forwarding by IPv6 for a second or two.
            for host in [client, near, far, server] {
                for scope in ["all", "default"] { try host.set("ipv6.conf.\(scope).accept_dad", "0") }
            }
            try connect(client, "v0", near, "in0", 1, from: 1, to: 254)
            try connect(near, "out0", far, "in0", 2, from: 1, to: 2)
            try connect(far, "out0", server, "v0", 3, from: 1, to: 9)
            for router in [near, far] {
                try router.set("ipv4.ip_forward", "1")
                try router.set("ipv6.conf.all.forwarding", "1")
                // Each test sends more ICMP messages than routers allow by default.
                try router.set("ipv4.icmp_ratelimit", "0")
                try router.set("ipv6.icmp.ratelimit", "0")
            }
            for (host, route) in [
                (client, "default via 10.1.0.254"), (client, "default via 2001:db8:1::fe"), (near, "10.3.0.0/24 via 10.2.0.2"),
                (near, "2001:db8:3::/64 via 2001:db8:2::2"), (far, "10.1.0.0/24 via 10.2.0.1"),
                (far, "2001:db8:1::/64 via 2001:db8:2::1"), (server, "default via 10.3.0.1"),
                (server, "default via 2001:db8:3::1"),
            ] {
                try host.ip("route add \(route)")
            }
        }

        private func connect(
            _ one: LabHost, _ name: String, _ other: LabHost, _ otherName: String, _ number: Int, from first: Int, to last: Int
        ) throws {
            try lab.connect(one, name, other, otherName)
            for (host, interface, place) in [(one, name, first), (other, otherName, last)] {
                try host.ip("addr add 10.\(number).0.\(place)/24 dev \(interface)")
                try host.ip("addr add 2001:db8:\(number)::\(String(place, radix: 16))/64 dev \(interface) nodad")
                try host.ip("link set \(interface) up")
            }
        }

        func filter(_ host: LabHost, _ hook: String, _ rule: String) throws {
            try host.run(
                "nft", "-f", "-", input: "table inet t {\n chain c {\n type filter hook \(hook) priority 0;\n \(rule)\n }\n}\n")
        }

        /// Starts the program in the client's namespace, with a silent probe's deadline of one second.
        func netwatch(_ words: String..., output: Program.Output = .file) throws -> Program {
            try Program([Programs.netwatch] + words + ["--netns", client.name ?? ""], output: output)
        }

        /// Runs `why`. - Returns: the marks of the layers (`+`, `x`, or `.` for null), the sentence, and the document.
        typealias Answer = (marks: String, code: Int32, sentence: String, document: [String: Any])

        func why(_ words: String...) throws -> Answer {
            let command = [try Programs.netwatch, "why", "--netns", client.name ?? ""] + words
            let json = try Program(command + ["--json"], output: .file)
            let code = try json.wait(within: patience)
            let document = try #require(
                try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any], "\(json.standardError)")
            let layers = try #require(document["layers"] as? [[String: Any]])
            let marks = layers.map { ($0["ok"] as? Bool).map { $0 ? "+" : "x" } ?? "." }.joined()
            let text = try Program(command, output: .file)
            try expectEqual(text.wait(within: patience), code)
            return (marks, code, text.output.split(separator: "\n").last.map(String.init) ?? "", document)
        }
    }

    private func evidence(_ document: [String: Any], _ layer: String) -> [String: Any] {
        let layers = document["layers"] as? [[String: Any]] ?? []
        return layers.first { $0["layer"] as? String == layer }?["evidence"] as? [String: Any] ?? [:]
    }

    // The order is link, address, route, neighbor, dns, firewall, network, tcp, tls, http.
    @Test func `a target that is up has every layer that it uses`() throws {
        let row = try Row()
        let open = try row.server.serve()
        for (target, server) in [
            ("\(Row.server):\(open.port)", Row.server), ("[\(Row.server6)]:\(open.port)", Row.server6),
        ] {
            let why = try row.why(target)
            expectEqual(why.marks, "++++.+++..")
            expectEqual(why.code, 0)
            #expect(why.sentence.hasPrefix("+ \(target) is up: \(server) answers over v0 via "), "\(why.sentence)")
            #expect(why.document["address"] as? String == server && why.document["cause"] is NSNull)
        }
    }

    @Test func `a refused connection proves the network`() throws {
        let row = try Row()
        let closed = try row.server.serve(.closed)
        let why = try row.why("\(Row.server):\(closed.port)")
        expectEqual(why.marks, "++++.++x..")
        expectEqual(why.code, 1)
        let text = "\(Row.server):\(closed.port) is down: \(Row.server) refuses connections to port \(closed.port) (tcp/refused)"
        expectEqual(why.sentence, "x \(text)")
    }

    @Test(arguments: [(Row.server, "10.2.0.2"), (Row.server6, "2001:db8:2::2")])
    func `a silent target behind two routers names the last hop that answers`(server: String, hop: String) throws {
        let row = try Row()
        // The last router drops everything that it would forward, so that nothing beyond it answers.
        try row.filter(row.far, "forward", "drop")
        let why = try row.why(server.contains(":") ? "[\(server)]:9" : "\(server):9", "--probe-timeout", "1s")
        expectEqual(why.marks, "++++.+.x..")
        expectEqual(why.code, 1)
        #expect(why.sentence.contains(" does not answer on port 9") && why.sentence.contains("(tcp/timeout)"), "\(why.sentence)")
        #expect(why.sentence.hasSuffix("; the last hop that answers is \(hop), hop 2"), "\(why.sentence)")
        for layer in ["network", "tcp"] {
            let evidence = evidence(why.document, layer)
            #expect(evidence["last_hop"] as? String == hop && evidence["last_hop_ttl"] as? Int == 2, "\(layer)")
        }
    }

    @Test func `a gateway that answers nothing but neighbor discovery is alive, and proves nothing about what is behind it`()
        throws
    {
        let row = try Row()
        try row.near.filter(.input, "meta l4proto { tcp, udp, icmp } drop")
        try row.near.filter(.output, "meta l4proto icmp drop")
        try row.near.filter(.forward, "ip daddr \(Row.server) drop")
        let why = try row.why("\(Row.server):9", "--probe-timeout", "1s")
        expectEqual(why.marks, "++++..x...")
        expectEqual((why.document["cause"] as? [String: Any])?["code"] as? String, "upstream-silent")
        expectEqual(evidence(why.document, "network")["first_hop"] as? String, "answered")
    }

    /// Reaches a server, silences its gateway, and returns the server and the answer of `why`.
    private func whyBehindDeadGateway(_ row: Row) throws -> (target: String, why: Row.Answer) {
        let open = try row.server.serve()
        let target = "\(Row.server):\(open.port)"
        try expectEqual(row.netwatch("status", target).wait(within: patience), 0)
        try row.near.silence("in0")
        let why = try row.why(target, "--probe-timeout", "1s")
        expectEqual(why.marks, "+++x......")
        expectEqual(why.code, 1)
        return (target, why)
    }

    @Test func `a gateway that died in use gives no answer of any kind`() throws {
        let (target, why) = try whyBehindDeadGateway(try Row())
        expectEqual(
            why.sentence,
            "x \(target) is unreachable: the gateway 10.1.0.254 gives no answer: not to datagrams, not to "
                + "connections, not to packets whose hop limit ends there (neighbor/gateway-silent, hop 10.1.0.254)")
        expectEqual(evidence(why.document, "neighbor")["inferred"] as? String, "datagram,connection,hop-limit")
    }

    @Test func `a gateway whose entry is stale is checked by the kernel, and the check is awaited`() throws {
        let row = try Row()
        try row.client.run(
            "ip", "ntable", "change", "name", "arp_cache", "dev", "v0", "base_reachable", "100", "delay_probe", "1000")
        let (_, why) = try whyBehindDeadGateway(row)
        #expect(
            why.sentence.contains(": the gateway 10.1.0.254 does not answer on its link (neighbor/gateway-silent"),
            "\(why.sentence)")
        // The kernel asks again for a neighbor that has failed.
        let state = evidence(why.document, "neighbor")["neighbor_state"] as? String
        #expect(["FAILED", "INCOMPLETE"].contains(state), "\(state ?? "none")")
    }

    @Test func `the targets of a file have a diagnosis each, and the worst decides the exit code`() throws {
        let row = try Row()
        let (open, closed) = (try row.server.serve(), try row.server.serve(.closed))
        let (up, down) = ("\(Row.server):\(open.port)", "\(Row.server):\(closed.port)")
        let command = [try Programs.netwatch, "why", "--netns", row.client.name ?? "", up, "--targets", "-"]
        let json = try Program(command + ["--json"], input: .text("\(down) # closed\n"), output: .file)
        try expectEqual(json.wait(within: patience), 1)
        let document = try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any]
        let targets = try #require(document?["targets"] as? [[String: Any]], "\(json.ending)")
        expectEqual(targets.map { $0["target"] as? String }, [up, down])
        expectEqual(targets.map { $0["status"] as? String }, ["up", "down"])
        let text = try Program(command, input: .text("\(up)\n"), output: .file)
        try expectEqual(text.wait(within: patience), 0)
        expectEqual(text.output.components(separatedBy: "\n+ \(up) is up: ").count, 3, "\(text.output)")
    }

    @Test func `a port that the server's filter drops is the server's fault, and the network works`() throws {
        let row = try Row()
        try row.filter(row.server, "input", "tcp dport 9 drop")
        let why = try row.why("\(Row.server):9", "--probe-timeout", "1s")
        expectEqual(why.marks, "++++.++x..")
        expectEqual(why.code, 1)
        expectEqual(why.document["status"] as? String, "down")
        #expect(why.sentence.hasSuffix("; the last hop before it is 10.2.0.2, hop 2"), "\(why.sentence)")
    }

    @Test func `the sweep uses the given interface`() throws {
        let row = try Row()
        try row.filter(row.far, "forward", "drop")
        // Without the option, packets would leave by an interface that leads nowhere.
        let elsewhere = try row.lab.host()
        try row.lab.connect(row.client, "v1", elsewhere, "end")
        try row.client.ip("link set v1 up")
        try row.client.ip("addr add 10.9.0.1/24 dev v1")
        try row.client.ip("route add 10.3.0.9/32 dev v1")
        let why = try row.why("\(Row.server):9", "--probe-timeout", "1s", "--interface", "v0")
        #expect(why.sentence.hasSuffix("; the last hop that answers is 10.2.0.2, hop 2"), "\(why.sentence)")
        withExtendedLifetime(elsewhere) {}
    }

    @Test func `a router that prohibits packets is the hop at fault`() throws {
        let row = try Row()
        try row.filter(row.far, "forward", "tcp dport 9 reject with icmpx type admin-prohibited")
        let why = try row.why("\(Row.server):9")
        expectEqual(why.marks, "++++.+x...", "\(why.document)")
        expectEqual(why.code, 1)
        expectEqual(
            why.sentence,
            "x \(Row.server):9 is unreachable: 10.2.0.2 prohibits packets to \(Row.server) "
                + "(network/admin-prohibited, hop 10.2.0.2)")
    }

    @Test func `without a route, the layers after it are not reached`() throws {
        let row = try Row()
        try row.client.ip("route del default")
        let why = try row.why("\(Row.server):9")
        expectEqual(why.marks, "++x.......")
        expectEqual(why.code, 1)
        expectEqual(why.sentence, "x \(Row.server):9 is unreachable: there is no route to \(Row.server) (route/no-route)")
    }

    @Test func `an interface without carrier is the lowest failing layer`() throws {
        let row = try Row()
        try row.near.ip("link set in0 down")
        let end = ContinuousClock.now + patience
        while try !row.client.ip("link show v0").contains("NO-CARRIER"), ContinuousClock.now < end { poll(nil, 0, 5) }
        let why = try row.why("\(Row.server):9")
        expectEqual(why.marks, "x.........")
        expectEqual(why.code, 1)
        #expect(why.sentence.contains("(link/no-carrier)"), "\(why.sentence)")
        let path = try row.why()
        expectEqual(path.marks, "x.........")
        expectEqual(path.code, 1)
        #expect(path.document["status"] as? String == "unsatisfied" && path.document["target"] is NSNull)
        expectEqual(path.sentence, "x the path is unsatisfied: interface v0 has no carrier (link/no-carrier)")
    }

    @Test func `a target on this machine uses neither a neighbor nor the network`() throws {
        let row = try Row()
        let open = try row.client.serve()
        let why = try row.why("127.0.0.1:\(open.port)")
        expectEqual(why.marks, "+++..+.+..")
        expectEqual(why.code, 0)
        expectEqual(why.sentence, "+ 127.0.0.1:\(open.port) is up: this machine (127.0.0.1) answers")
    }

    @Test func `without a target, the path is explained`() throws {
        let row = try Row()
        let path = try row.why("-4")
        #expect(path.code == 0 && path.marks.hasPrefix("+++"), "\(path.marks)")
        #expect(path.sentence.hasPrefix("+ the path is satisfied: IPv4 is routed over v0 via 10.1.0.254"), "\(path.sentence)")
    }

    // MARK: probe

    @Test func `probe prints a line for each probe and a table, and the exit code counts the targets that answered`() throws {
        let row = try Row()
        let (open, closed) = (try row.server.serve(), try row.server.serve(.closed))
        let (up, down) = ("\(Row.server):\(open.port)", "\(Row.server):\(closed.port)")
        let start = ContinuousClock.now
        let good = try row.netwatch("probe", "-c", "3", "--interval", "100ms", up)
        try expectEqual(good.wait(within: patience), 0)
        #expect(ContinuousClock.now - start >= .milliseconds(200))
        let lines = good.output.split(separator: "\n")
        #expect(lines.count == 5 && lines.prefix(3).allSatisfy { $0.hasPrefix("+ \(up)  ") }, "\(good.output)")
        expectEqual(lines.last?.hasPrefix("\(up)     3   3   0 %  "), true, "\(good.output)")
        let both = try row.netwatch("probe", "--json", "-c", "2", "--interval", "50ms", up, down)
        try expectEqual(both.wait(within: patience), 1)
        let document = try JSONSerialization.jsonObject(with: Data(both.output.utf8)) as? [String: Any]
        let targets = try #require(document?["targets"] as? [[String: Any]])
        expectEqual(targets.map { $0["target"] as? String }, [up, down])
        #expect(targets.map { $0["sent"] as? Int } == [2, 2] && targets.map { $0["loss"] as? Int } == [0, 1])
        expectEqual((targets.last?["cause"] as? [String: Any])?["code"] as? String, "refused")
    }

    @Test func `lost packets count as loss, although no probe fails`() throws {
        let row = try Row()
        let open = try row.server.serve()
        // Each second SYN is lost, so each probe loses one and needs another attempt.
        try row.filter(row.server, "input", "tcp flags & (syn | ack) == syn numgen inc mod 2 0 drop")
        let program = try row.netwatch("probe", "-c", "3", "--interval", "20ms", "--json", "\(Row.server):\(open.port)")
        try expectEqual(program.wait(within: patience), 0)
        #expect(program.output.contains(#""sent":3,"ok":3,"loss":0.5,"#), "\(program.output)")
    }

    @Test func `the server sees exactly the requested number of connections`() throws {
        let row = try Row()
        try row.filter(row.server, "input", "tcp dport 9 tcp flags & (syn | ack) == syn counter reject with tcp reset")
        let program = try row.netwatch("probe", "-c", "4", "--interval", "20ms", "\(Row.server):9")
        try expectEqual(program.wait(within: patience), 1)
        let rules = try row.server.run("nft", "list", "ruleset")
        #expect(rules.contains("counter packets 4 "), "\(rules)")
    }

    @Test func `probes without a route count as lost`() throws {
        let row = try Row()
        try row.client.ip("route del default")
        let program = try row.netwatch("probe", "-c", "2", "--interval", "50ms", "--json", "\(Row.server):9")
        try expectEqual(program.wait(within: patience), 1)
        #expect(program.output.contains(#""sent":2,"ok":0,"loss":1,"#) && program.output.contains(#""code":"no-route""#))
    }

    @Test func `SIGINT ends probe with the summary of the results so far`() throws {
        let row = try Row()
        let open = try row.server.serve()
        let program = try row.netwatch("probe", "-c", "100", "--interval", "1h", "\(Row.server):\(open.port)", output: .pipe)
        _ = try program.nextLine(within: patience)
        try program.signal(SIGINT)
        let lines = try program.remainingLines()
        expectEqual(lines.last?.contains("     1   1   0 %  "), true, "\(lines)")
        try expectEqual(program.wait(within: patience), 128 + SIGINT)
    }

    @Test func `a program that timeout(1) ends prints its summary`() throws {
        let row = try Row()
        let open = try row.server.serve()
        let command = try [
            Programs.netwatch, "probe", "-c", "100", "--interval", "1h", "--netns", row.client.name ?? "",
            "\(Row.server):\(open.port)",
        ]
        // timeout(1) signals its child, and then the process group of both: when its time is over, and when it is signaled itself. Some of
        // the programs take the first one before the second one.
        let programs = try (0..<12).map { _ in try Program(["timeout", "1h"] + command, output: .pipe) }
        for program in programs {
            _ = try program.nextLine(within: patience)
            try program.signal(SIGTERM)
            let lines = try program.remainingLines()
            #expect(lines.contains { $0.hasSuffix("jitter") }, "\(lines)")
            try expectEqual(program.wait(within: patience), 128 + SIGTERM)
        }
    }
}
