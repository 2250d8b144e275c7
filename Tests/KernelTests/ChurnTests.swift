import Expectations
import NetworkLab
import Reachability
import Testing

/// Changes that do not concern the selected path are counted, not published.
@Suite(.requiresNamespaces)
struct ChurnTests {
    @Test func `changes of containers' interfaces and of lifetimes are counted in the next record`() throws {
        let network = try Network()
        let host = network.host
        try network.uplink("v0", "10.1.0.1/24", "2001:db8:1::1/64")
        try host.ip("route add default via 10.1.0.254")
        let witness = try Witness(host, sees: "satisfied v0 wired 4 via 10.1.0.254")

        for number in 0..<5 {
            try host.ip("link add name c\(number) type veth peer name d\(number)")
            try host.ip("addr add 172.17.\(number).1/24 dev c\(number)")
            try host.ip("link set c\(number) up")
            try host.ip("link set d\(number) up")
            try host.ip("route add 172.18.\(number).0/24 dev c\(number)")
            try host.ip("addr change 2001:db8:1::1/64 dev v0 preferred_lft \(1000 + number) valid_lft 5000")
            try host.ip("link del c\(number)")
        }
        try host.ipBatch(Self.manyRoutes)
        try host.ip("addr add 10.9.0.1/24 dev v0")
        try witness.expectNext(reasons: "addresses-changed") { #expect($0.suppressed >= 100, "\($0)") }
        // The next record does not count them again.
        try host.ip("addr del 10.9.0.1/24 dev v0")
        try witness.expectNext(reasons: "addresses-changed") { #expect($0.suppressed < 10, "\($0)") }
    }

    private static let manyRoutes = (0..<700).map { "route add 10.\(50 + $0 / 200).\($0 % 200).0/24 via 10.1.0.9" }

    @Test func `routes and rules that do not concern the path are counted`() throws {
        let network = try Network()
        let host = network.host
        try network.uplink("v0", "10.1.0.1/24")
        try host.ip("route add default via 10.1.0.254")
        let witness = try Witness(host, sees: "satisfied v0 wired 4 via 10.1.0.254")

        try host.ipBatch(Self.manyRoutes)
        try host.ip("rule add pref 77 to 10.50.0.0/16 lookup 77")
        try host.ip("neigh add 10.1.0.7 lladdr 02:00:00:00:00:07 dev v0")
        try host.ip("route add default via 10.1.0.253 metric 900")
        try host.ip("link set v0 mtu 1400")
        try host.ip("route change default via 10.1.0.252 metric 0")
        try witness.expectNext("satisfied v0 wired 4 via 10.1.0.252", reasons: "gateways-changed") {
            #expect($0.suppressed >= 100, "\($0)")
        }
    }
}
