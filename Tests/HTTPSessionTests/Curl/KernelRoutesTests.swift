import Expectations
import NetworkLab
import Reachability
import Testing

@testable import HTTPSession

/// Routes that the kernel reports for a host with two interfaces.
@Suite(.requiresNamespaces, .timeLimit(.minutes(20))) struct KernelRoutesTests {
    private let host: LabHost
    private let far: LabHost

    init() throws {
        let lab = Lab()
        (host, far) = try (lab.host(loopback: true), lab.host())
        for (name, number) in [("one", 1), ("two", 2)] {
            try lab.connect(host, name, far, name)
            try far.ip("link set \(name) up")
            try host.ip("addr add 10.9.\(number).2/24 dev \(name)")
            try host.ip("addr add 2001:db8:\(number)::2/64 dev \(name) nodad")
            try host.ip("link set \(name) up")
        }
    }

    private func way(to remote: String, over interface: String? = nil, expecting expected: String...) throws -> RouteTracker.Route
    {
        let remote = try #require(IPAddress(remote))
        let expected = Set(expected.compactMap { IPAddress($0) })
        return try host.perform { KernelRoutes.route(to: remote, over: interface, expecting: expected) }
    }

    private func from(_ addresses: String...) -> RouteTracker.Route { .from(Set(addresses.compactMap { IPAddress($0) })) }

    @Test(arguments: [
        ("203.0.113.0/24", "203.0.113.9", "10.9.1.2", "10.9.2.2"),
        ("2001:db8:9::/48", "2001:db8:9::9", "2001:db8:1::2", "2001:db8:2::2"),
    ]) func `a kernel route is reported as the local address of a connection, and follows route changes`(
        _ network: String, _ remote: String, _ one: String, _ two: String
    ) throws {
        try expectEqual(way(to: remote), .none)
        try host.ip("route add \(network) dev one")
        try expectEqual(way(to: remote), from(one))
        try expectEqual(way(to: remote, expecting: two), from(one))
        try host.ip("route replace \(network) dev one src \(two)")
        try expectEqual(way(to: remote), from(two))
        try host.ip("route del \(network)")
        for refusal in ["unreachable", "prohibit", "blackhole"] {
            try host.ip("route add \(refusal) \(network)")
            try expectEqual(way(to: remote), .refused, "\(refusal)")
            try host.ip("route del \(refusal) \(network)")
        }
        try expectEqual(way(to: one), from(one))
    }

    @Test func `with a given interface the route goes over that interface, regardless of the routing table`() throws {
        try host.ip("route add 203.0.113.0/24 dev one")
        try expectEqual(way(to: "203.0.113.9", over: "two"), from("10.9.2.2"))
        try host.ip("addr del 10.9.2.2/24 dev two")
        #expect(try way(to: "203.0.113.9", over: "two", expecting: "10.9.2.2") != from("10.9.2.2"))
    }

    @Test func `the route to a link-local address without zone is unknown`() throws {
        try expectEqual(way(to: "fe80::1"), .unknown)
    }

    @Test func `several routes are reported if the kernel spreads connections over them by port`() throws {
        try host.set("ipv4.fib_multipath_hash_policy", "1")
        try host.ip("route add 203.0.113.0/24 nexthop dev one nexthop dev two")
        try expectEqual(way(to: "203.0.113.9", expecting: "10.9.1.2", "10.9.2.2"), from("10.9.1.2", "10.9.2.2"))
        // The expected address belongs to neither route, so there may be routes that no lookup returned.
        try expectEqual(way(to: "203.0.113.9", expecting: "10.9.3.2"), .unknown)
    }
}
