import Expectations
import Testing

@testable import Reachability

/// The cause of a lookup, as a function of the exchanges with the name servers.
@Suite struct LookupFailureTests {
    private static let first = ResolverConfiguration.Nameserver(IPAddress(v4: 0xc000_0235))
    private static let second = ResolverConfiguration.Nameserver(IPAddress(v4: 0xc000_0236))

    private func exchange(
        with server: ResolverConfiguration.Nameserver = first, _ number: SystemErrorNumber, call: String = "receive",
        icmp: (UInt8, UInt8)? = nil, from: String? = nil
    ) -> NameServerExchange {
        let reporter = icmp.map {
            ProbeResult.Reporter(origin: 2, type: $0.0, code: $0.1, offender: from.flatMap { IPAddress($0) })
        }
        return NameServerExchange(server, .failed, errno: number.rawValue, call: call, reporter: reporter)
    }

    private func cause(_ v4: FamilyLookup?, _ v6: FamilyLookup? = nil, path: Cause? = nil) -> Cause {
        var host = Transcript.Host()
        host.pathCause = path
        let answer = LookupAnswer(id: 1, code: NameCode.tryAgain, answeredBy: .dns, v4: v4, v6: v6)
        return CauseOfLookup.cause(answer, name: "a.example", elapsed: 7_000_000, in: host.localState)
    }

    private func name(_ cause: Cause) -> String {
        "\(cause.accusesServer ? "down" : "unreachable") \(cause.layer.rawValue)/\(cause.code.rawValue)"
    }

    private func failed(_ exchanges: NameServerExchange...) -> FamilyLookup { FamilyLookup(.failed, exchanges: exchanges) }

    @Test func `NXDOMAIN of both families is that of the name, of one family it may be a server's fault`() {
        let missing = FamilyLookup(.nameNotFound, exchanges: [NameServerExchange(Self.first, .answered, rcode: 3)])
        expectEqual(name(self.cause(missing, FamilyLookup(.unanswered))), "unreachable dns/resolver-silent")
        expectEqual(name(self.cause(missing, FamilyLookup(.noData))), "down dns/no-address-for-family")
        let refused = failed(NameServerExchange(Self.first, .answered, rcode: 5))
        expectEqual(name(self.cause(missing, refused)), "unreachable dns/resolver-refused")
        let cause = cause(missing, FamilyLookup(.nameNotFound))
        expectEqual(name(cause), "down dns/name-not-found")
        expectEqual(cause.detail, "there is no name a.example")
        expectEqual(
            cause.evidence,
            [
                "name": .text("a.example"), "elapsed_ms": .number(7), "answered_by": .text("dns"), "rcode": .text("NXDOMAIN"),
                "resolver": .text("192.0.2.53"),
            ])
    }

    @Test func `a missing family is a missing address only if no other family failed`() {
        expectEqual(name(cause(FamilyLookup(.noData), FamilyLookup(.noData))), "down dns/no-address-for-family")
        let silent = failed(NameServerExchange(Self.first, .silent))
        expectEqual(name(cause(FamilyLookup(.noData), silent)), "unreachable dns/resolver-silent")
        expectEqual(name(cause(FamilyLookup(.noData), FamilyLookup(.unanswered))), "unreachable dns/resolver-silent")
    }

    @Test func `a loop of aliases is named`() {
        func detail(_ names: String...) -> String {
            var exchange = NameServerExchange(Self.first, .answered, rcode: 0)
            exchange.aliasLoop = names
            return cause(FamilyLookup(.noData), FamilyLookup(.noData, exchanges: [exchange])).detail
        }
        expectEqual(
            detail("a.example", "b", "c"),
            "a.example has no address: its aliases (CNAME) form a loop, from a.example to c and back")
        expectEqual(detail("b"), "a.example has no address: b is an alias (CNAME) of itself")
    }

    @Test(arguments: [
        (UInt8(1), "dns/server-failure", "FORMERR"), (2, "dns/server-failure", "SERVFAIL"), (4, "dns/server-failure", "NOTIMP"),
        (5, "dns/resolver-refused", "REFUSED"), (9, "dns/server-failure", "NOTAUTH"), (15, "dns/server-failure", "RCODE15"),
    ])
    func `a response code decides between failure and refusal`(rcode: UInt8, expected: String, text: String) {
        let cause = cause(failed(NameServerExchange(Self.first, .answered, rcode: rcode)))
        expectEqual(name(cause), "unreachable \(expected)")
        expectEqual(cause.evidence["rcode"], .text(text))
    }

    @Test func `a server that only refers to others fails, and says nothing about the name`() {
        var exchange = NameServerExchange(Self.first, .answered, rcode: 0)
        exchange.isReferral = true
        let cause = cause(failed(exchange))
        expectEqual(name(cause), "unreachable dns/server-failure")
        expectEqual(cause.evidence["referral"], .flag(true))
        #expect(cause.detail.hasSuffix("refers to other servers instead of resolving a.example"), "\(cause.detail)")
        // The server that answered after it is the one in evidence.
        let second = NameServerExchange(.init(IPAddress(v4: 0x7f00_0002)), .answered, rcode: 0)
        expectEqual(NameQuestionResult(id: 1, .addresses, exchanges: [exchange, second]).server, second.server)
    }

    @Test func `the exchange that got furthest counts`() {
        let silent = NameServerExchange(Self.first, .silent)
        let failing = NameServerExchange(Self.second, .answered, rcode: 2)
        let closed = exchange(with: Self.second, .connectionRefused, icmp: (3, 3), from: "192.0.2.54")
        let dropped = exchange(with: Self.second, .notPermitted, call: "send")
        let limit = exchange(with: Self.second, .tooManyFiles, call: "socket")
        expectEqual(name(cause(failed(silent, failing))), "unreachable dns/server-failure")
        expectEqual(name(cause(failed(silent), failed(closed))), "unreachable dns/resolver-refused")
        expectEqual(name(cause(failed(closed, failing))), "unreachable dns/server-failure")
        expectEqual(name(cause(failed(dropped, silent))), "unreachable dns/resolver-silent")
        expectEqual(name(cause(failed(limit, dropped))), "unreachable firewall/local-drop")
        expectEqual(name(cause(failed(limit))), "unreachable local/file-limit")
    }

    @Test(
        arguments: [
            (3, 3, "192.0.2.53", "dns/resolver-refused"), (3, 3, "198.51.100.1", "network/port-filtered"),
            (3, 13, "198.51.100.1", "network/admin-prohibited"), (3, 13, "192.0.2.53", "network/admin-prohibited"),
            (3, 1, "198.51.100.1", "network/host-unreachable"), (3, 0, "198.51.100.1", "network/net-unreachable"),
            (11, 0, "198.51.100.1", "network/ttl-exceeded"), (3, 3, "10.0.0.2", "firewall/local-reject"),
            (3, 13, "10.0.0.2", "firewall/local-reject"), (3, 1, "10.0.0.2", "dns/resolver-silent"),
        ] as [(UInt8, UInt8, String, String)])
    func `the sender of an ICMP message decides who refuses`(type: UInt8, code: UInt8, sender: String, expected: String) {
        let cause = cause(failed(exchange(.hostUnreachable, icmp: (type, code), from: sender)))
        expectEqual(name(cause), "unreachable \(expected)")
        if cause.layer == .network { expectEqual(cause.evidence["hop"], .text(sender)) }
    }

    @Test func `a closed port of a name server on this machine is no filter`() {
        let own = ResolverConfiguration.Nameserver(IPAddress(v4: 0x7f00_0035))
        let closed = exchange(with: own, .connectionRefused, icmp: (3, 3), from: "127.0.0.53")
        expectEqual(name(cause(failed(closed))), "unreachable dns/resolver-refused")
    }

    @Test(arguments: [
        (SystemErrorNumber.networkUnreachable, "route/no-route"), (.hostUnreachable, "route/route-unreachable"),
        (.accessDenied, "route/route-prohibited"), (.invalid, "route/route-blackhole"), (.networkDown, "link/interface-down"),
        (.addressNotAvailable, "route/no-route"), (.outOfMemory, "local/file-limit"), (.inputOutput, "local/source-unavailable"),
    ])
    func `the kernel's refusal is the cause of the route to the name server`(number: SystemErrorNumber, expected: String) {
        let cause = cause(failed(exchange(number, call: "connect")))
        expectEqual(name(cause), "unreachable \(expected)")
        expectEqual(cause.evidence["errno"], .text(number.name))
    }

    @Test func `without a path, silence and a missing route have the path's cause, an answer has its own`() {
        let path = Cause(.link, .noCarrier, detail: "eth0 has no carrier")
        expectEqual(cause(failed(NameServerExchange(Self.first, .silent)), path: path), path)
        expectEqual(cause(failed(exchange(.networkUnreachable, call: "connect")), path: path), path)
        let failing = failed(NameServerExchange(Self.first, .answered, rcode: 2))
        expectEqual(name(cause(failing, path: path)), "unreachable dns/server-failure")
    }

    @Test func `without a configured name server, refusal and silence of 127_0_0_1 are no-resolver, its answers are its own`() {
        let own = ResolverConfiguration.Nameserver(IPAddress(v4: 0x7f00_0001))
        func cause(_ exchange: NameServerExchange, path: Cause? = nil) -> Cause {
            var host = Transcript.Host()
            (host.hasResolver, host.pathCause) = (false, path)
            let answer = LookupAnswer(id: 1, code: NameCode.tryAgain, answeredBy: .dns, v4: failed(exchange))
            return CauseOfLookup.cause(answer, name: "a.example", elapsed: 7_000_000, in: host.localState)
        }
        let refused = cause(exchange(with: own, .connectionRefused, icmp: (3, 3), from: "127.0.0.1"))
        expectEqual(name(refused), "unreachable dns/no-resolver")
        expectEqual(
            refused.evidence,
            [
                "name": .text("a.example"), "elapsed_ms": .number(7), "resolver": .text("127.0.0.1"),
                "errno": .text("ECONNREFUSED"),
            ])
        expectEqual(
            refused.detail, "no name server is configured to resolve a.example, and 127.0.0.1 does not answer")
        expectEqual(name(cause(NameServerExchange(own, .silent))), "unreachable dns/no-resolver")
        // lo is down.
        expectEqual(name(cause(exchange(with: own, .networkUnreachable, call: "connect"))), "unreachable dns/no-resolver")
        expectEqual(name(cause(NameServerExchange(own, .answered, rcode: 2))), "unreachable dns/server-failure")
        expectEqual(name(cause(NameServerExchange(own, .answered, rcode: 5))), "unreachable dns/resolver-refused")
        expectEqual(name(cause(NameServerExchange(own, .invalid))), "unreachable dns/server-failure")
        expectEqual(name(cause(exchange(with: own, .tooManyFiles, call: "socket"))), "unreachable local/file-limit")
        let path = Cause(.link, .noCarrier, detail: "eth0 has no carrier")
        expectEqual(cause(NameServerExchange(own, .silent), path: path), path)
    }

    @Test func `nothing asked is no resolver, and a name that only the hosts file could have is not the server's fault`() {
        var host = Transcript.Host()
        let nobody = LookupAnswer(id: 1, code: NameCode.tryAgain, answeredBy: .notAsked)
        let first = CauseOfLookup.cause(nobody, name: "a", elapsed: 0, in: host.localState)
        expectEqual(name(first), "unreachable dns/no-resolver")
        expectNil(first.evidence["answered_by"])
        host.hasResolver = false
        let missing = LookupAnswer(id: 1, code: NameCode.nameNotFound, answeredBy: .hosts)
        let second = CauseOfLookup.cause(missing, name: "a", elapsed: 0, in: host.localState)
        expectEqual(name(second), "unreachable dns/name-not-found")
    }
}
