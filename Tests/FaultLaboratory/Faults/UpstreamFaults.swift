import NetworkLab

extension Fault {
    /// Fifty targets behind a gateway, which limits its ICMP messages as Linux does by default.
    static let crowdFaults =
        crowd(50, within: ExpectedVerdict.silent) + [
            Fault(
                name: "50 ports of one host that drops everything, provider alive",
                targets: (9_000..<9_050).map { crowdFamily.target(crowdFamily.farServer, $0) },
                prepare: { network in
                    try network.addProvider()
                    for port in 9_000..<9_050 as Range<UInt16> {
                        network.hold(try network.beyond.far.serve(at: crowdFamily.farServer, port: port))
                    }
                },
                make: { network, _ in try network.beyond.far.filter(.input, "iifname f0 drop") },
                expected: .down("tcp/timeout", ["first_hop": "answered"], within: ExpectedVerdict.silent).steady(for: 5))
        ]

    /// A thousand targets. Silent probes take turns, because each holds a socket for three seconds.
    static let largeCrowdFaults = crowd(1_000, within: .seconds(12))

    private static let crowdFamily = FaultNetwork.Family.ipv4

    /// Targets of two networks, with five ports at each address if they are many.
    private static func crowd(_ count: Int, within limit: Duration) -> [Fault] {
        let ports = count < 500 ? [FaultNetwork.port] : (0..<5).map { FaultNetwork.port + $0 }
        let hosts = 100..<(100 + count / 2 / ports.count)
        let (near, far) = (hosts.map { "203.0.113.\($0)" }, hosts.map { "198.51.100.\($0)" })
        let targets = (near + far).flatMap { address in ports.map { crowdFamily.target(address, $0) } }
        func fault(_ name: String, _ expected: ExpectedVerdict, _ make: @escaping @Sendable (FaultNetwork) throws -> Void)
            -> Fault
        {
            Fault(
                name: "\(count) targets of two networks, \(name)", targets: targets,
                prepare: { network in
                    try network.addProvider()
                    try network.site.ipBatch(near.map { "addr add \($0)/24 dev s0" })
                    try network.beyond.far.ipBatch(far.map { "addr add \($0)/24 dev f0" })
                    for port in ports.dropFirst() {
                        network.hold(try network.site.serve(port: port))
                        network.hold(try network.beyond.far.serve(port: port))
                    }
                },
                make: { network, _ in try make(network) }, expected: expected)
        }
        return [
            fault(
                "gateway loses its routes",
                .unreachable("network/net-unreachable", ["hop": crowdFamily.gateway()], within: limit).steady(for: 5)
            ) { try $0.router.ipBatch(["route del \(crowdFamily.network) dev rs0", "route del \(crowdFamily.farNetwork)"]) },
            fault(
                "gateway dies",
                .unreachable("neighbor/gateway-silent", ["gateway": crowdFamily.gateway()], within: limit).steady(for: 3)
            ) { try $0.router.silence("rv0") },
            fault(
                "everything behind the gateway dies",
                .unreachable("network/upstream-silent", ["first_hop": "answered", "silent_networks": "2"], within: limit)
                    .steady(for: 3)
            ) {
                try silenceReports($0.router)
                try silenceProvider($0)
                try $0.site.silence("s0")
            }
            .explained(.status("unreachable")),
        ]
    }

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
