/// A netlink message laid out byte by byte as the kernel does it (netlink(7), rtnetlink(7)): the decoder's input.
package struct RawMessage: Hashable, Sendable {
    package static let multi: UInt16 = 0x02
    package static let interrupted: UInt16 = 0x10
    package static let replace: UInt16 = 0x100

    /// The complete message, padded to four bytes.
    package let bytes: [UInt8]

    package init(
        _ type: UInt16, flags: UInt16 = 0, sequence: UInt32 = 0, header: [UInt8] = [],
        _ attributes: (inout RawAttributes) -> Void = { _ in }
    ) {
        var body = RawAttributes()
        attributes(&body)
        let length = UInt32(16 + header.count + body.bytes.count)
        bytes = (length.raw + type.raw + flags.raw + sequence.raw + UInt32(0).raw + header + body.bytes).padded
    }

    /// The last message of a dump. A refused dump has an errno.
    package static func done(_ sequence: UInt32, errno: Int32 = 0, flags: UInt16 = RawMessage.multi) -> RawMessage {
        RawMessage(3, flags: flags, sequence: sequence, header: (-errno).raw)
    }

    /// NLMSG_ERROR, which also acknowledges (errno 0). The request's header follows the number.
    package static func error(_ sequence: UInt32, errno: Int32) -> RawMessage {
        RawMessage(2, sequence: sequence, header: (-errno).raw + [UInt8](repeating: 0, count: 16))
    }
}

/// Attributes of a message or a nest (`struct nlattr`): length, type, value, padding.
package struct RawAttributes {
    package private(set) var bytes: [UInt8] = []

    package init() {}

    package mutating func add(_ type: UInt16, _ value: [UInt8]) {
        bytes += UInt16(4 + value.count).raw + type.raw + value
        bytes = bytes.padded
    }

    package mutating func add(_ type: UInt16, _ number: some FixedWidthInteger) { add(type, number.raw) }

    package mutating func add(_ type: UInt16, text: String) { add(type, Array(text.utf8) + [0]) }

    package mutating func nest(_ type: UInt16, _ build: (inout RawAttributes) -> Void) {
        var inner = RawAttributes()
        build(&inner)
        add(type, inner.bytes)
    }
}

extension FixedWidthInteger {
    /// The bytes in host order.
    package var raw: [UInt8] { withUnsafeBytes(of: self) { Array($0) } }
}

extension [UInt8] {
    var padded: [UInt8] { self + [UInt8](repeating: 0, count: (4 - count % 4) % 4) }
}

extension [RawMessage] {
    /// One datagram of several messages.
    package var bytes: [UInt8] { flatMap(\.bytes) }
}
