import NetworkLab

extension Fault {
    /// A row in which the client loses the second address of `v0`, from which its probes are sent.
    private static func sourceRemoved(_ family: FaultNetwork.Family, _ address: String) -> Fault {
        let source = String(address.prefix { $0 != "/" })
        return Fault.during(
            "source address removed, \(family.rawValue)", family.target(family.server),
            prepare: { try $0.client.ip("addr add \(address) dev v0\(family == .ipv6 ? " nodad" : "")") },
            expect: .unreachable(
                "address/no-address", ["source_address": source], within: ExpectedVerdict.atOnce)
        ) { try $0.client.ip("addr del \(address) dev v0") }
        .options(["--source-address", source])
    }

    static let addressFaults: [Fault] = {
        let (v4, v6) = (FaultNetwork.Family.ipv4, FaultNetwork.Family.ipv6)
        let noAddress = ExpectedVerdict.unreachable("address/no-address", within: ExpectedVerdict.atOnce)
        return [
            sourceRemoved(v4, "10.1.0.3/24"), sourceRemoved(v6, "2001:db8:1::3/64"),
            .fromStart(
                "source address missing from the start, IPv4", v4.target(v4.server), expect: noAddress
            ) { _ in }
            .options(["--source-address", "10.1.0.3"]).naming("10.1.0.3, the source address"),
            .fromStart(
                "this process may not mark packets", v4.target(v4.server),
                expect: .unreachable("local/not-permitted", ["mark": "0x7"], within: ExpectedVerdict.atOnce)
            ) { _ in }
            .options(["--mark", "7"]).naming("CAP_NET_ADMIN"),
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
