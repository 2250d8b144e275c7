import NetworkLab

extension Fault {
    static let neighborFaults = forFamilies { family in
        let silentGateway = ExpectedVerdict.unreachable(
            "neighbor/gateway-silent", ["gateway": family.gateway()], within: ExpectedVerdict.silent)
        return [
            .fromStart("gateway silent from the start, \(family.rawValue)", family.target(family.server), expect: silentGateway) {
                try $0.router.ip("addr del \(family.gateway())/\(family == .ipv4 ? 24 : 64) dev rv0")
            },
            .during("gateway dies while REACHABLE, \(family.rawValue)", family.target(family.server), expect: silentGateway) {
                try silenceGateway($0, family)
            },
            .during(
                "gateway dies, this machine resets connections to another target, \(family.rawValue)",
                family.target(family.server),
                prepare: {
                    try $0.client.filter(
                        .output,
                        "\(family.protocolName) daddr \(family.absentServer) tcp dport \(FaultNetwork.port) reject with tcp reset"
                    )
                },
                expect: silentGateway.steady(for: 3), make: { try silenceGateway($0, family) }
            )
            .beside(family.target(family.absentServer))
            .explained(.status("unreachable")),
            .during(
                "gateway dies, this machine accepts connections to another target, \(family.rawValue)",
                family.target(family.server),
                prepare: {
                    try $0.hold($0.client.serve(port: FaultNetwork.port))
                    try $0.client.redirect(
                        "\(family.protocolName) daddr \(family.absentServer) tcp dport \(FaultNetwork.port) redirect")
                },
                expect: silentGateway.steady(for: 3), make: { try silenceGateway($0, family) }
            )
            .beside(family.target(family.absentServer))
            .explained(.status("unreachable")),
            .during(
                "on-link server dies while REACHABLE, \(family.rawValue)", family.target(family.gateway()),
                prepare: { try $0.hold($0.router.serve(port: FaultNetwork.port)) },
                expect: .unreachable("neighbor/host-silent", ["first_hop": "silent"], within: ExpectedVerdict.silent)
            ) { try $0.router.silence("rv0") }
            // A host that has not answered before may filter everything.
            .explained(.status("unreachable")),
            .during(
                "on-link server drops the SYN, \(family.rawValue)", family.target(family.gateway()),
                prepare: { try $0.hold($0.router.serve(port: FaultNetwork.port)) },
                expect: .down("tcp/timeout", ["first_hop": "answered"], within: ExpectedVerdict.silent)
            ) { try $0.router.filter(.input, "tcp dport \(FaultNetwork.port) drop") },
            .during(
                "on-link server begins to drop everything, \(family.rawValue)", family.target(family.gateway()),
                prepare: { network in
                    try network.hold(network.router.serve(port: FaultNetwork.port))
                    try hastenNeighborDiscovery(network, family)
                },
                // Neighbor discovery contradicts the silence.
                expect: .down(
                    "tcp/timeout", ["first_hop": "answered", "witness": family.gateway()], within: .seconds(60)
                )
                .after("unreachable neighbor/host-silent").steady(for: 4)
            ) { try dropAll($0) }
            .explained(.none),
            .during(
                "another host takes the address of an on-link server, \(family.rawValue)", family.target(family.gateway()),
                prepare: { network in
                    try network.router.ip("link set rv0 address 02:00:00:00:00:01")
                    try network.hold(network.router.serve(port: FaultNetwork.port))
                    try hastenNeighborDiscovery(network, family)
                },
                expect: .unreachable(
                    "address/duplicate-address",
                    ["link_address": "02:00:00:00:00:02", "former_link_address": "02:00:00:00:00:01"], within: .seconds(60)
                )
                .after("unreachable neighbor/host-silent").steady(for: 4)
            ) {
                try dropAll($0)
                try $0.router.ip("link set rv0 address 02:00:00:00:00:02")
            }
            .explained(.none),
            .fromStart(
                "on-link server silent, \(family.rawValue)", family.target(family.absentNeighbor),
                expect: .unreachable("neighbor/host-silent", within: ExpectedVerdict.silent)
            ) { _ in },
        ]
    }

    /// Lets the kernel of the client ask its neighbors sooner than after half a minute.
    private static func hastenNeighborDiscovery(_ network: FaultNetwork, _ family: FaultNetwork.Family) throws {
        let settings = "\(family == .ipv4 ? "ipv4" : "ipv6").neigh.v0"
        try network.client.set("\(settings).base_reachable_time_ms", "8000")
        try network.client.set("\(settings).delay_first_probe_time", "1")
    }

    /// Lets the router answer neighbor discovery alone.
    private static func dropAll(_ network: FaultNetwork) throws {
        try network.router.filter(
            .input, "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept", "iifname rv0 drop")
    }

    /// Switches the gateway off. Its entry in the neighbor table remains as it was.
    static func silenceGateway(_ network: FaultNetwork, _ family: FaultNetwork.Family) throws {
        try network.router.silence("rv0")
        let neighbor = try network.client.ip("neigh show \(family.gateway()) dev v0")
        guard ["REACHABLE", "DELAY", "STALE"].contains(where: neighbor.contains) else {
            throw LabError("the neighbor was not in use: \(neighbor)")
        }
    }
}
