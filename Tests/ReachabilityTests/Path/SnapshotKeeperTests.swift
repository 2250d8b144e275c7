import Expectations
import Testing

@testable import Reachability

/// Dumps and events in every order: the last event decides.
@Suite struct SnapshotKeeperTests {
    private let route = Net.defaultRoute

    private func keeper(_ events: NetlinkEvent...) -> SnapshotKeeper {
        var keeper = SnapshotKeeper()
        for event in [.link(Net.lo), .link(Net.eth0), .link(Net.eth1)] + events { _ = keeper.apply(event) }
        return keeper
    }

    @Test func `a route that is dumped and then removed is absent after the dump`() {
        var keeper = keeper()
        keeper.beginDump(.routesV4)
        keeper.addDumped(.route(route))
        _ = keeper.apply(.routeRemoved(route))
        expectEmpty(keeper.endDump().changes)
        #expect(!keeper.live.contains(route))
    }

    @Test func `a route that is removed and then dumped by an older slice is absent after the dump`() {
        var keeper = keeper(.route(route))
        keeper.beginDump(.routesV4)
        _ = keeper.apply(.routeRemoved(route))
        keeper.addDumped(.route(route))
        expectEmpty(keeper.endDump().changes)
        #expect(!keeper.live.contains(route))
    }

    @Test func `a route that is added while the dump misses it is present after the dump`() {
        var keeper = keeper()
        keeper.beginDump(.routesV4)
        let outcome = keeper.apply(.route(route))
        expectEqual(outcome.changes, [.routeAdded(route)])
        expectEmpty(keeper.endDump().changes)
        #expect(keeper.live.contains(route))
    }

    @Test func `a route that is removed and added again during a dump is present, whichever one the slice has`() {
        for isDumped in [false, true] {
            var keeper = keeper(.route(route))
            keeper.beginDump(.routesV4)
            _ = keeper.apply(.routeRemoved(route))
            if isDumped { keeper.addDumped(.route(route)) }
            _ = keeper.apply(.route(route))
            expectEmpty(keeper.endDump().changes)
            #expect(keeper.live.contains(route))
        }
    }

    @Test func `a route that the dump misses is removed, and one that it has is added`() {
        let other = Net.onLink
        var keeper = keeper(.route(route))
        keeper.beginDump(.routesV4)
        keeper.addDumped(.route(other))
        expectEqual(Set(keeper.endDump().changes), [.routeRemoved(route), .routeAdded(other)])
        expectEqual(Set(keeper.live.allRoutes), [other])
    }

    @Test func `a dump changes no other table`() {
        let rule = Rule(family: .v4, priority: 5)
        var keeper = keeper(.route(route), .rule(rule), .address(Net.address))
        keeper.beginDump(.routesV6)
        keeper.addDumped(.route(route))
        expectEmpty(keeper.endDump().changes)
        #expect(keeper.live.contains(route))
        expectEqual(keeper.live.rules, [rule])
        expectEqual(keeper.live.addresses.count, 1)
    }

    @Test func `an abandoned dump changes nothing`() {
        var keeper = keeper(.route(route))
        keeper.beginDump(.routesV4)
        keeper.abandonDump()
        expectNil(keeper.dumping)
        expectEmpty(keeper.endDump().changes)
        #expect(keeper.live.contains(route))
    }

    // MARK: Dead routes

    @Test func `a dump with dead routes leaves them out and is repeated`() {
        var keeper = keeper(.route(route))
        keeper.beginDump(.routesV4)
        keeper.addDumped(.route(Route(route.key), isDead: true))
        let outcome = keeper.endDump()
        expectEqual(outcome.changes, [.routeRemoved(route)])
        expectEqual(outcome.staleTables, [.routesV4])
    }

    @Test func `dead routes over a link without carrier are absent, and two dumps that show them are enough`() {
        var keeper = keeper(.link(Net.eth0), .route(route))
        _ = keeper.apply(.link(Net.eth0.unplugged))
        func dump(_ interface: UInt32?) -> SnapshotKeeper.Outcome {
            keeper.beginDump(.routesV4, over: interface)
            keeper.addDumped(.route(Net.defaultRoute, isDead: true))
            return keeper.endDump()
        }
        expectEqual(dump(nil).staleTables, [.routesV4])
        #expect(dump(nil).staleTables.isEmpty)
        expectEmpty(dump(2).staleRoutes)
        // Another dead route that is added meanwhile is ignored as well.
        let another = keeper.apply(.route(Net.onLink, isDead: true))
        #expect(another.staleTables.isEmpty && another.changes.isEmpty)

        _ = keeper.apply(.link(Net.eth0))
        _ = keeper.apply(.link(Net.eth0.unplugged))
        expectEqual(dump(2).staleRoutes, [StaleRoutes(family: .v4, interface: 2)])
        expectEmpty(dump(2).staleRoutes)
        #expect(dump(nil).staleTables.isEmpty)
        #expect(keeper.live.routes.isEmpty)
    }

    @Test func `a route over a link that is down is absent although a dump has it`() {
        var keeper = keeper()
        _ = keeper.apply(.link(Net.eth0.off))
        keeper.beginDump(.routesV4)
        keeper.addDumped(.route(route))
        let outcome = keeper.endDump()
        expectEmpty(outcome.changes)
        expectEqual(outcome.staleTables, [.routesV4])
    }

    @Test func `a route is absent if its link goes down after the route was dumped`() {
        var keeper = keeper(.route(route))
        keeper.beginDump(.routesV4)
        keeper.addDumped(.route(route))
        let loss = keeper.apply(.link(Net.eth0.off))
        expectEqual(loss.changes, [.link(Net.eth0.off), .routeRemoved(route)])
        let outcome = keeper.endDump()
        expectEmpty(outcome.changes)
        #expect(outcome.staleTables.contains(.routesV4))
        #expect(!keeper.live.contains(route))
    }

    @Test func `a route with a dead next hop that an earlier dump has shown without it is removed after the hop is alive again`()
    {
        let key = Route.Key(table: 1_000, metric: 1_024, destination: IPPrefix(IPAddress(v4: 0), length: 0))
        let both = Route(key, nextHops: [Route.NextHop(interface: 2), Route.NextHop(interface: 3)])
        let one = Route(key, nextHops: [Route.NextHop(interface: 3)])
        var keeper = keeper()
        // The route is added after the dump has begun, and its first link goes down before the dump shows it.
        keeper.beginDump(.routesV4, over: 2)
        _ = keeper.apply(.route(both))
        _ = keeper.apply(.link(Net.eth0.off))
        keeper.addDumped(.route(one))
        _ = keeper.endDump()
        _ = keeper.apply(.link(Net.eth0))
        keeper.beginDump(.routesV4, over: 2)
        keeper.addDumped(.route(both))
        // Another route may have the same key, so only a complete dump can tell.
        let outcome = keeper.endDump()
        #expect(!keeper.live.contains(one) || outcome.staleTables == [.routesV4])
        keeper.beginDump(.routesV4)
        keeper.addDumped(.route(both))
        _ = keeper.endDump()
        expectEqual(keeper.live.routes(key), [both])
    }

    @Test func `after lost events, one that changes nothing makes the routes over its interface stale`() {
        let second = Address(interface: 2, prefix: IPPrefix(IPAddress(v4: 0xc000_0208), length: 24))
        let known: [(NetlinkEvent, KernelTable)] = [(.link(Net.eth0), .links), (.address(second), .addresses)]
        for (event, table) in known {
            var keeper = keeper(.address(Net.address), .address(second))
            expectEmpty(keeper.apply(event).staleRoutes)
            var outcome = SnapshotKeeper.Outcome()
            keeper.apply(event, &outcome, doubtful: [table])
            #expect(outcome.staleRoutes.contains(StaleRoutes(family: .v4, interface: 2)), "\(event)")
            expectEmpty(outcome.changes)
        }
    }

    @Test func `routes to this machine's own addresses remain when their link goes down`() {
        let own = Route(
            Route.Key(table: 255, destination: IPPrefix(Net.source, length: 32)), kind: .local,
            nextHops: [Route.NextHop(interface: 2)])
        var keeper = keeper(.route(own))
        _ = keeper.apply(.link(Net.eth0.off))
        #expect(keeper.live.contains(own))
        keeper.beginDump(.routesV4)
        keeper.addDumped(.route(own))
        #expect(keeper.endDump().staleTables.isEmpty)
        #expect(keeper.live.contains(own))
    }

    @Test func `routes over a link without carrier remain: the kernel uses them`() {
        var keeper = keeper(.route(route))
        let outcome = keeper.apply(.link(Net.eth0.unplugged))
        expectEqual(outcome.changes, [.link(Net.eth0.unplugged)])
        expectEqual(outcome.staleRoutes, [StaleRoutes(family: .v4, interface: 2), StaleRoutes(family: .v6, interface: 2)])
        expectEqual(outcome.staleTables, [.addresses, .nexthops])
        #expect(keeper.live.contains(route))
    }

    // MARK: Changes without a message of the kernel

    @Test func `a link that goes down or loses its carrier makes only the routes over it and the nexthop objects stale`() {
        for event: NetlinkEvent in [.link(Net.eth0.off), .link(Net.eth0.unplugged)] {
            var keeper = keeper()
            let outcome = keeper.apply(event)
            expectEqual(outcome.staleTables, [.addresses, .nexthops], "\(event)")
            let both = Set(IPAddress.Family.allCases.map { StaleRoutes(family: $0, interface: 2) })
            expectEqual(outcome.staleRoutes, both, "\(event)")
        }
    }

    @Test func `a removed link makes the routes and nexthop objects stale`() {
        var keeper = keeper()
        #expect(keeper.apply(.linkRemoved(2)).staleTables.isSuperset(of: [.routesV4, .routesV6, .nexthops]))
    }

    @Test func `a renamed link makes no table stale, and another MTU only the IPv6 routes over it`() {
        var keeper = keeper()
        var renamed = Net.eth0
        renamed.name = "lan0"
        #expect(keeper.apply(.link(renamed)).staleTables.isEmpty)
        expectEmpty(keeper.apply(.link(renamed)).changes)
        renamed.mtu = 9_000
        let outcome = keeper.apply(.link(renamed))
        #expect(outcome.staleTables.isEmpty)
        expectEqual(outcome.staleRoutes, [StaleRoutes(family: .v6, interface: 2)])
    }

    @Test func `a removed address makes the routes over its link stale, and the routes that prefer it as source`() {
        let preferring = Route(
            Route.Key(destination: IPPrefix(IPAddress(v4: 0x0b00_0000), length: 8)), nextHops: [Route.NextHop(interface: 3)],
            preferredSource: Net.address.address)
        var keeper = keeper(.address(Net.address), .route(preferring))
        let outcome = keeper.apply(.addressRemoved(Net.address.key))
        expectEqual(outcome.changes, [.addressRemoved(Net.address.key)])
        expectEqual(outcome.staleRoutes, [StaleRoutes(family: .v4, interface: 2), StaleRoutes(family: .v4, interface: 3)])
        #expect(outcome.staleTables.isEmpty)
        expectEmpty(keeper.apply(.addressRemoved(Net.address.key)).changes)
    }

    @Test func `the only IPv4 address makes the routes over its link stale, because it may have revived next hops`() {
        var keeper = keeper(.route(route))
        expectEqual(keeper.apply(.address(Net.address)).staleRoutes, [StaleRoutes(family: .v4, interface: 2)])
        // It may have been removed and added again while the addresses were dumped.
        expectEqual(keeper.apply(.address(Net.address)).staleRoutes, [StaleRoutes(family: .v4, interface: 2)])
        let second = Address(interface: 2, prefix: IPPrefix(IPAddress(v4: 0x0b00_0001), length: 8))
        expectEmpty(keeper.apply(.address(second)).staleRoutes)
        let other = Address(interface: 2, prefix: IPPrefix(IPAddress(v6: 0x2001_0db8 << 32, 1), length: 64))
        expectEmpty(keeper.apply(.address(other)).staleRoutes)
    }

    @Test func `a removed link removes its addresses and routes`() {
        var keeper = keeper(.address(Net.address), .route(route), .route(Net.onLink))
        let outcome = keeper.apply(.linkRemoved(2))
        expectEqual(
            Set(outcome.changes),
            [
                .linkRemoved(2), .addressRemoved(Net.address.key), .routeRemoved(route), .routeRemoved(Net.onLink),
            ])
        #expect(outcome.staleTables.contains(.addresses))
    }

    @Test func `a dump of links that misses one removes its addresses and routes`() {
        var keeper = keeper(.address(Net.address), .route(route))
        keeper.beginDump(.links)
        for link in [Net.lo, Net.eth1] { keeper.addDumped(.link(link)) }
        let outcome = keeper.endDump()
        expectEqual(Set(outcome.changes), [.linkRemoved(2), .addressRemoved(Net.address.key), .routeRemoved(route)])
        #expect(keeper.live.addresses.isEmpty && keeper.live.routes.isEmpty)
    }

    // MARK: Routes that share a key

    private func over(_ interface: UInt32, _ family: IPAddress.Family = .v4) -> Route {
        Route(
            Route.Key(metric: 1_024, destination: family == .v4 ? Net.nowhere : Net.nowhere6),
            nextHops: [Route.NextHop(interface: interface)])
    }

    @Test func `IPv4: a replaced route is removed without a message`() {
        var keeper = keeper(.route(over(2)))
        let outcome = keeper.apply(.route(over(3), replaces: true))
        expectEqual(outcome.changes, [.routeRemoved(over(2)), .routeAdded(over(3))])
        #expect(outcome.staleTables.isEmpty)
    }

    @Test func `IPv4: a replacement among several routes of a key makes the table stale`() {
        var keeper = keeper(.route(over(2)), .route(over(3)))
        let outcome = keeper.apply(.route(over(4), replaces: true))
        expectEqual(outcome.changes, [.routeAdded(over(4))])
        expectEqual(outcome.staleTables, [.routesV4])
    }

    @Test func `IPv4: a replacement that a dump has already shown removes no other route`() {
        var keeper = keeper(.route(over(2)), .route(over(3)))
        let outcome = keeper.apply(.route(over(2), replaces: true))
        expectEmpty(outcome.changes)
        expectEqual(outcome.staleTables, [.routesV4])
    }

    @Test func `IPv4: appended routes are kept beside each other, and each is removed alone`() {
        var keeper = keeper(.route(over(2)))
        expectEqual(keeper.apply(.route(over(3))).changes, [.routeAdded(over(3))])
        expectEqual(keeper.live.routes(over(2).key), [over(2), over(3)])
        expectEqual(keeper.apply(.routeRemoved(over(2))).changes, [.routeRemoved(over(2))])
        expectEqual(keeper.live.routes(over(2).key), [over(3)])
    }

    @Test func `IPv6: a second next hop comes as a multipath route of both`() {
        let both = Route(over(2, .v6).key, nextHops: [Route.NextHop(interface: 2), Route.NextHop(interface: 3)])
        var keeper = keeper(.route(over(2, .v6)))
        let outcome = keeper.apply(.route(both))
        expectEqual(outcome.changes, [.routeRemoved(over(2, .v6)), .routeAdded(both)])
        expectEqual(outcome.staleTables, [.routesV6])
        // One next hop is removed. The message names that hop, so the dump shows which one remains.
        let removal = keeper.apply(.routeRemoved(over(3, .v6)))
        expectEmpty(removal.changes)
        expectEqual(removal.staleTables, [.routesV6])
        keeper.beginDump(.routesV6)
        keeper.addDumped(.route(over(2, .v6)))
        expectEqual(Set(keeper.endDump().changes), [.routeRemoved(both), .routeAdded(over(2, .v6))])
    }

    @Test func `the removal of an unknown route changes nothing, of an unknown rule it makes the rules stale`() {
        var keeper = keeper()
        let outcome = keeper.apply(.routeRemoved(route))
        #expect(outcome.changes.isEmpty && outcome.staleTables.isEmpty)
        expectEqual(keeper.apply(.ruleRemoved(Rule(family: .v6, priority: 1))).staleTables, [.rulesV6])
    }

    @Test func `a nexthop object over a link without carrier, or a group without its member, makes the objects stale`() {
        var keeper = keeper()
        let object = NexthopObject(id: 7, hop: Route.NextHop(interface: 2))
        expectEqual(keeper.apply(.nexthop(object)).staleTables, [])
        expectEqual(keeper.apply(.nexthop(NexthopObject(id: 8, group: [.init(id: 7, weight: 1)]))).staleTables, [])
        // A dump of the links has already shown the lost carrier, and the object and its group were removed.
        _ = keeper.apply(.link(Net.eth0.unplugged))
        expectEqual(keeper.apply(.nexthop(NexthopObject(id: 9, hop: Route.NextHop(interface: 2)))).staleTables, [.nexthops])
        expectEqual(keeper.apply(.nexthop(NexthopObject(id: 10, group: [.init(id: 7, weight: 1)]))).staleTables, [.nexthops])
    }

    @Test func `a changed nexthop object makes the routes stale`() {
        let object = NexthopObject(id: 7, hop: Route.NextHop(interface: 2))
        var keeper = keeper()
        let first = keeper.apply(.nexthop(object))
        expectEqual(first.changes, [.nexthop(object)])
        #expect(first.staleTables.isEmpty)
        expectEmpty(keeper.apply(.nexthop(object)).changes)
        expectEqual(keeper.apply(.nexthop(NexthopObject(id: 7, isBlackhole: true))).staleTables, [.routesV4, .routesV6])
        expectEqual(keeper.apply(.nexthopRemoved(7)).changes, [.nexthopRemoved(7)])
    }

    @Test func `more events during a dump than the log holds make the table stale`() {
        var keeper = keeper()
        keeper.beginDump(.rulesV4)
        let rule = Rule(family: .v4, priority: 1)
        for _ in 0...(SnapshotKeeper.logLimit / 2) {
            _ = keeper.apply(.rule(rule))
            _ = keeper.apply(.ruleRemoved(rule))
        }
        #expect(keeper.endDump().staleTables.contains(.rulesV4))
    }
}
