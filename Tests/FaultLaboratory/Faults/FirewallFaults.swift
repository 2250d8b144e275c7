import NetworkLab

extension Fault {
    static let firewallFaults = forFamilies { family in
        let target = family.target(family.server)
        let ip = family == .ipv4 ? "ip" : "ip6"
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
                expect: .unreachable("firewall/local-drop", ["scope": "address"], within: ExpectedVerdict.silent)
            ) { try $0.client.filter(.output, "\(ip) daddr \(family.server) drop") },
        ]
    }
}
