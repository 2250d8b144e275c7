/// A writer of single bits, the highest bit of each byte first.
struct BitWriter: Sendable {
    private(set) var bytes: [UInt8] = []
    /// The number of bits that are free in the last byte.
    private var free = 0

    mutating func append(_ flag: Bool) { append(flag ? 1 : 0, bits: 1) }

    /// Appends the lowest bits of a number. - Parameter bits: from 0 to 64.
    mutating func append(_ number: UInt64, bits: Int) {
        var remaining = bits
        while remaining > 0 {
            if free == 0 {
                bytes.append(0)
                free = 8
            }
            let count = min(free, remaining)
            let part = number >> UInt64(remaining - count) & ((1 << UInt64(count)) - 1)
            free -= count
            bytes[bytes.count - 1] |= UInt8(truncatingIfNeeded: part << UInt64(free))
            remaining -= count
        }
    }

    /// Appends a number of any size: its length in six bits, then its bits.
    mutating func append(number: UInt64) {
        let length = 64 - number.leadingZeroBitCount
        append(UInt64(min(length, 63)), bits: 6)
        // A number of 64 bits has the length of one with 63.
        append(number, bits: length >= 63 ? 64 : length)
    }

    mutating func append(signed number: Int64) { append(number: ZigZag.encode(number)) }
}

/// A reader of single bits from bytes that may be damaged.
struct BitReader {
    private let bytes: ArraySlice<UInt8>
    private var position: Int
    private let end: Int

    init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        (position, end) = (bytes.startIndex * 8, bytes.endIndex * 8)
    }

    /// The number of bits that follow.
    var remaining: Int { end - position }

    /// Whether only the unused bits of the last byte follow, which are zero.
    var isAtEnd: Bool {
        var copy = self
        return remaining < 8 && copy.next(bits: remaining) == 0
    }

    mutating func nextFlag() -> Bool? { next(bits: 1).map { $0 == 1 } }

    /// Reads a number of this many bits; `nil` if the bytes end before it. - Parameter bits: from 0 to 64.
    mutating func next(bits: Int) -> UInt64? {
        guard bits <= remaining else { return nil }
        var number: UInt64 = 0
        var missing = bits
        while missing > 0 {
            let free = 8 - position % 8
            let count = min(free, missing)
            let part = bytes[position / 8] >> UInt8(free - count) & UInt8(truncatingIfNeeded: (1 << count) - 1)
            number = number << UInt64(count) | UInt64(part)
            position += count
            missing -= count
        }
        return number
    }

    /// Reads what ``BitWriter/append(number:)`` wrote.
    mutating func nextNumber() -> UInt64? {
        guard let length = next(bits: 6) else { return nil }
        return next(bits: length == 63 ? 64 : Int(length))
    }

    mutating func nextSigned() -> Int64? { nextNumber().map(ZigZag.decode) }
}

/// An adaptive Rice code (as in JPEG-LS, ITU-T T.87): small numbers need few bits, and the code learns what small means.
///
/// A number is its quotient by a power of two in unary, and the remainder. The power follows the mean of the numbers before.
struct RiceCode: Sendable {
    private static let longestQuotient = 20
    private var sum: UInt64 = 8
    private var count: UInt64 = 1

    private var bits: Int {
        var bits = 0
        while count << UInt64(bits) < sum { bits += 1 }
        return bits
    }

    mutating func append(_ number: UInt64, to writer: inout BitWriter) {
        let bits = bits
        let quotient = number >> UInt64(bits)
        if quotient < Self.longestQuotient {
            // Ones, and a zero.
            writer.append(~1, bits: Int(quotient) + 1)
            writer.append(number, bits: bits)
        } else {
            writer.append(~0, bits: Self.longestQuotient)
            writer.append(number: number)
        }
        learn(number, bits)
    }

    mutating func next(from reader: inout BitReader) -> UInt64? {
        let bits = bits
        var quotient = 0
        while quotient < Self.longestQuotient {
            guard let flag = reader.nextFlag() else { return nil }
            guard flag else { break }
            quotient += 1
        }
        let number: UInt64
        if quotient < Self.longestQuotient {
            guard let remainder = reader.next(bits: bits) else { return nil }
            number = UInt64(quotient) << UInt64(bits) | remainder
        } else {
            guard let long = reader.nextNumber() else { return nil }
            number = long
        }
        learn(number, bits)
        return number
    }

    /// Includes a number in the mean. A single great one changes it little: the code has at most 40 bits for remainders.
    private mutating func learn(_ number: UInt64, _ bits: Int) {
        sum += min(number, 8 << UInt64(bits), 1 << 34)
        count += 1
        guard count >= 32 else { return }
        sum = (sum + 1) / 2
        count /= 2
    }
}
