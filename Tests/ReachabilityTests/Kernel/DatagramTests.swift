import Expectations
import NetlinkBytes
import Pacing
import Testing

@testable import Reachability

/// Complete datagrams: several messages, ends of dumps, truncated messages and random bytes.
@Suite struct NetlinkDatagramTests {
    private let link = Link(index: 2, name: "eth0")

    @Test func `messages of a datagram are decoded in order, each with its sequence and whether the dump was interrupted`() {
        let datagram: [RawMessage] = [
            .link(link, flags: RawMessage.multi, sequence: 4),
            .link(link, flags: RawMessage.multi | RawMessage.interrupted, sequence: 4), .done(4),
        ]
        expectEqual(
            NetlinkDecoder.decode(datagram.bytes),
            [
                NetlinkMessage(.link(link), sequence: 4), NetlinkMessage(.link(link), sequence: 4, wasInterrupted: true),
                NetlinkMessage(.done(errno: 0), sequence: 4),
            ])
    }

    @Test func `NLMSG_DONE, an error and an acknowledgment end a dump with their errno`() {
        func end(_ message: RawMessage) -> [NetlinkEvent] { NetlinkDecoder.decode(message.bytes).map(\.event) }
        expectEqual(end(.done(1)), [.done(errno: 0)])
        expectEqual(end(.done(1, errno: 95)), [.done(errno: 95)])
        expectEqual(end(.error(1, errno: 97)), [.done(errno: 97)])
        expectEqual(end(.error(1, errno: 0)), [.done(errno: 0)])
        expectEqual(end(RawMessage(2, header: Int32.min.raw)), [.done(errno: 5)])
        // An old kernel's DONE has no payload.
        expectEqual(end(RawMessage(3)), [.done(errno: 0)])
    }

    @Test func `message types of other protocols are ignored`() {
        expectEqual(NetlinkDecoder.decode(RawMessage(1).bytes).map(\.event), [.ignored])
        expectEqual(NetlinkDecoder.decode(RawMessage(36, header: [0, 0, 0, 0]).bytes).map(\.event), [.ignored])
    }

    @Test func `messages before a truncated one are kept, and the truncated one is malformed`() {
        let whole = [RawMessage.link(link), .link(link)].bytes
        let half = RawMessage.link(link).bytes.count
        for length in 0..<whole.count {
            let events = NetlinkDecoder.decode(Array(whole.prefix(length))).map(\.event)
            let isWhole = length >= half
            expectEqual(events.first, (isWhole ? .link(link) : events.first))
            // Fewer bytes than a header look like padding.
            expectEqual(events.filter { $0 == .malformed }.count, (length % half >= 16 ? 1 : 0))
        }
    }

    @Test func `a message length that is too small or too large ends the datagram`() {
        var bytes = RawMessage.link(link).bytes
        for length in [0, 1, 15, UInt32(bytes.count + 1), .max] as [UInt32] {
            bytes.replaceSubrange(0..<4, with: length.raw)
            expectEqual(NetlinkDecoder.decode(bytes).map(\.event), [.malformed])
        }
    }

    @Test(arguments: [UInt64(1), 2, 3])
    func `links, addresses, routes, rules and nexthop objects laid out as the kernel does decode to themselves`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        func decode(_ message: RawMessage) -> NetlinkEvent? { NetlinkDecoder.decode(message.bytes).first?.event }
        for _ in 0..<300 {
            let link = Link.random(using: &generator)
            expectEqual(decode(.link(link)), .link(link), "seed \(seed)")
            let address = Address.random(using: &generator)
            expectEqual(decode(.address(address)), .address(address), "seed \(seed)")
            expectEqual(decode(.address(address, removed: true)), .addressRemoved(address.key), "seed \(seed)")
            let route = Route.random(using: &generator)
            expectEqual(decode(.route(route)), .route(route), "seed \(seed)")
            expectEqual(decode(.route(route, removed: true)), .routeRemoved(route), "seed \(seed)")
            let rule = Rule.random(using: &generator)
            expectEqual(decode(.rule(rule)), .rule(rule), "seed \(seed)")
            let object = NexthopObject.random(using: &generator)
            expectEqual(decode(.nexthop(object)), .nexthop(object), "seed \(seed)")
        }
    }

    @Test(.skippedByThreadSanitizer, arguments: [UInt64(0x6e65_7477), 0x6174_6368])
    func `10,000 damaged datagrams do not crash the decoder and give no more messages than their bytes hold`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        for _ in 0..<10_000 {
            var bytes = randomDatagram(using: &generator)
            damage(&bytes, using: &generator)
            let messages = NetlinkDecoder.decode(bytes)
            #expect(messages.count <= bytes.count / 16 + 1, "seed \(seed)")
        }
    }

    private func randomDatagram(using generator: inout SplitMix64) -> [UInt8] {
        var messages: [RawMessage] = []
        for _ in 0..<Int.random(in: 1...3, using: &generator) {
            switch Int.random(in: 0..<7, using: &generator) {
            case 0: messages.append(.link(.random(using: &generator)))
            case 1: messages.append(.address(.random(using: &generator)))
            case 2, 3: messages.append(.route(.random(using: &generator)))
            case 4: messages.append(.rule(.random(using: &generator)))
            case 5: messages.append(.nexthop(.random(using: &generator)))
            default:
                let state = Neighbor.State(rawValue: .random(in: 0...0xff, using: &generator))
                let address = IPAddress.random(.v4, using: &generator)
                messages.append(
                    .neighbor(Neighbor(interface: 2, address: address, state: state, hardwareAddress: [1, 2, 3, 4, 5, 6])))
            }
        }
        return messages.bytes
    }

    private func damage(_ bytes: inout [UInt8], using generator: inout SplitMix64) {
        for _ in 0..<Int.random(in: 1...6, using: &generator) where !bytes.isEmpty {
            let index = Int.random(in: 0..<bytes.count, using: &generator)
            switch Int.random(in: 0..<5, using: &generator) {
            case 0: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
            case 1: bytes[index] = [0, 1, 2, 4, 7, 10, 0x7f, 0x80, 0xff].randomElement(using: &generator) ?? 0
            case 2: bytes.removeLast(bytes.count - index)
            case 3: bytes.insert(contentsOf: generator.next().raw.prefix(4), at: index)
            default:
                // Another type with these attributes: the lengths are right, the content belongs to another type.
                if bytes.count > 5 {
                    bytes[4] = [2, 3, 16, 17, 20, 21, 24, 25, 28, 32, 104].randomElement(using: &generator) ?? 16
                }
            }
        }
    }
}
