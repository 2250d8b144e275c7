import NetworkLab

extension Fault {
    static let firewallFaults = filterFaults + [reversePathFault]

    /// The route to the server leads over another interface than its answers.
    private static let reversePathFault = Fault.during(
        "strict rp_filter drops the answers", FaultNetwork.Family.ipv4.target(FaultNetwork.Family.ipv4.server),
        prepare: {
            try $0.addSecondUplink()
            for scope in ["all", "v0", "v1"] { try $0.client.set("ipv4.conf.\(scope).rp_filter", "1") }
        },
        expect: .unreachable("firewall/local-drop", ["scope": "port", "place": "rp_filter"], within: ExpectedVerdict.silent)
    ) {
        let family = FaultNetwork.Family.ipv4
        try $0.client.ip("route add \(family.server) via \(family.gateway(2)) dev v1 src \(family.client())")
    }
    .explained(.none)

    private static let filterFaults = forFamilies { family in
        let target = family.target(family.server)
        let ip = family.protocolName
        let isDropped = ExpectedVerdict.unreachable(
            "firewall/local-drop", ["scope": "address"], within: ExpectedVerdict.silent)
        @Sendable func serve(_ network: FaultNetwork) throws { try network.hold(network.client.serve(port: FaultNetwork.port)) }
        return [
            .during(
                "this machine's firewall rejects, \(family.rawValue)", target,
                expect: .unreachable("firewall/local-reject", within: ExpectedVerdict.answered)
            ) { try $0.client.filter(.output, "\(ip) daddr \(family.server) tcp dport \(FaultNetwork.port) reject") },
            .during(
                "this machine's firewall rejects as prohibited, \(family.rawValue)", target,
                expect: .unreachable("firewall/local-reject", within: ExpectedVerdict.answered)
            ) { try $0.client.filter(.output, "\(ip) daddr \(family.server) reject with icmpx admin-prohibited") },
            .during(
                "this machine drops all to the address, \(family.rawValue)", target,
                expect: isDropped
            ) { try $0.client.filter(.output, "\(ip) daddr \(family.server) drop") },
            .during(
                "this machine drops what it sends to its own address, \(family.rawValue)", family.target(family.client()),
                prepare: serve, expect: isDropped
            ) { try $0.client.filter(.output, "\(ip) daddr \(family.client()) drop") },
            .during(
                "this machine drops what arrives at its own address, \(family.rawValue)", family.target(family.client()),
                prepare: serve, expect: isDropped
            ) { try $0.client.filter(.input, "\(ip) daddr \(family.client()) drop") },
            .during(
                "this machine drops all on lo, \(family.rawValue)", family.target(family.loopback),
                prepare: serve, expect: isDropped
            ) { try $0.client.filter(.input, "iifname lo drop") },
        ]
    }
}
