import NetworkLab

extension Fault {
    static let target = "\(FaultNetwork.name):\(FaultNetwork.port)"
    private static let resolver = FaultNetwork.nameServers[0]

    /// A row with one name server, which has the fault before the program starts.
    private static func lookup(
        _ name: String, _ behavior: NameServer.Behavior?, expect expected: ExpectedVerdict,
        prepare: @escaping @Sendable (FaultNetwork) throws -> Void = { _ in }
    ) -> Fault {
        .fromStart(name, target, expect: expected) { network in
            if let behavior { try network.resolver(behavior) }
            try prepare(network)
        }
        .nameServers([resolver])
    }

    private static let own = FaultNetwork.nameServers[1]

    /// A row in which the target's own name server has a fault, and that of the client works.
    private static func ownLookup(
        _ name: String, _ behavior: NameServer.Behavior, expect expected: ExpectedVerdict
    ) -> Fault {
        Fault.fromStart(name, target, expect: expected) { network in
            try network.resolver(.records([FaultNetwork.Family.ipv4.server]), 0)
            try network.resolver(behavior, 1)
        }
        .nameServers([resolver]).options(["--resolver", own])
    }

    static let nameServerFaults: [Fault] = {
        let (v4, v6) = (FaultNetwork.Family.ipv4, FaultNetwork.Family.ipv6)
        let works = NameServer.Behavior.records([v4.server])
        let refers = NameServer.Behavior.scripted { _ in [.init([.nameServer("ns.example")], isRecursive: false)] }
        func unreachable(_ cause: String, _ evidence: [String: String] = [:]) -> ExpectedVerdict {
            .unreachable(
                cause, evidence, within: cause == "dns/resolver-silent" ? ExpectedVerdict.silent : ExpectedVerdict.lookups)
        }
        return [
            .fromStart(
                "no resolver configured", target,
                expect: .unreachable("dns/no-resolver", within: ExpectedVerdict.lookups)
            ) { _ in },
            lookup(
                "resolver answers AAAA with NXDOMAIN and A with the address", .missingAAAA(v4.server),
                expect: .up(within: ExpectedVerdict.lookups)),
            // glibc asks 127.0.0.1 then.
            .fromStart(
                "no resolver configured, one at 127.0.0.1 answers", target, expect: .up(within: ExpectedVerdict.lookups)
            ) { $0.hold(try NameServer(works, in: $0.client.path, address: "127.0.0.1")) },
            .fromStart(
                "resolver 0.0.0.0, one at 127.0.0.1 answers", target, expect: .up(within: ExpectedVerdict.lookups)
            ) { $0.hold(try NameServer(works, in: $0.client.path, address: "127.0.0.1")) }
            .nameServers(["0.0.0.0"]),
            // The host limits its ICMP messages, so that some of the questions of a lookup are silent.
            lookup(
                "resolver's port closed", nil,
                expect: .unreachable("dns/resolver-refused", ["resolver": resolver], within: ExpectedVerdict.lookups * 2)),
            lookup(
                "resolver answers REFUSED", .code(5),
                expect: unreachable("dns/resolver-refused", ["rcode": "REFUSED", "resolver": resolver])),
            ownLookup("target's own resolver silent", .silent, expect: unreachable("dns/resolver-silent", ["resolver": own])),
            ownLookup(
                "target's own resolver answers REFUSED", .code(5),
                expect: unreachable("dns/resolver-refused", ["rcode": "REFUSED", "resolver": own])),
            ownLookup(
                "target's own resolver answers NXDOMAIN", .code(3),
                expect: .down("dns/name-not-found", ["rcode": "NXDOMAIN", "resolver": own], within: ExpectedVerdict.lookups)),
            lookup("resolver silent", .silent, expect: unreachable("dns/resolver-silent", ["resolver": resolver])),
            lookup(
                "resolver answers SERVFAIL", .code(2),
                expect: unreachable("dns/server-failure", ["rcode": "SERVFAIL", "resolver": resolver])),
            Fault.fromStart(
                "first of two resolvers dead", target, expect: .up(within: ExpectedVerdict.lookups)
            ) { network in
                try network.resolver(.silent, 0)
                try network.resolver(works, 1)
            }
            .nameServers(FaultNetwork.nameServers),
            Fault.fromStart(
                "first of two resolvers only refers to others", target, expect: .up(within: ExpectedVerdict.lookups)
            ) { network in
                try network.resolver(refers, 0)
                try network.resolver(works, 1)
            }
            .nameServers(FaultNetwork.nameServers),
            lookup(
                "resolver only refers to others", refers,
                expect: unreachable("dns/server-failure", ["rcode": "NOERROR", "referral": "1", "resolver": resolver])),
            lookup(
                "port 53 dropped locally", works,
                expect: .unreachable("firewall/local-drop", ["scope": "port"], within: ExpectedVerdict.lookups)
            ) {
                try $0.client.filter(.output, "udp dport 53 drop", "tcp dport 53 drop")
            },
            lookup(
                "port 53 rejected locally", works,
                expect: .unreachable("firewall/local-reject", within: ExpectedVerdict.lookups)
            ) {
                try $0.client.filter(.output, "udp dport 53 reject", "tcp dport 53 reject")
            },
            Fault.during(
                "server comes back with another address, TTL 600", target,
                prepare: { try $0.resolver(.records([v4.server], ttl: 600)) },
                expect: .up(within: ExpectedVerdict.answered).steady(for: 5),
                make: { network in
                    for server in network.held(NameServer.self) {
                        server.setBehavior(.records([FaultNetwork.nameServers[1]], ttl: 600))
                    }
                    try network.site.filter(
                        .input, "ip daddr \(v4.server) tcp dport \(FaultNetwork.port) reject with tcp reset")
                }
            )
            .nameServers([resolver]),
            Fault.during(
                "gateway dies while REACHABLE, target is a name", target,
                // The name is resolved again before each probe.
                prepare: { try $0.resolver(.records([v4.server], ttl: 0)) },
                expect: .unreachable(
                    "neighbor/gateway-silent", ["gateway": v4.gateway(), "resolver": resolver], within: ExpectedVerdict.silent
                ).steady(for: 3),
                make: { try silenceGateway($0, v4) }
            )
            .nameServers([resolver]),
            lookup(
                "gateway silent from the start, target is a name", works,
                expect: .unreachable(
                    "neighbor/gateway-silent", ["gateway": v4.gateway(), "resolver": resolver], within: ExpectedVerdict.silent)
            ) { try $0.router.ip("addr del \(v4.gateway())/24 dev rv0") },
            lookup(
                "resolver's host off, gateway alive", nil,
                expect: .unreachable(
                    "dns/resolver-silent", ["first_hop": "answered", "resolver": resolver], within: ExpectedVerdict.silent)
            ) {
                try $0.site.silence("s0"); try $0.router.filter(.output, "icmp type destination-unreachable icmp code 1 drop")
            },
            lookup(
                "NXDOMAIN", .code(3),
                expect: .down("dns/name-not-found", ["rcode": "NXDOMAIN", "resolver": resolver], within: ExpectedVerdict.lookups)),
            lookup(
                "NXDOMAIN that names no authority", .bareCode(3),
                expect: .unreachable(
                    "dns/name-not-found", ["authoritative": "0", "resolver": resolver], within: ExpectedVerdict.lookups)),
            lookup("A answers, AAAA never", .onlyA(v4.server), expect: .up(within: .milliseconds(300))),
            lookup("AAAA alone", .records([v6.server]), expect: .up(within: .milliseconds(300))),
        ]
    }()
}
