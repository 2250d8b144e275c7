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
                try $0.router.silence("rv0")
                let neighbor = try $0.client.ip("neigh show \(family.gateway()) dev v0")
                guard ["REACHABLE", "DELAY", "STALE"].contains(where: neighbor.contains) else {
                    throw LabError("the neighbor was not in use: \(neighbor)")
                }
            },
            .during(
                "on-link server dies while REACHABLE, \(family.rawValue)", family.target(family.gateway()),
                prepare: { try $0.hold($0.router.serve(port: FaultNetwork.port)) },
                // The neighbor's entry shows the silence only after half a minute.
                expect: ExpectedVerdict(
                    lines: ["unreachable neighbor/host-silent", "unreachable tcp/timeout"], limit: ExpectedVerdict.silent,
                    steadyProbes: 1)
            ) { try $0.router.silence("rv0") },
            .fromStart(
                "on-link server silent, \(family.rawValue)", family.target(family.absentNeighbor),
                expect: .unreachable("neighbor/host-silent", within: ExpectedVerdict.silent)
            ) { _ in },
        ]
    }
}
