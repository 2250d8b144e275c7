import Expectations
import NetworkLab
import Reachability
import Testing

/// IPv4 routes that look alike because a next hop of one of them is dead: `default dev v1` beside `default nexthop dev v0 dead
/// nexthop dev v1`. The kernel announces the removal of one, and does not say that the other stays.
@Suite(.requiresNamespaces)
struct DuplicateRoutesTests {
    private static let multipath = "default metric 100 nexthop via 10.1.0.254 dev v0 nexthop via 10.2.0.254 dev v1"
    private static let single = "default via 10.2.0.254 dev v1 metric 100"

    @Test(arguments: ["route del \(single)", "route replace default via 10.2.0.253 dev v1 metric 100"], [false, true])
    func `a multipath default route with a dead next hop stays in the snapshot when its duplicate is removed`(
        command: String, isAppended: Bool
    ) throws {
        let network = try Network()
        let host = network.host
        try network.uplink("v0", "10.1.0.1/24")
        try network.uplink("v1", "10.2.0.1/24")
        // The single route is added first, so that the kernel replaces it.
        if !isAppended { try host.ip("route add \(Self.single)") }
        try host.ip("route append \(Self.multipath)")
        let observer = try LibraryObserver(MonitorConfiguration(namespace: NetworkNamespace(host.path)))
        _ = try observer.nextPath()

        try host.ip("link set v0 down")
        try FreshDump.expect(host, observer)
        if isAppended { try host.ip("route prepend \(Self.single)") }
        try host.ip(command)
        try FreshDump.expect(host, observer)
        let routes = try observer.settledState().snapshot.allRoutes.filter { $0.key.destination.isDefault }
        let remaining = Route.NextHop(
            interface: try #require(routes.first?.nextHops.first).interface, gateway: IPAddress(v4: 0x0a02_00fe))
        #expect(routes.contains { $0.nextHops == [remaining] })
        // The other next hop revives.
        try host.ip("link set v0 up")
        try FreshDump.expect(host, observer)
    }
}
