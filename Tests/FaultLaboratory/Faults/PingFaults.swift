import NetworkLab

extension Fault {
    static let pingFaults = forFamilies { family in
        let target = family.ping(family.server)
        func row(_ name: String, _ expected: ExpectedVerdict, _ make: @escaping @Sendable (FaultNetwork) throws -> Void) -> Fault
        {
            // The program has no capability.
            .during(
                "ping: \(name), \(family.rawValue)", target,
                prepare: { try $0.client.set("ipv4.ping_group_range", "0 2147483647") }, expect: expected, make: make)
        }
        return [
            row(
                "server answers none, its host is alive",
                .down("network/no-echo", ["host": "answered"], within: ExpectedVerdict.silent)
            ) { try $0.site.filter(.input, "\(family.echoRequest) drop") },
            row(
                "server's host off, router reports it",
                .unreachable("network/host-unreachable", ["hop": family.gateway()], within: ExpectedVerdict.silent)
            ) { try switchOff($0) },
            row(
                "server's host off, nobody reports it, gateway alive",
                .unreachable("network/upstream-silent", ["first_hop": "answered"], within: ExpectedVerdict.silent)
            ) { network in
                try silenceReports(network.router)
                try network.site.silence("s0")
            },
            row(
                "router prohibits them",
                .unreachable("network/admin-prohibited", ["hop": family.gateway()], within: ExpectedVerdict.answered)
            ) {
                let type = family == .ipv4 ? "icmp type admin-prohibited" : "icmpv6 type admin-prohibited"
                try $0.router.filter(.forward, "\(family.echoRequest) reject with \(type)")
            },
            .fromStart(
                "ping: this process may send none, \(family.rawValue)", target,
                expect: .unreachable("local/not-permitted", within: ExpectedVerdict.atOnce)
            ) { try $0.client.set("ipv4.ping_group_range", "1 0") },
        ]
            // The kernel does not tell an unprivileged process that its filter has dropped a ping of IPv6.
            + (family == .ipv4
                ? [
                    row(
                        "this machine's packet filter refuses them",
                        .unreachable("firewall/local-reject", within: ExpectedVerdict.answered)
                    ) {
                        try $0.client.filter(.output, "\(family.echoRequest) drop")
                    }
                ] : [])
    }
}
