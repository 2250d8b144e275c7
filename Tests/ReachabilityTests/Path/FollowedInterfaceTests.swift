import Expectations
import Testing

@testable import Reachability

/// Changes of an interface that only a target's route uses are published like those of a physical interface.
@Suite struct FollowedInterfaceTests {
    private static let tunnel = Link(
        index: 9, name: "gre9", flags: Net.up, hardwareType: 778, kind: "gre", tunnelRemote: IPAddress(v4: 0xcb00_7109))
    private static let bridge = Link(index: 8, name: "br0", flags: Net.up, kind: "bridge")
    private static let vlan = Link(index: 7, name: "br0.5", flags: Net.up, kind: "vlan", lower: 8)
    private static let vethEnd = Link(index: 6, name: "veth0", flags: Net.up, kind: "veth", lower: 8)

    /// eth0 with the default route; a tunnel over a bridge, and a VLAN over that bridge.
    private func online() -> PathBench {
        var bench = PathBench()
        bench.connect()
        bench.tables[.links]? += [Self.tunnel, Self.bridge, Self.vlan, Self.vethEnd].map { .link($0) }
        bench.routes[RouteQuery(IPAddress(v4: 0xcb00_7109))] = .route(
            ChosenRoute(interface: 8, source: IPAddress(v4: 0x0a02_0001)))
        bench.start()
        bench.wait(milliseconds: 5_000)
        return bench
    }

    private func address(_ interface: UInt32, _ host: UInt32) -> NetlinkEvent {
        .address(Address(interface: interface, prefix: IPPrefix(IPAddress(v4: 0x0a63_0000 | host), length: 24)))
    }

    @Test(
        arguments: [
            ([9], [9, 8]), ([7], [7, 8]), ([6], [6]), ([8], [8]), ([], []), ([4_000], []),
        ] as [(Set<UInt32>, Set<UInt32>)])
    func `changes of an interface that a target's route uses, and of the interfaces under it, are published`(
        followed: Set<UInt32>, published expected: Set<UInt32>
    ) {
        var bench = online()
        expectEmpty(bench.follow(followed).published)
        for interface in 6...9 as ClosedRange<UInt32> {
            let published = bench.deliver(address(interface, interface)).published
            expectEqual(
                published.map { $0.reasons.contains(.addressesChanged) }, (expected.contains(interface) ? [true] : []),
                "interface \(interface)")
        }
    }

    @Test func `a change before a target's route uses the interface is published then, and after the use only the next one`() {
        var bench = online()
        expectEmpty(bench.deliver(address(9, 1)).published)
        expectEqual(bench.follow([9]).published.map { $0.reasons.contains(.addressesChanged) }, [true])
        expectEmpty(bench.follow([9]).published)
        expectEmpty(bench.follow([]).published)
        // The published state of the interface is current, so the first change after it is published.
        expectEqual(bench.deliver(address(9, 2)).published.count, 1)
        expectEmpty(bench.deliver(address(9, 3)).published)
    }

    @Test func `a tunnel whose remote address gets another route is followed to the interface of that route`() {
        var bench = online()
        bench.follow([9])
        bench.routes[RouteQuery(IPAddress(v4: 0xcb00_7109))] = .route(
            ChosenRoute(interface: 7, source: IPAddress(v4: 0x0a02_0001)))
        let other = Route(
            Route.Key(destination: IPPrefix(IPAddress(v4: 0xcb00_7100), length: 24)), nextHops: [Route.NextHop(interface: 7)])
        bench.deliver(.route(other))
        expectEqual(bench.deliver(address(7, 1)).published.map { $0.reasons.contains(.addressesChanged) }, [true])
    }
}
