internal import Wire

/// A URI reference in its components (RFC 3986 section 4.1), without its fragment.
///
/// As in common clients, characters that no URI has are percent-encoded in the path and the query.
package struct URLReference: Hashable, Sendable {
    /// The scheme in lower case; `nil` in a relative reference.
    var scheme: String?
    /// The authority as written; `nil` if there is none.
    var authority: String?
    var path: String
    /// The query without its question mark; `nil` if there is none.
    var query: String?

    /// Divides text as RFC 3986 appendix B does. All texts are references; ``HTTPURL`` refuses the useless ones.
    init(_ text: some StringProtocol) {
        var rest = Substring(text)
        if let fragment = rest.utf8.firstIndex(of: UInt8(ascii: "#")) { rest = rest[..<fragment] }
        scheme = nil
        authority = nil
        query = nil
        if let colon = rest.utf8.firstIndex(of: UInt8(ascii: ":")), Self.isScheme(rest[..<colon].utf8) {
            scheme = rest[..<colon].lowercased()
            rest = rest[rest.utf8.index(after: colon)...]
        }
        if rest.utf8.starts(with: "//".utf8) {
            let behind = rest[rest.utf8.index(rest.startIndex, offsetBy: 2)...]
            let end = behind.utf8.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? behind.endIndex
            authority = String(behind[..<end])
            rest = behind[end...]
        }
        if let mark = rest.utf8.firstIndex(of: UInt8(ascii: "?")) {
            query = PercentEncoding.encode(rest[rest.utf8.index(after: mark)...].utf8, where: Self.isEscaped)
            rest = rest[..<mark]
        }
        path = PercentEncoding.encode(rest.utf8, where: Self.isEscaped)
    }

    /// Divides the value of a `Location` field. Bytes that are not UTF-8 are percent-encoded as they are.
    init(bytes: ArraySlice<UInt8>) {
        self.init(String(validating: bytes, as: UTF8.self) ?? PercentEncoding.encode(bytes, where: Self.isEscaped))
    }

    /// Returns the reference resolved against a base (RFC 3986 section 5.2.2, strict). The base has a scheme and an authority, and its
    /// path begins with a slash.
    func resolved(against base: URLReference) -> URLReference {
        var target = self
        if scheme == nil {
            target.scheme = base.scheme
            if authority == nil {
                target.authority = base.authority
                if path.isEmpty {
                    target.path = base.path
                    target.query = query ?? base.query
                } else if !path.utf8.starts(with: "/".utf8) {
                    let directory = base.path.utf8.lastIndex(of: UInt8(ascii: "/")).map { base.path[...$0] } ?? "/"
                    target.path = directory + path
                }
            }
        }
        target.path = Self.removingDotSegments(target.path)
        return target
    }

    /// Returns an absolute path without the segments `.` and `..` (RFC 3986 section 5.2.4). An empty path becomes `/`.
    package static func removingDotSegments(_ path: String) -> String {
        let segments = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map(Substring.init)
        var output: [Substring] = []
        let first = segments.first?.isEmpty == true ? 1 : 0
        for index in segments.indices.dropFirst(first) {
            let isLast = index == segments.count - 1
            switch segments[index] {
            case ".": if isLast { output.append("") }
            case "..":
                _ = output.popLast()
                if isLast { output.append("") }
            case let segment: output.append(segment)
            }
        }
        return "/" + output.joined(separator: "/")
    }

    /// Returns whether the text is a scheme: a letter, then letters, digits, `+`, `-` and `.` (RFC 3986 section 3.1).
    private static func isScheme(_ text: some Collection<UInt8>) -> Bool {
        guard let first = text.first, isLetter(first) else { return false }
        return text.allSatisfy {
            isLetter($0) || HTTPGrammar.isDigit($0) || [UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: ".")].contains($0)
        }
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }

    private static func isEscaped(_ byte: UInt8) -> Bool {
        switch byte {
        case 0...0x20, 0x7F...0xFF, UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"): true
        default: false
        }
    }
}
