import Expectations
import NetlinkBytes
import Testing

@testable import Reachability

@Suite struct RuleDecoderTests {
    private func decode(_ message: RawMessage) -> [NetlinkEvent] { NetlinkDecoder.decode(message.bytes).map(\.event) }

    // struct fib_rule_hdr: family, lengths of destination and source, tos, table, two reserved, action, flags.
    private func message(
        _ type: UInt16 = 32, family: UInt8 = 2, lengths: (UInt8, UInt8) = (0, 0), table: UInt8 = 254, action: UInt8 = 1,
        flags: UInt32 = 0, _ attributes: (inout RawAttributes) -> Void
    ) -> RawMessage {
        RawMessage(type, header: [family, lengths.0, lengths.1, 0, table, 0, 0, action] + flags.raw, attributes)
    }

    private func rule(_ message: RawMessage) throws -> Rule {
        guard case .rule(let rule) = decode(message).first else { throw Unexpected(decode(message)) }
        return rule
    }

    @Test func `wg-quick's rules are decoded: not fwmark, and suppress_prefixlength 0`() throws {
        let marked = try rule(
            message(table: 252, flags: 2) { message in
                message.add(15, UInt32(51_820))
                message.add(14, UInt32.max)
                message.add(6, UInt32(32_764))
                message.add(10, UInt32(0xca6c))
                message.add(16, UInt32.max)
            })
        expectEqual(marked, Rule(family: .v4, priority: 32_764, table: 51_820, isInverted: true, mark: 0xca6c, markMask: .max))
        let suppressed = try rule(
            message {
                $0.add(14, UInt32(0)); $0.add(6, UInt32(32_763))
            })
        expectEqual(suppressed.suppressedPrefixLength, 0)
    }

    @Test func `a rule's users, protocol and ports are decoded`() throws {
        let decoded = try rule(
            message { message in
                message.add(20, UInt32(1_000).raw + UInt32(1_999).raw)
                message.add(22, UInt8(6))
                message.add(23, UInt16(1).raw + UInt16(1_023).raw)
                message.add(24, UInt16(443).raw + UInt16(443).raw)
            })
        expectEqual(decoded.users, 1_000...1_999)
        expectEqual(decoded.ipProtocol, 6)
        expectEqual(decoded.sourcePorts, 1...1_023)
        expectEqual(decoded.destinationPorts, 443...443)
    }

    @Test func `a rule's reversed or truncated range is ignored`() throws {
        let decoded = try rule(
            message { message in
                message.add(20, UInt32(9).raw + UInt32(1).raw)
                message.add(24, UInt16(443).raw)
            })
        expectNil(decoded.users)
        expectNil(decoded.destinationPorts)
    }

    @Test func `a rule's goto, tunnel id, interfaces, VRF, group and origin are decoded`() throws {
        let decoded = try rule(
            message(action: 2) { message in
                message.add(4, UInt32(1_000))
                message.add(12, UInt64(0x0102_0304).bigEndian)
                message.add(3, text: "eth0")
                message.add(17, text: "lo")
                message.add(19, UInt8(1))
                message.add(13, UInt32(4))
                message.add(21, UInt8(186))
            })
        expectEqual(
            decoded,
            Rule(
                family: .v4, priority: 0, action: 2, target: 1_000, incomingInterface: "eth0", outgoingInterface: "lo",
                suppressedGroup: 4, isL3MasterDevice: true, tunnel: 0x0102_0304, origin: 186))
    }

    @Test func `a rule's from and to are decoded with their prefixes`() throws {
        let (from, to) = (IPAddress(v6: 0x2001_0db8 << 32, 0), IPAddress(v6: 0x2001_0db8_0001 << 16, 0))
        let decoded = try rule(
            message(family: 10, lengths: (48, 32)) { message in
                message.add(1, to.bytes)
                message.add(2, from.bytes)
            })
        expectEqual(decoded.family, .v6)
        expectEqual(decoded.source, IPPrefix(from, length: 32))
        expectEqual(decoded.destination, IPPrefix(to, length: 48))
    }

    @Test func `rules that differ in an attribute without a property here differ`() throws {
        let one = try rule(message { $0.add(25, UInt8(46)) })
        try expectEqual(one, rule(message { $0.add(25, UInt8(46)) }))
        #expect(try one != rule(message { $0.add(25, UInt8(10)) }))
        #expect(try one != rule(message { _ in }))
    }

    @Test func `removal of a rule is decoded, other families are ignored, and a truncated header is malformed`() {
        expectEqual(decode(message(33) { $0.add(6, UInt32(5)) }), [.ruleRemoved(Rule(family: .v4, priority: 5))])
        expectEqual(decode(message(family: 129) { _ in }), [.ignored])
        expectEqual(decode(RawMessage(32, header: [2, 0, 0, 0])), [.malformed])
    }
}

@Suite struct NexthopDecoderTests {
    private func decode(_ message: RawMessage) -> [NetlinkEvent] { NetlinkDecoder.decode(message.bytes).map(\.event) }

    @Test func `a nexthop object is decoded as a hop, a blackhole or a group`() {
        let hop = NexthopObject(id: 7, hop: Route.NextHop(interface: 300, gateway: IPAddress(v4: 0xc000_0201), isOnLink: true))
        let blackhole = NexthopObject(id: 8, isBlackhole: true)
        let group = NexthopObject(id: 9, group: [.init(id: 7, weight: 1), .init(id: 8, weight: 300)])
        for object in [hop, blackhole, group] {
            expectEqual(decode(.nexthop(object)), [.nexthop(object)])
            expectEqual(decode(.nexthop(object, removed: true)), [.nexthopRemoved(object.id)])
        }
    }

    @Test func `a nexthop message without a number or with a truncated header is malformed, and a truncated group is ignored`() {
        expectEqual(decode(RawMessage(104, header: [2, 0, 3, 0] + UInt32(0).raw) { $0.add(5, UInt32(2)) }), [.malformed])
        expectEqual(decode(RawMessage(104, header: [2, 0])), [.malformed])
        let ragged = RawMessage(104, header: [0, 0, 3, 0] + UInt32(0).raw) { message in
            message.add(1, UInt32(9))
            message.add(2, UInt32(7).raw + [0, 0])
        }
        expectEqual(decode(ragged), [.nexthop(NexthopObject(id: 9))])
    }
}
