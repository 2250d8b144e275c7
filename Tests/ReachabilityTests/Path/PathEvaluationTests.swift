import Expectations
import Testing

@testable import Reachability

/// How the path follows from links, addresses and routes (docs/command-line.md, "Satisfied paths").
@Suite struct PathEvaluationTests {
    private let wlan = Link(
        index: 5, name: "wlan0", flags: Net.up, operationalState: .up, hardwareAddress: [2, 0, 0, 0, 0, 5], parentBus: "pci")
    private let wlanAddress = Address(interface: 5, prefix: IPPrefix(IPAddress(v4: 0x0a00_0005), length: 24))
    private let address6 = Address(interface: 2, prefix: IPPrefix(Net.source6, length: 64))
    private let tunnel = Link(index: 9, name: "wg0", flags: Net.up, hardwareType: 65_534, kind: "wireguard")

    private func answer(_ interface: UInt32, gateway: IPAddress? = nil, source: IPAddress? = nil) -> RouteAnswer {
        .route(ChosenRoute(interface: interface, gateway: gateway, source: source))
    }

    private func path(_ bench: PathBench) throws -> NetworkPath {
        var bench = bench
        guard let path = bench.start().published.first?.path else { throw Unexpected(bench.machine.snapshot) }
        return path
    }

    /// A machine with eth0 on IPv4 as in `online()`, and wlan0 with a second default route.
    private func twoUplinks(_ configuration: MonitorConfiguration = MonitorConfiguration()) -> PathBench {
        var bench = PathBench(configuration)
        bench.connect()
        bench.tables[.links]?.append(.link(wlan))
        bench.tables[.addresses]?.append(.address(wlanAddress))
        let second = Route(
            Route.Key(metric: 600, destination: Net.nowhere),
            nextHops: [Route.NextHop(interface: 5, gateway: IPAddress(v4: 0x0a00_0001))])
        bench.tables[.routesV4]?.append(.route(second))
        bench.evidence[5] = InterfaceEvidence(deviceType: "wlan", isWireless: true, sources: ["sysfs"])
        bench.routes[RouteQuery(Net.anywhere, interface: 5)] = answer(5, gateway: IPAddress(v4: 0x0a00_0001))
        return bench
    }

    // MARK: Families

    @Test func `a path over IPv4 alone is satisfied`() throws {
        var bench = PathBench()
        bench.connect()
        let path = try path(bench)
        expectEqual(path.status, .satisfied)
        #expect(path.supportsIPv4 && !path.supportsIPv6)
        #expect(path.interface?.name == "eth0" && path.interfaceV6 == nil)
        expectNil(path.cause)
    }

    @Test func `a path over IPv6 alone is satisfied, and its gateway has a zone`() throws {
        var bench = PathBench()
        bench.tables[.links] = [.link(Net.lo), .link(Net.eth0)]
        bench.tables[.addresses] = [.address(address6)]
        bench.routes[RouteQuery(Net.anywhere6)] = answer(2, gateway: Net.linkLocal6, source: Net.source6)
        let path = try path(bench)
        expectEqual(path.status, .satisfied)
        #expect(!path.supportsIPv4 && path.supportsIPv6)
        expectEqual(path.interface?.name, "eth0")
        expectEqual(path.gateways.map(\.description), ["fe80::1%eth0"])
    }

    @Test func `with IPv4 and IPv6 over different interfaces, the path's interface is that of IPv4`() throws {
        var bench = twoUplinks()
        bench.tables[.addresses]?.append(.address(address6))
        bench.routes[RouteQuery(Net.anywhere)] = answer(5, gateway: IPAddress(v4: 0x0a00_0001), source: wlanAddress.address)
        bench.routes[RouteQuery(Net.anywhere6)] = answer(2, gateway: Net.linkLocal6, source: Net.source6)
        let path = try path(bench)
        expectEqual(path.interface?.name, "wlan0")
        #expect(path.interfaceV4?.name == "wlan0" && path.interfaceV6?.name == "eth0")
        expectEqual(path.gateways.map(\.description), ["10.0.0.1", "fe80::1%eth0"])
        #expect(path.usesInterfaceType(.wifi) && path.usesInterfaceType(.wired) && !path.usesInterfaceType(.cellular))
    }

    @Test func `an IPv4 route through an IPv6 router gives the path an IPv6 gateway`() throws {
        var bench = PathBench()
        bench.connect()
        bench.routes[RouteQuery(Net.anywhere)] = answer(2, gateway: Net.linkLocal6, source: Net.source)
        let path = try path(bench)
        #expect(path.supportsIPv4 && !path.supportsIPv6)
        expectEqual(path.gateways.map(\.description), ["fe80::1%eth0"])
    }

    @Test(arguments: [IPAddress.Family.v4, .v6]) func `with one address family configured, no route of the other is queried`(
        family: IPAddress.Family
    ) {
        var bench = PathBench(MonitorConfiguration(families: [family]))
        bench.connect()
        let path = bench.start().published.first?.path
        expectEqual(path?.status, (family == .v4 ? .satisfied : .unsatisfied))
        #expect(bench.questions.allSatisfy { $0.destination.family == family })
    }

    @Test func `with IPv4 over a link without carrier and IPv6 over a good one, the path is satisfied by IPv6`() throws {
        var bench = twoUplinks()
        bench.tables[.links] = [.link(Net.lo), .link(Net.eth0.unplugged), .link(wlan)]
        let six = Address(interface: 5, prefix: IPPrefix(Net.source6, length: 64))
        bench.tables[.addresses]?.append(.address(six))
        bench.routes[RouteQuery(Net.anywhere6)] = answer(5, gateway: Net.linkLocal6, source: Net.source6)
        let path = try path(bench)
        expectEqual(path.status, .satisfied)
        #expect(path.interface?.name == "wlan0" && !path.supportsIPv4)
    }

    // MARK: Sources

    @Test func `a path with only a link-local IPv6 source is unsatisfied`() throws {
        var bench = PathBench()
        bench.tables[.links] = [.link(Net.lo), .link(Net.eth0)]
        bench.tables[.addresses] = [.address(Address(interface: 2, prefix: IPPrefix(Net.linkLocal6, length: 64), scope: 253))]
        bench.routes[RouteQuery(Net.anywhere6)] = answer(2, gateway: Net.linkLocal6, source: Net.linkLocal6)
        let path = try path(bench)
        expectEqual(path.status, .unsatisfied)
        expectEqual(path.cause?.code, .noAddress)
    }

    @Test func `a source address that belongs to another interface satisfies the path, an unknown one does not`() throws {
        var bench = PathBench()
        bench.connect()
        let elsewhere = Address(interface: 1, prefix: IPPrefix(IPAddress(v4: 0x0a09_0909), length: 32))
        bench.tables[.addresses]?.append(.address(elsewhere))
        bench.routes[RouteQuery(Net.anywhere)] = answer(2, gateway: Net.gateway, source: elsewhere.address)
        try expectEqual(path(bench).status, .satisfied)
        bench.routes[RouteQuery(Net.anywhere)] = answer(2, gateway: Net.gateway, source: IPAddress(v4: 0x0a09_0908))
        try expectEqual(path(bench).status, .unsatisfied)
    }

    @Test func `deprecated and optimistic source addresses satisfy the path, tentative and duplicate ones do not`() throws {
        for (flags, isUsable) in [
            (Address.Flags.deprecated, true), ([.tentative, .optimistic], true), (.tentative, false),
            ([.tentative, .duplicate], false),
        ] {
            var bench = PathBench()
            bench.tables[.links] = [.link(Net.lo), .link(Net.eth0)]
            let linkLocal = Address(interface: 2, prefix: IPPrefix(Net.linkLocal6, length: 64), scope: 253)
            bench.tables[.addresses] = [
                .address(linkLocal), .address(Address(interface: 2, prefix: IPPrefix(Net.source6, length: 64), flags: flags)),
            ]
            bench.routes[RouteQuery(Net.anywhere6)] = answer(2, gateway: Net.linkLocal6, source: Net.source6)
            try expectEqual(path(bench).status, (isUsable ? .satisfied : .unsatisfied), "\(flags)")
        }
    }

    // MARK: Selection

    @Test func `with a named interface, routes are queried over it`() {
        var bench = twoUplinks(MonitorConfiguration(selection: .named("wlan0")))
        let path = bench.start().published.first?.path
        expectEqual(path?.interface?.name, "wlan0")
        // A query without an interface finds the cause if the named interface has no route.
        expectEqual(Set(bench.questions.map(\.interface)), [5, 0])
    }

    @Test func `with a required interface type, the path uses the kernel's best interface of it`() throws {
        try expectEqual(path(twoUplinks(MonitorConfiguration(selection: .required(.wifi)))).interface?.name, "wlan0")
        try expectEqual(path(twoUplinks(MonitorConfiguration(selection: .required(.wired)))).interface?.name, "eth0")
        let missing = try path(twoUplinks(MonitorConfiguration(selection: .required(.cellular))))
        expectEqual(missing.status, .unsatisfied)
        expectEqual(missing.cause?.code, .noInterface)
        #expect(missing.cause?.detail.contains("cellular") == true)
    }

    @Test func `with prohibited interface types, the path uses the kernel's choice or the next allowed interface`() throws {
        try expectEqual(path(twoUplinks(MonitorConfiguration(selection: .prohibited([.wifi])))).interface?.name, "eth0")
        try expectEqual(path(twoUplinks(MonitorConfiguration(selection: .prohibited([.wired])))).interface?.name, "wlan0")
        let none = try path(twoUplinks(MonitorConfiguration(selection: .prohibited([.wired, .wifi]))))
        expectEqual(none.status, .unsatisfied)
        expectNil(none.interface)
    }

    @Test func `with a named interface, the path follows its arrival and removal`() {
        var bench = twoUplinks(MonitorConfiguration(selection: .named("wlan0")))
        bench.tables[.links] = [.link(Net.lo), .link(Net.eth0)]
        bench.tables[.addresses] = [.address(Net.address)]
        let first = bench.start().published.first?.path
        expectEqual(first?.cause?.code, .noInterface)
        #expect(first?.cause?.detail.contains("wlan0") == true)
        bench.wait(milliseconds: 2_000)
        expectEqual(bench.deliver(.link(wlan), .address(wlanAddress)).published.last?.path.interface?.name, "wlan0")
        let gone = bench.deliver(.linkRemoved(5)).published.last?.path
        expectEqual(gone?.status, .unsatisfied)
        expectEqual(gone?.cause?.code, .noInterface)
    }

    // MARK: Tunnels, cost, order

    @Test func `a tunnel's path names the interface of the route to its remote address`() throws {
        var bench = twoUplinks()
        var gre = Link(index: 9, name: "gre1", flags: Net.up, hardwareType: 778, kind: "gre")
        gre.tunnelRemote = IPAddress("203.0.113.9")
        bench.tables[.links]?.append(.link(gre))
        bench.tables[.addresses]?.append(
            .address(Address(interface: 9, prefix: IPPrefix(IPAddress(v4: 0x0a08_0001), length: 30))))
        bench.routes[RouteQuery(Net.anywhere)] = answer(9, source: IPAddress(v4: 0x0a08_0001))
        bench.routes[RouteQuery(IPAddress(v4: 0xcb00_7109))] = answer(5, gateway: IPAddress(v4: 0x0a00_0001))
        let path = try path(bench)
        expectEqual(path.interface?.type, .tunnel)
        expectEqual(path.underlying?.name, "wlan0")
        #expect(path.usesInterfaceType(.wifi))
        expectEmpty(path.gateways)
        // If the kernel has no route to the remote address, no other interface is guessed.
        bench.routes[RouteQuery(IPAddress(v4: 0xcb00_7109))] = .refused(errno: 113)
        try expectNil(self.path(bench).underlying)
    }

    @Test func `the path of a tunnel without a remote address names the interface of the best other default route`() throws {
        var bench = twoUplinks()
        bench.tables[.links]?.append(.link(tunnel))
        bench.tables[.addresses]?.append(
            .address(Address(interface: 9, prefix: IPPrefix(IPAddress(v4: 0x0a08_0001), length: 32))))
        bench.routes[RouteQuery(Net.anywhere)] = answer(9, source: IPAddress(v4: 0x0a08_0001))
        try expectEqual(path(bench).underlying?.name, "eth0")
    }

    @Test func `the path is expensive if the interface in use is, not one on standby`() throws {
        var bench = twoUplinks()
        bench.evidence[5] = InterfaceEvidence(deviceType: "wwan", sources: ["sysfs"])
        try expectEqual(path(bench).isExpensive, false)
        bench.routes[RouteQuery(Net.anywhere)] = answer(5, gateway: IPAddress(v4: 0x0a00_0001), source: wlanAddress.address)
        let path = try path(bench)
        #expect(path.isExpensive)
        expectEqual(path.interface?.type, .cellular)
    }

    @Test func `interfaces are sorted: the path's first, then by default route, then by level, loopback last`() throws {
        var bench = twoUplinks()
        bench.tables[.links]?.append(.link(Net.eth1))
        bench.tables[.links]?.append(.link(Link(index: 8, name: "eth2", parentBus: "pci")))
        bench.routes[RouteQuery(Net.anywhere)] = answer(5, gateway: IPAddress(v4: 0x0a00_0001), source: wlanAddress.address)
        try expectEqual(path(bench).interfaces.map(\.name), ["wlan0", "eth0", "eth1", "eth2", "lo"])
    }

    @Test func `a bridge is degraded by a port of its bond without carrier`() throws {
        var bench = PathBench()
        let bridge = Link(index: 20, name: "br0", flags: Net.up, operationalState: .up, kind: "bridge")
        let bond = Link(index: 21, name: "bond0", flags: Net.up, operationalState: .up, kind: "bond", master: 20)
        var (one, other) = (Net.eth0, Net.eth1.unplugged)
        (one.master, other.master) = (21, 21)
        bench.tables[.links] = [.link(Net.lo), .link(bridge), .link(bond), .link(one), .link(other)]
        let levels = Dictionary(uniqueKeysWithValues: try path(bench).interfaces.map { ($0.name, $0.level) })
        expectEqual(levels["br0"], .degradedCarrier)
    }

    @Test func `only physical, default-route and chosen interfaces are notable`() throws {
        var bench = twoUplinks()
        bench.tables[.links]?.append(.link(Link(index: 77, name: "veth77", flags: Net.up, kind: "veth")))
        try expectEqual(path(bench).notable, [2, 5])
    }
}
