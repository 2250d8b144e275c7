import Foundation
import Pacing
import Testing

@testable import Reachability

/// Which address the kernel is asked about where routes refuse packets to bogus networks.
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

    /// A machine that is online and asked nothing yet; the kernel routes the second candidates as the first.
    private func online(_ configuration: MonitorConfiguration = MonitorConfiguration()) -> PathBench {
        var bench = PathBench.online(configuration)
        for interface in [0, 2] as [UInt32] { bench.routes[RouteQuery(Self.second, interface: interface)] = Net.answer }
        bench.questions = []
        return bench
    }

    @Test(arguments: refusing) func `a bogon filter moves the question to an address that it does not cover`(kind: Route.Kind) {
        var bench = online()
        bench.routes[RouteQuery(Net.anywhere)] = .refused(errno: 113)
        let filters = [Self.filter("198.51.100.0/24", kind), Self.filter("2001:db8::/32", kind)]
        let effects = bench.hear(.route(filters[0]), .route(filters[1]))
        #expect(effects.published.isEmpty)
        #expect(bench.machine.path?.status == .satisfied)
        #expect(bench.questions == [RouteQuery(Self.second), RouteQuery(Self.second6)])

        bench.questions = []
        bench.routes[RouteQuery(Net.anywhere)] = Net.answer
        #expect(bench.hear(.routeRemoved(filters[0]), .routeRemoved(filters[1])).published.isEmpty)
        #expect(bench.questions == [RouteQuery(Net.anywhere), RouteQuery(Net.anywhere6)])
    }

    @Test func `a bogon filter that does not cover the address, or sends packets somewhere, leaves the question alone`() {
        var bench = online()
        bench.hear(
            .route(Self.filter("198.18.0.0/15")), .route(Self.filter("198.51.100.0/24", .throw)),
            .route(Self.filter("198.51.100.0/25", .unicast)), .route(Self.filter("0.0.0.0/0", metric: 9)))
        #expect(bench.questions == [RouteQuery(Net.anywhere), RouteQuery(Net.anywhere6)])
    }

    @Test func `a bogon filter in another table, or of two metrics, counts until its last route goes`() {
        var bench = online()
        let filters = [Self.filter("198.51.0.0/16", table: 100), Self.filter("198.51.0.0/16", metric: 5)]
        bench.hear(.route(filters[0]), .route(filters[1]))
        for (route, question) in [(filters[0], Self.second), (filters[1], Net.anywhere)] {
            bench.questions = []
            bench.hear(.routeRemoved(route))
            #expect(bench.questions.first == RouteQuery(question))
        }
    }

    @Test func `a bogon filter moves the questions for one interface too`() {
        var bench = online(MonitorConfiguration(selection: .named("eth0")))
        bench.hear(.route(Self.filter("198.51.100.1/32")))
        #expect(bench.machine.path?.status == .satisfied)
        #expect(bench.questions.contains(RouteQuery(Self.second, interface: 2)))
        #expect(!bench.questions.contains(RouteQuery(Net.anywhere, interface: 2)))
    }

    @Test func `a bogon filter by a rule moves the question, unless the rule refuses all packets or is inverted`() {
        var bench = online()
        let covering = Self.prefix("198.51.100.0/24")
        bench.hear(.rule(Rule(family: .v4, priority: 9, action: 7, destination: covering)))
        #expect(bench.questions.first == RouteQuery(Self.second))
        bench.questions = []
        bench.hear(.ruleRemoved(Rule(family: .v4, priority: 9, action: 7, destination: covering)))
        bench.hear(.rule(Rule(family: .v4, priority: 9, action: 7, isInverted: true, destination: covering)))
        bench.hear(.rule(Rule(family: .v4, priority: 9, action: 7)))
        bench.hear(.rule(Rule(family: .v4, priority: 9, action: 1, table: 77, destination: covering)))
        #expect(Set(bench.questions) == [RouteQuery(Net.anywhere), RouteQuery(Net.anywhere6)])
    }

    @Test func `the cause of no path behind a bogon filter names the address that was asked for`() {
        var bench = online()
        bench.routes = [:]
        bench.hear(.route(Self.filter("198.51.100.0/24")), .routeRemoved(Net.defaultRoute))
        #expect(bench.machine.path?.status == .unsatisfied)
        #expect(bench.machine.path?.cause?.code == .noRoute)
        #expect(bench.machine.path?.cause?.evidence["destination"] == .text("\(Self.second)"))
    }

    // MARK: The choice of an address

    private func chosen(_ networks: [String]) -> RouteDestinations {
        RouteDestinations(RefusedNetworks(networks.map(Self.prefix)))
    }

    @Test func `bogon filters that cover each preferred address leave a global one, and all addresses the first`() {
        let preferred = ["192.0.0.0/2", "2001::/16"]
        #expect(chosen(preferred).v4 == IPAddress("1.0.0.1"))
        #expect(chosen(preferred).v6 == IPAddress("2000::1"))
        // Private networks are stepped over as refused ones are.
        #expect(chosen(["192.0.0.0/2", "0.0.0.0/5", "8.0.0.0/7"]).v4 == IPAddress("11.0.0.0"))
        #expect(chosen(["192.0.0.0/2", "0.0.0.0/1"]).v4 == IPAddress("128.0.0.0"))
        #expect(chosen(["0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1"]) == RouteDestinations())
    }

    @Test func `an address that a bogon filter moves to is never in it, whatever the filters`() {
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
    func `a network begins and ends where its prefix says`(network: String, first: String, following: String?) {
        #expect(Self.prefix(network).first == IPAddress(first))
        #expect(Self.prefix(network).following == following.flatMap { IPAddress($0) })
    }
}
