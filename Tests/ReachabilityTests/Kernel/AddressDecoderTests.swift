import Expectations
import NetlinkBytes
import Testing

@testable import Reachability

@Suite struct AddressDecoderTests {
    private let local = IPAddress(v4: 0xc000_0207)
    private let peer = IPAddress(v4: 0xc000_0208)

    private func decode(_ message: RawMessage) -> [NetlinkEvent] { NetlinkDecoder.decode(message.bytes).map(\.event) }

    // struct ifaddrmsg: family, prefix length, flags, scope, index.
    private func message(
        _ type: UInt16 = 20, family: UInt8 = 2, prefix: UInt8 = 24, flags: UInt8 = 0, scope: UInt8 = 0, index: UInt32 = 300,
        _ attributes: (inout RawAttributes) -> Void
    ) -> RawMessage {
        RawMessage(type, header: [family, prefix, flags, scope] + index.raw, attributes)
    }

    private func address(_ message: RawMessage) throws -> Address {
        guard case .address(let address) = decode(message).first else { throw Unexpected(decode(message)) }
        return address
    }

    @Test func `on a point-to-point link IFA_LOCAL is the address and IFA_ADDRESS the peer`() throws {
        let decoded = try address(
            message(prefix: 32) { message in
                message.add(1, peer.bytes)
                message.add(2, local.bytes)
            })
        expectEqual(decoded.key, Address.Key(interface: 300, prefix: IPPrefix(local, length: 32), peer: peer))
        expectEqual(decoded.peer, peer)
    }

    @Test func `an IPv6 address comes once, as IFA_ADDRESS`() throws {
        let six = IPAddress(v6: 0x2001_0db8_0000_0000, 7)
        let decoded = try address(message(family: 10, prefix: 64) { $0.add(1, six.bytes) })
        expectEqual(decoded.address, six)
        expectNil(decoded.peer)
    }

    @Test func `address flags come from the 32 bits of IFA_FLAGS and not from the header's 8`() throws {
        let decoded = try address(
            message(flags: 0x80) { message in
                message.add(2, local.bytes)
                message.add(8, UInt32(0x340))
            })
        expectEqual(decoded.flags, Address.Flags(rawValue: 0x340))
        #expect(!decoded.isUsable)
    }

    @Test func `an optimistic address is usable while tentative, a duplicate address is not`() throws {
        let optimistic = try address(
            message {
                $0.add(2, local.bytes); $0.add(8, UInt32(0x44))
            })
        #expect(optimistic.isUsable)
        let duplicate = try address(
            message {
                $0.add(2, local.bytes); $0.add(8, UInt32(0x0c))
            })
        #expect(!duplicate.isUsable)
    }

    // struct ifa_cacheinfo: preferred, valid, created, updated.
    private func lifetime(preferred: UInt32, valid: UInt32, flags: UInt32, renewed: UInt32 = 77) -> RawMessage {
        message { message in
            message.add(2, local.bytes)
            message.add(8, flags)
            message.add(6, preferred.raw + valid.raw + UInt32(1).raw + renewed.raw)
        }
    }

    @Test func `address lifetimes are decoded, and an infinite lifetime is nil`() throws {
        let limited = try address(lifetime(preferred: 60, valid: 120, flags: 0))
        expectEqual(limited.lifetime.preferredSeconds, 60)
        expectEqual(limited.lifetime.validSeconds, 120)
        expectEqual(limited.lifetime.renewedCentiseconds, 77)
        let forever = try address(lifetime(preferred: .max, valid: .max, flags: 0x80))
        expectNil(forever.lifetime.preferredSeconds)
        expectNil(forever.lifetime.validSeconds)
    }

    @Test func `an address without preferred lifetime left is deprecated, whatever its flag says`() throws {
        #expect(try address(lifetime(preferred: 0, valid: 60, flags: 0)).flags.contains(.deprecated))
        #expect(try address(lifetime(preferred: 1, valid: 60, flags: 0x20)).flags.isDisjoint(with: .deprecated))
        try expectEqual(
            address(lifetime(preferred: 0, valid: 60, flags: 0)), address(lifetime(preferred: 0, valid: 60, flags: 0x20)))
    }

    @Test func `a lifetime that counts down leaves the address equal, a renewal does not`() throws {
        try expectEqual(
            address(lifetime(preferred: 60, valid: 90, flags: 0)), address(lifetime(preferred: 59, valid: 89, flags: 0)))
        #expect(
            try address(lifetime(preferred: 60, valid: 90, flags: 0))
                != address(lifetime(preferred: 60, valid: 90, flags: 0, renewed: 78)))
    }

    @Test func `removal of an address names interface, address and prefix`() {
        let removal = message(21) { $0.add(2, local.bytes) }
        expectEqual(decode(removal), [.addressRemoved(Address.Key(interface: 300, prefix: IPPrefix(local, length: 24)))])
    }

    @Test func `address messages of other families are ignored, and one without a complete address is malformed`() {
        expectEqual(decode(message(family: 0) { $0.add(2, local.bytes) }), [.ignored])
        expectEqual(decode(message(family: 7) { $0.add(2, local.bytes) }), [.ignored])
        expectEqual(decode(message { $0.add(8, UInt32(0)) }), [.malformed])
        expectEqual(decode(message { $0.add(2, [192, 0]) }), [.malformed])
        expectEqual(decode(RawMessage(20, header: [2, 24])), [.malformed])
    }

    @Test func `neighbors are decoded with their state, and a bridge's forwarding entries are ignored`() {
        let neighbor = Neighbor(interface: 300, address: peer, state: .reachable, hardwareAddress: [2, 0, 0, 0, 0, 1])
        expectEqual(decode(.neighbor(neighbor)), [.neighbor(neighbor)])
        expectEqual(decode(.neighbor(neighbor, removed: true)), [.neighborRemoved(neighbor.key)])
        let failed = Neighbor(interface: 300, address: IPAddress(v6: 0xfe80 << 48, 1), state: .failed)
        expectEqual(decode(.neighbor(failed)), [.neighbor(failed)])
        let forwarding = RawMessage(28, header: [7, 0, 0, 0] + UInt32(3).raw + UInt16(2).raw + [0, 0]) {
            $0.add(2, [2, 0, 0, 0, 0, 1])
        }
        expectEqual(decode(forwarding), [.ignored])
    }
}

@Suite struct NeighborAnswerTests {
    private func answer(_ bytes: [UInt8]) -> NeighborAnswer { NeighborAnswer(NetlinkDecoder.decode(bytes)) }

    @Test func `a neighbor answer distinguishes an entry, no entry, and no answer`() {
        let neighbor = Neighbor(interface: 2, address: IPAddress(v4: 0x0a00_0001), state: .failed)
        expectEqual(answer(RawMessage.neighbor(neighbor, sequence: 9).bytes), .state(.failed))
        expectEqual(answer(RawMessage.error(9, errno: 2).bytes), .absent)
        expectEqual(answer(RawMessage.error(9, errno: 95).bytes), .unknown)
        expectEqual(answer([]), .unknown)
    }
}
