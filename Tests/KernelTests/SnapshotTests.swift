import Expectations
import Foundation
import NetworkLab
import Reachability
import Testing

/// The snapshot equals the output of `ip -j`, for entries that were there before the monitor and for later ones.
@Suite(.requiresNamespaces)
struct SnapshotTests {
    // The root of a user namespace may name no user but itself.
    private static let users =
        (try? String(contentsOfFile: "/proc/self/uid_map", encoding: .utf8))?.contains("\(UInt32.max)") == true
        ? "100-200" : "0-0"

    private static let commands = [
        // Addresses.
        "addr add 10.7.0.1 peer 10.7.0.2/32 dev v0", "addr add 10.1.0.2/24 dev v0", "addr add 10.1.0.1/25 dev v0",
        "addr add 2001:db8:1::2/64 dev v0 nodad preferred_lft 0 valid_lft 5000", "addr add 2001:db8:1::3/128 dev v0 nodad",
        "addr add 2001:db8:1::4/64 dev v0 nodad preferred_lft 3000 valid_lft 5000",
        // Routes.
        "route add 10.68.0.0/16 nexthop via 10.1.0.9 weight 3 nexthop via 10.1.0.8",
        "-4 route add 10.69.0.0/16 via inet6 fe80::9 dev v0",
        "route add 10.70.0.0/16 via 192.0.2.1 dev v0 onlink src 10.1.0.1 mtu 1400 advmss 1300 table 123456 metric 7 proto static",
        "route add 10.71.0.0/16 dev v0 tos 0x10", "route add blackhole 10.72.0.0/16", "route add throw 10.73.0.0/16",
        "route add unreachable default metric 4000", "route add prohibit 10.74.0.1",
        "route add 10.75.0.0/16 dev v0", "route append 10.75.0.0/16 dev v1",
        "-6 route add 2001:db8:9::/48 nexthop via fe80::1 dev v0 nexthop via fe80::2 dev v1 weight 2",
        "-6 route add 2001:db8:8::/48 via fe80::3 dev v0 metric 5 table 77", "-6 route add unreachable 2001:db8:7::/48",
        "-6 route add prohibit default metric 4000", "-6 route add blackhole 2001:db8:6::/48",
        "-6 route add 2001:db8:5::/48 via fe80::1 dev v0", "-6 route append 2001:db8:5::/48 via fe80::2 dev v0",
        "-6 route append 2001:db8:5::/48 dev v0", "-6 route add 2001:db8:4::/48 from 2001:db8:1::/64 via fe80::1 dev v0",
        // Rules.
        "rule add pref 5 not from 10.0.0.0/8 lookup main suppress_prefixlength 0",
        "rule add pref 6 uidrange \(users) fwmark 0x10/0xff iif v0 oif v1 ipproto tcp sport 10-20 dport 443 lookup 200",
        "rule add pref 7 goto 1000", "rule add pref 8 suppress_ifgroup 5 lookup 300", "rule add pref 9 l3mdev",
        "rule add pref 11 to 10.9.0.0/16 prohibit", "rule add pref 12 tun_id 7 lookup 77", "rule add pref 13 tos 0x10 lookup 77",
        "rule add pref 14 fwmark 5 unreachable", "rule add pref 15 from 10.2.0.1 blackhole",
        "-6 rule add pref 6 not to 2001:db8::/32 uidrange \(users) suppress_prefixlength 16 lookup 1000000",
        "-6 rule add pref 7 ipproto udp dport 53 prohibit",
        // Nexthop objects and routes that use them.
        "nexthop add id 10 via 10.1.0.9 dev v0", "nexthop add id 11 dev v0", "nexthop add id 12 blackhole",
        "nexthop add id 13 via 10.1.0.8 dev v0", "nexthop add id 14 via 192.0.2.9 dev v0 onlink",
        "nexthop add id 15 via fe80::5 dev v0", "nexthop add id 20 group 10,3/13,200", "route add 10.66.0.0/16 nhid 20",
        "route add 10.67.0.0/16 nhid 10", "route add 10.65.0.0/16 nhid 12", "-6 route add 2001:db8:77::/48 nhid 15",
    ]

    private func makeNetwork() throws -> (Network, TunDevice?) {
        let network = try Network()
        try network.host.ip("link set lo up")
        try network.uplink("v0", "10.1.0.1/24", "2001:db8:1::1/64")
        try network.uplink("v1", "10.2.0.1/24")
        try network.host.addBridge("br0", ports: ["v1"])
        try network.host.addMacvlan("mv0", over: "v0")
        try network.host.ip("link set mv0 addrgenmode none")
        try network.host.ip("link set mv0 up")
        return (network, try? network.host.openTun("tun0"))
    }

    @Test func `links, addresses, routes, rules and nexthop objects from before the monitor are in the snapshot`() throws {
        let (network, tun) = try makeNetwork()
        for command in Self.commands { try network.host.ip(command) }
        let observer = try LibraryObserver(MonitorConfiguration(namespace: NetworkNamespace(network.host.path)))
        _ = try observer.nextPath()
        try expectSame(observer, network.host)
        withExtendedLifetime(tun) {}
    }

    @Test func `the snapshot follows entries that are added and removed one by one while the monitor runs`() throws {
        let (network, tun) = try makeNetwork()
        let observer = try LibraryObserver(MonitorConfiguration(namespace: NetworkNamespace(network.host.path)))
        _ = try observer.nextPath()
        for command in Self.commands { try network.host.ip(command) }
        try expectSame(observer, network.host)

        for command in Self.commands.reversed() where !command.contains("nhid") && !command.contains("nexthop add") {
            // A deletion may remove another matching route as well, and the next deletion then finds none.
            _ = try? network.host.ip(command.replacing(" add ", with: " del ").replacing(" append ", with: " del "))
        }
        // The kernel removes routes with their nexthop objects, without a message.
        for id in [12, 10, 15] { try network.host.ip("nexthop del id \(id)") }
        try expectSame(observer, network.host)
        try network.host.ip("link del mv0")
        try network.router.ip("link set rv0 down")
        try expectSame(observer, network.host)
        try network.host.ip("link set v0 down")
        try expectSame(observer, network.host)
        withExtendedLifetime(tun) {}
    }

    @Test func `changes that the kernel does not announce are in the snapshot`() throws {
        let network = try Network()
        let host = network.host
        try host.ip("link set lo up")
        try network.uplink("v0", "10.1.0.1/24", "2001:db8:1::1/64")
        let observer = try LibraryObserver(MonitorConfiguration(namespace: NetworkNamespace(host.path)))
        _ = try observer.nextPath()
        func expectFresh(_ sourceLocation: SourceLocation = #_sourceLocation) throws {
            let end = ContinuousClock.now + patience
            var difference: [KernelChange] = []
            repeat {
                difference = try FreshDump.take(of: host).changes(since: observer.settledState().snapshot)
            } while !difference.isEmpty && ContinuousClock.now < end
            #expect(difference.isEmpty, sourceLocation: sourceLocation)
        }

        // The first end of a pair is announced before it has a peer. The remaining end is not announced when the other one
        // leaves.
        try host.ip("link add name x0 type veth peer name x1")
        try expectFresh()
        try host.ip("link set x1 netns \(network.router.path)")
        try expectFresh()
        // A route's MTU follows that of its link.
        try host.ip("-6 route add 2001:db8:9::/48 via fe80::1 dev v0 mtu 1500")
        try host.ip("link set v0 mtu 1400")
        try expectFresh()
        // Routes and nexthop objects are removed with their link, some of them without a message.
        try host.ip("nexthop add id 1 via 10.1.0.9 dev v0")
        try host.ip("route add 10.9.0.0/16 nhid 1")
        try host.ip("route add 10.10.0.0/16 nexthop via 10.1.0.8 nexthop via 10.1.0.9")
        try expectFresh()
        try host.ip("link set v0 down")
        try expectFresh()
        try host.ip("link set v0 up")
        try expectFresh()
    }

    private func expectSame(
        _ observer: LibraryObserver, _ host: LabHost, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        // The kernel announces a carrier's change up to a second after its tables show it.
        let end = ContinuousClock.now + patience
        var (known, real) = (SnapshotRows(), SnapshotRows())
        repeat {
            (known, real) = (SnapshotRows(try observer.settledState().snapshot), try SnapshotRows(of: host))
        } while known != real && ContinuousClock.now < end
        func expect(_ part: KeyPath<SnapshotRows, Set<String>>, _ name: String) {
            let missing = real[keyPath: part].subtracting(known[keyPath: part])
            let extra = known[keyPath: part].subtracting(real[keyPath: part])
            #expect(missing.isEmpty && extra.isEmpty, "\(name)", sourceLocation: sourceLocation)
        }
        expect(\.links, "links")
        expect(\.addresses, "addresses")
        expect(\.routes, "routes")
        expect(\.rules, "rules")
        expect(\.nexthops, "nexthops")
    }
}
