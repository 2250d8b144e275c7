import CZlib

extension StubBody {
    /// Returns a gzip member (RFC 1952) with these bytes in stored blocks.
    public static func gzip(_ bytes: some Sequence<UInt8>) -> StubBody {
        .bytes(GzipMember.stored(Array(bytes)))
    }

    /// Returns a gzip member with a fault.
    public static func badGzip(_ bytes: some Sequence<UInt8>, _ fault: GzipFault) -> StubBody {
        let bytes = Array(bytes)
        var member = GzipMember.stored(bytes)
        switch fault {
        case .noGzip: return .bytes(bytes)
        case .wrongChecksum: member[member.count - 8] ^= 0xFF
        case .wrongLength: member[member.count - 1] ^= 0xFF
        // Block type 3 is reserved (RFC 1951 section 3.2.3).
        case .reservedBlock: member[GzipMember.header.count] = 0b111
        case .truncated: member.removeLast(min(member.count - GzipMember.header.count, 8 + bytes.count / 2))
        case .trailingGarbage: member += Array("and more".utf8)
        }
        return .bytes(member)
    }

    /// The fault of a gzip body.
    @nonexhaustive public enum GzipFault: Hashable, Sendable, CaseIterable {
        /// The bytes are sent without compression.
        case noGzip
        /// The CRC-32 is wrong.
        case wrongChecksum
        /// The length in the trailer is wrong.
        case wrongLength
        /// The first block has a type that does not exist.
        case reservedBlock
        /// The second half and the trailer are missing.
        case truncated
        /// Bytes that are no gzip member follow the member.
        case trailingGarbage
    }

    /// A valid gzip member of zeros at the greatest ratio of deflate, 1,032 to 1. It is not held in memory.
    public static func gzipBomb(inflatedBytes count: Int64) -> StubBody {
        guard count > 0 else { return gzip([]) }
        var bits = DeflateBits()
        bits.append(1, count: 1)  // the last block
        bits.append(2, count: 2)  // with codes of its own (RFC 1951 section 3.2.7)
        bits.append(286 - 257, count: 5)
        bits.append(1 - 1, count: 5)
        bits.append(18 - 4, count: 4)
        // Code lengths for the lengths 16, 17, 18, 0, 8 … 1: symbol 18 has one bit, 1 and 2 have two.
        for length in [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 2] { bits.append(length, count: 3) }
        // Literal 0: two bits; 1 to 255: none; the end, 256: two bits; 257 to 284: none; 285, a match of 258: one bit.
        bits.appendCode(0b11, count: 2)
        for zeros in [138, 117] { bits.appendZeroLengths(zeros) }
        bits.appendCode(0b11, count: 2)
        bits.appendZeroLengths(28)
        bits.appendCode(0b10, count: 2)
        // The one distance, 1, has one bit.
        bits.appendCode(0b10, count: 2)

        // A literal zero, then matches, each two zero bits. Four matches fill the present byte, so that the others are complete zero
        // bytes, wherever in the byte they begin.
        bits.appendCode(0b10, count: 2)
        let matches = (count - 1) / 258
        for _ in 0..<min(4, matches) { bits.append(0, count: 2) }
        let further = max(0, matches - 4)
        let head = bits.takeBytes()
        for _ in 0..<further % 4 { bits.append(0, count: 2) }
        for _ in 0..<(count - 1) % 258 { bits.appendCode(0b10, count: 2) }
        bits.appendCode(0b11, count: 2)
        bits.align()
        let trailer = GzipMember.trailer(checksum: CRC32.ofZeros(UInt64(count)), length: UInt64(count))
        return StubBody([
            .bytes(GzipMember.header + head), .repeating(0, count: further / 4), .bytes(bits.takeBytes() + trailer),
        ])
    }
}

/// Bits as deflate packs them (RFC 1951 section 3.1.1): from the least significant on; codes with their first bit first.
private struct DeflateBits {
    private var bytes: [UInt8] = []
    private var pending: UInt8 = 0
    private var pendingCount = 0

    mutating func append(_ value: Int, count: Int) {
        for bit in 0..<count {
            pending |= UInt8(value >> bit & 1) << pendingCount
            pendingCount += 1
            if pendingCount == 8 { align() }
        }
    }

    mutating func appendCode(_ code: Int, count: Int) {
        for bit in (0..<count).reversed() { append(code >> bit, count: 1) }
    }

    /// Code lengths of zero, 11 to 138 of them: symbol 18, whose code here is one bit.
    mutating func appendZeroLengths(_ count: Int) {
        append(0, count: 1)
        append(count - 11, count: 7)
    }

    /// Completes the last byte with zero bits.
    mutating func align() {
        if pendingCount > 0 { bytes.append(pending) }
        (pending, pendingCount) = (0, 0)
    }

    /// The complete bytes so far; the bits of an incomplete byte stay.
    mutating func takeBytes() -> [UInt8] {
        defer { bytes = [] }
        return bytes
    }
}

private enum GzipMember {
    /// No name, no time, system unknown (RFC 1952 section 2.3).
    static let header: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF]

    static func stored(_ bytes: [UInt8]) -> [UInt8] {
        var member = header
        var start = 0
        repeat {
            let end = min(start + 0xFFFF, bytes.count)
            let length = UInt16(end - start)
            member.append(end == bytes.count ? 1 : 0)
            for value in [length, ~length] { member += [UInt8(value & 0xFF), UInt8(value >> 8)] }
            member += bytes[start..<end]
            start = end
        } while start < bytes.count
        return member + trailer(checksum: CRC32.of(bytes), length: UInt64(bytes.count))
    }

    static func trailer(checksum: UInt32, length: UInt64) -> [UInt8] {
        [checksum, UInt32(truncatingIfNeeded: length)].flatMap { value in (0..<4).map { UInt8(value >> ($0 * 8) & 0xFF) } }
    }
}

/// The checksum of gzip (RFC 1952 section 8).
private enum CRC32 {
    static func of(_ bytes: [UInt8]) -> UInt32 { UInt32(truncatingIfNeeded: crc32_z(0, bytes, bytes.count)) }

    /// The checksum of zeros without making them: those of two parts combine to that of the whole, and each part here is twice the one before.
    static func ofZeros(_ count: UInt64) -> UInt32 {
        var (checksum, part, length, left) = (UInt(0), UInt(of([0])), 1, count)
        while left > 0 {
            if left & 1 == 1 { checksum = crc32_combine(checksum, part, length) }
            left >>= 1
            if left > 0 { (part, length) = (crc32_combine(part, part, length), length << 1) }
        }
        return UInt32(truncatingIfNeeded: checksum)
    }
}
