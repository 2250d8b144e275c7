/// The target of a request in origin-form (`/path?query`) or in absolute-form (`http://host/path?query`), which a server must accept
/// (RFC 9112 section 3.2).
struct RequestTarget: Hashable, Sendable {
    /// The scheme in lower case, and the authority, of the absolute-form.
    struct Origin: Hashable, Sendable {
        var scheme: String
        var authority: String
    }

    /// `nil` in origin-form.
    let origin: Origin?
    /// The path with its query: the target in origin-form.
    let resource: String

    /// Creates the target; `nil` if the text has another form.
    init?(_ text: String) {
        if text.utf8.first == UInt8(ascii: "/") {
            (origin, resource) = (nil, text)
            return
        }
        guard let mark = text.firstRange(of: "://"), let first = text.utf8.first,
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first | 0x20)
        else { return nil }
        let scheme = text[..<mark.lowerBound]
        // RFC 3986 section 3.1.
        guard scheme.utf8.allSatisfy({ $0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7a || 0x30...0x39 ~= $0 || "+-.".utf8.contains($0) })
        else {
            return nil
        }
        let remainder = text[mark.upperBound...]
        let authority = remainder.prefix { !"/?#".contains($0) }
        // RFC 9110 section 4.2.1: a URI with an empty host is invalid.
        guard !authority.isEmpty else { return nil }
        origin = Origin(scheme: scheme.lowercased(), authority: String(authority))
        let path = remainder[authority.endIndex...]
        resource = path.utf8.first == UInt8(ascii: "/") ? String(path) : "/\(path)"
    }

    /// The resource without its query.
    var path: Substring { resource.prefix { $0 != "?" && $0 != "#" } }
}
