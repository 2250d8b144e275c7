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
                guard let number = ContentLength.number(element) else {
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

    /// Accepts digits only: `Int64("+5")` is a number, but not in this field.
    private static func number(_ element: Substring) -> Int64? {
        var digits = element.utf8
        while let first = digits.first, first == 0x20 || first == 0x09 { digits.removeFirst() }
        while let last = digits.last, last == 0x20 || last == 0x09 { digits.removeLast() }
        guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int64(Substring(digits))
    }
}
