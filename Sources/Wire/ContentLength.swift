/// The value of `Content-Length` (RFC 9110 section 8.6) in all field lines of a message.
package enum ContentLength: Hashable, Sendable {
    case absent
    case bytes(Int64)
    /// A value is not a number of bytes from 0 to 2^63 - 1.
    case malformed
    /// There are several different values (RFC 9112 section 6.3, rule 5).
    case conflicting

    /// Parses the values of all field lines. Equal values count once, in one line or in several.
    @inlinable package init(_ values: some Sequence<some Collection<UInt8>>) {
        var length: Int64?
        for value in values {
            for element in value.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
                guard let number = ContentLength.number(element) else {
                    self = .malformed
                    return
                }
                guard length == nil || length == number else {
                    self = .conflicting
                    return
                }
                length = number
            }
        }
        self = length.map { .bytes($0) } ?? .absent
    }

    /// The number that an element consists of; `nil` for anything but digits with whitespace around them.
    @inlinable package static func number(_ element: some Sequence<UInt8>) -> Int64? {
        var (number, hasDigits, hasEnded) = (Int64(0), false, false)
        for byte in element {
            switch byte {
            case 0x20, 0x09: hasEnded = hasDigits
            case 0x30...0x39 where !hasEnded:
                let (product, overflowsProduct) = number.multipliedReportingOverflow(by: 10)
                let (sum, overflowsSum) = product.addingReportingOverflow(Int64(byte - 0x30))
                guard !overflowsProduct, !overflowsSum else { return nil }
                (number, hasDigits) = (sum, true)
            default: return nil
            }
        }
        return hasDigits ? number : nil
    }
}
