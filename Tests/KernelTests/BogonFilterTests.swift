import Expectations
import NetworkLab
import Testing

/// Routes that refuse packets to bogus networks, as routers and careful hosts have them, do not change the path to other
/// networks.
@Suite(.requiresNamespaces) struct BogonFilterTests {
    private static let satisfied = "satisfied v0 wired 4+6 via 10.1.0.254 2001:db8:1::ff"

    /// The networks that operators usually filter: special-purpose networks of the IANA registries, documentation included.
    private static let usual = [
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",
        "240.0.0.0/4", "::/8", "100::/64", "2001:2::/48", "2001:10::/28", "2001:20::/28", "2001:db8::/32", "2002::/16",
        "3ffe::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fec0::/10",
    ]

    /// An uplink with default routes of both families.
    private func network() throws -> Network {
        let network = try Network()
        try network.host.ip("link set lo up")
        try network.uplink("v0", "10.1.0.1/24", "2001:db8:1::1/64")
        try network.host.ip("route add default via 10.1.0.254")
        try network.host.ip("-6 route add default via 2001:db8:1::ff")
        return network
    }

    private func refuse(_ kind: String, _ destinations: [String], options: String = "", on host: LabHost) throws {
        for destination in destinations {
            try host.ip("\(destination.contains(":") ? "-6 " : "")route add \(kind) \(destination) \(options)")
        }
    }

    @Test(arguments: ["unreachable", "prohibit", "blackhole"])
    func `a bogon filter of the usual networks leaves the path satisfied`(kind: String) throws {
        let network = try network()
        try refuse(kind, Self.usual, on: network.host)
        _ = try Witness(network.host, sees: Self.satisfied)
    }

    @Test(arguments: ["unreachable", "prohibit", "blackhole"])
    func `a bogon filter added and removed changes no path, and changes behind it are published`(kind: String) throws {
        let network = try network()
        let host = network.host
        let witness = try Witness(host, sees: Self.satisfied)
        try refuse(kind, ["198.18.0.0/15", "198.51.100.0/24", "2001:db8:ffff::/48"], on: host)
        try host.ip("addr add 10.1.0.7/24 dev v0")
        try witness.expectNext(reasons: "addresses-changed")
        try host.ip("route del default")
        try witness.expectNext(
            "satisfied v0 wired 6 via 2001:db8:1::ff", reasons: "interface-changed families-changed gateways-changed")
        try host.ip("-6 route del default")
        try witness.expect("unsatisfied route/no-route", reasons: "families-changed cause-changed")
        try host.ip("route add default via 10.1.0.254")
        try host.ip("-6 route add default via 2001:db8:1::ff")
        try witness.expect(Self.satisfied, past: ["satisfied v0 wired 4 via 10.1.0.254"])
        for destination in ["198.51.100.0/24", "2001:db8:ffff::/48"] {
            try host.ip("\(destination.contains(":") ? "-6 " : "")route del \(kind) \(destination)")
        }
        try host.ip("addr del 10.1.0.7/24 dev v0")
        try witness.expectNext(reasons: "addresses-changed")
    }

    @Test func `a bogon filter over the queried address, added and removed at any moment, is never published`() throws {
        let network = try network()
        let witness = try Witness(network.host, sees: Self.satisfied)
        // Each command runs a program of its own: the time between two leaves room for route queries.
        for _ in 0..<100 {
            for verb in ["add", "del"] {
                try network.host.ip("route \(verb) unreachable 198.18.0.0/15")
                try network.host.ip("-6 route \(verb) unreachable 2001:db8:ffff::/48")
            }
        }
        try network.host.ip("addr add 10.1.0.7/24 dev v0")
        try witness.expectNext(reasons: "addresses-changed")
    }

    @Test func `a bogon filter in a table that a policy rule selects leaves the path satisfied`() throws {
        let network = try network()
        let witness = try Witness(network.host, sees: Self.satisfied)
        try refuse("blackhole", ["198.51.0.0/16", "2001:db8:ffff::/48"], options: "table 100", on: network.host)
        for family in ["-4", "-6"] { try network.host.ip("\(family) rule add pref 10 lookup 100") }
        try network.host.ip("addr add 10.1.0.7/24 dev v0")
        try witness.expectNext(reasons: "addresses-changed")
        _ = try Witness(network.host, options: ["--interface", "v0"], sees: Self.satisfied)
    }

    @Test func `a bogon filter by rules leaves the path satisfied`() throws {
        let network = try network()
        let witness = try Witness(network.host, sees: Self.satisfied)
        try network.host.ip("rule add pref 10 to 198.51.100.0/24 prohibit")
        try network.host.ip("-6 rule add pref 10 to 2001:db8::/32 prohibit")
        try network.host.ip("addr add 10.1.0.7/24 dev v0")
        try witness.expectNext(reasons: "addresses-changed")
    }

    @Test func `a bogon filter by a nexthop object leaves the path satisfied`() throws {
        let network = try network()
        try network.host.ip("nexthop add id 7 blackhole")
        try network.host.ip("route add 198.51.100.0/24 nhid 7")
        try network.host.ip("-6 nexthop add id 8 blackhole")
        try network.host.ip("-6 route add 2001:db8:ffff::/48 nhid 8")
        _ = try Witness(network.host, sees: Self.satisfied)
    }

    @Test
    func `a refusing default route, or two routes that refuse half of the addresses each, make the path unsatisfied`() throws {
        let network = try network()
        try network.host.ip("-6 route del default")
        try network.host.ip("route del default")
        try refuse("unreachable", ["198.51.100.0/24", "default"], on: network.host)
        let witness = try Witness(network.host, sees: "unsatisfied route/route-unreachable")
        try network.host.ip("route del unreachable default")
        try network.host.ip("route add default via 10.1.0.254")
        try witness.expect("satisfied v0 wired 4 via 10.1.0.254", past: ["unsatisfied route/no-route"])
        try refuse("prohibit", ["0.0.0.0/1"], on: network.host)
        try network.host.ip("addr add 10.1.0.7/24 dev v0")
        try witness.expectNext(reasons: "addresses-changed")
        try refuse("prohibit", ["128.0.0.0/1"], on: network.host)
        try network.host.ip("route del unreachable 198.51.100.0/24")
        try witness.expect(
            "unsatisfied route/route-prohibited", reasons: "cause-changed", past: ["unsatisfied route/route-unreachable"])
    }
}
