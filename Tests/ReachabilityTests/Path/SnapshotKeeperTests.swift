import Testing

@testable import Reachability

/// Dumps and events in every order: the last event has the last word.
@Suite struct SnapshotKeeperTests {
    private let route = Net.defaultRoute

    private func keeper(_ events: NetlinkEvent...) -> SnapshotKeeper {
        var keeper = SnapshotKeeper()
        for event in [.link(Net.lo), .link(Net.eth0), .link(Net.eth1)] + events { _ = keeper.apply(event) }
        return keeper
    }

    @Test func `dumped, then deleted, then done: absent`() {
        var keeper = keeper()
        keeper.beginDump(.routesV4)
        keeper.addDumped(.route(route))
        _ = keeper.apply(.routeRemoved(route))
        #expect(keeper.endDump().changes.isEmpty)
        #expect(!keeper.live.contains(route))
    }

    @Test func `deleted, then dumped by an older slice, then done: absent`() {
        var keeper = keeper(.route(route))
        keeper.beginDump(.routesV4)
        _ = keeper.apply(.routeRemoved(route))
        keeper.addDumped(.route(route))
        #expect(keeper.endDump().changes.isEmpty)
        #expect(!keeper.live.contains(route))
    }

    @Test func `added while the dump passed it by: present`() {
        var keeper = keeper()
        keeper.beginDump(.routesV4)
        let outcome = keeper.apply(.route(route))
        #expect(outcome.changes == [.routeAdded(route)])
        #expect(keeper.endDump().changes.isEmpty)
        #expect(keeper.live.contains(route))
    }

    @Test func `deleted and added again while dumped: present, whichever the slice saw`() {
        for isDumped in [false, true] {
            var keeper = keeper(.route(route))
            keeper.beginDump(.routesV4)
            _ = keeper.apply(.routeRemoved(route))
            if isDumped { keeper.addDumped(.route(route)) }
            _ = keeper.apply(.route(route))
            #expect(keeper.endDump().changes.isEmpty)
            #expect(keeper.live.contains(route))
        }
    }

    @Test func `what the dump does not have is gone, what it has is there`() {
        let other = Net.onLink
        var keeper = keeper(.route(route))
        keeper.beginDump(.routesV4)
        keeper.addDumped(.route(other))
        #expect(Set(keeper.endDump().changes) == [.routeRemoved(route), .routeAdded(other)])
        #expect(Set(keeper.live.allRoutes) == [other])
    }

    @Test func `a dump says nothing of other tables`() {
        let rule = Rule(family: .v4, priority: 5)
        var keeper = keeper(.route(route), .rule(rule), .address(Net.address))
        keeper.beginDump(.routesV6)
        keeper.addDumped(.route(route))
        #expect(keeper.endDump().changes.isEmpty)
        #expect(keeper.live.contains(route))
        #expect(keeper.live.rules == [rule])
        #expect(keeper.live.addresses.count == 1)
    }

    @Test func `an abandoned dump is forgotten`() {
        var keeper = keeper(.route(route))
        keeper.beginDump(.routesV4)
        keeper.abandonDump()
        #expect(keeper.dumping == nil)
        #expect(keeper.endDump().changes.isEmpty)
        #expect(keeper.live.contains(route))
    }

    // MARK: Dead routes

    @Test func `a dump right after a loss: dead routes are absent, and it is repeated`() {
        var keeper = keeper(.route(route))
        keeper.beginDump(.routesV4)
        keeper.addDumped(.route(Route(route.key), isDead: true))
        let outcome = keeper.endDump()
        #expect(outcome.changes == [.routeRemoved(route)])
        #expect(outcome.staleTables == [.routesV4])
    }

    @Test func `dead routes over a link that is up without a carrier are absent, and two dumps that show them are enough`() {
        var keeper = keeper(.link(Net.eth0), .route(route))
        _ = keeper.apply(.link(Net.eth0.unplugged))
        func dump(_ interface: UInt32?) -> SnapshotKeeper.Outcome {
            keeper.beginDump(.routesV4, over: interface)
            keeper.addDumped(.route(Net.defaultRoute, isDead: true))
            return keeper.endDump()
        }
        #expect(dump(nil).staleTables == [.routesV4])
        #expect(dump(nil).staleTables.isEmpty)
        #expect(dump(2).staleRoutes.isEmpty)
        // Another one that is added meanwhile is ignored as well.
        let another = keeper.apply(.route(Net.onLink, isDead: true))
        #expect(another.staleTables.isEmpty && another.changes.isEmpty)

        _ = keeper.apply(.link(Net.eth0))
        _ = keeper.apply(.link(Net.eth0.unplugged))
        #expect(dump(2).staleRoutes == [StaleRoutes(family: .v4, interface: 2)])
        #expect(dump(2).staleRoutes.isEmpty)
        #expect(dump(nil).staleTables.isEmpty)
        #expect(keeper.live.routes.isEmpty)
    }

    @Test func `a route over a link that is not up is absent although a dump has it`() {
        var keeper = keeper()
        _ = keeper.apply(.link(Net.eth0.off))
        keeper.beginDump(.routesV4)
        keeper.addDumped(.route(route))
        let outcome = keeper.endDump()
        #expect(outcome.changes.isEmpty)
        #expect(outcome.staleTables == [.routesV4])
    }

    @Test func `the link goes down after its routes were dumped`() {
        var keeper = keeper(.route(route))
        keeper.beginDump(.routesV4)
        keeper.addDumped(.route(route))
        let loss = keeper.apply(.link(Net.eth0.off))
        #expect(loss.changes == [.link(Net.eth0.off), .routeRemoved(route)])
        let outcome = keeper.endDump()
        #expect(outcome.changes.isEmpty)
        #expect(outcome.staleTables.contains(.routesV4))
        #expect(!keeper.live.contains(route))
    }

    @Test func `routes to this machine's own addresses outlive their link`() {
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

    @Test func `without carrier routes stay: the kernel uses them`() {
        var keeper = keeper(.route(route))
        let outcome = keeper.apply(.link(Net.eth0.unplugged))
        #expect(outcome.changes == [.link(Net.eth0.unplugged)])
        #expect(outcome.staleRoutes == [StaleRoutes(family: .v4, interface: 2), StaleRoutes(family: .v6, interface: 2)])
        #expect(outcome.staleTables == [.addresses, .nexthops])
        #expect(keeper.live.contains(route))
    }

    // MARK: What the kernel does not tell

    @Test func `a link that goes down, or its carrier, leaves only the routes over it and the nexthop objects stale`() {
        for event: NetlinkEvent in [.link(Net.eth0.off), .link(Net.eth0.unplugged)] {
            var keeper = keeper()
            let outcome = keeper.apply(event)
            #expect(outcome.staleTables == [.addresses, .nexthops], "\(event)")
            let both = Set(IPAddress.Family.allCases.map { StaleRoutes(family: $0, interface: 2) })
            #expect(outcome.staleRoutes == both, "\(event)")
        }
    }

    @Test func `a link that is removed leaves routes and nexthop objects in doubt`() {
        var keeper = keeper()
        #expect(keeper.apply(.linkRemoved(2)).staleTables.isSuperset(of: [.routesV4, .routesV6, .nexthops]))
    }

    @Test func `a link that only changes otherwise leaves no doubt`() {
        var keeper = keeper()
        var renamed = Net.eth0
        renamed.name = "lan0"
        #expect(keeper.apply(.link(renamed)).staleTables.isEmpty)
        #expect(keeper.apply(.link(renamed)).changes.isEmpty)
        renamed.mtu = 9_000
        let outcome = keeper.apply(.link(renamed))
        #expect(outcome.staleTables.isEmpty)
        #expect(outcome.staleRoutes == [StaleRoutes(family: .v6, interface: 2)])
    }

    @Test func `an address that goes leaves the routes over its link stale, and those that prefer it`() {
        let preferring = Route(
            Route.Key(destination: IPPrefix(IPAddress(v4: 0x0b00_0000), length: 8)), nextHops: [Route.NextHop(interface: 3)],
            preferredSource: Net.address.address)
        var keeper = keeper(.address(Net.address), .route(preferring))
        let outcome = keeper.apply(.addressRemoved(Net.address.key))
        #expect(outcome.changes == [.addressRemoved(Net.address.key)])
        #expect(outcome.staleRoutes == [StaleRoutes(family: .v4, interface: 2), StaleRoutes(family: .v4, interface: 3)])
        #expect(outcome.staleTables.isEmpty)
        #expect(keeper.apply(.addressRemoved(Net.address.key)).changes.isEmpty)
    }

    @Test func `a link that goes takes its addresses and routes with it`() {
        var keeper = keeper(.address(Net.address), .route(route), .route(Net.onLink))
        let outcome = keeper.apply(.linkRemoved(2))
        #expect(
            Set(outcome.changes) == [
                .linkRemoved(2), .addressRemoved(Net.address.key), .routeRemoved(route), .routeRemoved(Net.onLink),
            ])
        #expect(outcome.staleTables.contains(.addresses))
    }

    @Test func `a dump of links that misses one takes what was on it`() {
        var keeper = keeper(.address(Net.address), .route(route))
        keeper.beginDump(.links)
        for link in [Net.lo, Net.eth1] { keeper.addDumped(.link(link)) }
        let outcome = keeper.endDump()
        #expect(Set(outcome.changes) == [.linkRemoved(2), .addressRemoved(Net.address.key), .routeRemoved(route)])
        #expect(keeper.live.addresses.isEmpty && keeper.live.routes.isEmpty)
    }

    // MARK: Routes that share a key

    private func over(_ interface: UInt32, _ family: IPAddress.Family = .v4) -> Route {
        Route(
            Route.Key(metric: 1_024, destination: family == .v4 ? Net.nowhere : Net.nowhere6),
            nextHops: [Route.NextHop(interface: interface)])
    }

    @Test func `IPv4: a replaced route goes without a message`() {
        var keeper = keeper(.route(over(2)))
        let outcome = keeper.apply(.route(over(3), replaces: true))
        #expect(outcome.changes == [.routeRemoved(over(2)), .routeAdded(over(3))])
        #expect(outcome.staleTables.isEmpty)
    }

    @Test func `IPv4: which of several was replaced is not said, so the table is dumped`() {
        var keeper = keeper(.route(over(2)), .route(over(3)))
        let outcome = keeper.apply(.route(over(4), replaces: true))
        #expect(outcome.changes == [.routeAdded(over(4))])
        #expect(outcome.staleTables == [.routesV4])
    }

    @Test func `IPv4: a replacement that a dump has shown already removes nothing more`() {
        var keeper = keeper(.route(over(2)), .route(over(3)))
        let outcome = keeper.apply(.route(over(2), replaces: true))
        #expect(outcome.changes.isEmpty)
        #expect(outcome.staleTables == [.routesV4])
    }

    @Test func `IPv4: appended routes stand side by side, and each is removed alone`() {
        var keeper = keeper(.route(over(2)))
        #expect(keeper.apply(.route(over(3))).changes == [.routeAdded(over(3))])
        #expect(keeper.live.routes(over(2).key) == [over(2), over(3)])
        #expect(keeper.apply(.routeRemoved(over(2))).changes == [.routeRemoved(over(2))])
        #expect(keeper.live.routes(over(2).key) == [over(3)])
    }

    @Test func `IPv6: a second next hop comes as a multipath route of both`() {
        let both = Route(over(2, .v6).key, nextHops: [Route.NextHop(interface: 2), Route.NextHop(interface: 3)])
        var keeper = keeper(.route(over(2, .v6)))
        let outcome = keeper.apply(.route(both))
        #expect(outcome.changes == [.routeRemoved(over(2, .v6)), .routeAdded(both)])
        #expect(outcome.staleTables == [.routesV6])
        // One of them goes: the message names that next hop, and what is left is asked for.
        let removal = keeper.apply(.routeRemoved(over(3, .v6)))
        #expect(removal.changes.isEmpty)
        #expect(removal.staleTables == [.routesV6])
        keeper.beginDump(.routesV6)
        keeper.addDumped(.route(over(2, .v6)))
        #expect(Set(keeper.endDump().changes) == [.routeRemoved(both), .routeAdded(over(2, .v6))])
    }

    @Test func `a removal of something unknown is no change and no doubt`() {
        var keeper = keeper()
        let outcome = keeper.apply(.routeRemoved(route))
        #expect(outcome.changes.isEmpty && outcome.staleTables.isEmpty)
        #expect(keeper.apply(.ruleRemoved(Rule(family: .v6, priority: 1))).staleTables == [.rulesV6])
    }

    @Test func `a nexthop object over a link without a carrier, or a group without its member, leaves the objects in doubt`() {
        var keeper = keeper()
        let object = NexthopObject(id: 7, hop: Route.NextHop(interface: 2))
        #expect(keeper.apply(.nexthop(object)).staleTables == [])
        #expect(keeper.apply(.nexthop(NexthopObject(id: 8, group: [.init(id: 7, weight: 1)]))).staleTables == [])
        // A dump of the links showed already that the carrier is lost, which took the object and its group.
        _ = keeper.apply(.link(Net.eth0.unplugged))
        #expect(keeper.apply(.nexthop(NexthopObject(id: 9, hop: Route.NextHop(interface: 2)))).staleTables == [.nexthops])
        #expect(keeper.apply(.nexthop(NexthopObject(id: 10, group: [.init(id: 7, weight: 1)]))).staleTables == [.nexthops])
    }

    @Test func `a nexthop object that changes or goes leaves routes in doubt`() {
        let object = NexthopObject(id: 7, hop: Route.NextHop(interface: 2))
        var keeper = keeper()
        let first = keeper.apply(.nexthop(object))
        #expect(first.changes == [.nexthop(object)])
        #expect(first.staleTables.isEmpty)
        #expect(keeper.apply(.nexthop(object)).changes.isEmpty)
        #expect(keeper.apply(.nexthop(NexthopObject(id: 7, isBlackhole: true))).staleTables == [.routesV4, .routesV6])
        #expect(keeper.apply(.nexthopRemoved(7)).changes == [.nexthopRemoved(7)])
    }

    @Test func `more events than the log holds while a dump runs: it has to be repeated`() {
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
