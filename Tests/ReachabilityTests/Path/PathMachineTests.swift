import Expectations
import NetlinkBytes
import Testing

@testable import Reachability

/// When the machine settles, dumps, and publishes.
@Suite struct PathMachineTests {
    // MARK: The first path

    @Test func `the tables are dumped one after another before the first path is published`() {
        var bench = PathBench()
        bench.connect()
        var effects = bench.turn(.began(seed: 1, isPolling: false), .resolver(ResolverConfiguration()))
        var order: [KernelTable] = []
        while let dump = bench.dumping {
            expectEmpty(effects.published)
            order.append(dump.table)
            effects = bench.answerDump()
        }
        expectEqual(order, KernelTable.allCases)
        let update = effects.published.first
        expectEqual(update?.isInitial, true)
        expectEqual(update?.reasons, [])
        expectEqual(update?.coalescedEventCount, 0)
        expectEqual(update?.path.status, .satisfied)
        expectEqual(update?.path.interface?.name, "eth0")
        #expect(bench.machine.isIdle)
    }

    @Test func `no path is published before the resolver's configuration is known`() {
        var bench = PathBench()
        bench.connect()
        expectEmpty((bench.turn(.began(seed: 1, isPolling: false)) + bench.settle()).published)
        let effects = bench.turn(.resolver(ResolverConfiguration(nameservers: [.init(Net.gateway)], exists: true)))
        expectEqual(effects.published.map(\.isInitial), [true])
        expectEqual(effects.published.first?.path.supportsDNS, true)
    }

    @Test func `no path is published before the evidence of each interface is known`() {
        var machine = PathMachine(MonitorConfiguration())
        let now = Moment(monotonicNanoseconds: 0, wallClockNanoseconds: 0)
        _ = machine.handle(.began(seed: 1, isPolling: false), at: now)
        _ = machine.handle(.messages([NetlinkMessage(.link(Net.eth0))]), at: now)
        expectEqual(machine.handle(.turnEnded, at: now), [.readEvidence(Net.eth0)])
        expectEqual(machine.handle(.turnEnded, at: now), [.readEvidence(Net.eth0)])
        _ = machine.handle(.evidence(2, InterfaceEvidence()), at: now)
        expectEqual(machine.handle(.turnEnded, at: now), [.changed([.link(Net.eth0)]), .dump(.links, sequence: 1)])
    }

    @Test func `evidence is read once per interface, again for another device of that name, and never if the kind decides`() {
        var bench = PathBench.online()
        expectEqual(bench.evidenceRead, ["eth0"])
        bench.deliver(.link(Net.eth0.unplugged))
        bench.deliver(.link(Net.eth0))
        expectEqual(bench.evidenceRead, ["eth0"])
        var renamed = Net.eth0
        renamed.name = "lan0"
        bench.deliver(.link(renamed))
        expectEqual(bench.evidenceRead, ["eth0", "lan0"])
        bench.deliver(.linkRemoved(2))
        bench.deliver(.link(renamed))
        expectEqual(bench.evidenceRead, ["eth0", "lan0", "lan0"])
        bench.deliver(.link(Link(index: 9, name: "veth9", kind: "veth")))
        expectEqual(bench.evidenceRead.count, 3)
    }

    @Test func `refused dumps of a kernel without IPv6, rules or nexthop objects leave the path consistent`() {
        var bench = PathBench()
        bench.connect()
        var effects = bench.turn(.began(seed: 1, isPolling: false), .resolver(ResolverConfiguration()))
        while let dump = bench.dumping {
            switch dump.table {
            case .routesV6, .rulesV6: effects = bench.dumpEnd(errno: 97)
            case .nexthops: effects = bench.dumpEnd(errno: 95)
            default: effects = bench.answerDump()
            }
        }
        expectEqual(effects.published.first?.path.isConsistent, true)
        #expect(bench.machine.isIdle)
    }

    @Test func `a table that cannot be read does not prevent the first path`() {
        var bench = PathBench()
        bench.connect()
        var effects = bench.turn(.began(seed: 1, isPolling: false), .resolver(ResolverConfiguration()))
        for _ in 0..<40 where effects.published.isEmpty {
            if bench.dumping?.table == .rulesV4 {
                effects = bench.dumpEnd(errno: 1)
            } else if bench.dumping != nil {
                effects = bench.answerDump()
            } else if let deadline = bench.machine.deadline {
                bench.now = bench.now.advanced(by: .nanoseconds(max(0, deadline - bench.now.monotonicNanoseconds)))
                effects = bench.turn(.turnEnded)
            }
        }
        expectEqual(effects.published.first?.path.status, .satisfied)
        expectEqual(effects.published.first?.path.isConsistent, false)
    }

    // MARK: Loss and gain

    @Test func `the loss of the selected path is published in the turn of its message`() {
        var bench = PathBench.online()
        bench.disconnect()
        let update = bench.deliver(.link(Net.eth0.off)).published.first
        expectEqual(update?.path.status, .unsatisfied)
        expectEqual(update?.path.cause?.layer, .link)
        expectEqual(update?.path.cause?.code, .interfaceDown)
        expectEqual(update?.reasons, [.interfaceChanged, .interfacesChanged, .gatewaysChanged, .familiesChanged, .causeChanged])
        expectEqual(update?.isInitial, false)
    }

    @Test func `a path that becomes satisfied is published in the turn of its message`() {
        var bench = PathBench.online()
        bench.disconnect()
        bench.deliver(.link(Net.eth0.off))
        bench.settle()
        bench.connect()
        let update = bench.deliver(.link(Net.eth0), .route(Net.onLink), .route(Net.defaultRoute)).published.first
        expectEqual(update?.path.status, .satisfied)
        expectEqual(update?.path.gateways, [NetworkPath.Gateway(Net.gateway)])
    }

    @Test func `without carrier the path is unsatisfied even if the kernel still has its route`() {
        var bench = PathBench.online()
        let update = bench.deliver(.link(Net.eth0.unplugged)).published.first
        expectEqual(update?.path.status, .unsatisfied)
        expectEqual(update?.path.cause?.code, .noCarrier)
    }

    @Test func `after a loss the routes are dumped again, at once if the last dump started a second ago`() {
        var bench = PathBench.online()
        bench.disconnect()
        bench.deliver(.link(Net.eth0.off))
        var order: [KernelTable] = []
        while let dump = bench.dumping {
            order.append(dump.table)
            bench.answerDump()
        }
        expectEqual(order, [.addresses, .nexthops, .routesV4, .routesV6])
        // The next change waits until a second has passed.
        bench.deliver(.link(Net.eth0))
        expectNil(bench.dumping)
        expectEqual(bench.machine.deadline, bench.now.monotonicNanoseconds + 1_000_000_000)
        bench.wait(milliseconds: 1_000)
        bench.turn(.turnEnded)
        expectEqual(bench.dumping?.table, .addresses)
    }

    @Test func `a dump that still has dead routes is repeated until none is dead`() {
        var bench = PathBench.online()
        bench.disconnect()
        bench.tables[.routesV4] = [.route(Route(Net.defaultRoute.key), isDead: true)]
        bench.deliver(.link(Net.eth0.off))
        for _ in 0..<3 {
            while bench.dumping != nil { bench.answerDump() }
            #expect(bench.machine.snapshot.routes.isEmpty)
            let deadline = bench.machine.deadline
            #expect(deadline != nil)
            bench.wait(milliseconds: 1_000)
            bench.turn(.turnEnded)
            expectEqual(bench.dumping?.table, .routesV4)
        }
        bench.tables[.routesV4] = []
        bench.answerDump()
        #expect(bench.machine.isIdle)
    }

    // MARK: Churn

    @Test func `containers that come and go publish nothing and are counted`() {
        var bench = PathBench.online()
        let veth = Link(index: 77, name: "veth77", flags: Net.up, operationalState: .up, kind: "veth", master: 0)
        let address = Address(interface: 77, prefix: IPPrefix(IPAddress(v4: 0x0a00_0001), length: 24))
        for _ in 0..<3 {
            let arrival = bench.deliver(.link(veth), .address(address))
            let effects = arrival + bench.deliver(.addressRemoved(address.key), .linkRemoved(77))
            expectEmpty(effects.published)
        }
        bench.settle()
        expectEqual(bench.machine.coalescedEventCount, 12)
        let update = bench.turn(.resolver(ResolverConfiguration())).published.first
        expectEqual(update?.coalescedEventCount, 12)
        expectEqual(update?.reasons, [.dnsChanged])
        expectEqual(bench.machine.coalescedEventCount, 0)
    }

    @Test func `in a storm, the events beside the one that changes the path are counted`() {
        var bench = PathBench.online()
        let veth = Link(index: 77, name: "veth77", flags: Net.up, operationalState: .up, kind: "veth", master: 0)
        let messages = (0..<3).flatMap { _ in [NetlinkMessage(.link(veth)), NetlinkMessage(.linkRemoved(77))] }
        let update = bench.turn(.messages(messages), .resolver(ResolverConfiguration())).published.first
        #expect(update?.reasons == [.dnsChanged] && update?.coalescedEventCount == 5)
        expectEqual(bench.machine.coalescedEventCount, 0)
    }

    @Test func `a renewed lifetime publishes nothing; another route queries the kernel and publishes nothing`() {
        var bench = PathBench.online()
        var renewed = Net.address
        renewed.lifetime.renewedCentiseconds = 99
        expectEmpty(bench.deliver(.address(renewed)).published)
        bench.questions = []
        let elsewhere = Route(
            Route.Key(destination: IPPrefix(IPAddress(v4: 0x0a00_0000), length: 8)), nextHops: [Route.NextHop(interface: 2)])
        let effects = bench.deliver(.route(elsewhere))
        expectEqual(effects, [.changed([.routeAdded(elsewhere)])])
        expectEqual(bench.questions, [RouteQuery(Net.anywhere), RouteQuery(Net.anywhere6)])
    }

    @Test func `ignored and malformed messages are counted and cause no route query`() {
        var bench = PathBench.online()
        bench.questions = []
        let neighbor = Neighbor(interface: 2, address: Net.gateway, state: .reachable)
        expectEmpty(bench.deliver(.ignored, .neighbor(neighbor), .malformed))
        expectEmpty(bench.questions)
        expectEqual(bench.machine.coalescedEventCount, 2)
        expectEqual(bench.machine.malformed, 1)
    }

    @Test func `a replaced default route publishes the new gateway`() {
        var bench = PathBench.online()
        let router = IPAddress(v4: 0xc000_02fe)
        let other = Route(Net.defaultRoute.key, nextHops: [Route.NextHop(interface: 2, gateway: router)])
        bench.routes[RouteQuery(Net.anywhere)] = .route(ChosenRoute(interface: 2, gateway: router, source: Net.source))
        let update = bench.deliver(.route(other, replaces: true)).published.first
        expectEqual(update?.reasons, [.gatewaysChanged])
        expectEqual(update?.path.gateways.map(\.description), ["192.0.2.254"])
    }

    // MARK: The namespace, polling

    @Test func `a removed namespace publishes an unsatisfied path and ends the machine`() {
        var bench = PathBench.online(MonitorConfiguration(namespace: NetworkNamespace("blue")))
        let effects = bench.turn(.namespaceGone)
        let update = effects.published.first
        expectEqual(update?.path.status, .unsatisfied)
        expectEqual(update?.path.cause?.layer, .link)
        expectEqual(update?.path.cause?.code, .noInterface)
        #expect(update?.path.cause?.detail.contains("blue") == true)
        expectEqual(effects.last, .ended)
        #expect(bench.machine.hasEnded)
        expectNil(bench.machine.deadline)
        expectEmpty(bench.turn(.overrun))
        expectEmpty(bench.turn(.turnEnded))
    }

    @Test func `a namespace that is removed before the first path publishes one initial path and ends the machine`() {
        var bench = PathBench()
        bench.turn(.began(seed: 1, isPolling: false))
        let effects = bench.turn(.namespaceGone)
        expectEqual(effects.published.map(\.isInitial), [true])
        expectEqual(effects.last, .ended)
    }

    @Test func `without events all tables are dumped when polled, and the path is not consistent`() {
        var bench = PathBench()
        bench.connect()
        let first = bench.start(isPolling: true).published.first
        expectEqual(first?.path.status, .satisfied)
        expectEqual(first?.path.isConsistent, false)
        bench.wait(milliseconds: 2_000)
        expectEmpty(bench.turn(.pollDue).published)
        expectEmpty(bench.settle())
        bench.disconnect()
        bench.wait(milliseconds: 2_000)
        let later = bench.turn(.pollDue) + bench.settle()
        expectEqual(later.published.last?.path.status, .unsatisfied)
        expectEmpty(later.resyncs)
    }
}
