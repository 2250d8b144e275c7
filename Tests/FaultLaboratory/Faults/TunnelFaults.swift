import NetworkLab

extension Fault {
    static let tunnelFaults = forFamilies { family in
        let target = family.target(family.server)
        return [
            .during(
                "VPN default route, far end dead, program runs, \(family.rawValue)", target, prepare: { try $0.addTunnel() },
                expect: .unreachable("network/tunnel-silent", ["interface": "tun0"], within: ExpectedVerdict.silent)
            ) { try $0.tunnel.silence() }
            .withTun()
            // It does not know whether anything inside has answered earlier.
            .explained(.status("unreachable")),
            .during(
                "VPN's program gone, persistent tun, \(family.rawValue)", target,
                prepare: { try $0.addTunnel(persistent: true) },
                expect: .unreachable("link/no-carrier", ["interface": "tun0"], within: ExpectedVerdict.atOnce)
            ) { try $0.tunnel.end() }
            .withTun(),
        ]
    }
}
