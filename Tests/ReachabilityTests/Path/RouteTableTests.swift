import Expectations
import Pacing
import Testing

@testable import Reachability

/// The routes of a table, stored in shards with shared bodies.
@Suite struct RouteTableTests {
    /// Few different values, so that keys and bodies repeat.
    private struct Draws {
        var random: SplitMix64

        mutating func number(below limit: UInt64) -> UInt64 { random.next() % limit }

        mutating func route() -> Route {
            let isV4 = number(below: 2) == 0
            let bits = number(below: 12) << 8
            let address = isV4 ? IPAddress(v4: UInt32(0x0a00_0000 | bits)) : IPAddress(v6: 0x2001_0db8 << 32 | bits, bits)
            let key = Route.Key(
                table: 254 + UInt32(number(below: 2)), metric: UInt32(number(below: 2)),
                destination: IPPrefix(address, length: isV4 ? 24 : 120 + UInt8(number(below: 2))),
                source: !isV4 && number(below: 4) == 0 ? IPPrefix(address, length: 64) : nil,
                typeOfService: UInt8(number(below: 2)))
            let hops = (0..<number(below: 3)).map { place in
                Route.NextHop(interface: UInt32(place) + 2, weight: 1 + UInt16(number(below: 2)))
            }
            return Route(
                key, kind: number(below: 5) == 0 ? .blackhole : .unicast, nextHops: hops, origin: UInt8(number(below: 2)),
                preferredSource: number(below: 3) == 0 ? address : nil, fingerprint: number(below: 2))
        }
    }

    private func contents(_ table: RouteTable) -> [Route.Key: Set<Route>] {
        Dictionary(uniqueKeysWithValues: table.map { ($0.key, $0.value.all) })
    }

    @Test(arguments: 1...4) func `routes that are added and removed at random are those of a dictionary`(seed: UInt64) {
        var draws = Draws(random: SplitMix64(seed: seed))
        var (table, model) = (RouteTable(), [Route.Key: Set<Route>]())
        var earlier: [(table: RouteTable, model: [Route.Key: Set<Route>])] = []
        for step in 0..<4_000 {
            let route = draws.route()
            let isPresent = model[route.key]?.contains(route) == true
            expectEqual(table.contains(route), isPresent)
            if draws.number(below: 2) == 0 {
                expectEqual(table.add(route), !isPresent)
                model[route.key, default: []].insert(route)
            } else {
                expectEqual(table.remove(route), isPresent)
                model[route.key]?.remove(route)
                if model[route.key]?.isEmpty == true { model[route.key] = nil }
            }
            expectEqual(table.count, model.count)
            expectEqual(table[route.key]?.all, model[route.key])
            if step.isMultiple(of: 500) { earlier.append((table, model)) }
        }
        expectEqual(contents(table), model)
        // A copy stays as it was.
        for copy in earlier { expectEqual(contents(copy.table), copy.model) }
    }

    @Test(arguments: 1...4) func `a shard that grows from a list and shrinks has the routes of a dictionary`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        func route(_ number: UInt64, origin: UInt8) -> Route {
            Route(Route.Key(destination: IPPrefix(IPAddress(v4: UInt32(0x0a00_0000 | number << 8)), length: 24)), origin: origin)
        }
        var (shard, model) = (RouteShard(), [Route.Key: Set<Route>]())
        var earlier: [(shard: RouteShard, routes: Set<Route>)] = []
        // The number of different keys rises above that of a list and returns to 0; some keys have two routes.
        for limit in [4, RouteShard.listLimit, 40, 4] {
            for step in 0..<200 {
                let isLast = step >= 150
                let route = route(random.next() % UInt64(limit), origin: random.next() % 8 == 0 ? 4 : 3)
                let isPresent = model[route.key]?.contains(route) == true
                if !isLast, random.next() % 3 != 0 {
                    expectEqual(shard.add(route), (isPresent ? nil : model[route.key] == nil))
                    model[route.key, default: []].insert(route)
                } else if let removed = isLast ? model.values.first?.first : route {
                    let known = model[removed.key]
                    expectEqual(shard.remove(removed), (known?.contains(removed) == true ? known?.count == 1 : nil))
                    model[removed.key]?.remove(removed)
                    if model[removed.key]?.isEmpty == true { model[removed.key] = nil }
                }
                #expect(shard.count == model.count && shard.isEmpty == model.isEmpty)
                expectEqual(shard[route.key]?.all, model[route.key])
                if step.isMultiple(of: 40) { earlier.append((shard, Set(model.values.joined()))) }
            }
        }
        for one in earlier {
            expectEqual(Set(one.shard.routes { _ in true }), one.routes)
            expectEqual(Set(one.shard.routes { $0.origin == 4 }), one.routes.filter { $0.origin == 4 })
            for other in earlier {
                let missing = one.shard.routes(missingIn: other.shard)
                #expect(Set(missing) == one.routes.subtracting(other.routes) && Set(missing).count == missing.count)
            }
        }
    }

    @Test(arguments: 1...4) func `the changes between two tables are the differences of their routes`(seed: UInt64) {
        var draws = Draws(random: SplitMix64(seed: seed))
        var (one, other) = (KernelSnapshot(), KernelSnapshot())
        for _ in 0..<400 {
            let route = draws.route()
            switch draws.number(below: 3) {
            case 0: one.apply(.routeAdded(route))
            case 1: other.apply(.routeAdded(route))
            default:
                one.apply(.routeAdded(route))
                other.apply(.routeAdded(route))
            }
        }
        let changes = other.changes(since: one)
        let (before, after) = (Set(one.allRoutes), Set(other.allRoutes))
        expectEqual(
            Set(changes),
            Set(before.subtracting(after).map { .routeRemoved($0) } + after.subtracting(before).map { .routeAdded($0) }))
        expectEqual(Set(changes).count, changes.count)
        one.apply(changes)
        expectEqual(one, other)
        expectEmpty(one.changes(since: other))
    }

    @Test func `an empty shard takes over that of a dump, and the index knows its routes`() {
        var keeper = SnapshotKeeper()
        for event: NetlinkEvent in [.link(Net.lo), .link(Net.eth0), .link(Net.eth1)] { _ = keeper.apply(event) }
        keeper.beginDump(.routesV4)
        keeper.addDumped(.route(Net.onLink))
        keeper.addDumped(.route(Net.defaultRoute))
        let outcome = keeper.endDump()
        expectEqual(Set(outcome.changes), [.routeAdded(Net.onLink), .routeAdded(Net.defaultRoute)])
        expectEqual(keeper.live.defaultRoutes, [Net.defaultRoute.key])
        let removal = keeper.apply(.link(Net.eth0.off))
        #expect(removal.changes.contains(.routeRemoved(Net.onLink)) && removal.changes.contains(.routeRemoved(Net.defaultRoute)))
        #expect(keeper.live.routes.isEmpty && keeper.live.defaultRoutes.isEmpty)
    }

    @Test func `a value is stored once, and its number is free after the last use`() {
        var interned = Interned<String>()
        let (one, other) = (interned.retain("one"), interned.retain("other"))
        #expect(one != other && interned.retain("one") == one)
        #expect(interned.count == 2 && interned[one] == "one" && interned.number(of: "other") == other)
        interned.release(one)
        expectEqual(interned.number(of: "one"), one)
        interned.release(one)
        #expect(interned.number(of: "one") == nil && interned.count == 1)
        #expect(interned.retain("third") == one && interned[one] == "third")
        // The former value of the number is unknown, also as the latest one.
        interned.release(one)
        expectNil(interned.number(of: "third"))
    }
}
