import Expectations
import Testing

@testable import Reachability

/// The reasons with which a change of path is published.
@Suite struct PathDifferenceTests {
    private func interface(
        _ name: String = "eth0", index: UInt32 = 2, type: InterfaceType = .wired, level: LinkLevel = .routable,
        addresses: [IPPrefix] = [], evidence: [String] = []
    ) -> NetworkInterface {
        NetworkInterface(
            name: name, index: index, type: type, isVirtual: false, isExpensive: false, level: level, addresses: addresses,
            evidence: evidence)
    }

    private func path(
        _ interface: NetworkInterface, others: [NetworkInterface] = [], gateways: [NetworkPath.Gateway] = [], dns: Bool = true,
        expensive: Bool = false, consistent: Bool = true, notable: Set<UInt32> = [2]
    ) -> NetworkPath {
        NetworkPath(
            status: .satisfied, interface: interface, interfaceV4: interface, supportsDNS: dns, isExpensive: expensive,
            gateways: gateways, interfaces: [interface] + others, isConsistent: consistent, notable: notable)
    }

    private func reasons(_ old: NetworkPath, _ new: NetworkPath) -> CaseSet<PathChangeReason> {
        PathDifference.reasons(from: old, to: new)
    }

    @Test func `an unchanged path has no reason to publish`() {
        #expect(reasons(path(interface()), path(interface())).isEmpty)
        #expect(reasons(path(interface()), path(interface(evidence: ["read again"]))).isEmpty)
    }

    @Test func `each change of a path has its reason`() {
        let old = path(interface())
        expectEqual(reasons(old, path(interface("lan0"))), [.interfaceChanged, .interfacesChanged])
        expectEqual(reasons(old, path(interface(type: .wifi))), [.interfaceChanged, .interfacesChanged])
        expectEqual(reasons(old, path(interface(level: .degraded))), [.interfacesChanged])
        expectEqual(reasons(old, path(interface(addresses: [IPPrefix(Net.source, length: 24)]))), [.addressesChanged])
        expectEqual(reasons(old, path(interface(), gateways: [.init(Net.gateway)])), [.gatewaysChanged])
        expectEqual(reasons(old, path(interface(), dns: false)), [.dnsChanged])
        expectEqual(reasons(old, path(interface(), expensive: true)), [.costChanged])
        expectEqual(reasons(old, path(interface(), consistent: false)), [.resynced])
        let six = NetworkPath(
            status: .satisfied, interface: interface(), interfaceV4: interface(), interfaceV6: interface(), supportsDNS: true,
            interfaces: [interface()], notable: [2])
        expectEqual(reasons(old, six), [.interfaceChanged, .familiesChanged])
    }

    @Test func `changes of an interface that is not notable give no reason`() {
        let veth = interface("veth9", index: 9, type: .wired)
        let changed = interface("veth9", index: 9, type: .wired, level: .off, addresses: [IPPrefix(Net.source, length: 24)])
        #expect(reasons(path(interface(), others: [veth]), path(interface(), others: [changed])).isEmpty)
        #expect(reasons(path(interface(), others: [veth]), path(interface())).isEmpty)
    }

    @Test func `a notable interface that is added, removed or moved in order gives a reason`() {
        let wlan = interface("wlan0", index: 5, type: .wifi)
        let dsl = interface("ppp0", index: 6, type: .tunnel)
        let notable: Set<UInt32> = [2, 5, 6]
        let both = path(interface(), others: [wlan, dsl], notable: notable)
        expectEqual(reasons(path(interface()), both), [.interfacesChanged])
        expectEqual(reasons(both, path(interface())), [.interfacesChanged])
        expectEqual(reasons(both, path(interface(), others: [dsl, wlan], notable: notable)), [.interfacesChanged])
    }

    @Test func `an interface that becomes notable without another change gives no reason`() {
        let veth = interface("veth9", index: 9, type: .wired)
        #expect(reasons(path(interface(), others: [veth]), path(interface(), others: [veth], notable: [2, 9])).isEmpty)
    }
}
