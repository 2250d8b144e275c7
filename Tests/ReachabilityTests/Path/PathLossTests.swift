import Expectations
import Testing

@testable import Reachability

/// The loss of the only usable link, which is published before the kernel is asked.
@Suite struct PathLossTests {
    /// The updates that the messages cause before the turn ends.
    private func immediate(_ bench: PathBench, _ events: NetlinkEvent...) -> [PathUpdate] {
        var machine = bench.machine
        return machine.handle(.messages(events.map { NetlinkMessage($0) }), at: bench.now).published
    }

    private static let losses = [
        Net.eth0.off, Net.eth0.unplugged, Net.eth0.with(flags: .up, state: .lowerLayerDown),
        Net.eth0.with(flags: [.up, .lowerUp, .dormant], state: .dormant),
    ]

    @Test(arguments: losses)
    func `the loss of the only usable link is published with its message, and once in the turn`(link: Link) {
        var bench = PathBench.online()
        let updates = immediate(bench, .link(link))
        expectEqual(updates.map(\.path.status), [.unsatisfied])
        expectEqual(updates.first?.path.cause?.layer, .link)
        bench.disconnect()
        let asked = bench.questions.count
        let published = bench.deliver(.link(link)).published
        expectEqual(published, updates)
        // The kernel is asked nevertheless, and its answer leads to the same path.
        #expect(bench.questions.count > asked)
        expectEqual(bench.machine.path, updates.first?.path)
        expectEmpty(bench.settle().published)
    }

    @Test func `the consequences of a loss follow in the same turn`() {
        var bench = PathBench.online()
        bench.disconnect()
        let published = bench.deliver(.link(Net.eth0.off), .addressRemoved(Net.address.key)).published
        expectEqual(published.map(\.path.status), [.unsatisfied, .unsatisfied])
        #expect(published.first?.reasons.contains(.addressesChanged) == false)
        expectEqual(published.last?.reasons, [.addressesChanged])
    }

    @Test func `a link that goes down and up in one turn ends the path for a moment`() {
        var bench = PathBench.online()
        expectEqual(bench.deliver(.link(Net.eth0.off), .link(Net.eth0)).published.first?.path.status, .unsatisfied)
        expectEqual(bench.machine.path?.status, .satisfied)
        // A loss that follows other changes waits for the turn's end.
        #expect(bench.deliver(.addressRemoved(Net.address.key), .link(Net.eth0.off), .link(Net.eth0)).published.count <= 1)
    }

    @Test func `the loss of a link waits for the kernel's answer while another interface is usable`() {
        var bench = PathBench.online()
        bench.deliver(.link(Net.eth1))
        // Without an address, the other interface is not usable.
        expectEqual(immediate(bench, .link(Net.eth0.off)).map(\.path.status), [.unsatisfied])
        bench.deliver(.address(Address(interface: 3, prefix: IPPrefix(IPAddress(v4: 0x0a00_0003), length: 24))))
        expectEmpty(immediate(bench, .link(Net.eth0.off)))
        bench.routes[RouteQuery(Net.anywhere)] = .route(ChosenRoute(interface: 3, source: IPAddress(v4: 0x0a00_0003)))
        expectEqual(bench.deliver(.link(Net.eth0.off)).published.map(\.path.interface?.name), ["eth1"])
    }

    @Test func `a loss is not published before the turn's end if the link has changed in another way or has not gone`() {
        let bench = PathBench.online()
        var renamed = Net.eth0.off
        renamed.name = "lan0"
        expectEmpty(immediate(bench, .link(renamed)))
        var port = Net.eth0.off
        port.master = 7
        expectEmpty(immediate(bench, .link(port)))
        expectEmpty(immediate(bench, .link(Net.eth0)))
        expectEmpty(immediate(bench, .link(Net.eth1.off)))
        expectEqual(immediate(bench, .address(Net.loopback), .link(Net.eth0.off)).map(\.path.status), [.unsatisfied])
        let other = Address(interface: 2, prefix: IPPrefix(IPAddress(v4: 0x0a00_0002), length: 24))
        expectEmpty(immediate(bench, .address(other), .link(Net.eth0.off)))
    }

    @Test(arguments: losses) func `a foreseen loss is the one that would be computed`(link: Link) {
        var bench = PathBench.online()
        let second = Route(
            Route.Key(metric: 100, destination: Net.nowhere), nextHops: [Route.NextHop(interface: 2, gateway: Net.gateway)])
        let other = Address(interface: 2, prefix: IPPrefix(IPAddress(v4: 0x0a00_0002), length: 24))
        for change: NetlinkEvent in [
            .address(other), .route(second), .link(Net.eth1), .route(Net.onLink), .rule(Rule(family: .v4, priority: 7)),
            .addressRemoved(other.key),
        ] {
            bench.deliver(change)
            var (prepared, late) = (bench.machine, bench.machine)
            prepared.foresee()
            #expect(!prepared.isForesightDue)
            let message = NetlinkMessage(.link(link))
            let effects = prepared.handle(.messages([message]), at: bench.now)
            expectEqual(effects, late.handle(.messages([message]), at: bench.now))
            expectEqual(effects.published.count, 1)
            expectEqual(prepared.handle(.turnEnded, at: bench.now), late.handle(.turnEnded, at: bench.now))
        }
    }

    @Test func `a loss that was foreseen before a change has the change`() {
        var bench = PathBench.online()
        bench.foresee()
        let other = Address(interface: 2, prefix: IPPrefix(IPAddress(v4: 0x0a00_0002), length: 24))
        bench.deliver(.address(other))
        let interface = immediate(bench, .link(Net.eth0.off)).first?.path.interfaces.first { $0.index == 2 }
        #expect(interface?.addresses.contains(other.key.prefix) == true)
        expectEqual(interface?.level, .off)
    }
}
