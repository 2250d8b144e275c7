import NetworkLab

extension IncidentFault {
    private static let family = FaultNetwork.Family.ipv4
    /// 25 servers at the gateway, and 75 in two networks behind the provider.
    private static let near = (100..<125).map { "203.0.113.\($0)" }
    private static let far = (100..<125).map { "198.51.100.\($0)" }
    private static let others = (130..<155).map { "198.51.100.\($0)" }
    private static let further = (100..<125).map { "192.0.2.\($0)" }
    private static let resolver = FaultNetwork.nameServers[0]
    /// The ports of one host.
    private static let ports = (0..<50).map { 9_000 + UInt16($0) }
    private static let host = "198.51.100.200"

    /// Ten faults of a router, a provider, a host, a tunnel and a resolver, with 50 targets each.
    package static let all: [IncidentFault] = [
        row("router dies", near + far, "gateway \(family.gateway())", "neighbor/gateway-silent") {
            try $0.router.silence("rv0")
        } repair: {
            try $0.router.removeFilters()
        },
        row("router loses its routes", near + far, "hop \(family.gateway())", "network/net-unreachable") {
            try $0.router.ipBatch(["route del \(family.network) dev rs0", "route del \(family.farNetwork)"])
        } repair: {
            try $0.router.ipBatch([
                "route add \(family.network) dev rs0", "route add \(family.farNetwork) via \(family.provider)",
            ])
        },
        row("router prohibits everything", near + far, "hop \(family.gateway())", "network/admin-prohibited") {
            try $0.router.filter(.forward, "iifname rv0 reject with icmp type admin-prohibited")
        } repair: {
            try $0.router.removeFilters()
        },
        row("provider dies", far + further, "gateway \(family.gateway())", "network/upstream-silent") {
            try Fault.silenceReports($0.router)
            try $0.beyond.provider.silence("p0")
        } repair: {
            try $0.beyond.provider.removeFilters()
        },
        row("provider loses its route", far + others, "hop \(family.provider)", "network/net-unreachable") {
            // Otherwise it would send them back to the router.
            try $0.beyond.provider.ipBatch([
                "route add 10.1.0.0/24 via 10.9.0.1", "route del default", "route del 198.51.100.0/24",
            ])
        } repair: {
            try $0.beyond.provider.ipBatch(["route add default via 10.9.0.1", "route add 198.51.100.0/24 dev pf0"])
        },
        hostRow("host drops everything", "tcp/timeout") {
            try $0.beyond.far.filter(.input, "ip daddr \(host) drop")
        } repair: {
            try $0.beyond.far.removeFilters()
        },
        hostRow("host is off, and the provider reports it", "network/host-unreachable") {
            try $0.beyond.far.ip("addr del \(host)/24 dev f0")
            // Otherwise the provider would send to the last known address for half a minute.
            try $0.beyond.provider.ip("neigh flush dev pf0")
        } repair: {
            try $0.beyond.far.ip("addr add \(host)/24 dev f0")
        },
        tunnelRow,
        resolverRow("resolver is silent", "dns/resolver-silent", .silent),
        resolverRow("resolver answers SERVFAIL", "dns/server-failure", .code(2)),
    ]

    private static func row(
        _ name: String, _ addresses: [String], _ subject: String, _ cause: String,
        make: @escaping @Sendable (FaultNetwork) throws -> Void, repair: @escaping @Sendable (FaultNetwork) throws -> Void
    ) -> IncidentFault {
        IncidentFault(
            name: name, targets: addresses.map { family.target($0) }, prepare: addServers, make: make, repair: repair,
            subject: subject, cause: cause)
    }

    /// Adds the provider, and the addresses of the servers.
    private static func addServers(_ network: FaultNetwork) throws {
        try network.addProvider()
        try network.site.ipBatch(near.map { "addr add \($0)/24 dev s0" })
        let beyond = try network.beyond
        try beyond.provider.ip("addr add 192.0.2.1/24 dev pf0")
        try beyond.far.ipBatch((far + others + further + [host]).map { "addr add \($0)/24 dev f0" })
        try network.router.ip("route add 192.0.2.0/24 via \(family.provider)")
    }

    /// A row for a host of 50 ports, beside another host that works.
    private static func hostRow(
        _ name: String, _ cause: String, make: @escaping @Sendable (FaultNetwork) throws -> Void,
        repair: @escaping @Sendable (FaultNetwork) throws -> Void
    ) -> IncidentFault {
        var row = IncidentFault(
            name: name, targets: ports.map { family.target(host, $0) },
            prepare: { network in
                try addServers(network)
                for port in ports { network.hold(try network.beyond.far.serve(at: host, port: port)) }
            }, make: make, repair: repair, subject: "host \(host)", cause: cause)
        row.workingTargets = [family.target(far[0])]
        return row
    }

    private static let tunnelRow: IncidentFault = {
        var row = IncidentFault(
            name: "far end of the tunnel dies", targets: (near + far).map { family.target($0) },
            prepare: { network in
                try addServers(network)
                try network.addTunnel()
            }, make: { try $0.tunnel.silence() }, repair: { try $0.tunnel.resume() }, subject: "interface tun0",
            cause: "network/tunnel-silent")
        row.needsTun = true
        return row
    }()

    /// A row for a resolver and 50 names of ten domains. Their records are not kept.
    private static func resolverRow(_ name: String, _ cause: String, _ behavior: NameServer.Behavior) -> IncidentFault {
        let names = (0..<50).map { "host\($0).domain\($0 % 10).example" }
        let zone = Dictionary(uniqueKeysWithValues: zip(names, (near + far).map { [$0] }))
        @Sendable func change(_ network: FaultNetwork, to behavior: NameServer.Behavior) {
            for server in network.held(NameServer.self) { server.setBehavior(behavior) }
        }
        var row = IncidentFault(
            name: name, targets: names.map { "\($0):\(FaultNetwork.port)" },
            prepare: { network in
                try addServers(network)
                try network.resolver(.zone(zone, ttl: 0))
            }, make: { change($0, to: behavior) }, repair: { change($0, to: .zone(zone, ttl: 0)) },
            subject: "resolver \(resolver)",
            cause: cause)
        row.nameServers = [resolver]
        return row
    }
}
