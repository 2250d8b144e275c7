internal import ByteComparison
public import FoundationEssentials

/// A cookie in a session's store (RFC 6265 section 5.3). Its description hides the value.
///
/// On Linux `HTTPCookie` is in FoundationNetworking, which this library does not load.
public struct Cookie: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible {
    /// The name of the cookie; not empty.
    public let name: String
    /// The value that is sent to the server.
    public var value: String
    /// The host that set the cookie, or the domain that the cookie is for, in lower case and without a leading dot.
    public let domain: String
    /// The path with which the path of a URL must begin. It begins with a slash.
    public let path: String
    /// Whether the cookie is also sent to subdomains of ``domain``.
    public var includesSubdomains: Bool
    /// The time of expiry; `nil` for a session cookie, which a cookie file stores nevertheless.
    public var expires: Date?
    /// Whether the cookie is sent only over TLS and to loopback addresses.
    public var isSecure: Bool
    /// Whether scripts of a page cannot read the cookie. A session has no scripts and only stores this.
    public var isHTTPOnly: Bool

    /// Creates a cookie. By default it is a session cookie of one host.
    ///
    /// The initializer does not check the values: ``CookieStore/setCookie(_:)`` throws for a cookie that no server could set.
    public init(
        name: String, value: String, domain: String, path: String = "/", includesSubdomains: Bool = false, expires: Date? = nil,
        isSecure: Bool = false, isHTTPOnly: Bool = false
    ) {
        self.name = name
        self.value = value
        self.domain = (domain.hasPrefix(".") ? String(domain.dropFirst()) : domain).lowercased()
        self.path = path
        self.includesSubdomains = includesSubdomains
        self.expires = expires
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
    }

    /// Whether a request for the URL sends the cookie (RFC 6265 section 5.4). Its expiry is not checked.
    public func matches(_ url: URL) -> Bool {
        guard let scope = CookieScope(url), !isSecure || scope.isSecure, scope.isBelow(Array(path.utf8)) else { return false }
        let domain = Array(domain.utf8)
        return scope.host == domain || (includesSubdomains && scope.isIn(domain))
    }

    /// The name, the domain and the path, without the value.
    public var description: String { "cookie \(name) of \(includesSubdomains ? "." : "")\(domain)\(path)" }
    /// The name, the domain and the path, without the value.
    public var debugDescription: String { description }

    /// The name, domain and path: a cookie replaces one with the same identity (RFC 6265 section 5.3, step 11).
    struct Identity: Hashable, Sendable {
        @ExactString var name: String
        @ExactString var domain: String
        @ExactString var path: String
    }

    var identity: Identity { Identity(name: name, domain: domain, path: path) }

    func hasExpired(at now: Date) -> Bool { expires.map { $0 <= now } ?? false }
}

/// The line of a Netscape cookie file: `DOMAIN SUBDOMAINS PATH SECURE EXPIRES NAME VALUE`, separated by tabs, which curl
/// reads and writes as well.
extension Cookie {
    private static let httpOnlyMark = "#HttpOnly_"

    init?(line: String) {
        let isHTTPOnly = line.hasPrefix(Cookie.httpOnlyMark)
        let columns = line.dropFirst(isHTTPOnly ? Cookie.httpOnlyMark.count : 0)
            .split(separator: "\t", maxSplits: 6, omittingEmptySubsequences: false)
        guard columns.count == 7, let seconds = Int64(columns[4]), !columns[5].isEmpty else { return nil }
        self.init(
            name: String(columns[5]), value: String(columns[6]), domain: String(columns[0]), path: String(columns[2]),
            includesSubdomains: CookieLine.isTrue(ArraySlice(columns[1].utf8)),
            expires: seconds == 0 ? nil : Date(timeIntervalSince1970: Double(seconds)),
            isSecure: CookieLine.isTrue(ArraySlice(columns[3].utf8)), isHTTPOnly: isHTTPOnly)
    }

    /// The line of the cookie, without a line break.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidRequest`` if a character would break the line or the `Cookie` field.
    var line: String {
        get throws(HTTPSessionError) {
            func isClean(_ text: String, without marks: String = "") -> Bool {
                text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F && !marks.unicodeScalars.contains($0) }
            }
            guard !name.isEmpty, isClean(name, without: "=; ,"), isClean(value, without: ";") else {
                throw HTTPSessionError(.invalidRequest, "the name or the value of a cookie has a forbidden character")
            }
            guard !domain.isEmpty, domain.utf8.last != UInt8(ascii: "."), isClean(domain, without: "#; /"), path.hasPrefix("/"),
                isClean(path, without: ";")
            else {
                throw HTTPSessionError(.invalidRequest, "the cookie '\(name)' needs a host, and a path that begins with a slash")
            }
            // RFC 6265bis, section 4.1.3: prefixes of names require attributes.
            let lowercaseName = name.lowercased()
            guard !lowercaseName.hasPrefix("__secure-") || isSecure,
                !lowercaseName.hasPrefix("__host-") || (isSecure && path == "/" && !includesSubdomains)
            else {
                throw HTTPSessionError(
                    .invalidRequest, "the cookie '\(name)' lacks attributes that the prefix of its name requires")
            }
            // 0 would mean a session cookie.
            let seconds = expires.map { Int64(max(1, min($0.timeIntervalSince1970, 253_402_300_799))) } ?? 0
            let columns = [
                includesSubdomains ? ".\(domain)" : domain, includesSubdomains ? "TRUE" : "FALSE", path,
                isSecure ? "TRUE" : "FALSE", "\(seconds)", name, value,
            ]
            return (isHTTPOnly ? Cookie.httpOnlyMark : "") + columns.joined(separator: "\t")
        }
    }
}

/// A cookie in Netscape's format, as bytes: a value that is not UTF-8 returns to its server unchanged.
package struct CookieLine: Hashable, Sendable {
    package let bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }
    package init(_ text: String) { bytes = Array(text.utf8) }

    /// The line as text, in which invalid UTF-8 is replaced by U+FFFD.
    package var text: String { String(decoding: bytes, as: UTF8.self) }
}
