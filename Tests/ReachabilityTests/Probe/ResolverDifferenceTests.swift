import EventLoop
import Expectations
import Foundation
import NetworkLab
import Testing

@testable import Reachability

/// The resolver beside getaddrinfo(3), against name servers of every kind: where glibc gives an address, so does netwatch.
@Suite(.requiresNamespaces, .requiresMounts) struct ResolverDifferenceTests {
    private typealias Reply = NameServer.Reply

    /// The name servers of a machine, and the name that is resolved.
    struct Kind: Sendable {
        var name: String
        /// The behaviors of the servers 127.0.0.1, 127.0.0.2 and 127.0.0.3.
        var servers: [NameServer.Behavior?]
        /// Further lines of resolv.conf.
        var options = ""
        var asked = "server.example"

        func beforeGood() -> Kind {
            var copy = self
            copy.name += ", then a good server"
            copy.servers.append(ResolverDifferenceTests.good)
            return copy
        }
    }

    /// The kinds for which both give different addresses, each with the reason.
    private static let differences = [
        // netwatch has addresses that glibc does not have.
        "A alone, AAAA SERVFAIL, then a good server": eachFamily, "A alone, AAAA REFUSED, then a good server": eachFamily,
        "AAAA alone, A SERVFAIL, then a good server": eachFamily,
        "AAAA referral, A with address, then a good server": eachFamily,
        "A referral, AAAA with address, then a good server": eachFamily,
        "AAAA alone, A silent": "glibc waits for A until all attempts have failed, and forgets AAAA",
        "truncated, TCP refers": overTCP, "truncated, SERVFAIL over TCP": overTCP,
        "edns0, EDNS dropped": withoutEDNS, "edns0, FORMERR for EDNS": withoutEDNS,
        "search list, first domain refers": "glibc ends the search, and netwatch asks for the name in the next domain",
        // glibc has addresses that netwatch does not have.
        "slow, 2.5 s": "a lookup must end before the deadline of a probe (3 s): after 2.1 s, the only name server is silent",
    ]
    private static let eachFamily = "glibc asks the next server for neither family if one has an address"
    private static let overTCP = "glibc asks no other server after an answer over TCP"
    private static let withoutEDNS = "netwatch asks without EDNS"

    private static let v4 = "192.0.2.1"
    private static let v6 = "2001:db8::1"
    private static let good = NameServer.Behavior.records([v4, v6])

    /// The addresses of a reply in the family of the question.
    private static func addresses(_ question: NameServer.Question, of owner: String? = nil) -> [Reply.Record] {
        [.address(question.isA ? v4 : v6, of: owner)]
    }

    private static func scripted(_ reply: @escaping @Sendable (NameServer.Question) -> [NameServer.Reply]) -> NameServer.Behavior
    {
        .scripted(reply)
    }

    /// A server that gives each question the same answer.
    private static func always(_ reply: Reply) -> NameServer.Behavior { .scripted { _ in [reply] } }

    /// A server that answers one family with the address, and the other one with another message; `nil` for silence.
    private static func only(_ isA: Bool, other: Reply?) -> NameServer.Behavior {
        .scripted { question in
            question.isA == isA ? [Reply(addresses(question))] : other.map { [$0] } ?? []
        }
    }

    /// Servers that do not resolve every name in the usual way, each alone and before a good one.
    private static let doubtful: [(String, NameServer.Behavior?)] = [
        ("referral without records", always(Reply(isRecursive: false))),
        ("referral with NS", always(Reply([.nameServer("ns.example")], isRecursive: false))),
        (
            "referral with NS and glue",
            always(Reply([.nameServer("ns.example"), .additional("192.0.2.53", of: "ns.example")], isRecursive: false))
        ),
        ("lame: recursion not available, REFUSED", always(Reply(code: 5, isRecursive: false))),
        ("authoritative only, with addresses", scripted { [Reply(addresses($0), isAuthoritative: true, isRecursive: false)] }),
        ("authoritative only, NODATA without SOA", always(Reply(isAuthoritative: true, isRecursive: false))),
        ("NODATA with SOA", always(Reply([.authority]))),
        ("NODATA without SOA", always(Reply())),
        ("NODATA with SOA, recursion not available", always(Reply([.authority], isRecursive: false))),
        ("NXDOMAIN with SOA", always(Reply([.authority], code: 3))),
        ("NXDOMAIN without SOA", always(Reply(code: 3))),
        ("SERVFAIL", always(Reply(code: 2))), ("FORMERR", always(Reply(code: 1))), ("NOTIMP", always(Reply(code: 4))),
        ("REFUSED", always(Reply(code: 5))), ("an unassigned code", always(Reply(code: 11))),
        ("FORMERR without the question", always(Reply(code: 1, change: .noQuestion))),
        ("silent", .silent), ("port closed", nil), ("garbage", .garbage),
        ("wrong id", scripted { [Reply(addresses($0), change: .otherID)] }),
        ("wrong question", scripted { [Reply(addresses($0), change: .otherQuestion)] }),
        ("wrong type in the question", scripted { [Reply(addresses($0), change: .otherType)] }),
        ("no question in the answer", scripted { [Reply(addresses($0, of: "server.example"), change: .noQuestion)] }),
        ("a question for an answer", scripted { [Reply(addresses($0), change: .isQuestion)] }),
        ("an empty datagram", always(Reply(change: .isEmpty))),
        ("records that are cut off", scripted { [Reply(addresses($0), change: .isCut)] }),
        ("truncated, TCP refused", .truncatedOnly),
        ("loop of two aliases", always(Reply([.alias("b.example"), .alias("server.example", of: "b.example")]))),
        ("alias of itself", always(Reply([.alias("server.example")]))),
        ("alias without its target", always(Reply([.alias("b.example")]))),
        ("address of another name", scripted { [Reply(addresses($0, of: "other.example"))] }),
        ("A alone, AAAA SERVFAIL", only(true, other: Reply(code: 2))),
        ("A alone, AAAA REFUSED", only(true, other: Reply(code: 5))),
        ("A alone, AAAA silent", only(true, other: nil)),
        ("AAAA alone, A SERVFAIL", only(false, other: Reply(code: 2))),
        ("AAAA alone, A silent", only(false, other: nil)),
        ("AAAA referral, A with address", only(true, other: Reply(isRecursive: false))),
        ("A referral, AAAA with address", only(false, other: Reply(isRecursive: false))),
        ("EDNS dropped", scripted { $0.hasOptions ? [] : [Reply(addresses($0))] }),
    ]

    /// Servers that answer with addresses, in unusual ways.
    private static let unusual: [Kind] = [
        Kind(name: "good", servers: [good]),
        Kind(name: "A alone, AAAA NODATA with SOA", servers: [only(true, other: Reply([.authority]))]),
        Kind(name: "A alone, AAAA NODATA without SOA", servers: [only(true, other: Reply())]),
        Kind(name: "A alone, AAAA NXDOMAIN", servers: [only(true, other: Reply([.authority], code: 3))]),
        Kind(name: "AAAA alone, A NXDOMAIN", servers: [only(false, other: Reply([.authority], code: 3))]),
        Kind(name: "AAAA alone, A NODATA", servers: [only(false, other: Reply([.authority]))]),
        Kind(name: "A alone, AAAA FORMERR", servers: [only(true, other: Reply(code: 1))]),
        Kind(name: "A alone, AAAA NOTIMP", servers: [only(true, other: Reply(code: 4))]),
        Kind(name: "AAAA 200 ms after A", servers: [scripted { [Reply(addresses($0), delay: $0.isA ? 0 : 200)] }]),
        Kind(name: "A 200 ms after AAAA", servers: [scripted { [Reply(addresses($0), delay: $0.isA ? 200 : 0)] }]),
        Kind(
            name: "AAAA NXDOMAIN, A 300 ms later",
            servers: [
                scripted {
                    [$0.isA ? Reply([.address(v4)], delay: 300) : Reply([.authority], code: 3)]
                }
            ]),
        Kind(
            name: "A NXDOMAIN, AAAA 300 ms later",
            servers: [
                scripted {
                    [$0.isA ? Reply([.authority], code: 3) : Reply([.address(v6)], delay: 300)]
                }
            ]),
        Kind(name: "slow, 500 ms", servers: [scripted { [Reply(addresses($0), delay: 500)] }]),
        Kind(name: "slow, 1.5 s", servers: [scripted { [Reply(addresses($0), delay: 1_500)] }]),
        Kind(name: "slow, 2.5 s", servers: [scripted { [Reply(addresses($0), delay: 2_500)] }]),
        Kind(name: "slow, 900 ms, then a silent server", servers: [scripted { [Reply(addresses($0), delay: 900)] }, .silent]),
        Kind(
            name: "slow, 900 ms, then a server that fails", servers: [scripted { [Reply(addresses($0), delay: 900)] }, .code(2)]),
        Kind(name: "slow, 900 ms, then a closed port", servers: [scripted { [Reply(addresses($0), delay: 900)] }, nil]),
        Kind(
            name: "wrong id first, then the answer",
            servers: [scripted { [Reply(addresses($0), change: .otherID), Reply(addresses($0))] }]),
        Kind(
            name: "wrong question first, then the answer",
            servers: [scripted { [Reply(addresses($0), change: .otherQuestion), Reply(addresses($0))] }]),
        Kind(name: "the answer twice", servers: [scripted { [Reply(addresses($0)), Reply(addresses($0))] }]),
        Kind(name: "SERVFAIL first, then the answer", servers: [scripted { [Reply(code: 2), Reply(addresses($0), delay: 20)] }]),
        Kind(name: "question in capitals", servers: [scripted { [Reply(addresses($0), change: .upperCase)] }]),
        Kind(name: "owner in capitals", servers: [scripted { [Reply(addresses($0, of: "SERVER.EXAMPLE"))] }]),
        Kind(name: "name in capitals", servers: [good], asked: "Server.EXAMPLE"),
        Kind(name: "alias", servers: [scripted { [Reply([.alias("b.example")] + addresses($0, of: "b.example"))] }]),
        Kind(
            name: "chain of aliases in order",
            servers: [
                scripted {
                    [Reply([.alias("b.example"), .alias("c.example", of: "b.example")] + addresses($0, of: "c.example"))]
                }
            ]),
        Kind(
            name: "chain of aliases in reverse",
            servers: [
                scripted {
                    [Reply(addresses($0, of: "c.example") + [.alias("c.example", of: "b.example"), .alias("b.example")])]
                }
            ]),
        Kind(
            name: "chain of twelve aliases",
            servers: [
                scripted { question in
                    let aliases = (0..<12).map { number in
                        Reply.Record.alias("n\(number + 1).example", of: number == 0 ? nil : "n\(number).example")
                    }
                    return [Reply(aliases + addresses(question, of: "n12.example"))]
                }
            ]),
        Kind(
            name: "loop of aliases beside an address",
            servers: [
                scripted {
                    [Reply([.alias("b.example"), .alias("server.example", of: "b.example")] + addresses($0, of: "b.example"))]
                }
            ]),
        Kind(
            name: "alias in capitals",
            servers: [scripted { [Reply([.alias("B.EXAMPLE")] + addresses($0, of: "b.example"))] }]),
        Kind(
            name: "addresses of two names",
            servers: [
                scripted { [Reply(addresses($0) + [.address($0.isA ? "192.0.2.2" : "2001:db8::2", of: "other.example")])] }
            ]),
        Kind(name: "both families in each answer", servers: [always(Reply([.address(v4), .address(v6)]))]),
        Kind(
            name: "AAAA that is mapped from IPv4", servers: [scripted { [Reply([.address($0.isA ? v4 : "::ffff:192.0.2.1")])] }]),
        Kind(name: "truncated, TCP answers", servers: [.records((1...60).map { "192.0.2.\($0)" })]),
        Kind(
            name: "truncated with addresses, TCP answers",
            servers: [scripted { [Reply(addresses($0), isTruncated: !$0.isOverTCP)] }]),
        Kind(
            name: "truncated, TCP refers",
            servers: [
                scripted { [$0.isOverTCP ? Reply(isRecursive: false) : Reply(isTruncated: true)] }, good,
            ]),
        Kind(
            name: "truncated, SERVFAIL over TCP",
            servers: [
                scripted { [$0.isOverTCP ? Reply(code: 2) : Reply(isTruncated: true)] }, good,
            ]),
        Kind(name: "addresses in an answer that refuses", servers: [scripted { [Reply(addresses($0), code: 5)] }]),
        Kind(name: "addresses in an answer NXDOMAIN", servers: [scripted { [Reply(addresses($0), code: 3)] }]),
        Kind(name: "addresses without recursion", servers: [scripted { [Reply(addresses($0), isRecursive: false)] }]),
        Kind(name: "two silent servers, then a good one", servers: [.silent, .silent, good]),
        Kind(name: "two servers that fail, then a good one", servers: [.code(2), .code(5), good]),
        Kind(name: "referral, SERVFAIL, then a good one", servers: [always(Reply(isRecursive: false)), .code(2), good]),
        Kind(name: "use-vc", servers: [good], options: "options use-vc"),
        Kind(
            name: "edns0, EDNS dropped", servers: [scripted { $0.hasOptions ? [] : [Reply(addresses($0))] }],
            options: "options edns0"),
        Kind(
            name: "edns0, FORMERR for EDNS", servers: [scripted { [$0.hasOptions ? Reply(code: 1) : Reply(addresses($0))] }],
            options: "options edns0"),
        Kind(name: "single-request", servers: [good], options: "options single-request"),
        Kind(name: "rotate", servers: [good, good], options: "options rotate"),
        Kind(name: "no-aaaa", servers: [good], options: "options no-aaaa"),
        Kind(name: "trust-ad", servers: [good], options: "options trust-ad"),
    ]

    private static let search: [Kind] = [
        Kind(
            name: "second domain of the search list", servers: [.zone(["box.two.example": [v4]])],
            options: "search one.example two.example", asked: "box"),
        Kind(
            name: "search list, first domain fails", servers: [zone(["box.two.example"], failing: ["box.one.example"])],
            options: "search one.example two.example", asked: "box"),
        Kind(
            name: "search list, first domain NODATA", servers: [zone(["box.two.example"], empty: ["box.one.example"])],
            options: "search one.example two.example", asked: "box"),
        Kind(
            name: "search list, first domain refers", servers: [zone(["box.two.example"], referring: ["box.one.example"])],
            options: "search one.example two.example", asked: "box"),
        Kind(
            name: "search list, name with a dot", servers: [.zone(["a.b.one.example": [v4]])], options: "search one.example",
            asked: "a.b"),
        Kind(
            name: "search list, name with a dot that fails as it is", servers: [zone(["a.b.one.example"], failing: ["a.b"])],
            options: "search one.example", asked: "a.b"),
        Kind(
            name: "search list, name with a dot that is refused as it is",
            servers: [zone(["a.b.one.example"], refusing: ["a.b"])], options: "search one.example", asked: "a.b"),
        Kind(
            name: "search list, name with a dot that has no data", servers: [zone(["a.b.one.example"], empty: ["a.b"])],
            options: "search one.example", asked: "a.b"),
        Kind(
            name: "search list, name with a final dot", servers: [.zone(["box": [v4]])], options: "search one.example",
            asked: "box."),
        Kind(
            name: "ndots:2, name with one dot", servers: [.zone(["a.b.one.example": [v4], "a.b": ["192.0.2.2"]])],
            options: "search one.example\noptions ndots:2", asked: "a.b"),
        Kind(
            name: "ndots:2, name with one dot as it is", servers: [.zone(["a.b": [v4]])],
            options: "search one.example\noptions ndots:2", asked: "a.b"),
        Kind(
            name: "ndots:0, short name as it is", servers: [.zone(["box": [v4]])], options: "search one.example\noptions ndots:0",
            asked: "box"),
        Kind(name: "short name alone, without a list", servers: [.zone(["box": [v4]])], asked: "box"),
        Kind(
            name: "search list, families in different domains",
            servers: [
                scripted { question in
                    switch question.name {
                    case "box.one.example": [question.isA ? Reply([.authority], code: 3) : Reply([.address(v6)])]
                    case "box.two.example": [question.isA ? Reply([.address(v4)]) : Reply([.authority], code: 3)]
                    default: [Reply([.authority], code: 3)]
                    }
                }
            ], options: "search one.example two.example", asked: "box"),
    ]

    /// A server of names with the address. Names that it does not know do not exist.
    private static func zone(
        _ names: Set<String>, failing: Set<String> = [], refusing: Set<String> = [], empty: Set<String> = [],
        referring: Set<String> = []
    ) -> NameServer.Behavior {
        .scripted { question in
            if names.contains(question.name) { return [question.isA ? Reply([.address(v4)]) : Reply([.authority])] }
            if failing.contains(question.name) { return [Reply(code: 2)] }
            if refusing.contains(question.name) { return [Reply(code: 5)] }
            if empty.contains(question.name) { return [Reply([.authority])] }
            return [referring.contains(question.name) ? Reply(isRecursive: false) : Reply([.authority], code: 3)]
        }
    }

    static let kinds: [Kind] =
        doubtful.flatMap { name, behavior in
            let kind = Kind(name: name, servers: [behavior])
            return [kind, kind.beforeGood()]
        } + unusual + search

    /// What both give for a kind.
    struct Row: Sendable, CustomStringConvertible {
        var kind: String
        var glibc: Set<IPAddress> = []
        var code: Int32 = 0
        var netwatch: Set<IPAddress> = []
        var netwatchCode: Int32 = 0
        var milliseconds: (glibc: Int64, netwatch: Int64) = (0, 0)
        var failure: String?

        private static func text(_ addresses: Set<IPAddress>, _ code: Int32, _ milliseconds: Int64) -> String {
            let result = addresses.isEmpty ? "\(code)" : addresses.map { "\($0)" }.sorted().prefix(4).joined(separator: " ")
            return "\(result) (\(milliseconds) ms)"
        }

        var description: String {
            let (g, n) = (Self.text(glibc, code, milliseconds.glibc), Self.text(netwatch, netwatchCode, milliseconds.netwatch))
            return "\(kind): glibc \(g), netwatch \(n)\(failure.map { ", \($0)" } ?? "")"
        }
    }

    /// Asks both for a kind, in a network namespace of its own.
    private static func row(_ kind: Kind) throws -> Row {
        var bench = try NameBench()
        bench.usesKernelClock = true
        let addresses = (1...3).map { "127.0.0.\($0)" }
        let servers = try zip(kind.servers, addresses).compactMap { [bench] behavior, address in
            try behavior.map { try bench.serve($0, at: address) }
        }
        let text = addresses.prefix(kind.servers.count).map { "nameserver \($0)\n" }.joined() + kind.options + "\n"
        bench.configuration = ResolverConfiguration(parsing: text.utf8)
        bench.files = ["nsswitch.conf": "hosts: files dns\n", "hosts": "\n"]
        var row = Row(kind: kind.name)
        let (answer, milliseconds) = try bench.ask(kind.asked)
        (row.netwatch, row.netwatchCode, row.milliseconds.netwatch) = (Set(answer.addresses), answer.code, milliseconds)
        bench.files["resolv.conf"] = text
        let found = try bench.askGlibc(kind.asked)
        (row.glibc, row.code, row.milliseconds.glibc) = (
            Set(found.addresses), found.code, found.elapsedNanoseconds / 1_000_000
        )
        _ = servers
        return row
    }

    /// Runs kinds on threads of their own, which mostly wait.
    private static func rows(of kinds: [Kind], threads: Int) throws -> [Row] {
        // glibc waits for up to 15 s where a server is silent for one family alone, so these kinds begin first.
        let isLong = { (kind: Kind) in kind.name.contains("silent") }
        let waiting = Locked(kinds.enumerated().sorted { !isLong($0.element) && isLong($1.element) })
        let rows = Locked<[Int: Row]>([:])
        let workers = try (0..<threads).map { _ in
            try LoopThread(name: "kind", namespace: nil) { () throws(LoopError) in
                {
                    while let (number, kind) = waiting.withLock({ $0.popLast() }) {
                        var row = Row(kind: kind.name)
                        do { row = try Self.row(kind) } catch { row.failure = "\(error)" }
                        rows.withLock { $0[number] = row }
                    }
                }
            }
        }
        for worker in workers { worker.join() }
        return rows.withLock { rows in kinds.indices.compactMap { rows[$0] } }
    }

    @Test func `where getaddrinfo gives an address of a name, netwatch has one too, and no other`() throws {
        var rows = try Self.rows(of: Self.kinds, threads: 32)
        // Beside other work, an answer may be late: such a kind is asked again alone.
        for index in rows.indices where Self.isWrong(rows[index]) && Self.differences[rows[index].kind] == nil {
            rows[index] = try Self.rows(of: [Self.kinds[index]], threads: 1).first ?? rows[index]
        }
        for row in rows { print(row) }
        expectEqual(rows.count, Self.kinds.count)
        for row in rows { #expect(!Self.isWrong(row) || Self.differences[row.kind] != nil, "\(row)") }
        expectEqual(Set(rows.map(\.kind)).count, rows.count)
        expectEmpty(Set(Self.differences.keys).subtracting(rows.map(\.kind)))
    }

    /// Whether one of both has an address and the other one has none, or netwatch has one that glibc does not have.
    private static func isWrong(_ row: Row) -> Bool {
        row.failure != nil || row.glibc.isEmpty != row.netwatch.isEmpty || !row.netwatch.isSubset(of: row.glibc)
    }
}
