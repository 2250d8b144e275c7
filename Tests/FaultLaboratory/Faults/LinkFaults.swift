import NetworkLab

extension Fault {
    /// Both families, for rows that differ only in their addresses.
    static func forFamilies(_ make: (FaultNetwork.Family) -> [Fault]) -> [Fault] {
        FaultNetwork.Family.allCases.flatMap(make)
    }

    static let linkFaults = forFamilies { family in
        let target = family.target(family.server)
        return [
            .during(
                "interface set down, \(family.rawValue)", target,
                expect: .unreachable("link/interface-down", ["interface": "v0"], within: ExpectedVerdict.atOnce)
            ) { try $0.client.ip("link set v0 down") },
            .during(
                "far end of the cable gone, \(family.rawValue)", target,
                expect: .unreachable("link/no-carrier", ["interface": "v0"], within: ExpectedVerdict.atOnce)
            ) { try $0.router.ip("link set rv0 down") },
        ]
    }
}
