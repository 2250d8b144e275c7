internal import CLibnl
internal import CLinux
internal import Glibc

/// Decodes the kernel's datagrams. libnl-route decodes routes and the replies for neighbors. This module reads the attributes
/// itself if speed matters (links, addresses, neighbor events) or libnl drops them (rules' `not`, `suppress_prefixlength` and
/// `uidrange`; nexthop objects; a device's bus).
enum NetlinkDecoder {
    /// Decodes the messages of a datagram in order. A message that cannot be decoded becomes one `.malformed` message.
    static func decode(_ datagram: UnsafeRawBufferPointer, into messages: inout [NetlinkMessage]) {
        var offset = 0
        while datagram.count - offset >= MemoryLayout<nlmsghdr>.size, let base = datagram.baseAddress {
            let header = UnsafeMutableRawPointer(mutating: base + offset).assumingMemoryBound(to: nlmsghdr.self)
            let length = Int(header.pointee.nlmsg_len)
            guard length >= MemoryLayout<nlmsghdr>.size, length <= datagram.count - offset else {
                messages.append(NetlinkMessage(.malformed))
                return
            }
            messages.append(
                NetlinkMessage(
                    event(header), sequence: header.pointee.nlmsg_seq,
                    wasInterrupted: Int32(header.pointee.nlmsg_flags) & NLM_F_DUMP_INTR != 0, routeLifetime: routeLifetime(header)
                )
            )
            offset += (length + 3) & ~3
        }
    }

    /// Decodes stored bytes, such as those of a recording.
    static func decode(_ bytes: [UInt8]) -> [NetlinkMessage] {
        var messages: [NetlinkMessage] = []
        bytes.withUnsafeBytes { decode($0, into: &messages) }
        return messages
    }

    private static func event(_ header: UnsafeMutablePointer<nlmsghdr>) -> NetlinkEvent {
        let payload = Int(header.pointee.nlmsg_len) - MemoryLayout<nlmsghdr>.size
        switch Int(header.pointee.nlmsg_type) {
        case Int(NLMSG_DONE), Int(NLMSG_ERROR):
            guard payload >= 4, let data = nlmsg_data(header) else { return .done(errno: 0) }
            let code = data.loadUnaligned(as: Int32.self)
            return .done(errno: code == .min ? EIO : abs(code))
        case Int(NLMSG_NOOP): return .ignored
        case RTM_NEWLINK, RTM_DELLINK: return link(header)
        case RTM_NEWADDR, RTM_DELADDR: return address(header)
        case RTM_NEWROUTE, RTM_DELROUTE: return route(header)
        case RTM_NEWNEIGH, RTM_DELNEIGH: return neighbor(header)
        case RTM_NEWRULE, RTM_DELRULE: return rule(header)
        case RTM_NEWNEXTHOP, RTM_DELNEXTHOP: return nexthop(header)
        case RTM_NEWNETCONF: return linkdownPolicy(header)
        default: return .ignored
        }
    }

    /// Returns the fixed structure after the netlink header; `nil` if the message is too short.
    static func fixedHeader<Header>(_ header: UnsafeMutablePointer<nlmsghdr>, as type: Header.Type) -> Header? {
        guard nlmsg_valid_hdr(header, Int32(MemoryLayout<Header>.size)) != 0, let data = nlmsg_data(header) else { return nil }
        return data.loadUnaligned(as: Header.self)
    }

    /// Parses the message with libnl-route and passes the object to `body`; `nil` if libnl refuses the message.
    static func withObject<Value>(_ header: UnsafeMutablePointer<nlmsghdr>, _ body: (OpaquePointer) -> Value?) -> Value? {
        guard let message = nlmsg_convert(header) else { return nil }
        defer { nlmsg_free(message) }
        nlmsg_set_proto(message, NETLINK_ROUTE)
        // libnl releases its reference to the object when the callback returns, so the callback retains the object.
        var object: OpaquePointer?
        _ = nl_msg_parse(
            message,
            { object, argument in
                guard let object, let argument else { return }
                nl_object_get(object)
                argument.assumingMemoryBound(to: OpaquePointer?.self).pointee = object
            }, &object)
        guard let object else { return nil }
        defer { nl_object_put(object) }
        return body(object)
    }

    /// Returns the address in a libnl object.
    static func address(_ pointer: OpaquePointer?) -> IPAddress? {
        guard let pointer, let bytes = nl_addr_get_binary_addr(pointer) else { return nil }
        let count = Int(nl_addr_get_len(pointer))
        return IPAddress(bytes: UnsafeRawBufferPointer(start: bytes, count: count))
    }
}

/// The attributes of one message or one nested attribute, in order. Read without libnl: a link has forty attributes, and libnl's
/// `nla_*` need four calls for each.
struct AttributeSequence: Sequence, IteratorProtocol {
    /// One attribute.
    struct Attribute {
        /// The type without the flags for nesting and byte order in the upper two bits (`NLA_TYPE_MASK`).
        let type: Int32
        let bytes: UnsafeRawBufferPointer
        /// Returns the number in host order; `nil` if the attribute is shorter than the number.
        func number<Number: FixedWidthInteger>(_ type: Number.Type = Number.self) -> Number? {
            bytes.count >= MemoryLayout<Number>.size ? bytes.loadUnaligned(as: Number.self) : nil
        }
        var address: IPAddress? { IPAddress(bytes: bytes) }
        var text: String { String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self) }
        var nested: AttributeSequence { AttributeSequence(bytes) }
    }

    private var remaining: UnsafeRawBufferPointer

    /// Creates a sequence of the attributes after a fixed header of `headerSize` bytes.
    init(_ message: UnsafeMutablePointer<nlmsghdr>, headerSize: Int) {
        let start = MemoryLayout<nlmsghdr>.size + (headerSize + 3) & ~3
        let count = Int(message.pointee.nlmsg_len) - start
        self.init(UnsafeRawBufferPointer(start: UnsafeRawPointer(message) + start, count: Swift.max(count, 0)))
    }

    /// Creates a sequence of the attributes in `bytes`.
    init(_ bytes: UnsafeRawBufferPointer) { remaining = bytes }

    // struct nlattr has the length, including these four bytes, and the type. Each attribute begins at a multiple of four.
    mutating func next() -> Attribute? {
        guard remaining.count >= 4 else { return nil }
        let length = Int(remaining.loadUnaligned(as: UInt16.self))
        guard length >= 4, length <= remaining.count else { return nil }
        let type = remaining.loadUnaligned(fromByteOffset: 2, as: UInt16.self) & 0x3fff
        let bytes = UnsafeRawBufferPointer(rebasing: remaining[4..<length])
        remaining = UnsafeRawBufferPointer(rebasing: remaining[Swift.min((length + 3) & ~3, remaining.count)...])
        return Attribute(type: Int32(type), bytes: bytes)
    }
}

/// A digest of bytes by FNV-1a. It distinguishes values by attributes that the type does not name.
struct Fingerprint {
    private(set) var value: UInt64 = 0

    mutating func add(_ type: Int32, _ bytes: UnsafeRawBufferPointer) {
        if value == 0 { value = 0xcbf2_9ce4_8422_2325 }
        value = (value ^ UInt64(truncatingIfNeeded: type)) &* 0x0000_0100_0000_01b3
        for byte in bytes { value = (value ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
    }
}
