import Glibc

/// An IPv4 or IPv6 address as a value, without a zone.
public struct IPAddress: Hashable, Sendable {
    /// The two families of the Internet Protocol.
    public enum Family: UInt8, Hashable, Sendable, CaseIterable {
        /// IPv4 (RFC 791).
        case v4 = 4
        /// IPv6 (RFC 8200).
        case v6 = 6
    }

    /// The family that the address belongs to.
    public let family: Family
    let high: UInt64
    let low: UInt64

    /// An address from its bytes in network order: 4 for IPv4, 16 for IPv6; `nil` for any other count.
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

    /// Hashes the bits: every key of a route or an address holds one.
    public func hash(into hasher: inout Hasher) {
        if family == .v6 { hasher.combine(high) }
        hasher.combine(low)
    }

    /// The IPv4 address with these 32 bits in host order.
    public init(v4 bits: UInt32) {
        (family, high, low) = (.v4, 0, UInt64(bits))
    }

    /// The IPv6 address with these 128 bits, upper and lower half in host order.
    public init(v6 high: UInt64, _ low: UInt64) {
        (family, self.high, self.low) = (.v6, high, low)
    }

    /// Reads dotted-quad IPv4 or RFC 4291 IPv6 text, as inet_pton(3) does: no brackets, no zone, no leading zeros in IPv4.
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

    /// The bytes in network order, 4 or 16.
    public var bytes: [UInt8] {
        switch family {
        case .v4: (0..<4).reversed().map { UInt8(truncatingIfNeeded: low >> ($0 * 8)) }
        case .v6:
            (0..<8).reversed().map { UInt8(truncatingIfNeeded: high >> ($0 * 8)) }
                + (0..<8).reversed().map { UInt8(truncatingIfNeeded: low >> ($0 * 8)) }
        }
    }

    /// 127.0.0.0/8 or ::1.
    public var isLoopback: Bool {
        family == .v4 ? low >> 24 == 127 : high == 0 && low == 1
    }

    /// 169.254.0.0/16 (RFC 3927) or fe80::/10 (RFC 4291).
    public var isLinkLocal: Bool {
        family == .v4 ? low >> 16 == 0xa9fe : high >> 54 == 0xfe80 >> 6
    }

    /// 224.0.0.0/4 or ff00::/8.
    public var isMulticast: Bool {
        family == .v4 ? low >> 28 == 0xe : high >> 56 == 0xff
    }

    /// 0.0.0.0 or ::.
    public var isUnspecified: Bool { high == 0 && low == 0 }

    /// `::ffff:a.b.c.d`, an IPv4 address in IPv6 clothes (RFC 4291, 2.5.5.2).
    public var isIPv4Mapped: Bool { family == .v6 && high == 0 && low >> 32 == 0xffff }

    /// The IPv4 address where it is IPv4-mapped, else itself. Packets to such an address are IPv4, and IPv4's are the routes that
    /// count.
    package var unmapped: IPAddress { isIPv4Mapped ? IPAddress(v4: UInt32(truncatingIfNeeded: low)) : self }
}

extension IPAddress: CustomStringConvertible {
    /// The canonical text: dotted quad, or RFC 5952.
    public var description: String {
        if family == .v4 { return "\(low >> 24 & 255).\(low >> 16 & 255).\(low >> 8 & 255).\(low & 255)" }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        let written = bytes.withUnsafeBytes {
            inet_ntop(AF_INET6, $0.baseAddress, &text, socklen_t(text.count))
        }
        guard written != nil else { return "?" }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

extension IPAddress: Comparable {
    /// IPv4 before IPv6, then by value.
    public static func < (left: IPAddress, right: IPAddress) -> Bool {
        (left.family.rawValue, left.high, left.low) < (right.family.rawValue, right.high, right.low)
    }
}

/// An address with a prefix length, as in `192.0.2.7/24`; the bits behind the prefix are kept.
public struct IPPrefix: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The address.
    public let address: IPAddress
    /// The number of leading bits that name the network: 0 to 32 for IPv4, 0 to 128 for IPv6.
    public let length: UInt8

    /// The prefix of `length` bits of `address`; a longer length is cut to the family's.
    public init(_ address: IPAddress, length: UInt8) {
        self.address = address
        self.length = min(length, address.family == .v4 ? 32 : 128)
    }

    /// Whether every address of the family is in it: `0.0.0.0/0`, `::/0`.
    public var isDefault: Bool { length == 0 }

    /// Whether `other` has the same family and the same leading bits.
    public func contains(_ other: IPAddress) -> Bool {
        guard other.family == address.family else { return false }
        // A shift by all bits gives 0, and the masks with it: then nothing of that half counts.
        let lowBits = address.family == .v4 ? Int(length) : max(Int(length) - 64, 0)
        let lowWidth = address.family == .v4 ? 32 : 64
        let highMask = address.family == .v4 ? 0 : UInt64.max << max(64 - Int(length), 0)
        let lowMask = UInt64.max << (lowWidth - lowBits)
        return (address.high ^ other.high) & highMask == 0 && (address.low ^ other.low) & lowMask == 0
    }

    /// `ADDRESS/LENGTH`.
    public var description: String { "\(address)/\(length)" }

    /// By address, then by length.
    public static func < (left: IPPrefix, right: IPPrefix) -> Bool {
        (left.address, left.length) < (right.address, right.length)
    }
}

extension IPAddress: Codable {
    /// Reads the canonical text.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let address = IPAddress(text) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "'\(text)' is not an address")
        }
        self = address
    }

    /// Writes the canonical text.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
