import Expectations
import NetworkLab
import Reachability
import Testing

/// Decisions of the kernel's routing, changed one command at a time.
@Suite(.requiresNamespaces)
struct RouteTests {
    @Test func `the uplink with the lower metric is the path, and the other takes over when its route is removed`() throws {
        let network = try Network()
        let host = network.host
        try network.uplink("v0", "10.1.0.1/24")
        try network.uplink("v1", "10.2.0.1/24")
        try host.ip("route add default via 10.2.0.254 metric 200")
        let witness = try Witness(host, sees: "satisfied v1 wired 4 via 10.2.0.254")

        try host.ip("route add default via 10.1.0.254 metric 100")
        try witness.expect(
            "satisfied v0 wired 4 via 10.1.0.254", reasons: "interface-changed interfaces-changed gateways-changed"
        ) {
            expectEqual($0.order, ["v0", "v1", "lo"])
        }
        try host.ip("route del default via 10.1.0.254 metric 100")
        try witness.expect("satisfied v1 wired 4 via 10.2.0.254", reasons: "interface-changed gateways-changed") {
            expectEqual($0.order, ["v1", "v0", "lo"])
        }
        try host.ip("route add default via 10.1.0.254 metric 100")
        try witness.expect("satisfied v0 wired 4 via 10.1.0.254")
        try host.ip("link set v0 down")
        try witness.expect("satisfied v1 wired 4 via 10.2.0.254", reasons: "interface-changed gateways-changed") {
            #expect($0.order == ["v1", "v0", "lo"] && $0.level("v0") == "off")
        }
        try host.ip("route change default via 10.2.0.253 metric 200")
        try witness.expect("satisfied v1 wired 4 via 10.2.0.253", reasons: "gateways-changed")
    }

    @Test func `without an IPv4 address a link has no live next hops, and its first address revives them`() throws {
        let network = try Network()
        let host = network.host
        try network.uplink("v0", "10.1.0.1/24")
        try network.uplink("v1", "10.2.0.1/24")
        try host.ip("route add default nexthop via 10.1.0.254 dev v0 nexthop via 10.2.0.254 dev v1")
        let observer = try LibraryObserver(MonitorConfiguration(namespace: NetworkNamespace(host.path)))
        _ = try observer.nextPath()
        func nextHops() throws -> Int? {
            try FreshDump.expect(host, observer)
            return try observer.settledState().snapshot.allRoutes.first { $0.key.destination.isDefault }?.nextHops.count
        }
        try expectEqual(nextHops(), 2)
        try host.ip("address del 10.2.0.1/24 dev v1")
        try expectEqual(nextHops(), 1)
        try host.ip("address add 10.2.0.1/24 dev v1")
        try expectEqual(nextHops(), 2)
    }

    @Test func `a host with IPv6 only has a path through a link-local gateway with its zone`() throws {
        let network = try Network()
        try network.uplink("v0", "2001:db8:1::1/64")
        let witness = try Witness(network.host, sees: "unsatisfied route/no-route")

        try network.host.ip("-6 route add default via fe80::1 dev v0")
        try witness.expect("satisfied v0 wired 6 via fe80::1%v0", reasons: "interface-changed families-changed")
        try network.host.ip("-6 route del default")
        try witness.expect("unsatisfied route/no-route", reasons: "families-changed cause-changed")
    }

    @Test func `an IPv4 route through an IPv6 gateway satisfies the path`() throws {
        let network = try Network()
        try network.uplink("v0", "10.1.0.1/32")
        let witness = try Witness(network.host, sees: "unsatisfied route/no-route")

        try network.host.ip("-4 route add default via inet6 fe80::1 dev v0")
        try witness.expect("satisfied v0 wired 4 via fe80::1%v0", reasons: "gateways-changed families-changed")
    }

    @Test func `IPv4 and IPv6 can use different interfaces, and either can be routed alone`() throws {
        let network = try Network()
        try network.uplink("v0", "10.1.0.1/24")
        try network.uplink("v1", "2001:db8:1::1/64")
        try network.host.ip("route add default dev v0")
        let witness = try Witness(network.host, sees: "satisfied v0 wired 4")

        try network.host.ip("-6 route add default via 2001:db8:1::ff")
        try witness.expect("satisfied v0 wired 4+6:v1 via 2001:db8:1::ff", reasons: "interface-changed families-changed")
        try network.host.ip("route del default")
        try witness.expect("satisfied v1 wired 6 via 2001:db8:1::ff", reasons: "interface-changed families-changed")
    }

    @Test func `a rule that sends all packets to another table decides the path`() throws {
        let network = try Network()
        let host = network.host
        try network.uplink("v0", "10.1.0.1/24", "2001:db8:1::1/64")
        try network.uplink("v1", "10.2.0.1/24")
        try host.ip("route add default via 10.1.0.254")
        let witness = try Witness(host, sees: "satisfied v0 wired 4 via 10.1.0.254")

        try host.ip("route add default via 10.2.0.254 table 100")
        try host.ip("rule add pref 100 lookup 100")
        try witness.expect("satisfied v1 wired 4 via 10.2.0.254", reasons: "interface-changed gateways-changed")
        try host.ip("route flush table 100")
        try witness.expect("satisfied v0 wired 4 via 10.1.0.254")
        try host.ip("-6 route add default via 2001:db8:1::ff table 100")
        try host.ip("-6 rule add pref 100 lookup 100")
        try witness.expect("satisfied v0 wired 4+6 via 10.1.0.254 2001:db8:1::ff", reasons: "families-changed")
        try host.ip("-6 rule del pref 100")
        try witness.expect("satisfied v0 wired 4 via 10.1.0.254", reasons: "families-changed")
    }

    @Test(
        "a rule that refuses all packets gives the cause of its kind",
        arguments: [
            ("prohibit", "unsatisfied route/route-prohibited"), ("unreachable", "unsatisfied route/route-unreachable"),
            ("blackhole", "unsatisfied route/route-blackhole"),
        ])
    func refusingRule(_ kind: String, _ expected: String) throws {
        let network = try Network()
        try network.uplink("v0", "10.1.0.1/24")
        try network.host.ip("route add default via 10.1.0.254")
        let witness = try Witness(network.host, sees: "satisfied v0 wired 4 via 10.1.0.254")

        try network.host.ip("rule add pref 10 \(kind)")
        try witness.expect(expected, reasons: "interface-changed gateways-changed families-changed cause-changed")
        try network.host.ip("rule del pref 10")
        try witness.expect("satisfied v0 wired 4 via 10.1.0.254", reasons: "families-changed cause-changed")
    }

    @Test(
        "a default route that refuses gives the cause of its kind, in both families",
        arguments: [
            ("prohibit", "unsatisfied route/route-prohibited"), ("unreachable", "unsatisfied route/route-unreachable"),
            ("blackhole", "unsatisfied route/route-blackhole"),
        ], ["-4", "-6"])
    func refusingRoute(_ kind: (String, String), _ family: String) throws {
        let network = try Network()
        try network.uplink("v0", "10.1.0.1/24", "2001:db8:1::1/64")
        let via = family == "-4" ? "10.1.0.254" : "2001:db8:1::ff"
        let good = "satisfied v0 wired \(family.dropFirst()) via \(via)"
        try network.host.ip("\(family) route add default via \(via) metric 200")
        let witness = try Witness(network.host, sees: good)

        try network.host.ip("\(family) route add \(kind.0) default metric 100")
        try witness.expect(kind.1, reasons: "interface-changed families-changed cause-changed")
        try network.host.ip("\(family) route del \(kind.0) default metric 100")
        try witness.expect(good, reasons: "families-changed cause-changed")
    }

    @Test func `a refusing rule changes the cause of a missing route, although the kernel's answer is the same`() throws {
        let network = try Network()
        try network.uplink("v0", "10.1.0.1/24")
        let witness = try Witness(network.host, sees: "unsatisfied route/no-route")
        try network.host.ip("rule add pref 10 unreachable")
        try witness.expect("unsatisfied route/route-unreachable", reasons: "cause-changed")
        try network.host.ip("rule del pref 10")
        try witness.expect("unsatisfied route/no-route", reasons: "cause-changed")
    }

    @Test func `an address with two peers stays when one of them is removed`() throws {
        let network = try Network()
        let host = network.host
        try network.uplink("v0")
        for peer in 2...3 { try host.ip("addr add 10.1.0.1 peer 10.1.0.\(peer) dev v0") }
        try host.ip("route add default dev v0")
        let witness = try Witness(host, sees: "satisfied v0 wired 4")
        try host.ip("addr del 10.1.0.1 peer 10.1.0.2 dev v0")
        try host.ip("addr add 10.1.0.9/32 dev v0")
        try witness.expectNext(reasons: "addresses-changed") {
            expectEqual($0.interface("v0")?.addresses, ["10.1.0.1/32", "10.1.0.9/32"])
        }
        try host.ip("addr del 10.1.0.1 peer 10.1.0.3 dev v0")
        try witness.expectNext(reasons: "addresses-changed") { expectEqual($0.interface("v0")?.addresses, ["10.1.0.9/32"]) }
    }

    // The kernel removes an expired route, and announces that, up to half a minute later.
    @Test func `an expired IPv6 route makes the path unsatisfied`() throws {
        let network = try Network()
        try network.uplink("v0", "2001:db8:1::1/64")
        let witness = try Witness(network.host, sees: "unsatisfied route/no-route")
        try network.host.ip("-6 route add default via fe80::1 dev v0 expires 3")
        try witness.expect("satisfied v0 wired 6 via fe80::1%v0")
        // A router advertisement renews a route in this way.
        try network.host.ip("-6 route change default via fe80::1 dev v0 expires 4")
        try witness.expect("unsatisfied route/no-route", reasons: "families-changed cause-changed")
    }

    @Test func `an interface that is removed and added again is judged by its present state`() throws {
        let network = try Network()
        let host = network.host
        try network.uplink("v0", "10.1.0.1/24")
        try host.ip("route add default via 10.1.0.254")
        let witness = try Witness(host, sees: "satisfied v0 wired 4 via 10.1.0.254")
        try host.ip("link del v0")
        try witness.expect("unsatisfied link/no-interface", past: ["unsatisfied link/interface-down"])
        try network.uplink("v0", "10.1.0.1/24")
        try witness.expect(
            "unsatisfied route/no-route",
            past: ["unsatisfied link/interface-down", "unsatisfied link/no-carrier", "unsatisfied address/no-address"])
    }

    @Test func `IPv4 routes that disappear silently with their link leave the snapshot at once`()
        throws
    {
        let network = try Network()
        let host = network.host
        try network.uplink("v0", "10.1.0.1/24", "2001:db8:1::1/64")
        try host.ip("route add default via 10.1.0.254")
        try host.ip("-6 route add default via 2001:db8:1::ff")
        let observer = try LibraryObserver(MonitorConfiguration(namespace: NetworkNamespace(host.path)))
        try expectEqual(observer.nextPath()?.line, "satisfied v0 wired 4+6 via 10.1.0.254 2001:db8:1::ff")

        for _ in 0..<5 {
            try host.ip("link set v0 down")
            let state = try observer.state()
            let index = try #require(state.snapshot.links.values.first { $0.name == "v0" }?.index)
            let over = state.snapshot.allRoutes.filter { $0.uses(interface: index) && $0.kind != .local }
            expectEmpty(over, "\(over)")
            expectEmpty(state.snapshot.defaultRoutes)

            try host.ip("link set v0 up")
            try host.ip("addr replace 2001:db8:1::1/64 dev v0 nodad")
            try host.ip("route add default via 10.1.0.254")
            try host.ip("-6 route replace default via 2001:db8:1::ff")
            let after = try observer.state()
            expectEqual(after.snapshot.defaultRoutes.count, 2)
        }
    }

    @Test func `an interface can be selected by an alternative name, even one that is added later`() throws {
        let network = try Network()
        let host = network.host
        try network.uplink("v0", "10.1.0.1/24")
        try network.uplink("v1", "10.2.0.1/24")
        try host.ip("route add default via 10.1.0.254 metric 100")
        try host.ip("route add default via 10.2.0.254 metric 200")
        let name = "the-uplink-whose-name-is-longer-than-15-bytes"
        let witness = try Witness(
            host, { $0.selection = .named(name) }, options: ["--interface", name], sees: "unsatisfied link/no-interface")
        try host.ip("link property add dev v1 altname other altname \(name)")
        try witness.expect("satisfied v1 wired 4 via 10.2.0.254")
        try host.ip("link property del dev v1 altname \(name)")
        try witness.expect("unsatisfied link/no-interface")
        _ = try Witness(
            host, { $0.selection = .named("other") }, options: ["--interface", "other"],
            sees: "satisfied v1 wired 4 via 10.2.0.254")

        // Probes are bound to the interface under its short name, since SO_BINDTODEVICE takes 15 bytes.
        try host.ip("link property add dev v1 altname \(name)")
        let status = try Program(
            [
                Programs.netwatch, "status", "--json", "--netns", host.path, "--interface", name, "--probe-timeout", "200ms",
                "10.2.0.254:1",
            ])
        let text = try status.remainingLines().joined()
        #expect(
            text.contains(#""interface":"v1""#) && !text.contains("source-unavailable") && !text.contains("no-interface"),
            "\(text)")
    }

    @Test func `a path can be limited to one interface or one address family`() throws {
        let network = try Network()
        let host = network.host
        try network.uplink("v0", "10.1.0.1/24", "2001:db8:1::1/64")
        try network.uplink("v1", "10.2.0.1/24")
        try host.ip("route add default via 10.1.0.254 metric 100")
        try host.ip("route add default via 10.2.0.254 metric 200")
        try host.ip("-6 route add default via 2001:db8:1::ff")

        let v1 = try Witness(
            host, { $0.selection = .named("v1") }, options: ["--interface", "v1"], sees: "satisfied v1 wired 4 via 10.2.0.254")
        let v6 = try Witness(host, { $0.families = [.v6] }, options: ["-6"], sees: "satisfied v0 wired 6 via 2001:db8:1::ff")
        _ = try Witness(host, { $0.families = [.v4] }, options: ["-4"], sees: "satisfied v0 wired 4 via 10.1.0.254")
        _ = try Witness(
            host, { $0.selection = .named("v9") }, options: ["--interface", "v9"], sees: "unsatisfied link/no-interface")
        try host.ip("link set v0 down")
        try v6.expect("unsatisfied link/interface-down", reasons: "families-changed")
        try host.ip("link set v1 down")
        // Routes that were dumped because of v0 may lack those of v1 before the event of v1 has been read.
        try v1.expect("unsatisfied link/interface-down", past: ["unsatisfied route/no-route"])
    }

    @Test func `with routes over links without carrier ignored, the monitor settles until the carrier is back`() throws {
        let network = try Network()
        let host = network.host
        try network.uplink("v0", "10.1.0.1/24")
        try host.ip("route add default via 10.1.0.254")
        try host.set("ipv4.conf.v0.ignore_routes_with_linkdown", "1")
        let observer = try LibraryObserver(MonitorConfiguration(namespace: NetworkNamespace(host.path)))
        #expect(try observer.nextPath()?.line.hasPrefix("satisfied v0") == true)

        try network.router.ip("link set rv0 down")
        #expect(try observer.nextPath()?.line.hasPrefix("unsatisfied link/no-carrier") == true)
        let defaultRoute = Route.Key(destination: IPPrefix(IPAddress(v4: 0), length: 0))
        try expectEmpty(observer.settledState().snapshot.routes(defaultRoute))
        try network.router.ip("link set rv0 up")
        while let path = try observer.nextPath(), !path.line.hasPrefix("satisfied v0") {}
        try expectEqual(observer.settledState().snapshot.routes(defaultRoute).count, 1)
    }

    @Test(arguments: ["ipv4", "ipv6"])
    func `another uplink takes over once routes over a link without carrier are ignored`(_ family: String) throws {
        let network = try Network()
        let host = network.host
        let isV4 = family == "ipv4"
        for number in 0..<2 {
            let address = isV4 ? "10.\(number).0.1/24" : "2001:db8:\(number)::1/64"
            let gateway = isV4 ? "10.\(number).0.9" : "2001:db8:\(number)::9"
            try network.uplink("v\(number)", address)
            try host.ip("\(isV4 ? "-4" : "-6") route add default via \(gateway) dev v\(number) metric \(number + 1)")
        }
        let observer = try LibraryObserver(MonitorConfiguration(namespace: NetworkNamespace(host.path)))
        #expect(try observer.nextPath()?.line.hasPrefix("satisfied v0") == true)
        try network.router.ip("link set rv0 down")
        while let path = try observer.nextPath(), !path.line.hasPrefix("unsatisfied link/no-carrier") {}
        _ = try observer.settledState()

        try host.set("\(family).conf.v0.ignore_routes_with_linkdown", "1")
        while let path = try observer.nextPath(), !path.line.hasPrefix("satisfied v1") {}
        _ = try observer.settledState()
        try host.set("\(family).conf.v0.ignore_routes_with_linkdown", "0")
        while let path = try observer.nextPath(), !path.line.hasPrefix("unsatisfied link/no-carrier") {}
    }
}
