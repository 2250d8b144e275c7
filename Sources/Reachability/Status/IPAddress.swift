package import EventLoop
import Glibc

/// An IPv4 or IPv6 address, without a zone.
public struct IPAddress: Hashable, Sendable {
    /// The two address families of the Internet Protocol.
    public enum Family: UInt8, Hashable, Sendable, CaseIterable {
        /// IPv4 (RFC 791).
        case v4 = 4
        /// IPv6 (RFC 8200).
        case v6 = 6
    }

    let high: UInt64
    let low: UInt64
    // Last: the fields of a type that begins with an address then fill the last word.
    /// The address family.
    public let family: Family

    /// Creates an address from its bytes in network order: 4 bytes for IPv4, 16 for IPv6. Returns `nil` for any other count.
    public init?(bytes: some Collection<UInt8>) {
        switch bytes.count {
        case 4:
            family = .v4
            high = 0
            low = bytes.reduce(0) { $0 << 8 | UInt64($1) }
        case 16:
            family = .v6
            high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
            low = bytes.dropFirst(8).reduce(0) { $0 << 8 | UInt64($1) }
        default:
            return nil
        }
    }

    /// Hashes the bits directly: the keys of all routes and addresses contain an address.
    public func hash(into hasher: inout Hasher) {
        if family == .v6 { hasher.combine(high) }
        hasher.combine(low)
    }

    /// Creates an IPv4 address from 32 bits in host order.
    public init(v4 bits: UInt32) {
        (family, high, low) = (.v4, 0, UInt64(bits))
    }

    /// Creates an IPv6 address from the upper and lower 64 bits in host order.
    public init(v6 high: UInt64, _ low: UInt64) {
        (family, self.high, self.low) = (.v6, high, low)
    }

    /// Creates an address from IPv4 text in dotted-quad form, or IPv6 text of RFC 4291. Follows inet_pton(3): brackets, zones,
    /// and leading zeros in IPv4 are refused.
    public init?(_ text: some StringProtocol) {
        let text = String(text)
        var storage = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &storage) == 1 {
            self.init(bytes: storage.prefix(4))
        } else if inet_pton(AF_INET6, text, &storage) == 1 {
            self.init(bytes: storage)
        } else {
            return nil
        }
    }

    /// The address in network order: 4 or 16 bytes.
    public var bytes: [UInt8] {
        switch family {
        case .v4: (0..<4).reversed().map { UInt8(truncatingIfNeeded: low >> ($0 * 8)) }
        case .v6:
            (0..<8).reversed().map { UInt8(truncatingIfNeeded: high >> ($0 * 8)) }
                + (0..<8).reversed().map { UInt8(truncatingIfNeeded: low >> ($0 * 8)) }
        }
    }

    /// Whether the address is in 127.0.0.0/8 (RFC 1122 section 3.2.1.3) or is ::1 (RFC 4291 section 2.5.3).
    public var isLoopback: Bool {
        family == .v4 ? low >> 24 == 127 : high == 0 && low == 1
    }

    /// The loopback address of the same family (RFC 1122 section 3.2.1.3; RFC 4291 section 2.5.3).
    var loopback: IPAddress { family == .v4 ? IPAddress(v4: 0x7f00_0001) : IPAddress(v6: 0, 1) }

    /// Whether the address is in 169.254.0.0/16 (RFC 3927) or fe80::/10 (RFC 4291 section 2.5.6).
    public var isLinkLocal: Bool {
        family == .v4 ? low >> 16 == 0xa9fe : high >> 54 == 0xfe80 >> 6
    }

    /// Whether the address is in 224.0.0.0/4 (RFC 5771) or ff00::/8 (RFC 4291 section 2.7).
    public var isMulticast: Bool {
        family == .v4 ? low >> 28 == 0xe : high >> 56 == 0xff
    }

    /// Whether the address is 0.0.0.0 or ::.
    public var isUnspecified: Bool { high == 0 && low == 0 }

    /// Whether the address is an IPv4 address in IPv6 form, `::ffff:a.b.c.d` (RFC 4291 section 2.5.5.2).
    public var isIPv4Mapped: Bool { family == .v6 && high == 0 && low >> 32 == 0xffff }

    /// The IPv4 address that an IPv4-mapped address contains; the address itself otherwise. The kernel sends to a mapped address
    /// over IPv4, so the IPv4 routes decide.
    package var unmapped: IPAddress { isIPv4Mapped ? IPAddress(v4: UInt32(truncatingIfNeeded: low)) : self }
}

extension IPAddress: CustomStringConvertible {
    /// The canonical text: a dotted quad for IPv4, RFC 5952 for IPv6.
    public var description: String {
        // A string of up to 15 bytes needs no memory of its own.
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: IPAddress.longestText) { buffer in
            String(decoding: buffer[..<write(to: buffer)], as: UTF8.self)
        }
    }

    /// The bytes of the longest text, with the terminating 0 of inet_ntop(3).
    fileprivate static let longestText = Int(INET6_ADDRSTRLEN)

    /// Writes the text to a buffer of ``longestText`` bytes. - Returns: The number of bytes.
    fileprivate func write(to buffer: UnsafeMutableBufferPointer<UInt8>) -> Int {
        family == .v4 ? writeDottedQuad(to: buffer) : writeColonHexadecimal(to: buffer)
    }

    private func writeDottedQuad(to buffer: UnsafeMutableBufferPointer<UInt8>) -> Int {
        var count = 0
        for shift in stride(from: 24, through: 0, by: -8) {
            if count > 0 {
                buffer[count] = UInt8(ascii: ".")
                count += 1
            }
            count += IPAddress.write(UInt8(truncatingIfNeeded: low >> shift), to: buffer, at: count)
        }
        return count
    }

    private func writeColonHexadecimal(to buffer: UnsafeMutableBufferPointer<UInt8>) -> Int {
        buffer.withMemoryRebound(to: CChar.self) { text in
            let written = withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) {
                inet_ntop(AF_INET6, $0.baseAddress, text.baseAddress, socklen_t(text.count))
            }
            return written.map { strlen($0) } ?? 0
        }
    }

    /// Writes the decimal digits of a number at a position of the buffer. - Returns: The number of digits.
    fileprivate static func write(_ number: UInt8, to buffer: UnsafeMutableBufferPointer<UInt8>, at position: Int) -> Int {
        let count = number >= 100 ? 3 : number >= 10 ? 2 : 1
        var remaining = number
        for place in (position..<position + count).reversed() {
            buffer[place] = UInt8(ascii: "0") + remaining % 10
            remaining /= 10
        }
        return count
    }
}

extension IPAddress: Comparable {
    /// Orders IPv4 before IPv6, then by value.
    public static func < (left: IPAddress, right: IPAddress) -> Bool {
        (left.family.rawValue, left.high, left.low) < (right.family.rawValue, right.high, right.low)
    }
}

/// An address with a prefix length, such as `192.0.2.7/24`. The bits after the prefix are kept.
public struct IPPrefix: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The address, including the bits after the prefix.
    public let address: IPAddress
    /// The number of leading bits that identify the network: 0 to 32 for IPv4, 0 to 128 for IPv6.
    public let length: UInt8

    /// Creates a prefix of `length` bits. A length above the family's maximum is reduced to the maximum.
    public init(_ address: IPAddress, length: UInt8) {
        self.address = address
        self.length = min(length, address.family == .v4 ? 32 : 128)
    }

    /// Whether the prefix contains every address of its family: `0.0.0.0/0`, `::/0`.
    package var isDefault: Bool { length == 0 }

    /// Returns whether `other` has the same family and the same leading bits.
    public func contains(_ other: IPAddress) -> Bool {
        guard other.family == address.family else { return false }
        // A shift by the full width gives 0. The mask is then 0, and no bit of that half is compared.
        let lowBits = address.family == .v4 ? Int(length) : max(Int(length) - 64, 0)
        let lowWidth = address.family == .v4 ? 32 : 64
        let highMask = address.family == .v4 ? 0 : UInt64.max << max(64 - Int(length), 0)
        let lowMask = UInt64.max << (lowWidth - lowBits)
        return (address.high ^ other.high) & highMask == 0 && (address.low ^ other.low) & lowMask == 0
    }

    /// The prefix in the form `ADDRESS/LENGTH`.
    public var description: String {
        // The slash and up to three digits follow the address.
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: IPAddress.longestText + 4) { buffer in
            var count = address.write(to: buffer)
            buffer[count] = UInt8(ascii: "/")
            count += 1 + IPAddress.write(length, to: buffer, at: count + 1)
            return String(decoding: buffer[..<count], as: UTF8.self)
        }
    }

    /// Orders by address, then by length.
    public static func < (left: IPPrefix, right: IPPrefix) -> Bool {
        (left.address, left.length) < (right.address, right.length)
    }
}

extension IPPrefix {
    /// The first address of the network.
    var first: IPAddress {
        guard address.family == .v6 else {
            return IPAddress(v4: UInt32(truncatingIfNeeded: address.low & (.max << (32 - UInt64(length)))))
        }
        // A shift by 64 bits gives 0.
        let (high, low) = (min(UInt64(length), 64), length > 64 ? UInt64(length) - 64 : 0)
        return IPAddress(v6: address.high & (.max << (64 - high)), address.low & (.max << (64 - low)))
    }
}

extension IPAddress {
    /// The network whose hosts are usually reached over the same way: the /24 of an IPv4 address, the /64 of an IPv6 address.
    var network: IPPrefix {
        let length: UInt8 = family == .v4 ? 24 : 64
        return IPPrefix(IPPrefix(self, length: length).first, length: length)
    }
}

extension IPAddress: Codable {
    /// Decodes an address from its text.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let address = IPAddress(text) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "'\(text)' is not an address")
        }
        self = address
    }

    /// Encodes the canonical text.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

extension SocketAddress {
    /// Creates the address of a socket. `zone` is the index of the interface of a link-local IPv6 address; otherwise 0.
    package init(_ address: IPAddress, port: UInt16, zone: UInt32 = 0) {
        guard let name = SocketAddress(ip: address.bytes, port: port, zone: zone) else {
            preconditionFailure("an IP address of \(address.bytes.count) bytes")
        }
        self = name
    }

    /// The IP address; `nil` for a Unix socket.
    package var address: IPAddress? { withIP { IPAddress(bytes: $0) } }
}
