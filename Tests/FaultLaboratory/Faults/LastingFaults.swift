import NetworkLab

extension Fault {
    /// Faults that are observed for many probes.
    static let lastingFaults: [Fault] = [
        loss("20 % loss each way, on the client's link") { network in
            try network.client.filterArrivals(on: "v0", "numgen random mod 100 < 20 drop")
            try network.router.filterArrivals(on: "rv0", "numgen random mod 100 < 20 drop")
        },
        loss("20 % loss each way, beyond the router") { network in
            try network.router.filter(.forward, "numgen random mod 100 < 20 drop")
        },
        lossOfHTTPS(20), lossOfHTTPS(30),
        Fault(
            name: "500 link flaps", targets: [FaultNetwork.Family.ipv4.target(FaultNetwork.Family.ipv4.server)],
            make: { network, watch in if let watch { try flap(500, network, watch) } },
            expected: ExpectedVerdict(lines: ["up"], limit: .seconds(120), meanwhile: ["unreachable"]), explanation: .none),
    ]

    /// The probes of five minutes at one a second, by many targets at once.
    private static let (lossyTargets, lossyProbes) = (15, 20)

    /// Loss at which TLS handshakes and requests of https stall at every stage. The server is never accused, nor are large packets.
    private static func lossOfHTTPS(_ percent: Int) -> Fault {
        loss(
            "\(percent) % loss each way, beyond the router, https", scheme: "https",
            lines: ["up", "degraded quality/loss", "unreachable quality/loss"]
        ) { network in
            try network.router.filter(.forward, "numgen random mod 100 < \(percent) drop")
        }
        .options(LaboratoryAuthority.options)
    }

    private static func loss(
        _ name: String, scheme: String? = nil, lines: [String] = ["up", "degraded"],
        _ make: @escaping @Sendable (FaultNetwork) throws -> Void
    ) -> Fault {
        let addresses = (0..<lossyTargets).map { "203.0.113.\(100 + $0)" }
        return Fault(
            name: name,
            targets: addresses.map { address in
                scheme.map { levelURL($0, host: address) } ?? FaultNetwork.Family.ipv4.target(address)
            },
            prepare: { network in
                try network.site.ipBatch(addresses.map { "addr add \($0)/24 dev s0" })
                guard scheme != nil else { return }
                let identity = try LaboratoryAuthority(network).identity(names: addresses.map { "IP:\($0)" })
                try ScriptedServer(identity, ScriptedServer.answer).start(network)
            },
            make: { network, watch in
                try make(network)
                guard let watch else { return }
                let isProbed = try watch.await(within: .seconds(120)) { watch in
                    watch.targets.allSatisfy { watch.probes[$0, default: 0] >= lossyProbes }
                }
                guard isProbed else { throw LabError("only \(watch.probes) probes within two minutes") }
            },
            expected: ExpectedVerdict(lines: lines, limit: .seconds(120)), explanation: .none)
    }

    /// Switches the link off and on, in turn at this end and at the far end. Two of three times the program has noticed each
    /// before the next.
    private static func flap(_ count: Int, _ network: FaultNetwork, _ watch: VerdictWatch) throws {
        for number in 0..<count {
            let isNear = number.isMultiple(of: 2)
            let isNoticed = !number.isMultiple(of: 3)
            if isNear { try network.client.ip("link set v0 down") } else { try network.router.ip("link set rv0 down") }
            if isNoticed {
                guard try watch.await(within: .seconds(60), { $0.all { $0.status != "up" } }) else {
                    throw LabError("flap \(number) was not noticed")
                }
            }
            if isNear {
                try network.client.ipBatch(["link set v0 up", "route add default via \(FaultNetwork.Family.ipv4.gateway())"])
            } else {
                try network.router.ip("link set rv0 up")
            }
            if isNoticed {
                guard try watch.await(within: .seconds(60), { $0.all { $0.status == "up" } }) else {
                    throw LabError("not up again after flap \(number): \(watch.latest)")
                }
            }
        }
        let noticed = watch.sinceFault.count { $0.status == "unreachable" }
        guard noticed >= count / 2 else { throw LabError("only \(noticed) of \(count) flaps were noticed") }
    }
}
