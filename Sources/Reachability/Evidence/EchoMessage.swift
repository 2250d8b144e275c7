/// The bytes of ICMP echo requests and replies (RFC 792, RFC 4443 section 4).
enum EchoMessage {
    /// The length of the header: type, code, checksum, identifier and sequence number.
    static let headerLength = 8

    /// Returns a request. The kernel replaces the identifier if the socket is unprivileged, and computes the checksum of ICMPv6.
    ///
    /// `cookie` fills the first bytes behind the header, as far as there is room: a reply to an earlier request with the same number has another one.
    static func request(
        _ family: IPAddress.Family, identifier: UInt16, sequence: UInt16, cookie: UInt64, size: Int
    ) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: headerLength + max(size, 0))
        bytes[0] = family == .v4 ? 8 : 128
        (bytes[4], bytes[5]) = (UInt8(identifier >> 8), UInt8(identifier & 0xff))
        (bytes[6], bytes[7]) = (UInt8(sequence >> 8), UInt8(sequence & 0xff))
        for index in headerLength..<bytes.count {
            let place = index - headerLength
            bytes[index] =
                place < 8 ? UInt8(truncatingIfNeeded: cookie >> UInt64(56 - 8 * place)) : UInt8(truncatingIfNeeded: place)
        }
        if family == .v4 {
            let sum = checksum(bytes)
            (bytes[2], bytes[3]) = (UInt8(sum >> 8), UInt8(sum & 0xff))
        }
        return bytes
    }

    /// A reply, or the request that an error quotes.
    struct Header: Hashable, Sendable {
        let identifier: UInt16
        let sequence: UInt16
        /// The first eight bytes behind the header; fewer if there are fewer.
        let cookie: [UInt8]

        /// Whether the message answers a request with this cookie, or is too short for one.
        func matches(_ cookie: UInt64) -> Bool {
            self.cookie.enumerated().allSatisfy { $1 == UInt8(truncatingIfNeeded: cookie >> UInt64(56 - 8 * $0)) }
        }
    }

    /// Returns the header of a reply; `nil` for other messages. `hasIPHeader` is whether the bytes begin with an IPv4 header, as those of a raw socket
    /// do (raw(7)).
    static func reply(_ bytes: UnsafeRawBufferPointer, _ family: IPAddress.Family, hasIPHeader: Bool) -> Header? {
        var bytes = bytes
        if hasIPHeader {
            guard let first = bytes.first else { return nil }
            let length = Int(first & 0xf) * 4
            guard length >= 20, bytes.count >= length else { return nil }
            bytes = UnsafeRawBufferPointer(rebasing: bytes[length...])
        }
        guard bytes.count >= headerLength, bytes[0] == (family == .v4 ? 0 : 129), bytes[1] == 0 else { return nil }
        return Header(
            identifier: UInt16(bytes[4]) << 8 | UInt16(bytes[5]), sequence: UInt16(bytes[6]) << 8 | UInt16(bytes[7]),
            cookie: Array(bytes[headerLength...].prefix(8)))
    }

    /// Returns the header of the request that an ICMP error quotes; `nil` if it quotes something else.
    static func quoted(_ bytes: some Collection<UInt8>, _ family: IPAddress.Family) -> Header? {
        let bytes = Array(bytes.prefix(headerLength))
        guard bytes.count == headerLength, bytes[0] == (family == .v4 ? 8 : 128), bytes[1] == 0 else { return nil }
        return Header(
            identifier: UInt16(bytes[4]) << 8 | UInt16(bytes[5]), sequence: UInt16(bytes[6]) << 8 | UInt16(bytes[7]), cookie: [])
    }

    /// The Internet checksum (RFC 1071) of bytes whose own checksum is 0.
    static func checksum(_ bytes: [UInt8]) -> UInt16 {
        var sum: UInt64 = 0
        for index in stride(from: 0, to: bytes.count, by: 2) {
            sum += UInt64(bytes[index]) << 8 | UInt64(index + 1 < bytes.count ? bytes[index + 1] : 0)
        }
        while sum > 0xffff { sum = (sum & 0xffff) + (sum >> 16) }
        return ~UInt16(sum)
    }
}
