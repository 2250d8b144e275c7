import Expectations
import NetlinkBytes
import Testing

@testable import Reachability

/// The 18 cases of Chromium's AddressTrackerLinux (address_tracker_linux_unittest.cc), by their names, on raw bytes. `PathBench`
/// checks with every message that the published changes lead to the snapshot.
@Suite struct AddressTrackerTests {
    private let v4 = IPAddress(v4: 0xc000_0207)
    private let peer = IPAddress(v4: 0xc000_0208)

    private func address(_ ip: IPAddress, on index: UInt32 = 2, length: UInt8 = 24, flags: Address.Flags = []) -> Address {
        Address(interface: index, prefix: IPPrefix(ip, length: length), flags: flags)
    }

    private func addresses(_ bench: PathBench) -> Set<Address> { Set(bench.machine.snapshot.addresses.values) }

    private func online() -> PathBench { PathBench.online() }

    private func level(_ name: String, _ bench: PathBench) -> LinkLevel? {
        bench.machine.catalog.interfaces.values.first { $0.name == name }?.level
    }

    // struct ifaddrmsg and its attributes by hand, for tests of the exact layout.
    private func raw(
        _ type: UInt16 = 20, family: UInt8, flags: UInt8 = 0, index: UInt32 = 2, _ attributes: (inout RawAttributes) -> Void
    ) -> RawMessage {
        RawMessage(type, header: [family, 24, flags, 0] + index.raw, attributes)
    }

    @Test func `NewAddress: IPv4 and IPv6 addresses are added, IFA_LOCAL before IFA_ADDRESS`() {
        var bench = online()
        let six = address(Net.source6, length: 64)
        expectEqual(bench.receive(.address(six)).changes, [.address(six)])
        let message = raw(family: 2) { message in
            message.add(1, peer.bytes)
            message.add(2, IPAddress(v4: 0xc000_0209).bytes)
        }
        bench.receive(message)
        #expect(addresses(bench).contains { $0.address == IPAddress(v4: 0xc000_0209) && $0.peer == peer })
        #expect(!addresses(bench).contains { $0.address == peer })
    }

    @Test func `NewAddressChange: other flags are a change, also with two messages in one datagram`() {
        var bench = online()
        let (plain, temporary) = (address(Net.source6, length: 64), address(Net.source6, length: 64, flags: .temporary))
        bench.receive(.address(plain))
        expectEqual(bench.receive(.address(temporary)).changes, [.address(temporary)])
        expectEqual(bench.receive(.address(plain), .address(temporary)).changes, [.address(plain), .address(temporary)])
        #expect(addresses(bench).contains(temporary) && !addresses(bench).contains(plain))
    }

    @Test func `NewAddressDuplicate: an address announced again is no change`() {
        var bench = online()
        let six = address(Net.source6, length: 64)
        bench.receive(.address(six))
        expectEmpty(bench.receive(.address(six)))
        expectEmpty(bench.receive(.address(six), .address(six)))
    }

    @Test func `DeleteAddress: a known address is removed, an unknown one is no change`() {
        var bench = online()
        let (one, other) = (address(Net.source6, length: 64), address(IPAddress(v6: 0x2001_0db8 << 32, 9), length: 64))
        bench.receive(.address(one), .address(other))
        expectEqual(bench.receive(.address(one, removed: true)).changes, [.addressRemoved(one.key)])
        expectEmpty(bench.receive(.address(one, removed: true)).changes)
        #expect(addresses(bench).contains(other))
        // The same address on another interface, or with another prefix, is another address.
        expectEmpty(bench.receive(.address(address(other.address, on: 1, length: 64), removed: true)).changes)
        expectEmpty(bench.receive(.address(address(other.address, length: 128), removed: true)).changes)
        #expect(addresses(bench).contains(other))
    }

    @Test func `DeprecatedLifetime: an address without preferred lifetime left is deprecated, published once`() {
        var bench = online()
        var six = address(Net.source6, length: 64)
        six.lifetime = Address.Lifetime(preferredSeconds: 30, validSeconds: 60, renewedCentiseconds: 1)
        bench.receive(.address(six))
        six.lifetime.preferredSeconds = 0
        let deprecated = bench.receive(.address(six)).changes
        six.flags.insert(.deprecated)
        expectEqual(deprecated, [.address(six)])
        expectEmpty(bench.receive(.address(six)))
    }

    @Test func `IgnoredMessage: a message without family or address, or of another type, is ignored`() {
        var bench = online()
        let six = address(Net.source6, length: 64)
        bench.receive(raw(family: 0) { $0.add(1, v4.bytes) })
        bench.receive(raw(family: 10) { _ in })
        bench.receive(RawMessage(99, header: [2, 24, 0, 0] + UInt32(2).raw) { $0.add(1, peer.bytes) })
        expectEqual(addresses(bench), [Net.address, Net.loopback])
        expectEqual(bench.machine.malformed, 1)
        expectEqual(bench.receive(.address(six)).changes, [.address(six)])
    }

    @Test func `AddInterface: loopback, without LOWER_UP, unknown removed, redundant, wireless, second link`() {
        var bench = online()
        expectEqual(level("lo", bench), .carrier)
        bench.receive(.link(Net.eth1.unplugged))
        expectEqual(level("eth1", bench), .noCarrier)
        expectEmpty(bench.receive(.link(Link(index: 99, name: "ghost"), removed: true)).changes)
        expectEmpty(bench.receive(.link(Net.eth1.unplugged)))
        let wireless = RawMessage(16, header: [0, 0] + UInt16(1).raw + UInt32(3).raw + UInt32(0).raw + UInt32(0).raw) { message in
            message.add(3, text: "eth1")
            message.add(11, [1, 2, 3, 4])
        }
        expectEmpty(bench.receive(wireless))
        bench.receive(.link(Net.eth1))
        expectEqual(level("eth1", bench), .carrier)
        expectEqual(level("eth0", bench), .routable)
    }

    @Test func `RemoveInterface: LOWER_UP lost, redundant, removed while down, wireless message afterwards`() {
        var bench = online()
        let down = Net.eth0.with(flags: .up, state: .unknown)
        bench.receive(.link(down))
        expectEqual(level("eth0", bench), .noCarrier)
        expectEmpty(bench.receive(.link(down)))
        #expect(bench.receive(.link(down, removed: true)).changes.contains(.linkRemoved(2)))
        expectNil(level("eth0", bench))
        let wireless = RawMessage(16, header: [0, 0] + UInt16(1).raw + UInt32(2).raw + Net.up.rawValue.raw + UInt32(0).raw) {
            message in
            message.add(3, text: "eth0")
            message.add(11, [1, 2, 3, 4])
        }
        expectEmpty(bench.receive(wireless))
        expectNil(bench.machine.snapshot.links[2])
    }

    @Test func `IgnoreInterface: an interface that is neither the path's nor notable publishes nothing`() {
        var bench = online()
        let veth = Link(index: 9, name: "veth9", flags: Net.up, operationalState: .up, kind: "veth")
        expectEmpty(bench.receive(.link(veth), .address(address(peer, on: 9))).published)
        expectEmpty(bench.receive(.link(veth, removed: true)).published)
    }

    @Test func `IgnoreInterfaceNonIgnored: a notable interface in the same datagram as an ignored one is published`() {
        var bench = online()
        let veth = Link(index: 9, name: "veth9", flags: Net.up, operationalState: .up, kind: "veth")
        let update = bench.receive(.link(veth), .link(Net.eth1)).published.first
        expectEqual(update?.reasons, [.interfacesChanged])
    }

    @Test func `TunnelInterface and TunnelInterfaceName: a tunnel is recognized by its kind, not its name`() {
        for (link, type) in [
            (Link(index: 9, name: "tun0", flags: Net.up, hardwareType: 65_534, kind: "tun"), InterfaceType.tunnel),
            (Link(index: 9, name: "office", flags: Net.up, hardwareType: 65_534, kind: "wireguard"), .tunnel),
            (Link(index: 9, name: "tun0", flags: Net.up, kind: "tun", isTap: true), .virtual),
            (Link(index: 9, name: "tun0", flags: Net.up, kind: "veth"), .wired),
        ] {
            var bench = online()
            bench.receive(.link(link))
            expectEqual(bench.machine.catalog.interfaces[9]?.type, type)
        }
    }

    @Test func `GetInterfaceName: an unknown interface index has no name and does no harm`() {
        var bench = online()
        bench.receive(.address(address(peer, on: 4_000_000_000)))
        bench.receive(.route(Route(Net.onLink.key, nextHops: [Route.NextHop(interface: 4_000_000_000)])))
        bench.routes[RouteQuery(Net.anywhere)] = .route(ChosenRoute(interface: 4_000_000_000, source: peer))
        let update = bench.receive(.route(Net.defaultRoute, removed: true)).published.first
        expectEqual(update?.path.status, .unsatisfied)
        expectNil(bench.machine.catalog.interfaces[4_000_000_000])
    }

    @Test func `NonTrackingMode and its init: one settled snapshot is complete`() {
        var bench = PathBench()
        bench.connect()
        expectEqual(bench.start().published.count, 1)
        expectEqual(addresses(bench), [Net.address, Net.loopback])
        expectEqual(Set(bench.machine.snapshot.links.keys), [1, 2])
        expectEqual(Set(bench.machine.snapshot.allRoutes), [Net.defaultRoute, Net.onLink])
    }

    @Test func `BroadcastInit: the first path is published once, as initial`() {
        var bench = PathBench()
        bench.connect()
        let effects = bench.start() + bench.turn(.turnEnded) + bench.settle()
        expectEqual(effects.published.map(\.isInitial), [true])
    }

    @Test func `TestInitializeTwoTrackers and InPidNamespaces: answers are matched by sequence, not by process`() {
        // No socket gives one machine the other's dumps. Even if one did, the machine would ignore them.
        var (one, other) = (PathBench(), PathBench())
        one.connect()
        one.turn(.began(seed: 1, isPolling: false), .resolver(ResolverConfiguration()))
        other.connect()
        other.start()
        one.turn(.dump([NetlinkMessage(.link(Net.eth1), sequence: 4_711), NetlinkMessage(.done(errno: 0), sequence: 4_711)]))
        expectEqual(one.dumping?.table, .links)
        expectEqual(one.settle().published.count, 1)
        expectEqual(one.machine.snapshot, other.machine.snapshot)
    }
}

/// Cases that GLib's, Tailscale's and NetworkManager's monitors are tested for, or had wrong.
@Suite struct FieldCaseTests {
    private let router6 = IPAddress(v6: 0xfe80 << 48, 1)
    private var default6: Route {
        Route(Route.Key(metric: 1_024, destination: Net.nowhere6), nextHops: [Route.NextHop(interface: 2, gateway: router6)])
    }

    /// Both families over eth0.
    private func dual() -> PathBench {
        var bench = PathBench()
        bench.connect()
        bench.tables[.addresses]?.append(.address(Address(interface: 2, prefix: IPPrefix(Net.source6, length: 64))))
        bench.tables[.routesV6] = [.route(default6)]
        bench.routes[RouteQuery(Net.anywhere6)] = .route(ChosenRoute(interface: 2, gateway: router6, source: Net.source6))
        bench.start()
        bench.wait(milliseconds: 5_000)
        return bench
    }

    @Test func `GLib remove_default: a path without its IPv4 route is still satisfied, without both routes it is not`() {
        var bench = dual()
        bench.routes[RouteQuery(Net.anywhere)] = nil
        let first = bench.receive(.route(Net.defaultRoute, removed: true)).published.first
        expectEqual(first?.path.status, .satisfied)
        expectEqual(first?.path.supportsIPv4, false)
        expectEqual(first?.reasons, [.interfaceChanged, .gatewaysChanged, .familiesChanged])
        bench.routes[RouteQuery(Net.anywhere6)] = nil
        let second = bench.receive(.route(default6, removed: true)).published.first
        expectEqual(second?.path.status, .unsatisfied)
        expectEqual(second?.path.cause?.code, .noRoute)
    }

    @Test func `GLib's ghost: a route that is dumped and then removed by an event is absent after the dump`() {
        var bench = PathBench.online()
        bench.turn(.overrun)
        while let table = bench.dumping?.table, table != .routesV4 { bench.answerDump() }
        _ = bench.dumpSlice([.route(Net.defaultRoute), .route(Net.onLink)])
        bench.routes = [:]
        bench.tables[.routesV4] = [.route(Net.onLink)]
        bench.receive(.route(Net.defaultRoute, removed: true))
        _ = bench.dumpEnd()
        #expect(!bench.machine.snapshot.contains(Net.defaultRoute))
        bench.settle()
        #expect(!bench.machine.snapshot.contains(Net.defaultRoute))
    }

    @Test func `GLib stops after its first overrun: this monitor reports a loss after an overrun`() {
        var bench = PathBench.online()
        bench.turn(.overrun)
        bench.settle()
        bench.disconnect()
        expectEqual(bench.receive(.link(Net.eth0.off)).published.first?.path.status, .unsatisfied)
    }

    @Test func `Tailscale IgnoreDuplicateNEWADDR: an address announced again is no change, but after its removal it is`() {
        var bench = PathBench.online()
        expectEmpty(bench.receive(.address(Net.address)))
        let removal = bench.receive(.address(Net.address, removed: true))
        expectEqual(removal.changes, [.addressRemoved(Net.address.key)])
        expectEqual(removal.published.first?.path.status, .unsatisfied)
        expectEqual(bench.receive(.address(Net.address)).published.first?.path.status, .satisfied)
    }

    @Test func `Tailscale: MTU and flags alone do not publish a path`() {
        var bench = PathBench.online()
        var link = Net.eth0
        link.mtu = 9_000
        expectEmpty(bench.receive(.link(link)).published)
        link.flags.insert(Link.Flags(rawValue: 1 << 8))
        expectEmpty(bench.receive(.link(link)).published)
        expectEqual(bench.machine.coalescedEventCount, 2)
    }

    @Test func `Tailscale: an interface without address, an interface down and a ULA added and removed are published`() {
        var bench = dual()
        expectEqual(bench.receive(.link(Net.eth1)).published.map(\.reasons), [[.interfacesChanged]])
        expectEqual(bench.receive(.link(Net.eth1.off)).published.map(\.reasons), [[.interfacesChanged]])
        let ula = Address(interface: 2, prefix: IPPrefix(IPAddress(v6: 0xfd00 << 48, 1), length: 64))
        expectEqual(bench.receive(.address(ula)).published.map(\.reasons), [[.addressesChanged]])
        expectEqual(bench.receive(.address(ula, removed: true)).published.map(\.reasons), [[.addressesChanged]])
    }

    @Test func `NetworkManager: IPv4 routes of a link that went down are removed although the kernel sends no message`() {
        var bench = dual()
        bench.disconnect()
        let changes = bench.receive(.link(Net.eth0.off), .route(default6, removed: true)).changes
        #expect(changes.contains(.routeRemoved(Net.defaultRoute)))
        expectEqual(changes.filter { $0 == .routeRemoved(default6) }.count, 1)
        bench.tables[.routesV6] = []
        bench.tables[.addresses] = [.address(Net.loopback), .address(Net.address)]
        bench.settle()
        #expect(bench.machine.snapshot.routes.isEmpty)
    }

    @Test func `NetworkManager spurious-dellink and spurious-newlink: redundant link messages change nothing`() {
        var bench = PathBench.online()
        expectEmpty(bench.receive(.link(Net.eth1, removed: true), .link(Net.eth1, removed: true)).published)
        expectEmpty(bench.receive(.link(Net.eth0), .link(Net.eth0)))
        // The kernel announces a port that leaves its bridge as deleted, in family 7 only.
        let bridge = RawMessage(17, header: [7, 0] + UInt16(1).raw + UInt32(2).raw + UInt32(0).raw + UInt32(0).raw) {
            $0.add(3, text: "eth0")
        }
        expectEmpty(bench.receive(bridge))
        expectEqual(bench.machine.snapshot.links[2], Net.eth0)
    }

    @Test func `NetworkManager create-many-links: a thousand containers in one turn publish nothing, and all links are there`() {
        var bench = PathBench.online()
        let links = (100..<1_100).map { Link(index: $0, name: "veth\($0)", flags: Net.up, operationalState: .up, kind: "veth") }
        let events = NetlinkDecoder.decode(links.map { RawMessage.link($0) }.bytes)
        expectEmpty(bench.turn(.messages(events)).published)
        expectEqual(bench.machine.snapshot.links.count, 1_002)
        expectEqual(bench.machine.coalescedEventCount, 1_000)
    }
}
