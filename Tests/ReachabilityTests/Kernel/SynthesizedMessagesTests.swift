import Expectations
import Testing

@testable import Reachability

/// Synthesized messages, which replace a refused netlink socket, must decode like those of the kernel.
@Suite struct SynthesizedMessagesTests {
    private func decode(_ fill: (inout SynthesizedMessages) -> Void) -> [NetlinkMessage] {
        var messages = SynthesizedMessages(sequence: 7)
        fill(&messages)
        messages.addDone()
        return NetlinkDecoder.decode(messages.bytes)
    }

    @Test func `synthesized link messages decode to the same links, and the dump ends`() {
        let links = [
            Link(index: 1, name: "lo", flags: [.up, .loopback, .running, .lowerUp], hardwareType: 772, mtu: 65_536),
            Link(
                index: 70_000, name: "tap0", operationalState: .down, kind: "tun", hardwareAddress: [2, 0, 0, 0, 0, 1],
                isTap: true),
        ]
        let messages = decode { messages in links.forEach { messages.add($0) } }
        expectEqual(messages.map(\.event), links.map { .link($0) } + [.done(errno: 0)])
        #expect(messages.allSatisfy { $0.sequence == 7 })
    }

    @Test func `synthesized address messages decode for both families, with a peer, tentative and deprecated`() throws {
        let addresses = [
            Address(
                interface: 3, prefix: IPPrefix(try #require(IPAddress("198.18.2.2")), length: 32), peer: IPAddress("198.18.2.1")),
            Address(
                interface: 3, prefix: IPPrefix(try #require(IPAddress("fe80::1")), length: 64), scope: 253,
                flags: [.permanent, .tentative]),
            Address(
                interface: 4, prefix: IPPrefix(try #require(IPAddress("2001:db8::1")), length: 64), flags: .deprecated,
                lifetime: Address.Lifetime(preferredSeconds: 0, validSeconds: nil, renewedCentiseconds: 0)),
        ]
        let messages = decode { messages in addresses.forEach { messages.add($0) } }
        expectEqual(messages.map(\.event), addresses.map { .address($0) } + [.done(errno: 0)])
    }

    @Test func `synthesized route messages decode with a gateway, without, and as unreachable`() throws {
        let anywhere = IPPrefix(IPAddress(v4: 0), length: 0)
        let routes = [
            Route(
                Route.Key(metric: 100, destination: anywhere),
                nextHops: [Route.NextHop(interface: 3, gateway: IPAddress("198.18.0.1"))], origin: 0),
            Route(Route.Key(destination: IPPrefix(try #require(IPAddress("2001:db8::")), length: 32)), kind: .unreachable),
        ]
        let messages = decode { messages in routes.forEach { messages.add($0) } }
        expectEqual(messages.map(\.event), routes.map { .route($0) } + [.done(errno: 0)])
    }

    @Test func `a synthesized error decodes as a refused route query`() {
        var messages = SynthesizedMessages(sequence: 1, flags: 0)
        messages.addError(errno: 101)
        expectEqual(RouteAnswer(NetlinkDecoder.decode(messages.bytes), to: RouteQuery(IPAddress(v4: 0))), .refused(errno: 101))
    }
}
