import Expectations
import Testing

@testable import Reachability

/// Dumps of the routes over one interface, and dumps of large tables that are merged in slices.
@Suite struct StaleRoutesTests {
    private func keeper(_ events: NetlinkEvent...) -> SnapshotKeeper {
        var keeper = SnapshotKeeper()
        for event in [.link(Net.lo), .link(Net.eth0), .link(Net.eth1)] + events { _ = keeper.apply(event) }
        return keeper
    }

    private func route(_ number: UInt32, over interfaces: UInt32...) -> Route {
        Route(
            Route.Key(destination: IPPrefix(IPAddress(v4: 0x0b00_0000 | number << 8), length: 24)),
            nextHops: interfaces.map { Route.NextHop(interface: $0) })
    }

    @Test func `a dump of the routes over one interface removes only routes over it`() {
        var keeper = keeper(.route(route(1, over: 2)), .route(route(2, over: 2)), .route(route(3, over: 3)))
        keeper.beginDump(.routesV4, over: 2)
        keeper.addDumped(.route(route(2, over: 2)))
        keeper.addDumped(.route(route(4, over: 2)))
        let outcome = keeper.endDump()
        expectEqual(Set(outcome.changes), [.routeRemoved(route(1, over: 2)), .routeAdded(route(4, over: 2))])
        #expect(outcome.staleTables.isEmpty && outcome.staleRoutes.isEmpty)
        #expect(keeper.live.contains(route(3, over: 3)))
    }

    @Test func `a new link that is down removes the routes and nexthop objects that use it`() {
        let object = NexthopObject(id: 5, hop: .init(interface: 9, gateway: IPAddress(v4: 0x0a00_00fe)))
        var keeper = keeper(.route(route(1, over: 9)), .route(route(2, over: 2)), .nexthop(object))
        let outcome = keeper.apply(.link(Link(index: 9, name: "eth9")))
        expectEqual(Set(outcome.changes.dropFirst()), [.routeRemoved(route(1, over: 9)), .nexthopRemoved(5)])
        #expect(outcome.staleRoutes.contains(StaleRoutes(family: .v4, interface: 9)) && outcome.staleTables.contains(.nexthops))
    }

    @Test func `a new link that nothing uses makes no table stale`() {
        var keeper = keeper(.route(route(2, over: 2)))
        let outcome = keeper.apply(.link(Link(index: 9, name: "eth9")))
        #expect(outcome.staleRoutes.isEmpty && outcome.staleTables.isEmpty)
    }

    @Test func `a multipath route loses and regains a next hop by dumps of that interface`() {
        let both = route(1, over: 2, 3)
        var keeper = keeper(.route(both))
        keeper.beginDump(.routesV4, over: 2)
        keeper.addDumped(.route(route(1, over: 3)))
        expectEqual(keeper.endDump().changes, [.routeRemoved(both), .routeAdded(route(1, over: 3))])
        keeper.beginDump(.routesV4, over: 2)
        keeper.addDumped(.route(both))
        let outcome = keeper.endDump()
        expectEqual(outcome.changes, [.routeRemoved(route(1, over: 3)), .routeAdded(both)])
        #expect(outcome.staleTables.isEmpty)
    }

    @Test func `a multipath route beside another route of its key makes the complete table stale`() {
        let both = route(1, over: 2, 3)
        var keeper = keeper(.route(route(1, over: 3)), .route(route(1, over: 1)))
        keeper.beginDump(.routesV4, over: 2)
        keeper.addDumped(.route(both))
        expectEqual(keeper.endDump().staleTables, [.routesV4])
    }

    @Test func `events during a dump of one interface override it`() {
        var keeper = keeper(.route(route(1, over: 2)))
        keeper.beginDump(.routesV4, over: 2)
        keeper.addDumped(.route(route(1, over: 2)))
        _ = keeper.apply(.routeRemoved(route(1, over: 2)))
        _ = keeper.apply(.route(route(2, over: 2)))
        _ = keeper.apply(.route(route(3, over: 3)))
        expectEmpty(keeper.endDump().changes)
        expectEqual(Set(keeper.live.allRoutes), [route(2, over: 2), route(3, over: 3)])
    }

    @Test func `routes that use nexthop objects make the complete table stale with any link`() {
        var route = route(1, over: 3)
        route.nexthopObject = 7
        var keeper = keeper(.route(route))
        #expect(keeper.apply(.link(Net.eth0.unplugged)).staleTables.contains(.routesV4))
        _ = keeper.apply(.routeRemoved(route))
        #expect(!keeper.apply(.link(Net.eth0)).staleTables.contains(.routesV4))
    }

    @Test func `too many routes over the changed link make the complete table stale, not those over another link`() {
        var keeper = keeper()
        for number in 0...UInt32(RouteIndex.limit) { _ = keeper.apply(.route(route(number, over: 3))) }
        expectEqual(keeper.apply(.link(Net.eth0.off)).staleTables, [.addresses, .nexthops])
        #expect(keeper.apply(.link(Net.eth1.off)).staleTables.isSuperset(of: [.routesV4]))
    }

    @Test(arguments: [1, 7, 100]) func `a dump that is merged in slices ends like one that is merged at once`(limit: Int) {
        var keeper = keeper()
        for number in 0..<300 { _ = keeper.apply(.route(route(UInt32(number), over: 2))) }
        keeper.beginDump(.routesV4)
        for number in 100..<400 { keeper.addDumped(.route(route(UInt32(number), over: 2))) }
        var expected = Set((100..<400).map { route(UInt32($0), over: 2) })
        var mirror = keeper.live
        var (slices, isDone) = (0, false)
        while !isDone {
            var outcome = SnapshotKeeper.Outcome()
            isDone = keeper.mergeDump(atMost: limit, &outcome)
            slices += 1
            // Routes are added and removed between two slices, in merged shards and in others.
            let (gone, new) = (route(UInt32(399 - slices), over: 2), route(UInt32(500 + slices), over: 3))
            if slices < 100 {
                keeper.apply(.routeRemoved(gone), &outcome)
                keeper.apply(.route(new), &outcome)
                expected.remove(gone)
                expected.insert(new)
            }
            mirror.apply(outcome.changes)
            expectEqual(mirror, keeper.live)
        }
        #expect(slices > 2)
        expectEqual(Set(keeper.live.allRoutes), expected)
        expectNil(keeper.dumping)
    }

    @Test func `the dump after an overrun between two slices recovers the lost route`() {
        var bench = PathBench.online()
        bench.tables[.routesV4] = (bench.tables[.routesV4] ?? []) + (0..<9_000).map { .route(route($0, over: 3)) }
        bench.turn(.overrun)
        while let table = bench.dumping?.table, table != .routesV4 { bench.answerDump() }
        bench.answerDump()
        #expect(bench.machine.snapshot.routes.count < 9_000 && !bench.machine.isIdle)
        let lost: NetlinkEvent = .route(route(9_001, over: 3))
        bench.tables[.routesV4]?.append(lost)
        let effects = bench.turn(.overrun)
        expectEmpty(effects.resyncs)
        bench.settle()
        #expect(bench.machine.isIdle)
        #expect(bench.machine.snapshot.contains(route(9_001, over: 3)))
    }

    @Test func `a change of the uplink is published between the slices of a large dump`() {
        var bench = PathBench.online()
        bench.tables[.routesV4] = (bench.tables[.routesV4] ?? []) + (0..<9_000).map { .route(route($0, over: 3)) }
        bench.turn(.overrun)
        while let table = bench.dumping?.table, table != .routesV4 { bench.answerDump() }
        bench.answerDump()
        #expect(bench.machine.snapshot.routes.count < 9_000)
        let effects = bench.deliver(.link(Net.eth0.off))
        expectEqual(effects.published.first?.path.status, .unsatisfied)
        #expect(bench.machine.snapshot.routes.count < 9_000)
    }

    @Test func `the routes over stale interfaces are dumped one by one, once a second, and a complete dump covers them`() {
        var schedule = DumpSchedule()
        for interface: UInt32 in [5, 3] { schedule.request(StaleRoutes(family: .v4, interface: interface), at: 0) }
        #expect(schedule.next(at: 0) == .routesV4 && schedule.runningInterface == 3)
        expectEqual(schedule.finished(.complete, draw: 0, at: 1), .accept)
        #expect(schedule.next(at: 1) == .routesV4 && schedule.runningInterface == 5)
        schedule.request(StaleRoutes(family: .v4, interface: 3), at: 2)
        expectEqual(schedule.finished(.complete, draw: 0, at: 3), .accept)
        #expect(schedule.next(at: 4) == nil && !schedule.isIdle)
        schedule.request(.routesV4, at: 5)
        #expect(schedule.next(at: 5) == .routesV4 && schedule.runningInterface == nil)
        expectEqual(schedule.finished(.complete, draw: 0, at: 6), .accept)
        #expect(schedule.isIdle)
    }
}
