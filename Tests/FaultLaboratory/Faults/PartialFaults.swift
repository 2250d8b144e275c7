import NetworkLab

extension Fault {
    /// Faults that leave the target a family, an address or an uplink.
    static let partialFaults: [Fault] = {
        let (v4, v6) = (FaultNetwork.Family.ipv4, FaultNetwork.Family.ipv6)
        let both = NameServer.Behavior.records([v4.server, v6.server])
        func named(
            _ name: String, _ behavior: NameServer.Behavior, _ expected: ExpectedVerdict,
            _ make: @escaping @Sendable (FaultNetwork) throws -> Void
        ) -> Fault {
            Fault.during(name, target, prepare: { try $0.resolver(behavior) }, expect: expected, make: make)
                .nameServers([FaultNetwork.nameServers[0]])
        }
        return [
            named(
                "IPv6 dead (1/0), IPv4 works", both,
                .degraded("network/net-unreachable", ["hop": v6.gateway()], within: ExpectedVerdict.silent)
            ) { try $0.router.ip("-6 route del \(v6.network) dev rs0") },
            named(
                "IPv6 silent, IPv4 works", both,
                .degraded("tcp/timeout", ["first_hop": "answered"], within: ExpectedVerdict.silent * 2)
            ) { try $0.site.filter(.input, "ip6 daddr \(v6.server) tcp dport \(FaultNetwork.port) drop") },
            named(
                "IPv6's gateway dies while REACHABLE, IPv4 works", both,
                .degraded("neighbor/gateway-silent", ["gateway": v6.gateway()], within: ExpectedVerdict.silent * 2)
            ) { try $0.router.filterArrivals(on: "rv0", "ether type ip6 drop") }
            .explained(.none),
            named(
                "IPv4 refused, IPv6 works", both, .degraded("tcp/refused", within: ExpectedVerdict.silent)
            ) { try $0.site.filter(.input, "ip daddr \(v4.server) tcp dport \(FaultNetwork.port) reject with tcp reset") },
            named(
                "one of three addresses refuses", .records([v4.server] + FaultNetwork.nameServers),
                .degraded("tcp/refused", within: ExpectedVerdict.silent)
            ) {
                try $0.site.filter(
                    .input, "ip daddr \(FaultNetwork.nameServers[1]) tcp dport \(FaultNetwork.port) reject with tcp reset")
            },
            // As localhost in a hosts file, and a service that listens on 127.0.0.1 alone.
            Fault.fromStart("one loopback address refuses, the other works", target, expect: .up(within: ExpectedVerdict.lookups))
            {
                try $0.resolver(.records([v4.loopback, v6.loopback]))
                $0.hold(try $0.client.serve(at: v4.loopback, port: FaultNetwork.port))
            }
            .nameServers([FaultNetwork.nameServers[0]]),
            named("no IPv6 route on this machine", both, .up(within: ExpectedVerdict.answered)) {
                try $0.client.ip("-6 route del default")
            },
        ]
            + forFamilies { family in
                [
                    .during(
                        "uplink A set down, B takes over, \(family.rawValue)", family.target(family.server),
                        prepare: { try $0.addSecondUplink() },
                        expect: .up(within: .milliseconds(300), interface: "v1")
                    ) { try $0.client.ip("link set v0 down") }
                ]
            }
    }()
}
