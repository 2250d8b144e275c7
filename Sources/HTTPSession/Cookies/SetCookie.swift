internal import Pacing

/// A `Set-Cookie` field (RFC 6265 section 5.2), and the cookie that a store takes from it (section 5.3).
struct SetCookie: Equatable, Sendable {
    /// The largest name and value together, in bytes (RFC 6265 section 6.1).
    static let maximumLength = 4_096
    /// The largest value of an attribute, in bytes. A longer attribute is ignored (RFC 6265bis section 5.6).
    private static let maximumAttributeLength = 1_024
    /// The most cookies that one response may set.
    static let maximumPerResponse = 50

    private(set) var name: [UInt8]
    private(set) var value: [UInt8]
    /// The value of Domain in lower case and without a leading dot; empty without the attribute.
    private(set) var domain: [UInt8] = []
    /// The value of Path; empty if the default path applies.
    private(set) var path: [UInt8] = []
    /// The expiry in seconds since 1970; `nil` for a session cookie.
    private(set) var expiry: Int64?
    private(set) var isSecure = false
    private(set) var isHTTPOnly = false

    /// Parses a field. `seconds`: the current time in seconds since 1970.
    ///
    /// `nil` for a field without a name, for one with control bytes, which would enter the `Cookie` field, and for a longer cookie than
    /// ``maximumLength``.
    init?(_ field: some Sequence<UInt8>, now seconds: Int64) {
        let parts = SetCookie.trimmed(Array(field)[...]).split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        guard let pair = parts.first, let sign = pair.firstIndex(of: UInt8(ascii: "=")) else { return nil }
        (name, value) = (Array(SetCookie.trimmed(pair[..<sign])), Array(SetCookie.trimmed(pair[(sign + 1)...])))
        guard !name.isEmpty, name.count + value.count <= SetCookie.maximumLength, SetCookie.isText(name), SetCookie.isText(value)
        else { return nil }
        var (expires, maximumAge): (Int64?, Int64?)
        for part in parts.dropFirst() {
            let sign = part.firstIndex(of: UInt8(ascii: "=")) ?? part.endIndex
            let value = SetCookie.trimmed(part[sign...].dropFirst())
            guard value.count <= SetCookie.maximumAttributeLength else { continue }
            switch String(decoding: SetCookie.lowercased(SetCookie.trimmed(part[..<sign])), as: UTF8.self) {
            case "expires": expires = CookieDate.parse(value) ?? expires
            case "max-age": maximumAge = SetCookie.age(value) ?? maximumAge
            case "domain":
                // An empty value is ignored (section 5.2.3).
                guard !value.isEmpty else { continue }
                domain = SetCookie.lowercased(value.first == UInt8(ascii: ".") ? value.dropFirst() : value)
                // A lone dot is no domain of any host.
                if domain.isEmpty { domain = [UInt8(ascii: ".")] }
            case "path": path = value.first == UInt8(ascii: "/") ? Array(value) : []
            case "secure": isSecure = true
            case "httponly": isHTTPOnly = true
            default: break
            }
        }
        guard SetCookie.isText(path) else { return nil }
        if let maximumAge {
            // The earliest time for an age of zero or less (section 5.2.2).
            expiry = maximumAge <= 0 ? 1 : seconds.addingSaturated(maximumAge)
        } else {
            expiry = expires
        }
        // The range of a cookie file, in which 0 is a session cookie.
        expiry = expiry.map { max(1, min($0, 253_402_300_799)) }
    }

    /// Makes the cookie that a store takes from a response (RFC 6265 section 5.3, RFC 6265bis section 4.1.3).
    ///
    /// - Parameters:
    ///   - scope: The URL of the response.
    ///   - maySetSecure: Whether the response may set secure cookies.
    ///   - isPublicSuffix: Whether different owners have names in a domain, which is in lower case.
    /// - Returns: The cookie; `nil` if it is refused.
    func line(for scope: CookieScope, maySetSecure: Bool, isPublicSuffix: ([UInt8]) -> Bool) -> CookieLine? {
        var domain = domain
        if !domain.isEmpty {
            guard scope.isIn(domain) else { return nil }
            // A host that is a public suffix itself may set cookies for itself alone.
            if scope.isAddress || isPublicSuffix(domain) {
                guard domain == scope.host else { return nil }
                domain = []
            }
        }
        guard !isSecure || maySetSecure, hasAttributesOfPrefix else { return nil }
        let path = self.path.isEmpty ? scope.defaultPath : self.path[...]
        var line: [UInt8] = isHTTPOnly ? Array("#HttpOnly_".utf8) : []
        line += domain.isEmpty ? scope.host : [UInt8(ascii: ".")] + domain
        line += "\t\(domain.isEmpty ? "FALSE" : "TRUE")\t".utf8
        line += path
        line += "\t\(isSecure ? "TRUE" : "FALSE")\t\(expiry ?? 0)\t".utf8
        line += name + [0x09] + value
        return CookieLine(line)
    }

    /// Whether the cookie has the attributes that the prefix of its name requires.
    private var hasAttributesOfPrefix: Bool {
        let name = SetCookie.lowercased(name[...])
        if name.starts(with: "__secure-".utf8) { return isSecure }
        if name.starts(with: "__host-".utf8) { return isSecure && path == [UInt8(ascii: "/")] && domain.isEmpty }
        return true
    }

    /// The value of Max-Age in seconds (section 5.2.2); `nil` if it is not a number.
    private static func age(_ value: ArraySlice<UInt8>) -> Int64? {
        let digits = value.first == UInt8(ascii: "-") ? value.dropFirst() : value
        guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        let isNegative = digits.startIndex != value.startIndex
        return Int64(String(decoding: value, as: UTF8.self)) ?? (isNegative ? .min : .max)
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D }
        var bytes = bytes.drop(while: isBlank)
        while let last = bytes.last, isBlank(last) { bytes.removeLast() }
        return bytes
    }

    private static func lowercased(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        bytes.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
    }

    private static func isText(_ bytes: [UInt8]) -> Bool { bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F } }
}
