import Expectations
import Testing

@testable import Reachability

/// Recovery of lost state, and its reports: overruns, suspends, interrupted dumps.
@Suite struct PathResyncTests {
    @Test func `after an overrun that hid no change, all tables are dumped and one resync is reported without a path`() {
        var bench = PathBench.online()
        bench.turn(.overrun)
        var order: [KernelTable] = []
        var effects: [PathMachine.Effect] = []
        while let dump = bench.dumping {
            expectEmpty(effects)
            order.append(dump.table)
            effects += bench.answerDump()
        }
        expectEqual(order, KernelTable.allCases)
        expectEqual(effects, [.resynced(.overrun)])
        expectEqual(bench.machine.overruns, 1)
    }

    @Test func `after an overrun that hid a loss, the path is published with the reason resynced before the resync`() {
        var bench = PathBench.online()
        bench.disconnect()
        let effects = bench.turn(.overrun) + bench.settle()
        expectEqual(effects.published.first?.path.status, .unsatisfied)
        expectEqual(effects.published.first?.reasons.last, .resynced)
        expectEqual(effects.published.first?.path.cause?.code, .interfaceDown)
        expectEqual(effects.resyncs, [.overrun])
        expectEqual(effects.last, .resynced(.overrun))
    }

    @Test func `a link that comes back after its routes were dumped, and before the links are, gets its next hops again`() {
        let key = Route.Key(destination: IPPrefix(IPAddress(v4: 0x0a00_0000), length: 8))
        let hops = [Route.NextHop(interface: 2, gateway: Net.gateway), Route.NextHop(interface: 3, gateway: Net.gateway)]
        let both = Route(key, nextHops: hops)
        var bench = PathBench()
        bench.connect()
        bench.tables[.links]?.append(.link(Net.eth1))
        bench.tables[.routesV4]?.append(.route(both))
        bench.start()
        bench.wait(milliseconds: 5_000)
        // The end of a veth pair that has no peer yet: the links are dumped, and not again within a second.
        var veth = Net.eth1
        (veth.index, veth.name, veth.kind) = (4, "veth0", "veth")
        bench.deliver(.link(veth))
        bench.answerDump()
        // The overrun hides that eth1 went down.
        bench.tables[.routesV4]?.removeLast()
        bench.tables[.routesV4]?.append(.route(Route(key, nextHops: [hops[0]])))
        bench.turn(.overrun)
        while let dump = bench.dumping, dump.table != .links { bench.answerDump() }
        #expect(!bench.machine.snapshot.contains(both))
        bench.tables[.routesV4]?.removeLast()
        bench.tables[.routesV4]?.append(.route(both))
        bench.deliver(.link(Net.eth1))
        bench.settle()
        #expect(bench.machine.snapshot.contains(both))
    }

    @Test func `removing a route that the snapshot already lacked expires the targets' answers, although nothing changes`() {
        var bench = PathBench.online()
        _ = bench.takeExpiredAnswers()
        let gone = Route(
            Route.Key(destination: IPPrefix(IPAddress(v4: 0x0b00_0000), length: 8)), nextHops: [Route.NextHop(interface: 2)])
        expectEmpty(bench.deliver(.routeRemoved(gone)))
        expectEqual(bench.takeExpiredAnswers(), true)
        expectEqual(bench.takeExpiredAnswers(), false)
    }

    @Test func `the end of a resync and of a route's lifetime expire the targets' answers, although nothing changes`() {
        var bench = PathBench.online()
        bench.turn(.overrun)
        _ = bench.takeExpiredAnswers()
        expectEqual(bench.settle(), [.resynced(.overrun)])
        expectEqual(bench.takeExpiredAnswers(), true)
        bench.turn(.messages([NetlinkMessage(.route(Net.defaultRoute), routeLifetime: .seconds(30))]))
        _ = bench.takeExpiredAnswers()
        bench.wait(milliseconds: 30_100)
        expectEmpty(bench.turn(.turnEnded))
        expectEqual(bench.takeExpiredAnswers(), true)
    }

    @Test func `many overruns in a row report one resync at the end`() {
        var bench = PathBench.online()
        var effects = bench.turn(.overrun)
        for _ in 0..<5 {
            effects += bench.answerDump()
            bench.wait(milliseconds: 10)
            effects += bench.turn(.overrun)
        }
        effects += bench.settle()
        expectEqual(effects.resyncs, [.overrun])
        #expect(bench.machine.isIdle)
    }

    @Test func `a dump that ran during an overrun does not complete the resync`() {
        var bench = PathBench.online()
        let dead = Route(Route.Key(destination: IPPrefix(IPAddress(v4: 0x0b00_0000), length: 8)))
        bench.deliver(.route(dead, isDead: true))
        expectEqual(bench.dumping?.table, .routesV4)
        var effects = bench.turn(.overrun) + bench.answerDump()
        while bench.dumping != nil { effects += bench.answerDump() }
        // Since the overrun all tables but the IPv4 routes were dumped. Those wait until a second has passed.
        expectEmpty(effects.resyncs)
        bench.wait(milliseconds: 1_000)
        bench.turn(.turnEnded)
        expectEqual(bench.dumping?.table, .routesV4)
        expectEqual(bench.answerDump().resyncs, [.overrun])
    }

    @Test func `a dump that ran during an overrun and is repeated completes the resync`() {
        var bench = PathBench.online()
        bench.deliver(.addressRemoved(Address.Key(interface: 2, prefix: IPPrefix(IPAddress(v4: 1), length: 8))))
        expectEqual(bench.dumping?.table, .routesV4)
        bench.turn(.overrun)
        var effects = bench.answerDump(interrupted: true)
        effects += bench.settle()
        expectEqual(effects.resyncs, [.overrun])
    }

    @Test func `a resync's reasons are not kept for the next path`() {
        var bench = PathBench.online()
        // A container appeared during the overrun: the dump shows it, and no path is published.
        bench.tables[.links]?.append(.link(Link(index: 9, name: "veth9", kind: "veth")))
        expectEmpty((bench.turn(.overrun) + bench.settle()).published)
        let update = bench.turn(.resolver(ResolverConfiguration())).published.first
        expectEqual(update?.reasons, [.dnsChanged])
    }

    @Test func `a route query answered from a route that only the kernel knew is asked again when that route is removed`() {
        var bench = PathBench.online()
        let (answers, unseen) = (bench.routes, Route(Route.Key(destination: IPPrefix(IPAddress(v4: 0x0a07_0000), length: 16))))
        bench.routes = [:]
        expectEqual(bench.turn(.resolver(ResolverConfiguration())).published.last?.path.status, .unsatisfied)
        bench.routes = answers
        expectEqual(bench.deliver(.routeRemoved(unseen)).published.last?.path.status, .satisfied)
    }

    @Test func `a route query answered during an overrun is asked again when the resync ends`() {
        var bench = PathBench.online()
        let answers = bench.routes
        bench.turn(.overrun)
        bench.routes = [:]
        expectEqual(bench.turn(.resolver(ResolverConfiguration())).published.last?.path.status, .unsatisfied)
        bench.routes = answers
        expectEqual(bench.settle().published.last?.path.status, .satisfied)
    }

    @Test func `events during the dumps of a resync publish the path at once`() {
        var bench = PathBench.online()
        bench.turn(.overrun)
        bench.disconnect()
        let update = bench.deliver(.link(Net.eth0.off)).published.first
        expectEqual(update?.path.status, .unsatisfied)
        expectEqual(bench.settle().resyncs, [.overrun])
    }

    @Test func `an overrun before the first path is reported after it`() {
        var bench = PathBench()
        bench.connect()
        let effects = bench.turn(.began(seed: 1, isPolling: false), .overrun, .resolver(ResolverConfiguration())) + bench.settle()
        expectEqual(effects.published.map(\.isInitial), [true])
        let path = effects.firstIndex { if case .publish = $0 { true } else { false } }
        let resync = effects.firstIndex(of: .resynced(.overrun))
        #expect((path.map { $0 < resync ?? -1 }) == true)
    }

    // MARK: Suspend

    @Test func `a resume reports the gap, publishes the unchanged path, dumps all tables and reports the resync`() {
        var bench = PathBench.online()
        let effects = bench.turn(.resumed(nanosecondsAsleep: 60_000_000_000))
        expectEqual(effects.first, .gap(nanoseconds: 60_000_000_000))
        expectEqual(effects.published.map(\.reasons), [[.resumed]])
        let later = bench.settle()
        expectEqual(later, [.resynced(.resume)])
    }

    @Test func `an overrun during the dumps of a resume needs no second set of dumps, and both reasons are reported`() {
        var bench = PathBench.online()
        bench.turn(.resumed(nanosecondsAsleep: 60_000_000_000))
        bench.answerDump()
        var effects = bench.turn(.overrun)
        bench.answerDump()
        effects += bench.turn(.overrun) + bench.settle()
        expectEqual(effects.resyncs, [.resume, .overrun])
        // The next resync has its own reason only.
        expectEqual((bench.turn(.resumed(nanosecondsAsleep: 1_000_000_000)) + bench.settle()).resyncs, [.resume])
    }

    @Test func `a path that changed during a suspend is published with the reasons of the dumps`() {
        var bench = PathBench.online()
        bench.disconnect()
        let effects = bench.turn(.resumed(nanosecondsAsleep: 1_000_000_000)) + bench.settle()
        #expect(effects.published.first?.reasons.contains(.resumed) == true)
        expectEqual(effects.published.last?.path.cause?.code, .interfaceDown)
        #expect(effects.published.dropFirst().allSatisfy { !$0.reasons.contains(.resumed) })
        expectEqual(effects.resyncs, [.resume])
    }

    @Test func `a resume before the first path reports no gap`() {
        var bench = PathBench()
        bench.connect()
        let effects =
            bench.turn(
                .began(seed: 1, isPolling: false), .resumed(nanosecondsAsleep: 5_000_000_000), .resolver(ResolverConfiguration()))
            + bench.settle()
        expectEqual(effects.published.map(\.isInitial), [true])
        expectEqual(effects.published.first?.reasons, [])
        #expect(!effects.contains(.gap(nanoseconds: 5_000_000_000)))
    }

    // MARK: Interrupted dumps

    /// Interrupts the running dump until its partial result is accepted.
    private func interrupt(_ bench: inout PathBench, showing events: [NetlinkEvent]) -> [PathMachine.Effect] {
        var effects: [PathMachine.Effect] = []
        let table = bench.dumping?.table
        for attempt in 0...5 {
            expectEqual(bench.dumping?.table, table, "attempt \(attempt)")
            effects += bench.dumpSlice(events, interrupted: true) + bench.dumpEnd(interrupted: events.isEmpty)
            if attempt < 5 {
                expectEmpty(effects, "an interrupted dump that is repeated changes nothing")
                for _ in 0..<4 where bench.dumping == nil {
                    bench.now = bench.now.advanced(
                        by: .nanoseconds(max(0, (bench.machine.deadline ?? 0) - bench.now.monotonicNanoseconds)))
                    effects += bench.turn(.turnEnded)
                }
            }
        }
        return effects
    }

    @Test func `after five repetitions a partial dump makes the path inconsistent, and a later dump completes the resync`() {
        var bench = PathBench.online()
        bench.deliver(.addressRemoved(Address.Key(interface: 2, prefix: IPPrefix(IPAddress(v4: 1), length: 8))))
        let effects = interrupt(&bench, showing: [.route(Net.defaultRoute)])
        expectEqual(effects.changes, [.routeRemoved(Net.onLink)])
        expectEqual(effects.published.map(\.path.isConsistent), [false])
        expectEqual(effects.published.first?.reasons, [.resynced])
        expectEmpty(effects.resyncs)
        expectEqual(bench.machine.deadline, bench.now.monotonicNanoseconds + 2_000_000_000)
        let later = bench.settle()
        expectEqual(later.changes, [.routeAdded(Net.onLink)])
        expectEqual(later.published.map(\.path.isConsistent), [true])
        expectEqual(later.resyncs, [.dumpInterrupted])
        expectEqual(later.last, .resynced(.dumpInterrupted))
    }

    @Test func `a dump that is interrupted from the start publishes an inconsistent first path`() {
        var bench = PathBench()
        bench.connect()
        bench.turn(.began(seed: 3, isPolling: false), .resolver(ResolverConfiguration()))
        while let table = bench.dumping?.table, table != .rulesV6 { bench.answerDump() }
        let effects = interrupt(&bench, showing: [])
        expectEqual(effects.published.map(\.isInitial), [true])
        expectEqual(effects.published.first?.path.isConsistent, false)
        let later = bench.settle()
        expectEqual(later.published.map(\.path.isConsistent), [true])
        expectEqual(later.resyncs, [.dumpInterrupted])
    }

    @Test func `with two interrupted tables, the resync waits for both`() {
        var bench = PathBench.online()
        bench.deliver(
            .addressRemoved(Address.Key(interface: 2, prefix: IPPrefix(IPAddress(v4: 1), length: 8))),
            .addressRemoved(Address.Key(interface: 2, prefix: IPPrefix(IPAddress(v6: 0, 1), length: 8))))
        expectEqual(bench.dumping?.table, .routesV4)
        // The second table is dumped while the first one waits for its repetition.
        var partials = 0
        var effects: [PathMachine.Effect] = []
        for _ in 0..<60 where partials < 2 {
            if bench.dumping == nil {
                bench.now = bench.now.advanced(
                    by: .nanoseconds(max(0, (bench.machine.deadline ?? 0) - bench.now.monotonicNanoseconds)))
                effects += bench.turn(.turnEnded)
            } else {
                let before = bench.machine.path?.isConsistent
                let table = bench.dumping?.table
                effects +=
                    bench.dumpSlice(table.flatMap { bench.tables[$0] } ?? [], interrupted: true)
                    + bench.dumpEnd(interrupted: true)
                if before == true, bench.machine.path?.isConsistent == false { partials += 1 }
                if before == false, bench.dumping == nil { partials += 1 }
            }
        }
        expectEmpty(effects.resyncs)
        expectEqual(bench.settle().resyncs, [.dumpInterrupted])
        expectEqual(bench.machine.path?.isConsistent, true)
    }

    @Test func `a dump that cannot be requested is retried`() {
        var bench = PathBench.online()
        bench.deliver(.addressRemoved(Address.Key(interface: 2, prefix: IPPrefix(IPAddress(v4: 1), length: 8))))
        expectEqual(bench.dumping?.table, .routesV4)
        let effects = bench.dumpEnd(errno: 105)
        expectEmpty(effects)
        #expect(bench.machine.deadline != nil)
        expectEmpty(bench.settle())
    }

    @Test func `slices of another dump are ignored`() {
        var bench = PathBench.online()
        bench.deliver(.addressRemoved(Address.Key(interface: 2, prefix: IPPrefix(IPAddress(v4: 1), length: 8))))
        let sequence = bench.dumping?.sequence ?? 0
        let stale = [
            NetlinkMessage(.route(Route(Route.Key(destination: IPPrefix(Net.gateway, length: 32)))), sequence: sequence &- 1)
        ]
        expectEmpty(bench.turn(.dump(stale + [NetlinkMessage(.done(errno: 0), sequence: sequence &- 1)])))
        #expect(bench.dumping != nil)
        expectEmpty(bench.settle())
    }
}
