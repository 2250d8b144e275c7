/// The value of `Content-Length` (RFC 9110 section 8.6) in all field lines of a response.
enum ContentLength: Hashable, Sendable {
    case absent
    case bytes(Int64)
    /// The value is not a number of bytes from 0 to 2^63 - 1, or there are several different ones (RFC 9112 section 6.3, rule 5).
    case unreadable(String)

    /// Parses the values of all field lines. Equal values count once, in one line or in several.
    init(_ values: [String]) {
        var length: Int64?
        for value in values {
            for element in value.split(separator: ",", omittingEmptySubsequences: false) {
                guard let number = ContentLength.number(element.utf8) else {
                    self = .unreadable("the Content-Length \(excerpt(of: value)) is no number of bytes")
                    return
                }
                guard length == nil || length == number else {
                    self = .unreadable("the response has several different Content-Length values")
                    return
                }
                length = number
            }
        }
        self = length.map { .bytes($0) } ?? .absent
    }

    /// The number that an element consists of; `nil` for anything but digits with whitespace around them.
    static func number(_ element: some Sequence<UInt8>) -> Int64? {
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
