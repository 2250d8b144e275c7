import Expectations
import Testing

@testable import Reachability

@Suite struct NameServersTests {
    private func interface(_ name: String, _ index: UInt32, _ address: String, _ length: UInt8, type: InterfaceType = .wired)
        throws
        -> NetworkInterface
    {
        NetworkInterface(
            name: name, index: index, type: type, isVirtual: false, isExpensive: false, level: .routable,
            addresses: [IPPrefix(try #require(IPAddress(address)), length: length)])
    }

    @Test func `a name server has the interface of its zone, of its network, or of the path`() throws {
        let (eth, tun) = (try interface("eth0", 2, "10.0.0.2", 8), try interface("tun0", 3, "10.8.0.2", 24))
        let lo = try interface("lo", 1, "127.0.0.1", 8, type: .loopback)
        let servers = try ["10.8.0.1", "10.1.0.53", "192.0.2.53", "2001:db8::53", "127.0.0.53"].map {
            try #require(IPAddress($0))
        }
        let path = NetworkPath(
            status: .satisfied, interface: eth, interfaceV4: eth, interfaces: [eth, tun, lo], nameServers: servers)
        expectEqual(path.nameServers.map(\.interface), ["tun0", "eth0", "eth0", nil, "lo"])
        #expect(path.supportsDNS)
        let zoned = NetworkPath(
            status: .satisfied, resolvers: [.init(try #require(IPAddress("fe80::1")), zone: "wlan0")], notable: [])
        expectEqual(zoned.nameServers.map { "\($0) \($0.interface ?? "")" }, ["fe80::1%wlan0 wlan0"])
    }

    @Test func `another name server is a change of the path`() throws {
        func path(_ text: String) throws -> NetworkPath {
            NetworkPath(status: .satisfied, nameServers: [try #require(IPAddress(text))])
        }
        try expectEqual(Array(PathDifference.reasons(from: path("192.0.2.53"), to: path("192.0.2.54"))), [.dnsChanged])
        try expectEqual(Array(PathDifference.reasons(from: path("192.0.2.53"), to: path("192.0.2.53"))), [])
    }
}
