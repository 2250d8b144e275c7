import NetworkLab

extension Fault {
    static let routerFaults: [Fault] =
        [
            rarelyReported("iifname rv0", "router: prohibited (3/13), one message a second for 12 targets"),
            rarelyReported(
                "iifname rv0 tcp dport \(FaultNetwork.port)",
                "router: one port prohibited (3/13), one message a second for 12 targets"),
            contradicted,
            switchedOff(count: 3),
            switchedOff(count: 12),
            rejection(.ipv4, "3/13", "icmp type admin-prohibited", "admin-prohibited"),
            rejection(.ipv4, "3/10", "icmp type host-prohibited", "admin-prohibited"),
            rejection(.ipv4, "3/9", "icmp type net-prohibited", "admin-prohibited"),
            rejection(.ipv6, "1/1", "icmpv6 type admin-prohibited", "admin-prohibited"),
            rejection(.ipv4, "3/3", "icmp type port-unreachable", "port-filtered"),
            rejection(.ipv6, "1/4", "icmpv6 type port-unreachable", "port-filtered"),
        ]
        + forFamilies { family in
            [
                .during(
                    "router has no route (\(family == .ipv4 ? "3/0" : "1/0"))", family.target(family.server),
                    // Linux sends such messages at most every two seconds, and none to a client that sends more often.
                    expect: .unreachable(
                        "network/net-unreachable", ["hop": family.gateway()], within: ExpectedVerdict.answered
                    ).steady(for: 45)
                ) { try $0.router.ip("\(family.option) route del \(family.network) dev rs0") },
                .during(
                    "server's host off, router reports it, \(family.rawValue)", family.target(family.server),
                    expect: .unreachable("network/host-unreachable", ["hop": family.gateway()], within: ExpectedVerdict.silent)
                ) { try switchOff($0) },
            ]
        }

    /// A row for a router that limits its ICMP messages so much that most targets get none.
    private static func rarelyReported(_ packets: String, _ name: String) -> Fault {
        let addresses = (100...111).map { "203.0.113.\($0)" }
        return Fault(
            name: name,
            targets: addresses.map { FaultNetwork.Family.ipv4.target($0) },
            prepare: { try $0.site.ipBatch(addresses.map { "addr add \($0)/24 dev s0" }) },
            make: { network, _ in
                try network.router.filter(
                    .forward, "\(packets) limit rate 1/second burst 1 packets reject with icmp type admin-prohibited",
                    "\(packets) drop")
            },
            expected: .unreachable(
                "network/admin-prohibited", ["hop": FaultNetwork.Family.ipv4.gateway()], within: ExpectedVerdict.silent
            ).steady(for: 5))
    }

    /// Takes the servers off their network. The router reports them after three questions for their link-layer addresses.
    static func switchOff(_ network: FaultNetwork) throws {
        // At the kernel's interval of 1 s, the report would come at the end of the probe of `why`, which on a busy machine misses it.
        for family in ["ipv4", "ipv6"] { try network.router.set("\(family).neigh.rs0.retrans_time_ms", "500") }
        try network.site.silence("s0")
        // The router would send to the last known address for half a minute.
        try network.router.ip("neigh flush dev rs0")
    }

    /// A row for servers that lose their power at the same time. The router reports each, but at most one a second to the client.
    private static func switchedOff(count: Int) -> Fault {
        let addresses = (100..<100 + count).map { "203.0.113.\($0)" }
        return Fault(
            name: "hosts of \(count) servers off, router reports them",
            targets: addresses.map { FaultNetwork.Family.ipv4.target($0) },
            prepare: { try $0.site.ipBatch(addresses.map { "addr add \($0)/24 dev s0" }) },
            make: { network, _ in try switchOff(network) },
            expected: .unreachable(
                "network/host-unreachable", ["hop": FaultNetwork.Family.ipv4.gateway()], within: ExpectedVerdict.silent
            ).steady(for: 5))
    }

    /// A row for a silent server in a network of which the router prohibits one server, and another answers.
    private static let contradicted: Fault = {
        let addresses = (100...102).map { "203.0.113.\($0)" }
        let targets = addresses.map { FaultNetwork.Family.ipv4.target($0) }
        return .during(
            "server silent, router prohibits another one (3/13), a third one answers", targets[0],
            prepare: { network in
                try network.site.ipBatch(addresses.map { "addr add \($0)/24 dev s0" })
                try network.router.filter(.forward, "ip daddr \(addresses[1]) reject with icmp type admin-prohibited")
            },
            expect: .down("tcp/timeout", ["first_hop": "answered"], within: ExpectedVerdict.silent).steady(for: 3)
        ) { try $0.site.filter(.input, "ip daddr \(addresses[0]) tcp dport \(FaultNetwork.port) drop") }
        .beside(targets[1], targets[2])
    }()

    /// A row for a router that rejects what it should forward.
    private static func rejection(_ family: FaultNetwork.Family, _ message: String, _ type: String, _ code: String) -> Fault {
        .during(
            "router: \(code == "port-filtered" ? "port unreachable" : "prohibited") (\(message))", family.target(family.server),
            expect: .unreachable("network/\(code)", ["hop": family.gateway()], within: ExpectedVerdict.answered)
        ) { try $0.router.filter(.forward, "tcp dport \(FaultNetwork.port) reject with \(type)") }
    }
}
