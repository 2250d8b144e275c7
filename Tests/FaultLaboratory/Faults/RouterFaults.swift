import NetworkLab

extension Fault {
    static let routerFaults: [Fault] =
        [
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
                    expect: .unreachable(
                        "network/net-unreachable", ["hop": family.gateway()], within: ExpectedVerdict.answered)
                ) { try $0.router.ip("\(family.option) route del \(family.network) dev rs0") },
                .during(
                    "server's host off, router reports it, \(family.rawValue)", family.target(family.server),
                    expect: .unreachable("network/host-unreachable", ["hop": family.gateway()], within: ExpectedVerdict.silent)
                ) {
                    try $0.site.silence("s0")
                    // The router would send to the last known address for half a minute.
                    try $0.router.ip("neigh flush dev rs0")
                },
            ]
        }

    /// A row for a router that rejects what it should forward.
    private static func rejection(_ family: FaultNetwork.Family, _ message: String, _ type: String, _ code: String) -> Fault {
        .during(
            "router: \(code == "port-filtered" ? "port unreachable" : "prohibited") (\(message))", family.target(family.server),
            expect: .unreachable("network/\(code)", ["hop": family.gateway()], within: ExpectedVerdict.answered)
        ) { try $0.router.filter(.forward, "tcp dport \(FaultNetwork.port) reject with \(type)") }
    }
}
