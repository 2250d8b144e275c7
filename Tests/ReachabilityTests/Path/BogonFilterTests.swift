import Expectations
import Foundation
import Pacing
import Testing

@testable import Reachability

/// The address that route queries use if routes refuse packets to bogus networks.
@Suite struct BogonFilterTests {
    private static let second = IPAddress(v4: 0xc100_0e81)
    private static let second6 = IPAddress(v6: 0x2001_07fd << 32, 1)
    private static let refusing: [Route.Kind] = [.unreachable, .prohibit, .blackhole]

    private static func prefix(_ text: String) -> IPPrefix {
        let parts = text.split(separator: "/")
        return IPPrefix(IPAddress(parts[0]) ?? IPAddress(v4: 0), length: UInt8(parts[1]) ?? 0)
    }

    private static func filter(_ text: String, _ kind: Route.Kind = .unreachable, table: UInt32 = 254, metric: UInt32 = 0)
        -> Route
    {
        Route(Route.Key(table: table, metric: metric, destination: prefix(text)), kind: kind)
    }

    /// A machine that is online and has asked no query yet. The kernel routes the second candidates like the first.
    private func online(_ configuration: MonitorConfiguration = MonitorConfiguration()) -> PathBench {
        var bench = PathBench.online(configuration)
        for interface in [0, 2] as [UInt32] { bench.routes[RouteQuery(Self.second, interface: interface)] = Net.answer }
        bench.questions = []
        return bench
    }

    @Test(arguments: refusing)
    func `a bogon filter moves the route query to an address that it does not cover`(kind: Route.Kind) {
        var bench = online()
        bench.routes[RouteQuery(Net.anywhere)] = .refused(errno: 113)
        let filters = [Self.filter("198.51.100.0/24", kind), Self.filter("2001:db8::/32", kind)]
        let effects = bench.deliver(.route(filters[0]), .route(filters[1]))
        expectEmpty(effects.published)
        expectEqual(bench.machine.path?.status, .satisfied)
        expectEqual(bench.questions, [RouteQuery(Self.second), RouteQuery(Self.second6)])

        bench.questions = []
        bench.routes[RouteQuery(Net.anywhere)] = Net.answer
        expectEmpty(bench.deliver(.routeRemoved(filters[0]), .routeRemoved(filters[1])).published)
        expectEqual(bench.questions, [RouteQuery(Net.anywhere), RouteQuery(Net.anywhere6)])
    }

    @Test func `a bogon filter that does not cover the address, or routes packets, leaves the route query unchanged`() {
        var bench = online()
        bench.deliver(
            .route(Self.filter("198.18.0.0/15")), .route(Self.filter("198.51.100.0/24", .throw)),
            .route(Self.filter("198.51.100.0/25", .unicast)), .route(Self.filter("0.0.0.0/0", metric: 9)))
        expectEqual(bench.questions, [RouteQuery(Net.anywhere), RouteQuery(Net.anywhere6)])
    }

    @Test func `a bogon filter in another table, or with two metrics, applies until its last route is removed`() {
        var bench = online()
        let filters = [Self.filter("198.51.0.0/16", table: 100), Self.filter("198.51.0.0/16", metric: 5)]
        bench.deliver(.route(filters[0]), .route(filters[1]))
        for (route, question) in [(filters[0], Self.second), (filters[1], Net.anywhere)] {
            bench.questions = []
            bench.deliver(.routeRemoved(route))
            expectEqual(bench.questions.first, RouteQuery(question))
        }
    }

    @Test func `a bogon filter moves route queries for one interface too`() {
        var bench = online(MonitorConfiguration(selection: .named("eth0")))
        bench.deliver(.route(Self.filter("198.51.100.1/32")))
        expectEqual(bench.machine.path?.status, .satisfied)
        #expect(bench.questions.contains(RouteQuery(Self.second, interface: 2)))
        #expect(!bench.questions.contains(RouteQuery(Net.anywhere, interface: 2)))
    }

    @Test func `a bogon filter by a rule moves the route query, unless the rule refuses all packets or is inverted`() {
        var bench = online()
        let covering = Self.prefix("198.51.100.0/24")
        bench.deliver(.rule(Rule(family: .v4, priority: 9, action: 7, destination: covering)))
        expectEqual(bench.questions.first, RouteQuery(Self.second))
        bench.questions = []
        bench.deliver(.ruleRemoved(Rule(family: .v4, priority: 9, action: 7, destination: covering)))
        bench.deliver(.rule(Rule(family: .v4, priority: 9, action: 7, isInverted: true, destination: covering)))
        bench.deliver(.rule(Rule(family: .v4, priority: 9, action: 7)))
        bench.deliver(.rule(Rule(family: .v4, priority: 9, action: 1, table: 77, destination: covering)))
        expectEqual(Set(bench.questions), [RouteQuery(Net.anywhere), RouteQuery(Net.anywhere6)])
    }

    @Test func `the cause of an unsatisfied path behind a bogon filter names the address that was queried`() {
        var bench = online()
        bench.routes = [:]
        bench.deliver(.route(Self.filter("198.51.100.0/24")), .routeRemoved(Net.defaultRoute))
        expectEqual(bench.machine.path?.status, .unsatisfied)
        expectEqual(bench.machine.path?.cause?.code, .noRoute)
        expectEqual(bench.machine.path?.cause?.evidence["destination"], .text("\(Self.second)"))
    }

    // MARK: The choice of an address

    private func chosen(_ networks: [String]) -> RouteDestinations {
        RouteDestinations(RefusedNetworks(networks.map(Self.prefix)))
    }

    @Test func `bogon filters over each preferred address leave a global address, and over all addresses the first`() {
        let preferred = ["192.0.0.0/2", "2001::/16"]
        expectEqual(chosen(preferred).v4, IPAddress("1.0.0.1"))
        expectEqual(chosen(preferred).v6, IPAddress("2000::1"))
        // Private networks are skipped like refused ones.
        expectEqual(chosen(["192.0.0.0/2", "0.0.0.0/5", "8.0.0.0/7"]).v4, IPAddress("11.0.0.0"))
        expectEqual(chosen(["192.0.0.0/2", "0.0.0.0/1"]).v4, IPAddress("128.0.0.0"))
        expectEqual(chosen(["0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1"]), RouteDestinations())
    }

    @Test func `the address that a bogon filter moves the query to is in no filter, for random filters`() {
        let given = ProcessInfo.processInfo.environment["NETWATCH_SEED"].flatMap { UInt64($0) }
        let seed = given ?? UInt64.random(in: 0 ... .max)
        var dice = SplitMix64(seed: seed)
        for _ in 0..<300 {
            var networks: [IPPrefix] = []
            for _ in 0..<Int.random(in: 1...40, using: &dice) {
                let v4 = IPAddress(v4: UInt32.random(in: 0xc000_0000...0xc7ff_ffff, using: &dice))
                let high = UInt64.random(in: 0x2001 << 48...0x2001_0db9 << 32, using: &dice)
                let v6 = IPAddress(v6: high, .random(in: 0 ... .max, using: &dice))
                networks.append(IPPrefix(v4, length: .random(in: 1...32, using: &dice)))
                networks.append(IPPrefix(v6, length: .random(in: 1...128, using: &dice)))
            }
            let chosen = RouteDestinations(RefusedNetworks(networks))
            for family in IPAddress.Family.allCases {
                let isCovered = networks.contains { $0.contains(chosen[family]) }
                #expect(
                    !isCovered || chosen[family] == RouteDestinations()[family], "NETWATCH_SEED=\(seed): \(networks) \(chosen)")
            }
        }
    }

    @Test(
        arguments: [
            ("10.1.2.3/8", "10.0.0.0", "11.0.0.0"), ("10.1.2.3/32", "10.1.2.3", "10.1.2.4"), ("255.0.0.0/8", "255.0.0.0", nil),
            ("1.2.3.4/0", "0.0.0.0", nil), ("2001:db8:1:2:3::/48", "2001:db8:1::", "2001:db8:2::"),
            ("1:2:3:4:5::/64", "1:2:3:4::", "1:2:3:5::"),
            ("::1/128", "::1", "::2"), ("::ffff:ffff:ffff:ffff/128", "::ffff:ffff:ffff:ffff", "0:0:0:1::"),
            ("ff00::/8", "ff00::", nil),
            ("0:0:0:1:203::/72", "0:0:0:1:200::", "0:0:0:1:300::"), ("1::/0", "::", nil),
        ] as [(String, String, String?)])
    func `a network's first and following address come from its prefix`(network: String, first: String, following: String?) {
        expectEqual(Self.prefix(network).first, IPAddress(first))
        expectEqual(Self.prefix(network).following, following.flatMap { IPAddress($0) })
    }
}
