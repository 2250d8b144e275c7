import NetworkLab

extension Fault {
    /// Silence behind a gateway that is alive: of the provider, or of the server.
    static let upstreamFaults = forFamilies { family in
        let (near, far) = (family.target(family.server), family.target(family.farServer))
        let upstream = ExpectedVerdict.unreachable(
            "network/upstream-silent", ["first_hop": "answered"], within: ExpectedVerdict.silent)
        let behindProvider = ExpectedVerdict.down("tcp/timeout", ["witness_hop": "2"], within: ExpectedVerdict.silent)
        return [
            .during(
                "provider dies, gateway alive, one target, \(family.rawValue)", far, prepare: { try $0.addProvider() },
                expect: upstream.steady(for: 3)
            ) { try silenceProvider($0) }
            .naming("nothing behind it has answered since"),
            Fault(
                name: "provider and site die, gateway alive, targets of two networks, \(family.rawValue)", targets: [near, far],
                prepare: { try $0.addProvider() },
                make: { network, _ in
                    try silenceReports(network.router)
                    try silenceProvider(network)
                    try network.site.silence("s0")
                },
                expected: .unreachable(
                    "network/upstream-silent", ["first_hop": "answered", "silent_networks": "2"], within: ExpectedVerdict.silent)
            )
            .explained(.status("unreachable")),
            .during(
                "server's host off, nobody reports it, provider alive, \(family.rawValue)", far,
                prepare: { try $0.addProvider() },
                expect: behindProvider.steady(for: 3)
            ) {
                try silenceReports($0.beyond.provider)
                try $0.beyond.far.silence("f0")
            }
            .naming("does not answer on port \(FaultNetwork.port); \(family.provider) (hop 2) does"),
            .during(
                "server drops everything, provider alive, \(family.rawValue)", far, prepare: { try $0.addProvider() },
                expect: behindProvider.steady(for: 3)
            ) {
                try $0.beyond.far.filter(
                    .input, "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept", "iifname f0 drop")
            },
            .during(
                "server's host off, nobody reports it, a target in another network answers, \(family.rawValue)", near,
                prepare: { try $0.addProvider() },
                expect: .down("tcp/timeout", ["witness": far], within: ExpectedVerdict.silent)
            ) {
                try silenceReports($0.router)
                try $0.site.silence("s0")
            }
            .beside(working: far)
            // It asks about the one target only.
            .explained(.status("unreachable")),
        ]
    }

    /// Lets the provider vanish. Its router keeps sending to its last link-layer address.
    private static func silenceProvider(_ network: FaultNetwork) throws {
        try silenceReports(network.router)
        try network.beyond.provider.silence("p0")
    }

    /// Lets a router discard what it cannot deliver without a report.
    static func silenceReports(_ router: LabHost) throws {
        try router.filter(
            .output, "icmp type destination-unreachable icmp code 1 drop",
            "icmpv6 type destination-unreachable icmpv6 code 3 drop")
    }
}
