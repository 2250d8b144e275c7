import Expectations
import NetworkLab
import Reachability
import Testing

/// The types of interfaces, by the table of docs/command-line.md.
@Suite(.requiresNamespaces)
struct MediumTests {
    @Test func `a bridge over veth ports is a bridge, its port is enslaved, and the path can use it`() throws {
        let network = try Network()
        let host = network.host
        try network.uplink("v0")
        let witness = try Witness(host, sees: "unsatisfied address/no-address")

        try host.addBridge("br0", ports: ["v0"])
        try host.ip("link set br0 addrgenmode none")
        try host.ip("link set br0 up")
        try host.ip("addr add 10.1.0.1/24 dev br0")
        try host.ip("route add default via 10.1.0.254")
        try witness.expect(
            "satisfied br0 bridge 4 via 10.1.0.254", reasons: "interface-changed",
            past: [
                "unsatisfied address/no-address", "unsatisfied link/interface-down", "unsatisfied link/no-carrier",
                "unsatisfied route/no-route",
            ]
        ) {
            expectEqual($0.order, ["br0", "v0", "lo"])
            #expect($0.medium("br0") == "virtual bridge" && $0.medium("v0") == "virtual wired")
            expectEqual($0.level("v0"), "enslaved")
        }
        try network.router.ip("link set rv0 down")
        try witness.expect("unsatisfied link/no-carrier", reasons: "families-changed cause-changed")
    }

    @Test func `a macvlan over a veth is wired and virtual`() throws {
        let network = try Network()
        let host = network.host
        try network.uplink("v0", "10.1.0.1/24")
        try host.addMacvlan("mv0", over: "v0")
        try host.ip("route add default via 10.1.0.254 dev v0")
        let witness = try Witness(host, sees: "satisfied v0 wired 4 via 10.1.0.254")

        try host.ip("link set mv0 addrgenmode none")
        try host.ip("link set mv0 up")
        try host.ip("addr add 10.2.0.1/24 dev mv0")
        try host.ip("route add default via 10.2.0.254 dev mv0 metric 1")
        try host.ip("route del default via 10.1.0.254")
        try witness.expect("satisfied mv0 wired 4 via 10.2.0.254", reasons: "interface-changed") {
            #expect($0.medium("mv0") == "virtual wired" && $0.order == ["mv0", "v0", "lo"])
        }
    }

    @Test(.requiresTun) func `a tap, an ifb and a bridge without ports have their types`() throws {
        let host = try Lab().host()
        try host.addPersistentTun("tap9", .ethernet)
        try host.add("ifb9", type: "ifb")
        try host.addBridge("br9")
        let observer = try ProgramObserver(watching: host.path)
        let seen = try #require(try observer.nextPath())
        expectEqual(seen.medium("tap9"), "virtual virtual")
        expectEqual(seen.medium("ifb9"), "virtual virtual")
        expectEqual(seen.medium("br9"), "virtual bridge")
        expectEqual(seen.medium("lo"), "virtual loopback")
    }

    @Test(.requiresTun) func `a tun is a tunnel with any hardware type`() throws {
        // All types of linux/if_arp.h: loopback, Ethernet, PPP, 802.11, IPIP, GRE, SIT, raw IP, none, …
        let types: [UInt16] =
            [
                0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 19, 23, 24, 27, 32, 256, 257, 258, 259, 260, 264, 270, 271, 272, 280, 290, 512,
                513, 516,
            ]
            + [517, 518, 519] + Array(768...787) + Array(800...805) + Array(820...826) + [0xfffe, 0xffff]
        let host = try Lab().host()
        var devices: [TunDevice] = []
        for (number, type) in types.enumerated() {
            devices.append(try host.openTun("tun\(number)", type: type))
        }
        let observer = try ProgramObserver(watching: host.path)
        let seen = try #require(try observer.nextPath())
        for device in devices { expectEqual(seen.medium(device.name), "virtual tunnel", "\(device.name)") }
        expectEqual(devices.count, types.count)
    }

    @Test(.requiresTun) func `the path over a tunnel names the interface under it`() throws {
        let network = try Network()
        let host = network.host
        try network.uplink("v0", "10.1.0.1/24")
        try host.ip("route add default via 10.1.0.254 metric 100")
        let witness = try Witness(host, sees: "satisfied v0 wired 4 via 10.1.0.254")

        let tun = try host.openTun("tun0")
        try host.ip("link set tun0 addrgenmode none")
        try host.ip("addr add 10.8.0.2/24 dev tun0")
        try host.ip("link set tun0 up")
        try host.ip("route add 0.0.0.0/1 dev tun0")
        try host.ip("route add 128.0.0.0/1 dev tun0")
        try witness.expect("satisfied tun0 tunnel over v0 4", reasons: "interface-changed gateways-changed") {
            expectEqual($0.order, ["tun0", "v0", "lo"])
        }
        try tun.setCarrier(false)
        try witness.expect("unsatisfied link/no-carrier", reasons: "families-changed")
        try tun.setCarrier(true)
        try witness.expect("satisfied tun0 tunnel over v0 4", reasons: "families-changed")
        try host.ip("link del tun0")
        try witness.expect("satisfied v0 wired 4 via 10.1.0.254", reasons: "interface-changed gateways-changed")
    }

    @Test func `a veth with the name of this machine's own device is virtual`() throws {
        let network = try Network()
        try network.uplink("eth0", "10.1.0.1/24")
        try network.host.ip("route add default via 10.1.0.254")
        _ = try Witness(network.host, sees: "satisfied eth0 wired 4 via 10.1.0.254")
        let seen = try #require(try ProgramObserver(watching: network.host.path).nextPath())
        // The type must not come from sysfs, which shows this process's own namespace, where the device may be hardware.
        expectEqual(seen.medium("eth0"), "virtual wired")
    }
}
