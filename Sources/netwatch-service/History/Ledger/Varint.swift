/// A writer of numbers in LEB128: seven bits a byte, the lowest first.
struct VarintWriter {
    private(set) var bytes: [UInt8] = []

    mutating func append(_ number: UInt64) {
        var number = number
        while number >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: number) | 0x80)
            number >>= 7
        }
        bytes.append(UInt8(number))
    }

    mutating func append(signed number: Int64) { append(ZigZag.encode(number)) }

    /// The CRC-32 of the bytes.
    var checksum: [UInt8] { CRC32.bytes(of: bytes) }
}

/// A reader of numbers in LEB128 from bytes that may be damaged.
struct VarintReader {
    private var bytes: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    var isAtEnd: Bool { bytes.isEmpty }

    /// The bytes that follow.
    var remaining: ArraySlice<UInt8> { bytes }

    /// Reads a number; `nil` if the bytes end before it, or it has more than 64 bits.
    mutating func next() -> UInt64? {
        var number: UInt64 = 0
        for (index, byte) in bytes.prefix(10).enumerated() {
            guard index < 9 || byte <= 1 else { return nil }
            number |= UInt64(byte & 0x7F) << (7 * UInt64(index))
            if byte < 0x80 {
                bytes = bytes.dropFirst(index + 1)
                return number
            }
        }
        return nil
    }

    mutating func nextSigned() -> Int64? { next().map(ZigZag.decode) }
}

/// The code in which numbers near zero are small, whatever their sign: 0, -1, 1, -2 are 0, 1, 2, 3.
enum ZigZag {
    static func encode(_ number: Int64) -> UInt64 { UInt64(bitPattern: number << 1 ^ number >> 63) }

    static func decode(_ code: UInt64) -> Int64 { Int64(bitPattern: code >> 1) ^ -Int64(bitPattern: code & 1) }
}

/// The checksum CRC-32 (ISO-HDLC, RFC 1952 section 8).
enum CRC32 {
    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? value >> 1 ^ 0xEDB8_8320 : value >> 1 }
    }

    /// Returns the checksum of bytes. - Parameter previous: the checksum of the bytes before them.
    static func checksum(of bytes: some Sequence<UInt8>, after previous: UInt32 = 0) -> UInt32 {
        ~bytes.reduce(~previous) { $0 >> 8 ^ table[Int(($0 ^ UInt32($1)) & 0xFF)] }
    }

    /// The checksum in four bytes, the lowest first.
    static func bytes(of bytes: some Sequence<UInt8>) -> [UInt8] {
        let sum = checksum(of: bytes)
        return [0, 8, 16, 24].map { UInt8(truncatingIfNeeded: sum >> $0) }
    }
}
