import Expectations
import Testing

@testable import Reachability

@Suite struct LinkLevelMatrixTests {
    private static let up: Link.Flags = [.up, .running, .lowerUp]

    private static func link(
        _ state: Link.OperationalState, flags: Link.Flags = up, master: UInt32 = 0
    ) -> Link {
        Link(index: 2, name: "eth0", flags: flags, operationalState: state, master: master)
    }

    private static func address(_ text: String, scope: UInt8, flags: Address.Flags = .permanent) -> Address {
        Address(interface: 2, prefix: IPPrefix(IPAddress(text) ?? IPAddress(v4: 0), length: 24), scope: scope, flags: flags)
    }

    private static let none: [Address] = []
    private static let linkLocal = [address("fe80::1", scope: 253)]
    private static let global = [address("fe80::1", scope: 253), address("192.0.2.1", scope: 0)]

    private static let off = link(.down, flags: [])
    private static let noCarrier = link(.down, flags: .up)
    private static let dormant = link(.dormant, flags: [.up, .lowerUp, .dormant])
    private static let carrier = link(.up)
    private static let enslaved = link(.up, master: 9)
    private static let deadPort = Link(index: 3, name: "eth1", flags: .up, operationalState: .down, master: 2)
    private static let livePort = Link(index: 4, name: "eth2", flags: up, operationalState: .up, master: 2)

    @Test(
        arguments: [
            (off, none, [], .off), (off, linkLocal, [], .off), (off, global, [], .off),
            (noCarrier, none, [], .noCarrier), (noCarrier, linkLocal, [], .noCarrier), (noCarrier, global, [], .noCarrier),
            (dormant, none, [], .dormant), (dormant, linkLocal, [], .dormant), (dormant, global, [], .dormant),
            (carrier, none, [livePort, deadPort], .degradedCarrier), (carrier, linkLocal, [livePort, deadPort], .degraded),
            (carrier, global, [livePort, deadPort], .routable),
            (carrier, none, [], .carrier), (carrier, linkLocal, [], .degraded), (carrier, global, [], .routable),
            (enslaved, none, [], .enslaved), (enslaved, linkLocal, [], .enslaved), (enslaved, global, [], .routable),
        ] as [(Link, [Address], [Link], LinkLevel)])
    func `each carrier and address kind has its level`(link: Link, addresses: [Address], ports: [Link], expected: LinkLevel) {
        expectEqual(LinkLevelMatrix.level(of: link, addresses: addresses, ports: ports), expected)
    }

    @Test(arguments: [off, noCarrier, dormant])
    func `a port without carrier does not change the level of a device that has no carrier itself`(link: Link) {
        expectEqual(
            LinkLevelMatrix.level(of: link, addresses: Self.none, ports: [Self.deadPort]),
            LinkLevelMatrix.level(of: link, addresses: Self.none, ports: []))
    }

    @Test(arguments: [link(.dormant, flags: [.up, .lowerUp, .dormant], master: 2), link(.down, flags: [], master: 2)])
    func `a dormant or switched-off port degrades the carrier of its master`(port: Link) {
        expectEqual(LinkLevelMatrix.level(of: Self.carrier, addresses: Self.none, ports: [port]), .degradedCarrier)
    }

    @Test func `a device is degraded by a port without carrier, and an enslaved device too`() {
        expectEqual(LinkLevelMatrix.level(of: Self.carrier, addresses: Self.none, ports: [Self.livePort]), .carrier)
        expectEqual(LinkLevelMatrix.level(of: Self.enslaved, addresses: Self.none, ports: [Self.livePort]), .enslaved)
        expectEqual(LinkLevelMatrix.level(of: Self.enslaved, addresses: Self.none, ports: [Self.deadPort]), .degradedCarrier)
    }

    @Test(
        arguments: [
            (link(.unknown), .carrier),
            (link(.unknown, flags: [.up, .running, .lowerUp, .dormant]), .noCarrier),
            (link(.unknown, flags: [.up, .running]), .noCarrier),
            (link(.unknown, flags: []), .off),
            (link(.lowerLayerDown), .noCarrier),
            (link(.testing), .noCarrier),
            (link(.notPresent), .noCarrier),
        ] as [(Link, LinkLevel)])
    func `each operational state has its link level`(link: Link, expected: LinkLevel) {
        expectEqual(LinkLevelMatrix.level(of: link, addresses: Self.none, ports: []), expected)
    }

    @Test(
        arguments: [
            ("tentative", address("2001:db8::1", scope: 0, flags: .tentative), .carrier),
            ("failed duplicate", address("2001:db8::1", scope: 0, flags: [.duplicate, .tentative]), .carrier),
            ("optimistic", address("2001:db8::1", scope: 0, flags: [.optimistic, .tentative]), .routable),
            ("deprecated", address("2001:db8::1", scope: 0, flags: .deprecated), .routable),
            ("site", address("fec0::1", scope: 200), .degraded),
            ("link", address("169.254.1.1", scope: 253), .degraded),
            ("host", address("127.0.0.1", scope: 254), .carrier),
            ("nowhere", address("192.0.2.1", scope: 255), .carrier),
        ] as [(String, Address, LinkLevel)])
    func `an address counts by its scope and its flags`(what: String, address: Address, expected: LinkLevel) {
        expectEqual(LinkLevelMatrix.level(of: Self.carrier, addresses: [address], ports: []), expected)
    }
}
