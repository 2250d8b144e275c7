import FoundationEssentials
import HTTPSession

/// The path or absolute URL of a stub, or the URL of a request, in a form in which equal ones are compared.
struct StubPattern: Sendable {
    /// The pattern as written.
    let text: String
    /// Whether the pattern is an absolute URL.
    private let isAbsolute: Bool
    /// The origin of an absolute URL; `nil` for a path, and for a URL that no session requests.
    private let origin: Origin?
    private let path: [UInt8]
    /// The values of each name of the query, percent-decoded, in their order; a name without `=` has `nil`. `nil`: no query.
    private let query: [[UInt8]: [[UInt8]?]]?

    init(_ text: String) {
        self.text = text
        var target = text.utf8.prefix { $0 != UInt8(ascii: "#") }
        let start = target.prefix { !"/?".utf8.contains($0) }.endIndex
        isAbsolute = target[..<start].last == UInt8(ascii: ":") && target[start...].starts(with: "//".utf8)
        if isAbsolute {
            let authority = target[target.index(start, offsetBy: 2)...].prefix { !"/?".utf8.contains($0) }
            origin = URL(string: String(target[..<authority.endIndex]) ?? "").flatMap { Origin($0) }
            target = target[authority.endIndex...]
        } else {
            origin = nil
        }
        let path = target.prefix { $0 != UInt8(ascii: "?") }
        query = path.endIndex < target.endIndex ? StubPattern.values(target[path.endIndex...].dropFirst()) : nil
        let slash = path.first == UInt8(ascii: "/") ? [] : [UInt8(ascii: "/")]
        self.path = slash + StubPattern.normalized(path)
    }

    /// Whether a request for the absolute URL matches this pattern.
    func matches(_ url: StubPattern) -> Bool {
        if isAbsolute, origin == nil || origin != url.origin { return false }
        guard path == url.path else { return false }
        return query.map { $0 == url.query ?? [:] } ?? true
    }

    private static func values(_ query: Substring.UTF8View) -> [[UInt8]: [[UInt8]?]] {
        var values: [[UInt8]: [[UInt8]?]] = [:]
        for pair in query.split(separator: UInt8(ascii: "&")) {
            let name = pair.prefix { $0 != UInt8(ascii: "=") }
            let value = name.endIndex < pair.endIndex ? decoded(pair[name.endIndex...].dropFirst()) : nil
            values[decoded(name), default: []].append(value)
        }
        return values
    }

    private static func decoded(_ text: Substring.UTF8View) -> [UInt8] {
        var bytes: [UInt8] = []
        forEachByte(of: text) { byte, _ in bytes.append(byte) }
        return bytes
    }

    /// Percent-encoding in the form of RFC 3986 section 6.2.2: unreserved characters are decoded, and hexadecimal digits are capital letters.
    /// Characters that no URL has are encoded.
    private static func normalized(_ text: Substring.UTF8View) -> [UInt8] {
        var bytes: [UInt8] = []
        forEachByte(of: text) { byte, isEncoded in
            if isUnreserved(byte) || (!isEncoded && "!$&'()*+,;=:@/".utf8.contains(byte)) {
                bytes.append(byte)
            } else {
                bytes += [UInt8(ascii: "%"), digit(byte >> 4), digit(byte & 0xF)]
            }
        }
        return bytes
    }

    /// Passes each byte to `body`, and whether it was percent-encoded. A percent sign without two digits stands for itself.
    private static func forEachByte(of text: Substring.UTF8View, _ body: (UInt8, _ isEncoded: Bool) -> Void) {
        var remaining = text
        while let byte = remaining.popFirst() {
            let digits = remaining.prefix(2).compactMap { Character(UnicodeScalar($0)).hexDigitValue }
            if byte == UInt8(ascii: "%"), digits.count == 2 {
                remaining = remaining.dropFirst(2)
                body(UInt8(digits[0] << 4 | digits[1]), true)
            } else {
                body(byte, false)
            }
        }
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "-._~".utf8.contains(byte)
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x37 + value }
}
