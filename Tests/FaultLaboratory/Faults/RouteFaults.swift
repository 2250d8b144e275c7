import NetworkLab

extension Fault {
    static let routeFaults = forFamilies { family in
        let target = family.target(family.server)
        let types = [("unreachable", "route-unreachable"), ("prohibit", "route-prohibited"), ("blackhole", "route-blackhole")]
        return [
            .during(
                "no route, \(family.rawValue)", target,
                expect: .unreachable("route/no-route", within: ExpectedVerdict.atOnce)
            ) { try $0.client.ip("\(family.option) route del default") }
        ]
            + types.map { type, code in
                .during(
                    "\(type) route, \(family.rawValue)", target,
                    expect: .unreachable("route/\(code)", within: ExpectedVerdict.atOnce)
                ) { try $0.client.ip("\(family.option) route add \(type) \(family.network)") }
            }
    }
}
