import Expectations
import NetlinkBytes
import Testing

@testable import Reachability

@Suite struct RouteDecoderTests {
    private let gateway = IPAddress(v4: 0xc000_0201)

    private func decode(_ message: RawMessage) -> [NetlinkEvent] { NetlinkDecoder.decode(message.bytes).map(\.event) }

    private func route(_ message: RawMessage) throws -> Route {
        guard case .route(let route, _, _) = decode(message).first else { throw Unexpected(decode(message)) }
        return route
    }

    // struct rtmsg: family, lengths of destination and source, tos, table, protocol, scope, type, flags.
    private func message(
        _ type: UInt16 = 24, family: UInt8 = 2, length: UInt8 = 0, table: UInt8 = 254, kind: UInt8 = 1, routeFlags: UInt32 = 0,
        flags: UInt16 = 0, sequence: UInt32 = 0, _ attributes: (inout RawAttributes) -> Void
    ) -> RawMessage {
        RawMessage(
            type, flags: flags, sequence: sequence, header: [family, length, 0, 0, table, 3, 0, kind] + routeFlags.raw, attributes
        )
    }

    @Test(arguments: [UInt8(2), 3, 4, 5, 6, 7, 8, 9, 10, 77])
    func `every route kind keeps its number, known or not`(kind: UInt8) throws {
        let decoded = try route(message(kind: kind) { $0.add(6, UInt32(10)) })
        expectEqual(decoded.kind.rawValue, kind)
        expectEmpty(decoded.nextHops)
    }

    @Test func `a default route is decoded with gateway and metric`() throws {
        let decoded = try route(
            message { message in
                message.add(6, UInt32(600))
                message.add(5, gateway.bytes)
                message.add(4, UInt32(300))
            })
        #expect(decoded.key.destination.isDefault)
        expectEqual(decoded.key.metric, 600)
        expectEqual(decoded.nextHops, [Route.NextHop(interface: 300, gateway: gateway)])
    }

    @Test func `an IPv4 route through an IPv6 gateway (RTA_VIA) is decoded`() throws {
        let router = IPAddress(v6: 0xfe80 << 48, 1)
        let decoded = try route(
            message { message in
                message.add(18, UInt16(10).raw + router.bytes)
                message.add(4, UInt32(2))
            })
        expectEqual(decoded.nextHops, [Route.NextHop(interface: 2, gateway: router)])
        expectEqual(decoded.key.family, .v4)
    }

    @Test func `next hops of a multipath route are decoded with weights and sorted`() throws {
        let hops = [
            Route.NextHop(interface: 7, gateway: gateway, weight: 256), Route.NextHop(interface: 3, weight: 1, isOnLink: true),
        ]
        let one = try route(message { $0.add(9, hops.flatMap { RawMessage.multipathMember($0, of: .v4) }) })
        let other = try route(message { $0.add(9, hops.reversed().flatMap { RawMessage.multipathMember($0, of: .v4) }) })
        expectEqual(one.nextHops, [hops[1], hops[0]])
        expectEqual(one, other)
        #expect(one.isMultipath)
        #expect(one.uses(interface: 7) && one.uses(interface: 3) && !one.uses(interface: 4))
    }

    @Test func `dead next hops are left out, and a route with only dead ones is dead and keeps them`() {
        let (alive, dead) = (Route.NextHop(interface: 2, gateway: gateway), Route.NextHop(interface: 3, gateway: gateway))
        let half = message {
            $0.add(9, RawMessage.multipathMember(alive, of: .v4) + RawMessage.multipathMember(dead, of: .v4, flags: 1))
        }
        expectEqual(decode(half), [.route(Route(defaultKey, nextHops: [alive]), replaces: false, isDead: false)])
        let whole = message {
            $0.add(
                9, RawMessage.multipathMember(alive, of: .v4, flags: 1) + RawMessage.multipathMember(dead, of: .v4, flags: 0x11))
        }
        expectEqual(decode(whole), [.route(Route(defaultKey, nextHops: [alive, dead]), replaces: false, isDead: true)])
        let single = message(routeFlags: 1) { $0.add(4, UInt32(2)) }
        let hop = Route.NextHop(interface: 2)
        expectEqual(decode(single), [.route(Route(defaultKey, nextHops: [hop]), replaces: false, isDead: true)])
    }

    private var defaultKey: Route.Key { Route.Key(destination: IPPrefix(IPAddress(v4: 0), length: 0)) }

    @Test func `linkdown alone does not make a route dead: the kernel still uses it`() {
        let message = message(routeFlags: 0x10) { $0.add(4, UInt32(2)) }
        expectEqual(
            decode(message),
            [
                .route(Route(defaultKey, nextHops: [Route.NextHop(interface: 2)]), replaces: false, isDead: false)
            ])
    }

    @Test func `a route table number beyond the header's eight bits comes from RTA_TABLE`() throws {
        let decoded = try route(
            message(table: 252) { message in
                message.add(15, UInt32(51_820))
                message.add(4, UInt32(2))
            })
        expectEqual(decoded.key.table, 51_820)
    }

    @Test(arguments: [UInt32(0), 1_024, 0xffff_fffe, .max])
    func `route metrics of all sizes are decoded`(metric: UInt32) throws {
        let decoded = try route(
            message(family: 10) {
                $0.add(6, metric); $0.add(4, UInt32(2))
            })
        expectEqual(decoded.key.metric, metric)
    }

    @Test func `a cloned route belongs to no table but may answer a query`() {
        let hop = Route.NextHop(interface: 2)
        func cloned(flags: UInt16, sequence: UInt32) -> RawMessage {
            message(routeFlags: 0x200, flags: flags, sequence: sequence) { $0.add(4, UInt32(2)) }
        }
        expectEqual(decode(cloned(flags: 0, sequence: 0)), [.ignored])
        expectEqual(decode(cloned(flags: RawMessage.multi, sequence: 5)), [.ignored])
        expectEqual(
            decode(cloned(flags: 0, sequence: 5)), [.route(Route(defaultKey, nextHops: [hop]), replaces: false, isDead: false)])
    }

    @Test func `a route with a nexthop object is decoded with its hop and without it (nexthop_compat_mode 0)`() throws {
        let bare = try route(message { $0.add(30, UInt32(9)) })
        expectEqual(bare.nexthopObject, 9)
        expectEmpty(bare.nextHops)
        let full = try route(
            message {
                $0.add(30, UInt32(9)); $0.add(4, UInt32(2))
            })
        expectEqual(full.nextHops, [Route.NextHop(interface: 2)])
    }

    @Test func `routes that differ only in RTA_METRICS differ`() throws {
        func with(_ mtu: UInt32?) throws -> Route {
            try route(
                message { message in
                    message.add(4, UInt32(2))
                    if let mtu { message.nest(8) { $0.add(2, mtu) } }
                })
        }
        try expectEqual(with(1400), with(1400))
        #expect(try with(1400) != with(1300))
        #expect(try with(nil) != with(1400))
    }

    @Test func `replacement and removal of a route are decoded`() {
        let expected = Route(defaultKey, nextHops: [Route.NextHop(interface: 2)])
        expectEqual(
            decode(message(flags: RawMessage.replace) { $0.add(4, UInt32(2)) }),
            [.route(expected, replaces: true, isDead: false)])
        expectEqual(decode(message(25) { $0.add(4, UInt32(2)) }), [.routeRemoved(expected)])
    }

    @Test func `multicast routing and MPLS routes are ignored, and a truncated header is malformed`() {
        expectEqual(decode(message(family: 128) { _ in }), [.ignored])
        expectEqual(decode(message(family: 28) { _ in }), [.ignored])
        expectEqual(decode(RawMessage(24, header: [2, 0, 0])), [.malformed])
    }

    @Test func `a route query is answered by a route, a refusal or nothing`() {
        let chosen = message(sequence: 4) { message in
            message.add(5, gateway.bytes)
            message.add(4, UInt32(2))
            message.add(7, IPAddress(v4: 0xc000_0209).bytes)
        }
        let query = RouteQuery(IPAddress(v4: 0xc633_6401))
        expectEqual(
            RouteAnswer(NetlinkDecoder.decode(chosen.bytes), to: query),
            .route(ChosenRoute(interface: 2, gateway: gateway, source: IPAddress(v4: 0xc000_0209))))
        expectEqual(
            RouteAnswer(NetlinkDecoder.decode(RawMessage.error(4, errno: 113).bytes), to: query), .refused(errno: 113))
        expectNil(RouteAnswer([], to: query))
    }

    @Test func `a query for one interface reads a multipath answer's next hop over that interface`() {
        let hops = [
            Route.NextHop(interface: 2, gateway: gateway), Route.NextHop(interface: 3, gateway: IPAddress(v4: 0xc000_0301)),
        ]
        let both = message(sequence: 4) { $0.add(9, hops.flatMap { RawMessage.multipathMember($0, of: .v4) }) }
        let answer = RouteAnswer(NetlinkDecoder.decode(both.bytes), to: RouteQuery(IPAddress(v4: 0xc633_6401), interface: 3))
        expectEqual(answer, .route(ChosenRoute(interface: 3, gateway: IPAddress(v4: 0xc000_0301))))
    }

    @Test func `a query for one interface reads a nexthop object without its hop as that interface`() {
        let bare = message(sequence: 4) { $0.add(30, UInt32(9)) }
        let answer = RouteAnswer(NetlinkDecoder.decode(bare.bytes), to: RouteQuery(IPAddress(v4: 0xc633_6401), interface: 3))
        expectEqual(answer, .route(ChosenRoute(interface: 3)))
    }
}
