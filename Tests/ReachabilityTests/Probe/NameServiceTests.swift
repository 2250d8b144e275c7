import EventLoop
import Expectations
import Foundation
import NetworkLab
import Testing

@testable import Reachability

/// The name service against name servers with faults, in namespaces.
@Suite(.requiresNamespaces) struct NameServiceTests {
    private static let v4 = IPAddress(v4: 0xc000_0201)
    private static let v6 = IPAddress(v6: 0x2001_0db8_0000_0000, 1)
    private static let other = IPAddress(v4: 0x7f00_0002)

    @Test func `each family is asked once, and the answer has both and the server`() throws {
        let bench = try NameBench()
        let server = try bench.serve(.records(["\(Self.v4)", "\(Self.v6)"]))
        let answer = try bench.ask().answer
        expectEqual(answer.addresses, [Self.v6, Self.v4])
        expectEqual(answer.answeredBy, .dns)
        expectEqual(answer.server, .init(IPAddress(v4: 0x7f00_0001)))
        expectEqual(server.questions.sorted(), ["A server.example", "AAAA server.example"])
    }

    @Test func `an answer with a CNAME has the address of its target`() throws {
        let bench = try NameBench()
        let server = try bench.serve(.alias("\(Self.v4)"))
        try expectEqual(bench.ask().answer.addresses, [Self.v4])
        expectEqual(server.questions.count, 2)
    }

    @Test func `A without AAAA is answered 50 ms later, and a late AAAA is in the next answer without a question`() throws {
        let bench = try NameBench()
        let server = try bench.serve(.late(.records(["\(Self.v4)", "\(Self.v6)"])))
        let outcome = try bench.run([LookupRequest(id: 1, name: "server.example", families: [.v4, .v6])]) { outcome in
            // Another name keeps the loop running for the late answer.
            if outcome.answers.count == 1 { server.release() }
            return switch outcome.answers.count {
            case 1: [LookupRequest(id: 1 << 32, name: "b.example", families: [.v4])]
            case 2: [LookupRequest(id: 2 << 32, name: "server.example", families: [.v4, .v6])]
            default: []
            }
        }
        expectEqual(outcome.answers[1]?.addresses, [Self.v4])
        expectEqual(outcome.milliseconds[1], 50)
        expectEqual(outcome.answers[1]?.v6?.result, .unanswered)
        expectEqual(outcome.answers[2 << 32]?.addresses, [Self.v6, Self.v4])
        expectEqual(server.questions.filter { $0.hasSuffix("server.example") }.count, 2)
    }

    @Test func `a server that never answers AAAA delays the addresses by less than 300 ms`() throws {
        let bench = try NameBench()
        let server = try bench.serve(.onlyA("\(Self.v4)"))
        let (answer, milliseconds) = try bench.ask()
        expectEqual(answer.addresses, [Self.v4])
        #expect(milliseconds < 300)
        _ = server
    }

    @Test(
        arguments: [
            (.code(3), "down dns/name-not-found", "rcode=NXDOMAIN resolver=127.0.0.1 answered_by=dns"),
            (.records([]), "down dns/no-address-for-family", "rcode=NOERROR resolver=127.0.0.1 answered_by=dns"),
            (.aliasLoop, "down dns/no-address-for-family", "rcode=NOERROR resolver=127.0.0.1 answered_by=dns"),
            (.code(2), "dns/server-failure", "rcode=SERVFAIL resolver=127.0.0.1 answered_by=dns"),
            (.code(1), "dns/server-failure", "rcode=FORMERR resolver=127.0.0.1 answered_by=dns"),
            (.code(4), "dns/server-failure", "rcode=NOTIMP resolver=127.0.0.1 answered_by=dns"),
            (.code(5), "dns/resolver-refused", "rcode=REFUSED resolver=127.0.0.1 answered_by=dns"),
            (.damaged, "dns/server-failure", "rcode=? resolver=127.0.0.1 answered_by=dns"),
            (
                .scripted { _ in [.init([.nameServer("ns.example")], isRecursive: false)] }, "dns/server-failure",
                "rcode=NOERROR resolver=127.0.0.1 answered_by=dns"
            ),
        ] as [(NameServer.Behavior, String, String)])
    func `a negative or failing answer has its cause at once`(behavior: NameServer.Behavior, expected: String, evidence: String)
        throws
    {
        let bench = try NameBench()
        let server = try bench.serve(behavior)
        let (answer, milliseconds) = try bench.ask()
        expectEqual(verdict(bench, answer, "rcode", "resolver", "answered_by"), "\(expected) \(evidence)")
        #expect(milliseconds < 600)
        #expect(!server.questions.isEmpty)
    }

    @Test func `a loop of aliases in an answer is evidence`() throws {
        let bench = try NameBench()
        let server = try bench.serve(.aliasLoop)
        let answer = try bench.ask().answer
        expectEqual(verdict(bench, answer, "alias_loop"), "down dns/no-address-for-family alias_loop=server.example x")
        _ = server
    }

    private func verdict(_ bench: NameBench, _ answer: LookupAnswer, _ keys: String...) -> String {
        var host = Transcript.Host()
        host.hasResolver = !bench.nameservers.isEmpty
        let cause = CauseOfLookup.cause(
            answer, name: "server.example", elapsed: answer.elapsedNanoseconds, in: host.localState)
        let evidence = keys.map { key in
            if case .text(let text) = cause.evidence[key] { "\(key)=\(text)" } else { "\(key)=?" }
        }
        let words = ["\(cause.layer.rawValue)/\(cause.code.rawValue)"] + evidence
        return (cause.accusesServer ? "down " : "") + words.joined(separator: " ")
    }

    @Test(
        arguments: [
            (.silent, "dns/resolver-silent"), (.wrongID("\(v4)"), "dns/server-failure"),
            (.wrongQuestion("\(v4)"), "dns/server-failure"),
            (.garbage, "dns/server-failure"),
        ] as [(NameServer.Behavior, String)])
    func `a server without a usable answer fails before the probe's deadline`(behavior: NameServer.Behavior, expected: String)
        throws
    {
        let bench = try NameBench()
        let server = try bench.serve(behavior)
        let (answer, milliseconds) = try bench.ask(deadline: 60_000)
        expectEqual(verdict(bench, answer, "resolver"), "\(expected) resolver=127.0.0.1")
        #expect((2_000..<60_000).contains(milliseconds))
        expectEqual(server.questions.count, 4)
    }

    @Test func `at a deadline that is shorter than the timeouts, the answer has the evidence so far`() throws {
        let bench = try NameBench()
        let server = try bench.serve(.garbage)
        let (answer, milliseconds) = try bench.ask(deadline: 300)
        expectEqual(verdict(bench, answer, "resolver"), "dns/server-failure resolver=127.0.0.1")
        #expect((300..<600).contains(milliseconds))
        expectEqual(server.questions.count, 2)
    }

    @Test func `the closed port of a server is a refusal within 300 ms`() throws {
        let bench = try NameBench()
        let (answer, milliseconds) = try bench.ask()
        expectEqual(
            verdict(bench, answer, "errno", "hop", "resolver"),
            "dns/resolver-refused errno=ECONNREFUSED hop=127.0.0.1 resolver=127.0.0.1")
        #expect(milliseconds < 300)
    }

    @Test func `the second server answers 700 ms later if the first one is dead`() throws {
        var bench = try NameBench()
        bench.nameservers = [IPAddress(v4: 0x7f00_0001), Self.other]
        let dead = try bench.serve(.silent)
        let server = try bench.serve(.records(["\(Self.v4)", "\(Self.v6)"]), at: "\(Self.other)")
        let (answer, milliseconds) = try bench.ask()
        expectEqual(answer.addresses, [Self.v6, Self.v4])
        expectEqual(answer.server?.address, Self.other)
        // The first server has been asked once, and not again.
        #expect(milliseconds >= 700)
        #expect(dead.questions.count == 2 && server.questions.count == 2)
    }

    @Test(
        arguments: [.code(2), .code(5), .scripted { _ in [.init(isRecursive: false)] }, nil] as [NameServer.Behavior?])
    func `the second server answers at once if the first one fails, refuses or refers`(first: NameServer.Behavior?) throws {
        var bench = try NameBench()
        bench.nameservers = [IPAddress(v4: 0x7f00_0001), Self.other]
        let failing = try first.map { [bench] in try bench.serve($0) }
        let server = try bench.serve(.records(["\(Self.v4)"]), at: "\(Self.other)")
        let (answer, milliseconds) = try bench.ask()
        expectEqual(answer.addresses, [Self.v4])
        #expect(milliseconds < 300)
        expectEqual(server.questions.count, 2)
        _ = failing
    }

    @Test func `a truncated answer with 200 addresses is asked over TCP, and 16 of them are used`() throws {
        let bench = try NameBench()
        let many = (1...200).map { IPAddress(v4: 0xc000_0200 + UInt32($0)) }
        let server = try bench.serve(.records(many.map(\.description)))
        let answer = try bench.ask("server.example", [.v4]).answer
        expectEqual(answer.addresses, Array(many.prefix(16)))
        expectEqual(server.questions, ["A server.example", "tcp A server.example"])
        expectEqual(answer.v4?.exchanges.first?.isOverTCP, true)
    }

    @Test func `a truncated answer of a server without TCP is a refusal over TCP`() throws {
        let bench = try NameBench()
        let server = try bench.serve(.truncatedOnly)
        let (answer, milliseconds) = try bench.ask()
        expectEqual(
            verdict(bench, answer, "errno", "protocol"), "dns/resolver-refused errno=ECONNREFUSED protocol=tcp")
        #expect(milliseconds < 300)
        #expect(!server.questions.isEmpty)
    }

    @Test func `an IPv6 name server is asked, and its closed port is a refusal`() throws {
        var bench = try NameBench()
        bench.nameservers = [IPAddress(v6: 0, 1)]
        let answer = try bench.ask().answer
        expectEqual(verdict(bench, answer, "hop", "resolver"), "dns/resolver-refused hop=::1 resolver=::1")
        let server = try bench.serve(.records(["\(Self.v6)"]), at: "::1")
        try expectEqual(bench.ask().answer.addresses, [Self.v6])
        expectEqual(server.questions.count, 2)
    }

    @Test func `a link-local name server is asked over its interface`() throws {
        var bench = try NameBench()
        try bench.namespace.run("ip", "addr add fe80::53/64 dev lo nodad")
        let address = IPAddress(v6: 0xfe80_0000_0000_0000, 0x53)
        bench.nameservers = [address]
        bench.zone = "lo"
        let server = try bench.serve(.records(["\(Self.v4)"]), at: "fe80::53%lo")
        let answer = try bench.ask().answer
        expectEqual(answer.addresses, [Self.v4])
        expectEqual(answer.server?.description, "fe80::53%lo")
        expectEqual(server.questions.count, 2)
    }

    @Test func `a short name is found in the second domain of the search list`() throws {
        var bench = try NameBench()
        bench.search = ["one.example", "two.example"]
        let server = try bench.serve(.zone(["box.two.example": ["\(Self.v4)"]]))
        try expectEqual(bench.ask("box").answer.addresses, [Self.v4])
        expectEqual(
            server.questions.sorted(),
            ["A box.one.example", "A box.two.example", "AAAA box.one.example", "AAAA box.two.example"])
    }

    @Test func `1,000 targets of one name cause one question for each family`() throws {
        let bench = try NameBench()
        let server = try bench.serve(.records(["\(Self.v4)"]))
        let requests = (0..<1_000 as Range<UInt64>).map {
            LookupRequest(id: $0 << 32, name: "server.example", families: [.v4, .v6])
        }
        let outcome = try bench.run(requests) { outcome in
            // A second round of all targets is answered from the cache.
            guard outcome.answers.count == 1_000 else { return [] }
            return requests.map { LookupRequest(id: $0.id + (1_000 << 32), name: $0.name, families: $0.families) }
        }
        expectEqual(outcome.answers.count, 2_000)
        #expect(outcome.answers.values.allSatisfy { $0.addresses == [Self.v4] })
        expectEqual(server.questions.sorted(), ["A server.example", "AAAA server.example"])
    }

    @Test func `a failed address is asked for again although its TTL is 600 s`() throws {
        let bench = try NameBench()
        let server = try bench.serve(.records(["\(Self.v4)"], ttl: 600))
        let outcome = try bench.run([LookupRequest(id: 1, name: "server.example", families: [.v4])]) { outcome in
            server.setBehavior(.records(["\(Self.other)"], ttl: 600))
            return switch outcome.answers.count {
            case 1: [LookupRequest(id: 1 << 32, name: "server.example", families: [.v4])]
            case 2: [LookupRequest(id: 2 << 32, name: "server.example", families: [.v4], notBefore: MonotonicClock.now())]
            default: []
            }
        }
        expectEqual(outcome.answers[1 << 32]?.addresses, [Self.v4])
        expectEqual(outcome.answers[2 << 32]?.addresses, [Self.other])
        expectEqual(server.questions.count, 2)
    }

    @Test func `thousands of names are resolved by a local server, almost without a lost answer`() throws {
        let bench = try NameBench()
        let server = try bench.serve(.records(["\(Self.v4)"]))
        let count: UInt64 = Sanitizer.isUsed ? 300 : 3_000
        let requests = (0..<count).map {
            LookupRequest(id: $0 << 32, name: "n\($0).example", families: [.v4, .v6])
        }
        let outcome = try bench.run(requests, deadline: 20_000)
        #expect(outcome.answers.values.allSatisfy { $0.addresses == [Self.v4] })
        // The kernel may drop questions while the server's socket is full. They are asked again after 700 ms.
        #expect(server.questions.count < 2 * Int(count) + 300)
    }

    @Test func `the hosts file of the namespace answers without a question`() throws {
        var bench = try NameBench()
        bench.files["hosts"] = "192.0.2.1 server.example\n"
        let server = try bench.serve(.code(2))
        let answer = try bench.ask().answer
        expectEqual(answer.addresses, [Self.v4])
        expectEqual(answer.answeredBy, .hosts)
        expectEqual(server.questions, [])
    }

    @Test(arguments: [[], [IPAddress(v4: 0)], [IPAddress(v6: 0, 0)]])
    func `without a configured name server, or with 0_0_0_0, this machine's own answers, as in glibc`(nameservers: [IPAddress])
        throws
    {
        var bench = try NameBench()
        let server = try bench.serve(
            .records(["\(Self.v4)"]), at: nameservers.first?.family == .v6 ? "::1" : "127.0.0.1")
        bench.nameservers = nameservers
        let answer = try bench.ask().answer
        expectEqual(answer.addresses, [Self.v4])
        expectEqual(answer.server?.address.isLoopback, true)
        expectEqual(server.questions.count, 2)
    }

    @Test(arguments: [nil, .silent] as [NameServer.Behavior?])
    func `without a configured name server, a closed port and silence of 127_0_0_1 are no-resolver`(
        behavior: NameServer.Behavior?
    ) throws {
        var bench = try NameBench()
        let server = try behavior.map { [bench] in try bench.serve($0) }
        bench.nameservers = []
        let answer = try bench.ask().answer
        expectEqual(verdict(bench, answer, "resolver"), "dns/no-resolver resolver=127.0.0.1")
        _ = server
    }

    @Test(.requiresMounts) func `a module that may know every name is asked instead of DNS, by getaddrinfo`() throws {
        var bench = try NameBench()
        bench.usesKernelClock = true
        bench.files = ["nsswitch.conf": "hosts: files wins dns\n", "hosts": "", "resolv.conf": "nameserver 127.0.0.1\n"]
        let server = try bench.serve(.address("\(Self.v4)"))
        let answer = try bench.ask().answer
        expectEqual(answer.addresses, [Self.v4])
        expectEqual(answer.answeredBy, .nss)
        #expect(!server.questions.isEmpty)
    }
}

/// Faults of this machine and of routers, as the packet filter and the routes of a namespace make them.
@Suite(.requiresNamespaces) struct NameServiceLocalFaultTests {
    private func bench(_ commands: String..., filter: String = "") throws -> NameBench {
        var bench = try NameBench()
        bench.nameservers = [IPAddress(v4: 0x0a00_0035)]
        for command in ["link add v0 type veth peer name v1", "addr add 10.0.0.2/24 dev v0", "link set v0 up", "link set v1 up"] {
            try bench.namespace.run("ip", command)
        }
        for command in commands { try bench.namespace.run("ip", command) }
        if !filter.isEmpty {
            let rules = "table inet t {\n chain c {\n type filter hook output priority 0;\n \(filter)\n }\n}\n"
            try bench.namespace.run("nft", "-f -", input: rules)
        }
        return bench
    }

    @Test(arguments: [
        ("ip daddr 10.0.0.53 drop", "firewall/local-drop errno=EPERM scope=address"),
        ("udp dport 53 drop", "firewall/local-drop errno=EPERM scope=port"),
        ("udp dport 53 reject", "firewall/local-reject errno=EPERM scope=?"),
        ("udp dport 53 reject with icmpx type host-unreachable", "firewall/local-reject errno=EPERM scope=?"),
    ])
    func `a filter of this machine is named with its scope`(filter: String, expected: String) throws {
        let bench = try bench(filter: filter)
        let (answer, milliseconds) = try bench.ask()
        expectEqual(bench.cause(answer, "errno", "scope"), expected)
        #expect(milliseconds < 300)
    }

    @Test(arguments: [
        ("unreachable", "route/route-unreachable errno=EHOSTUNREACH"), ("prohibit", "route/route-prohibited errno=EACCES"),
        ("blackhole", "route/route-blackhole errno=EINVAL"),
    ])
    func `a refusing route to the name server is the route's cause`(type: String, expected: String) throws {
        let bench = try bench("route add \(type) 10.0.0.53/32")
        let (answer, milliseconds) = try bench.ask()
        expectEqual(bench.cause(answer, "errno"), expected)
        #expect(milliseconds < 300)
    }

    @Test func `a missing route to the name server is no-route`() throws {
        let bench = try bench("addr del 10.0.0.2/24 dev v0")
        let (answer, milliseconds) = try bench.ask()
        expectEqual(
            bench.cause(answer, "errno", "call", "resolver"), "route/no-route errno=ENETUNREACH call=connect resolver=10.0.0.53"
        )
        #expect(milliseconds < 300)
    }

    @Test func `a name server that is missing on its link is silent`() throws {
        let bench = try bench()
        expectEqual(bench.cause(try bench.ask().answer, "resolver"), "dns/resolver-silent resolver=10.0.0.53")
    }
}
