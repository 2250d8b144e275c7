/// The `Content-Range` field (RFC 9110 section 14.4), in bytes.
enum ContentRange: Hashable, Sendable {
    /// A range such as `bytes 100-199/1000`; `total` is `nil` for `*`.
    case satisfied(first: Int64, last: Int64, total: Int64?)
    /// The range of a 416 response, such as `bytes */1000`.
    case unsatisfied(total: Int64)

    /// Parses the field's value; `nil` if section 14.4 calls it invalid.
    init?(_ text: String) {
        let words = text.split(separator: " ", omittingEmptySubsequences: true)
        guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let parts = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        if parts[0] == "*" {
            guard let total = ContentRange.number(parts[1]) else { return nil }
            self = .unsatisfied(total: total)
            return
        }
        let bounds = parts[0].split(separator: "-", omittingEmptySubsequences: false)
        guard bounds.count == 2, let first = ContentRange.number(bounds[0]), let last = ContentRange.number(bounds[1]),
            first <= last
        else { return nil }
        guard parts[1] != "*" else {
            self = .satisfied(first: first, last: last, total: nil)
            return
        }
        guard let total = ContentRange.number(parts[1]), last < total else { return nil }
        self = .satisfied(first: first, last: last, total: total)
    }

    /// Accepts digits only: `Int64("+1")` is a number, but not in this field.
    private static func number(_ text: Substring) -> Int64? {
        text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int64(text) : nil
    }
}
