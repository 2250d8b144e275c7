import Expectations
import NetworkLab
import Testing

@testable import Reachability

/// Lookups by a name server of the target, beside that of the machine.
@Suite(.requiresNamespaces) struct OwnResolverTests {
    private static let own = NameServerAddress(IPAddress(v4: 0x7f00_0002), port: 5353)
    private static let v4 = IPAddress(v4: 0xc000_0201)
    private static let other = IPAddress(v4: 0xc000_0299)

    private static func request(_ number: UInt64, _ name: String = "server.example", by resolver: NameServerAddress? = own)
        -> LookupRequest
    {
        LookupRequest(id: number << 32, name: name, families: [.v4], resolver: resolver.map { Boxed($0) })
    }

    @Test func `the name server is asked alone: neither the machine's, nor its hosts file, nor its search list`() throws {
        var bench = try NameBench()
        bench.files["hosts"] = "\(Self.other) server.example single\n"
        bench.search = ["lan.example"]
        let machine = try bench.serve(.records(["\(Self.other)"]))
        let server = try bench.serve(
            .zone(["server.example": ["\(Self.v4)"], "single": ["\(Self.v4)"]]), at: "127.0.0.2", port: 5353)
        for name in ["server.example", "single"] {
            let answer = try bench.ask(name, [.v4], by: Self.own).answer
            expectEqual(answer.addresses, [Self.v4])
            expectEqual(answer.server, Self.own)
        }
        expectEqual(server.questions, ["A server.example", "A single"])
        expectEqual(machine.questions, [])
    }

    @Test func `targets with the same name server share its questions and answers, and others do not`() throws {
        let bench = try NameBench()
        let machine = try bench.serve(.records(["\(Self.other)"]))
        let server = try bench.serve(.records(["\(Self.v4)"]), at: "127.0.0.2", port: 5353)
        let requests = (1...50).map { Self.request($0) } + [Self.request(51, by: nil)]
        let outcome = try bench.run(requests) { outcome in outcome.answers.count == 51 ? [Self.request(52)] : [] }
        for number in Array(1...50) + [52] {
            expectEqual(outcome.answers[UInt64(number) << 32]?.addresses, [Self.v4], "\(number)")
        }
        expectEqual(outcome.answers[51 << 32]?.addresses, [Self.other])
        expectEqual(server.questions, ["A server.example"])
        expectEqual(machine.questions, ["A server.example"])
    }

    @Test(
        arguments: [
            (.code(3), "down dns/name-not-found"), (.code(2), "dns/server-failure"), (.code(5), "dns/resolver-refused"),
            (.silent, "dns/resolver-silent"), (nil, "dns/resolver-refused"),
        ] as [(NameServer.Behavior?, String)])
    func `its failures name it, and no other server is asked`(behavior: NameServer.Behavior?, expected: String) throws {
        var bench = try NameBench()
        bench.nameservers = []
        let machine = try bench.serve(.records(["\(Self.other)"]))
        let server = try behavior.map { try bench.serve($0, at: "127.0.0.2", port: 5353) }
        let answer = try bench.ask("server.example", [.v4], by: Self.own).answer
        expectEqual(answer.addresses, [])
        let cause = bench.cause(answer, by: Self.own, "resolver")
        expectEqual(cause, "\(expected.replacing("down ", with: "")) resolver=127.0.0.2:5353")
        expectEqual(machine.questions, [])
        withExtendedLifetime(server) {}
    }

    @Test func `several name servers are asked at the same time, each for its own targets`() throws {
        let bench = try NameBench()
        let servers = try (2...9).map { try bench.serve(.records(["\(Self.v4)"]), at: "127.0.0.\($0)", port: 5353) }
        let requests = (2...9).map { number in
            Self.request(
                UInt64(number), by: NameServerAddress(IPAddress(v4: 0x7f00_0000 + UInt32(number)), port: 5353))
        }
        let outcome = try bench.run(requests)
        expectEqual(outcome.answers.values.map(\.addresses), Array(repeating: [Self.v4], count: 8))
        expectEqual(servers.map(\.questions.count), Array(repeating: 1, count: 8))
    }
}
