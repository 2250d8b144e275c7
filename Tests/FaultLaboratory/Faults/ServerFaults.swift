import NetworkLab

extension Fault {
    static let serverFaults = forFamilies { family in
        let target = family.target(family.server)
        return [
            .during("port closed, \(family.rawValue)", target, expect: .down("tcp/refused")) { $0.closeServer() },
            .during(
                "server drops the SYN, gateway alive, \(family.rawValue)", target,
                expect: .down("tcp/timeout", within: ExpectedVerdict.silent)
            ) { try $0.site.filter(.input, "tcp dport \(FaultNetwork.port) drop") },
            .during(
                "this machine drops one TCP port, \(family.rawValue)", target,
                expect: .down("tcp/timeout", within: ExpectedVerdict.silent)
            ) { try $0.client.filter(.output, "tcp dport \(FaultNetwork.port) drop") },
            .during(
                "ICMP from the server's own firewall, \(family.rawValue)", target,
                expect: .down("network/port-filtered", ["hop": family.server])
            ) { try $0.site.filter(.input, "tcp dport \(FaultNetwork.port) reject") },
        ]
    }
}
