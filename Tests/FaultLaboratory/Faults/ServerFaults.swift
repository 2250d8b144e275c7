import NetworkLab

extension Fault {
    static let serverFaults = forFamilies { family in
        let target = family.target(family.server)
        let timeout = ExpectedVerdict.down("tcp/timeout", ["first_hop": "answered"], within: ExpectedVerdict.silent)
        return [
            .during("port closed, \(family.rawValue)", target, expect: .down("tcp/refused")) { $0.closeServer() },
            .during(
                "server drops the SYN, gateway alive, \(family.rawValue)", target,
                expect: timeout
            ) { try $0.site.filter(.input, "tcp dport \(FaultNetwork.port) drop") },
            .during(
                "server's host off, nobody reports it, gateway alive, \(family.rawValue)", target, expect: timeout
            ) {
                try $0.router.filter(
                    .output, "icmp type destination-unreachable icmp code 1 drop",
                    "icmpv6 type destination-unreachable icmpv6 code 3 drop")
                try $0.site.silence("s0")
            },
            .during(
                "this machine drops one TCP port, \(family.rawValue)", target,
                expect: timeout
            ) { try $0.client.filter(.output, "tcp dport \(FaultNetwork.port) drop") },
            .during(
                "ICMP from the server's own firewall, \(family.rawValue)", target,
                expect: .down("network/port-filtered", ["hop": family.server])
            ) { try $0.site.filter(.input, "tcp dport \(FaultNetwork.port) reject") },
        ]
    }
}
