import NetworkLab

extension Fault {
    static let addressFaults: [Fault] = {
        let (v4, v6) = (FaultNetwork.Family.ipv4, FaultNetwork.Family.ipv6)
        let noAddress = ExpectedVerdict.unreachable("address/no-address", within: ExpectedVerdict.atOnce)
        return [
            .during("address removed, IPv4 target", v4.target(v4.server), expect: noAddress) {
                try $0.client.ip("addr del 10.1.0.2/24 dev v0")
            },
            .during("address removed, device route stays, IPv4", v4.target(v4.server), expect: noAddress) {
                // The kernel removes the routes of the interface with its last address.
                try $0.client.ipBatch(["addr del 10.1.0.2/24 dev v0", "route add default dev v0"])
            },
            .during("address removed, route stays, IPv6", v6.target(v6.server), expect: noAddress) {
                try $0.client.ip("addr del 2001:db8:1::2/64 dev v0")
            },
            .during(
                "tentative address, IPv6", v6.target(v6.server),
                prepare: { network in
                    try network.client.set("ipv6.conf.v0.accept_dad", "1")
                    // The kernel asks once a second whether another host has the address.
                    try network.client.set("ipv6.conf.v0.dad_transmits", "1000")
                },
                expect: .unreachable("address/tentative-address", within: ExpectedVerdict.atOnce)
                    .after("unreachable address/no-address")
            ) {
                try $0.client.ipBatch(["addr del 2001:db8:1::2/64 dev v0", "addr add 2001:db8:1::2/64 dev v0"])
            },
            .during(
                "duplicate address (dadfailed), IPv6", v6.target(v6.server),
                prepare: { network in
                    try network.client.set("ipv6.conf.v0.accept_dad", "1")
                    // Otherwise the kernel waits for up to a second before it asks.
                    try network.client.set("ipv6.conf.v0.router_solicitation_delay", "0")
                },
                expect: .unreachable("address/duplicate-address", within: .milliseconds(300))
                    .after("unreachable address/no-address", "unreachable address/tentative-address")
                    .steady(for: 0)
            ) {
                try $0.client.ip("addr del 2001:db8:1::2/64 dev v0")
                try $0.router.ip("addr add 2001:db8:1::2/64 dev rv0 nodad")
                try $0.client.ip("addr add 2001:db8:1::2/64 dev v0")
            },
        ]
    }()
}
