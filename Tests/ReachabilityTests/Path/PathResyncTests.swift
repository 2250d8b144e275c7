import Testing

@testable import Reachability

/// What was lost is made good, and said: overruns, suspends, interrupted dumps.
@Suite struct PathResyncTests {
    @Test func `an overrun that hid nothing: everything is dumped, one resync, no path`() {
        var bench = PathBench.online()
        bench.turn(.overrun)
        var order: [KernelTable] = []
        var effects: [PathMachine.Effect] = []
        while let dump = bench.dumping {
            #expect(effects.isEmpty)
            order.append(dump.table)
            effects += bench.answerDump()
        }
        #expect(order == KernelTable.allCases)
        #expect(effects == [.resynced(.overrun)])
        #expect(bench.machine.overruns == 1)
    }

    @Test func `an overrun that hid a loss: the path says so and why, the resync comes last`() {
        var bench = PathBench.online()
        bench.disconnect()
        let effects = bench.turn(.overrun) + bench.settle()
        #expect(effects.published.first?.path.status == .unsatisfied)
        #expect(effects.published.first?.reasons.last == .resynced)
        #expect(effects.published.first?.path.cause?.code == .interfaceDown)
        #expect(effects.resyncs == [.overrun])
        #expect(effects.last == .resynced(.overrun))
    }

    @Test func `many overruns in a row: one resync at the end`() {
        var bench = PathBench.online()
        var effects = bench.turn(.overrun)
        for _ in 0..<5 {
            effects += bench.answerDump()
            bench.wait(milliseconds: 10)
            effects += bench.turn(.overrun)
        }
        effects += bench.settle()
        #expect(effects.resyncs == [.overrun])
        #expect(bench.machine.isIdle)
    }

    @Test func `a dump that ran when events were lost proves nothing`() {
        var bench = PathBench.online()
        let dead = Route(Route.Key(destination: IPPrefix(IPAddress(v4: 0x0b00_0000), length: 8)))
        bench.hear(.route(dead, isDead: true))
        #expect(bench.dumping?.table == .routesV4)
        var effects = bench.turn(.overrun) + bench.answerDump()
        while bench.dumping != nil { effects += bench.answerDump() }
        // All but the IPv4 routes have been dumped since; those have to wait for their second.
        #expect(effects.resyncs.isEmpty)
        bench.wait(milliseconds: 1_000)
        bench.turn(.turnEnded)
        #expect(bench.dumping?.table == .routesV4)
        #expect(bench.answerDump().resyncs == [.overrun])
    }

    @Test func `a dump that ran when events were lost and is repeated counts: the resync comes`() {
        var bench = PathBench.online()
        bench.hear(.addressRemoved(Address.Key(interface: 2, prefix: IPPrefix(IPAddress(v4: 1), length: 8))))
        #expect(bench.dumping?.table == .routesV4)
        bench.turn(.overrun)
        var effects = bench.answerDump(interrupted: true)
        effects += bench.settle()
        #expect(effects.resyncs == [.overrun])
    }

    @Test func `reasons do not outlive the resync that they belong to`() {
        var bench = PathBench.online()
        // A container came unseen: the dump shows it, and nothing is told.
        bench.tables[.links]?.append(.link(Link(index: 9, name: "veth9", kind: "veth")))
        #expect((bench.turn(.overrun) + bench.settle()).published.isEmpty)
        let update = bench.turn(.resolver(ResolverConfiguration())).published.first
        #expect(update?.reasons == [.dnsChanged])
    }

    @Test func `an answer that came of a route which only the kernel knew is asked for again when that route goes`() {
        var bench = PathBench.online()
        let (answers, unseen) = (bench.routes, Route(Route.Key(destination: IPPrefix(IPAddress(v4: 0x0a07_0000), length: 16))))
        bench.routes = [:]
        #expect(bench.turn(.resolver(ResolverConfiguration())).published.last?.path.status == .unsatisfied)
        bench.routes = answers
        #expect(bench.hear(.routeRemoved(unseen)).published.last?.path.status == .satisfied)
    }

    @Test func `an answer that came of what was lost is asked for again when the resync ends`() {
        var bench = PathBench.online()
        let answers = bench.routes
        bench.turn(.overrun)
        bench.routes = [:]
        #expect(bench.turn(.resolver(ResolverConfiguration())).published.last?.path.status == .unsatisfied)
        bench.routes = answers
        #expect(bench.settle().published.last?.path.status == .satisfied)
    }

    @Test func `events that come while the tables are dumped again are told at once`() {
        var bench = PathBench.online()
        bench.turn(.overrun)
        bench.disconnect()
        let update = bench.hear(.link(Net.eth0.off)).published.first
        #expect(update?.path.status == .unsatisfied)
        #expect(bench.settle().resyncs == [.overrun])
    }

    @Test func `an overrun before the first path is said after it`() {
        var bench = PathBench()
        bench.connect()
        let effects = bench.turn(.began(seed: 1, isPolling: false), .overrun, .resolver(ResolverConfiguration())) + bench.settle()
        #expect(effects.published.map(\.isInitial) == [true])
        let path = effects.firstIndex { if case .publish = $0 { true } else { false } }
        let resync = effects.firstIndex(of: .resynced(.overrun))
        #expect(path.map { $0 < resync ?? -1 } == true)
    }

    // MARK: Suspend

    @Test func `resumed: a gap, the path although nothing changed, everything dumped, a resync`() {
        var bench = PathBench.online()
        let effects = bench.turn(.resumed(nanosecondsAsleep: 60_000_000_000))
        #expect(effects.first == .gap(nanoseconds: 60_000_000_000))
        #expect(effects.published.map(\.reasons) == [[.resumed]])
        let later = bench.settle()
        #expect(later == [.resynced(.resume)])
    }

    @Test func `an overrun under the dumps of a resume: one set of dumps makes good both, and both are named`() {
        var bench = PathBench.online()
        bench.turn(.resumed(nanosecondsAsleep: 60_000_000_000))
        bench.answerDump()
        var effects = bench.turn(.overrun)
        bench.answerDump()
        effects += bench.turn(.overrun) + bench.settle()
        #expect(effects.resyncs == [.resume, .overrun])
        // The next one is of its own reason.
        #expect((bench.turn(.resumed(nanosecondsAsleep: 1_000_000_000)) + bench.settle()).resyncs == [.resume])
    }

    @Test func `resumed elsewhere: what the dumps show is told with its reasons`() {
        var bench = PathBench.online()
        bench.disconnect()
        let effects = bench.turn(.resumed(nanosecondsAsleep: 1_000_000_000)) + bench.settle()
        #expect(effects.published.first?.reasons.contains(.resumed) == true)
        #expect(effects.published.last?.path.cause?.code == .interfaceDown)
        #expect(effects.published.dropFirst().allSatisfy { !$0.reasons.contains(.resumed) })
        #expect(effects.resyncs == [.resume])
    }

    @Test func `resumed before the first path: no gap in what was never told`() {
        var bench = PathBench()
        bench.connect()
        let effects =
            bench.turn(
                .began(seed: 1, isPolling: false), .resumed(nanosecondsAsleep: 5_000_000_000), .resolver(ResolverConfiguration()))
            + bench.settle()
        #expect(effects.published.map(\.isInitial) == [true])
        #expect(effects.published.first?.reasons == [])
        #expect(!effects.contains(.gap(nanoseconds: 5_000_000_000)))
    }

    // MARK: Interrupted dumps

    /// Interrupts the dump that is under way until its result is taken as it is.
    private func interrupt(_ bench: inout PathBench, showing events: [NetlinkEvent]) -> [PathMachine.Effect] {
        var effects: [PathMachine.Effect] = []
        let table = bench.dumping?.table
        for attempt in 0...5 {
            #expect(bench.dumping?.table == table, "attempt \(attempt)")
            effects += bench.dumpSlice(events, interrupted: true) + bench.dumpEnd(interrupted: events.isEmpty)
            if attempt < 5 {
                #expect(effects.isEmpty, "an interrupted dump that is repeated changes nothing")
                for _ in 0..<4 where bench.dumping == nil {
                    bench.now = bench.now.advanced(
                        by: .nanoseconds(max(0, (bench.machine.deadline ?? 0) - bench.now.monotonicNanoseconds)))
                    effects += bench.turn(.turnEnded)
                }
            }
        }
        return effects
    }

    @Test func `five repetitions, then the partial result stands, marked; a later dump makes it good and is a resync`() {
        var bench = PathBench.online()
        bench.hear(.addressRemoved(Address.Key(interface: 2, prefix: IPPrefix(IPAddress(v4: 1), length: 8))))
        let effects = interrupt(&bench, showing: [.route(Net.defaultRoute)])
        #expect(effects.changes == [.routeRemoved(Net.onLink)])
        #expect(effects.published.map(\.path.isConsistent) == [false])
        #expect(effects.published.first?.reasons == [.resynced])
        #expect(effects.resyncs.isEmpty)
        #expect(bench.machine.deadline == bench.now.monotonicNanoseconds + 2_000_000_000)
        let later = bench.settle()
        #expect(later.changes == [.routeAdded(Net.onLink)])
        #expect(later.published.map(\.path.isConsistent) == [true])
        #expect(later.resyncs == [.dumpInterrupted])
        #expect(later.last == .resynced(.dumpInterrupted))
    }

    @Test func `interrupted from the start: the first path is told, marked`() {
        var bench = PathBench()
        bench.connect()
        bench.turn(.began(seed: 3, isPolling: false), .resolver(ResolverConfiguration()))
        while let table = bench.dumping?.table, table != .rulesV6 { bench.answerDump() }
        let effects = interrupt(&bench, showing: [])
        #expect(effects.published.map(\.isInitial) == [true])
        #expect(effects.published.first?.path.isConsistent == false)
        let later = bench.settle()
        #expect(later.published.map(\.path.isConsistent) == [true])
        #expect(later.resyncs == [.dumpInterrupted])
    }

    @Test func `two tables interrupted: the resync waits for both`() {
        var bench = PathBench.online()
        bench.hear(
            .addressRemoved(Address.Key(interface: 2, prefix: IPPrefix(IPAddress(v4: 1), length: 8))),
            .addressRemoved(Address.Key(interface: 2, prefix: IPPrefix(IPAddress(v6: 0, 1), length: 8))))
        #expect(bench.dumping?.table == .routesV4)
        // While the first waits for its repetition the second has its turn.
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
        #expect(effects.resyncs.isEmpty)
        #expect(bench.settle().resyncs == [.dumpInterrupted])
        #expect(bench.machine.path?.isConsistent == true)
    }

    @Test func `a dump that cannot be asked for is tried again`() {
        var bench = PathBench.online()
        bench.hear(.addressRemoved(Address.Key(interface: 2, prefix: IPPrefix(IPAddress(v4: 1), length: 8))))
        #expect(bench.dumping?.table == .routesV4)
        let effects = bench.dumpEnd(errno: 105)
        #expect(effects.isEmpty)
        #expect(bench.machine.deadline != nil)
        #expect(bench.settle().isEmpty)
    }

    @Test func `slices of another dump are not taken for this one's`() {
        var bench = PathBench.online()
        bench.hear(.addressRemoved(Address.Key(interface: 2, prefix: IPPrefix(IPAddress(v4: 1), length: 8))))
        let sequence = bench.dumping?.sequence ?? 0
        let stale = [
            NetlinkMessage(.route(Route(Route.Key(destination: IPPrefix(Net.gateway, length: 32)))), sequence: sequence &- 1)
        ]
        #expect(bench.turn(.dump(stale + [NetlinkMessage(.done(errno: 0), sequence: sequence &- 1)])).isEmpty)
        #expect(bench.dumping != nil)
        #expect(bench.settle().isEmpty)
    }
}
