import Expectations
import NetlinkBytes
import Testing

@testable import Reachability

@Suite struct LinkDecoderTests {
    private func decode(_ message: RawMessage) -> [NetlinkEvent] { NetlinkDecoder.decode(message.bytes).map(\.event) }

    // struct ifinfomsg: family, padding, type, index, flags, change.
    private func header(index: UInt32 = 2, family: UInt8 = 0, flags: UInt32 = 0x1_1043, change: UInt32 = 0) -> [UInt8] {
        [family, 0] + UInt16(1).raw + index.raw + flags.raw + change.raw
    }

    @Test func `a hardware link is decoded with name, flags, state, address and bus`() {
        let message = RawMessage(16, header: header()) { message in
            message.add(3, text: "eth0")
            message.add(16, UInt8(6))
            message.add(4, UInt32(1400))
            message.add(1, [2, 0, 0, 0, 0, 1])
            message.add(57, text: "virtio")
        }
        let expected = Link(
            index: 2, name: "eth0", flags: Link.Flags(rawValue: 0x1_1043), hardwareType: 1, operationalState: .up, mtu: 1400,
            hardwareAddress: [2, 0, 0, 0, 0, 1], parentBus: "virtio"
        )
        expectEqual(decode(message), [.link(expected)])
        #expect(expected.hasCarrier)
    }

    @Test(arguments: ["veth", "bridge", "vlan", "macvlan", "wireguard", "a-kind-of-the-future"])
    func `a link's kind is the string of IFLA_INFO_KIND`(kind: String) throws {
        let message = RawMessage(16, header: header()) { message in
            message.add(3, text: "x")
            message.nest(18) { $0.add(1, text: kind) }
        }
        guard case .link(let link) = decode(message).first else { throw Unexpected(decode(message)) }
        expectEqual(link.kind, kind)
        #expect(!link.isTap)
    }

    @Test(arguments: [(UInt8(1), false), (2, true)])
    func `tun and tap links share a kind and differ in IFLA_TUN_TYPE`(type: UInt8, isTap: Bool) throws {
        let message = RawMessage(16, header: header()) { message in
            message.add(3, text: "tun0")
            message.nest(18) { info in
                info.add(1, text: "tun")
                info.nest(2) { $0.add(3, type) }
            }
        }
        guard case .link(let link) = decode(message).first else { throw Unexpected(decode(message)) }
        expectEqual(link.kind, "tun")
        expectEqual(link.isTap, isTap)
    }

    @Test func `a bridge's port is decoded with its master and the kind of port`() throws {
        let message = RawMessage(16, header: header(index: 300)) { message in
            message.add(3, text: "veth1")
            message.add(10, UInt32(1_000))
            message.nest(18) { info in
                info.add(1, text: "veth")
                info.add(4, text: "bridge")
            }
        }
        guard case .link(let link) = decode(message).first else { throw Unexpected(decode(message)) }
        expectEqual(link.index, 300)
        expectEqual(link.master, 1_000)
        expectEqual(link.portKind, "bridge")
    }

    @Test func `a veth peer in another namespace is marked: its index has no meaning here`() throws {
        let message = RawMessage(16, header: header()) { message in
            message.add(3, text: "veth0")
            message.add(5, UInt32(9))
            message.add(37, UInt32(0))
        }
        guard case .link(let link) = decode(message).first else { throw Unexpected(decode(message)) }
        expectEqual(link.lower, 9)
        #expect(link.lowerIsElsewhere)
        let here = RawMessage(16, header: header()) { message in
            message.add(3, text: "veth0")
            message.add(5, UInt32(9))
        }
        guard case .link(let other) = decode(here).first else { throw Unexpected(decode(here)) }
        #expect(!other.lowerIsElsewhere)
    }

    @Test(arguments: [("ipip", UInt16(3)), ("sit", 3), ("gre", 7), ("gretap", 7), ("vti", 5), ("vxlan", 2), ("geneve", 2)])
    func `the remote address of an IP tunnel is decoded if it is unicast`(kind: String, attribute: UInt16) throws {
        func message(_ remote: [UInt8]) -> RawMessage {
            RawMessage(16, header: header()) { message in
                message.add(3, text: "t0")
                message.nest(18) { info in
                    info.add(1, text: kind)
                    info.nest(2) { $0.add(attribute, remote) }
                }
            }
        }
        for (bytes, expected) in [
            ([192, 0, 2, 9] as [UInt8], IPAddress("192.0.2.9")), ([0, 0, 0, 0], nil), ([239, 1, 1, 1], nil),
        ] {
            guard case .link(let link) = decode(message(bytes)).first else { throw Unexpected(decode(message(bytes))) }
            expectEqual(link.tunnelRemote, expected)
        }
    }

    @Test func `a link message with wireless statistics is ignored`() {
        let message = RawMessage(16, header: header()) { message in
            message.add(3, text: "wlan0")
            message.add(11, [UInt8](repeating: 7, count: 24))
        }
        expectEqual(decode(message), [.ignored])
    }

    @Test(arguments: [UInt16(16), 17])
    func `a bridge's message about its port (family 7) is ignored`(type: UInt16) {
        let message = RawMessage(type, header: header(family: 7)) { message in
            message.add(3, text: "veth1")
            message.add(10, UInt32(4))
        }
        expectEqual(decode(message), [.ignored])
    }

    @Test func `a link that moves to another namespace is removed`() {
        let message = RawMessage(17, header: header(index: 0x1234_5678)) { message in
            message.add(3, text: "eth0")
            message.add(45, UInt32(1))
            message.add(49, UInt32(2))
        }
        expectEqual(decode(message), [.linkRemoved(0x1234_5678)])
    }

    @Test func `a link message without a name or with a truncated header is malformed`() {
        expectEqual(decode(RawMessage(16, header: header()) { $0.add(4, UInt32(1500)) }), [.malformed])
        expectEqual(decode(RawMessage(16, header: [0, 0, 1, 0])), [.malformed])
        expectEqual(decode(RawMessage(17, header: [0, 0, 1, 0])), [.malformed])
    }
}

/// The value that came in place of the one that a test expects.
struct Unexpected: Error, CustomStringConvertible {
    let description: String

    init(_ value: some Any) { description = "\(value)" }
}
