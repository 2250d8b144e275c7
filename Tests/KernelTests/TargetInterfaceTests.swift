import Expectations
import NetworkLab
import Testing

/// Interfaces that no default route uses, but the route of a target. The last record shows their present state.
@Suite(.requiresNamespaces, .requiresTun) struct TargetInterfaceTests {
    /// A network with a default route over an uplink, and a tunnel that leads to 192.0.2.0/24.
    private func network() throws -> (Network, TunDevice) {
        let network = try Network()
        try network.uplink("v0", "10.1.0.1/24")
        try network.host.ip("route add default via 10.1.0.254")
        let tunnel = try network.host.openTun("tun0")
        try network.host.ip("link set tun0 up")
        try network.host.ip("addr add 10.9.0.1/24 dev tun0")
        try network.host.ip("route add 192.0.2.0/24 dev tun0")
        return (network, tunnel)
    }

    /// Starts a program that watches a target, and reads up to the first record of that target.
    private func watch(_ network: Network, _ target: String) throws -> ProgramObserver {
        let observer = try ProgramObserver(watching: network.host.path, [target])
        while let record = try observer.nextRecord(), record["type"] as? String != "target" {}
        // Skip the path of the first record.
        _ = try observer.nextPath()
        return observer
    }

    /// Reads paths until one shows the interface in this state.
    private func expect(_ observer: ProgramObserver, _ name: String, _ matches: (Seen.Interface) -> Bool) throws {
        while let path = try observer.nextPath() {
            if let interface = path.interface(name), matches(interface) { return }
        }
        throw LabError("the program ended")
    }

    @Test func `the last record shows the present state of a tunnel that a target's route uses`() throws {
        let (network, tunnel) = try network()
        let observer = try watch(network, "192.0.2.9:9")
        try network.host.ip("addr add 10.9.0.7/24 dev tun0")
        try expect(observer, "tun0") { $0.addresses.contains("10.9.0.7/24") }
        try tunnel.setCarrier(false)
        try expect(observer, "tun0") { $0.level == "no-carrier" }
        // The target's route is removed with the tunnel. The interface that it used last is still published.
        try network.host.ip("link set tun0 down")
        try expect(observer, "tun0") { $0.level == "off" }
    }

    @Test func `the last record shows the present state of the interface under a tunnel that a target's route uses`() throws {
        let (network, _) = try network()
        let host = network.host
        try host.addBridge("br0")
        try host.ip("link set br0 up")
        try host.ip("addr add 10.2.0.1/24 dev br0")
        try host.ip("route add 203.0.113.0/24 dev br0")
        try host.add("vx9", type: "vxlan id 9 local 10.2.0.1 remote 203.0.113.9 dstport 4789")
        try host.ip("link set vx9 up")
        try host.ip("addr add 10.8.0.1/24 dev vx9")
        try host.ip("route add 192.0.2.128/25 dev vx9")
        let observer = try watch(network, "192.0.2.200:9")
        try host.ip("addr add 10.2.0.7/24 dev br0")
        try expect(observer, "br0") { $0.addresses.contains("10.2.0.7/24") }
        try host.ip("addr add 10.8.0.7/24 dev vx9")
        try expect(observer, "vx9") { $0.addresses.contains("10.8.0.7/24") }
        try host.ip("link set br0 down")
        try expect(observer, "br0") { $0.level == "off" }
    }

    @Test func `changes of a tunnel that no target's route uses are only counted`() throws {
        let (network, tunnel) = try network()
        defer { withExtendedLifetime(tunnel) {} }
        let observer = try watch(network, "10.1.0.254:9")
        try network.host.ip("addr add 10.9.0.7/24 dev tun0")
        try network.host.ip("addr add 10.1.0.7/24 dev v0")
        let path = try #require(try observer.nextPath())
        #expect(path.interface("v0")?.addresses.contains("10.1.0.7/24") == true)
        #expect(path.suppressed > 0)
    }
}
