/// The field names that a head may have: a Bloom filter with one hash. Most lookups in a response are for an absent field, and do not have to search
/// its lines.
struct FieldNameFilter: Hashable, Sendable {
    /// Whether a name has a byte up to 0x20.
    private(set) var hasBlank = false
    private var bits: UInt64 = 0

    /// Creates the filter of the names in the lines of `head` behind its first line.
    init(_ head: [UInt8]) {
        head.withUnsafeBufferPointer { bytes in
            ResponseHead.forEachLine(bytes) { line in
                var end = 0
                while end < line.count, line[end] != 0x3A {
                    if line[end] <= 0x20 { hasBlank = true }
                    end += 1
                }
                bits |= FieldNameFilter.bit(first: line[0], count: end)
                return true
            }
        }
    }

    /// Whether a line may have this name. `false` is certain.
    func mayContain(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let first = name.first else { return true }
        return bits & FieldNameFilter.bit(first: first, count: name.count) != 0
    }

    /// The bit of the names with this length and this first byte in either case.
    private static func bit(first: UInt8, count: Int) -> UInt64 {
        1 << UInt64(truncatingIfNeeded: (Int(first | 0x20) &* 7 &+ count) & 63)
    }
}
