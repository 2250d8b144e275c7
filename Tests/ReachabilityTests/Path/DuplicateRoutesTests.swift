import Expectations
import Testing

@testable import Reachability

/// Two routes of the kernel that look alike: an IPv4 multipath route whose other next hop is dead, and a route with its key over
/// the remaining next hop alone. The snapshot holds one of them and must not lose the other.
@Suite struct DuplicateRoutesTests {
    private static let key = Route.Key(metric: 100, destination: IPPrefix(IPAddress(v4: 0), length: 0))
    private let single = Route(key, nextHops: [.init(interface: 3)])
    private let multipath = Route(key, nextHops: [.init(interface: 2), .init(interface: 3)])
    private let other = Route(key, nextHops: [.init(interface: 1)])
    private let stale: Set<StaleRoutes> = [StaleRoutes(family: .v4, interface: 3)]

    private func keeper(_ events: NetlinkEvent...) -> SnapshotKeeper {
        var keeper = SnapshotKeeper()
        for event in [.link(Net.lo), .link(Net.eth0), .link(Net.eth1)] + events { _ = keeper.apply(event) }
        return keeper
    }

    private func dump(_ routes: [Route], over interface: UInt32? = nil, _ keeper: inout SnapshotKeeper) -> SnapshotKeeper.Outcome
    {
        keeper.beginDump(.routesV4, over: interface)
        for route in routes { keeper.addDumped(.route(route)) }
        return keeper.endDump()
    }

    @Test func `removing one of two duplicate routes of a dump makes the routes over its interface stale`() {
        var keeper = keeper()
        _ = dump([single, single], &keeper)
        expectEqual(keeper.apply(.routeRemoved(single)).staleRoutes, stale)
        expectEqual(dump([single], over: 3, &keeper).changes, [.routeAdded(single)])
        // One route is left: its removal needs no dump.
        let outcome = keeper.apply(.routeRemoved(single))
        #expect(outcome.changes == [.routeRemoved(single)] && outcome.staleRoutes.isEmpty && outcome.staleTables.isEmpty)
    }

    @Test func `replacing one of two duplicate routes makes the table stale`() {
        var keeper = keeper()
        _ = dump([single, single], &keeper)
        expectEqual(keeper.apply(.route(other, replaces: true)).staleTables, [.routesV4])
        _ = dump([other, single], &keeper)
        expectEqual(keeper.live.routes(Self.key), [other, single])
    }

    @Test func `a route appended beside a multipath route that looks the same is known as a duplicate`() {
        var keeper = keeper(.route(single))
        expectEmpty(keeper.apply(.route(single)).changes)
        expectEqual(keeper.apply(.routeRemoved(single)).staleRoutes, stale)
    }

    @Test func `removing a route beside a multipath route that may look the same makes the routes over its interface stale`() {
        var keeper = keeper(.route(single), .route(multipath))
        let outcome = keeper.apply(.routeRemoved(single))
        #expect(outcome.changes == [.routeRemoved(single)] && outcome.staleRoutes == stale)
        // The multipath route's other next hop is dead.
        expectEqual(dump([single], over: 3, &keeper).changes, [.routeRemoved(multipath), .routeAdded(single)])
    }

    @Test func `a revived multipath route does not take the place of a duplicate route`() {
        var keeper = keeper(.route(single), .route(multipath))
        // The next hop over interface 2 dies and revives.
        expectEqual(dump([single], over: 2, &keeper).changes, [.routeRemoved(multipath)])
        expectEqual(dump([multipath], over: 2, &keeper).staleTables, [.routesV4])
        expectEqual(keeper.live.routes(Self.key), [single, multipath])
    }

    @Test func `removing another route with the key keeps the duplicates known`() {
        var keeper = keeper()
        _ = dump([single, single, other], &keeper)
        _ = keeper.apply(.routeRemoved(other))
        expectEqual(keeper.apply(.routeRemoved(single)).staleRoutes, stale)
    }

    @Test func `after a complete dump without duplicate routes, removing the route makes nothing stale`() {
        var keeper = keeper()
        _ = dump([single, single], &keeper)
        _ = dump([single], &keeper)
        expectEmpty(keeper.apply(.routeRemoved(single)).staleRoutes)
    }
}
