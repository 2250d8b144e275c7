public import FoundationEssentials

/// A cookie as a session keeps it (RFC 6265 section 5.3). Its description hides the value.
///
/// Foundation's `HTTPCookie` is not in Foundation on Linux but in FoundationNetworking, which is not loaded for it.
public struct Cookie: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible {
    /// What the server calls it; not empty.
    public let name: String
    /// What is sent back.
    public var value: String
    /// The host that set it, or the domain that it is for; in lower case, without a dot before it.
    public let domain: String
    /// Only for addresses below; it begins with a slash.
    public let path: String
    /// Whether hosts below ``domain`` get it too.
    public var includesSubdomains: Bool
    /// `nil`: with the session, though a file of cookies keeps it.
    public var expires: Date?
    /// Only over TLS, and to this machine.
    public var isSecure: Bool
    /// Not for scripts of a page; it makes no difference here.
    public var isHTTPOnly: Bool

    /// A cookie of one host, unless it is for the hosts below too.
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

    /// Whether a request to the address gets it (RFC 6265 section 5.4), if it has not expired.
    public func matches(_ url: URL) -> Bool {
        guard let origin = Origin(url), !isSecure || origin.scheme == "https" || origin.isLoopback else { return false }
        guard origin.host == domain || (includesSubdomains && !origin.isAddress && origin.host.hasSuffix(".\(domain)")) else {
            return false
        }
        let asked = url.path(percentEncoded: true)
        return path == "/" || asked == path || asked.hasPrefix(path.hasSuffix("/") ? path : path + "/")
    }

    /// Name and place, without the value.
    public var description: String { "cookie \(name) of \(includesSubdomains ? "." : "")\(domain)\(path)" }
    /// The same.
    public var debugDescription: String { description }

    /// Whether `other` takes its place (RFC 6265 section 5.3, step 11).
    func isSame(as other: Cookie) -> Bool { name == other.name && domain == other.domain && path == other.path }

    func hasExpired(at now: Date) -> Bool { expires.map { $0 <= now } ?? false }
}

/// A line of a Netscape cookie file: `DOMAIN SUBDOMAINS PATH SECURE EXPIRES NAME VALUE`, with tabs between. libcurl reads and writes it.
extension Cookie {
    private static let httpOnlyMark = "#HttpOnly_"

    init?(line: String) {
        let isHTTPOnly = line.hasPrefix(Cookie.httpOnlyMark)
        let columns = line.dropFirst(isHTTPOnly ? Cookie.httpOnlyMark.count : 0)
            .split(separator: "\t", maxSplits: 6, omittingEmptySubsequences: false)
        guard columns.count == 7, let seconds = Int64(columns[4]), !columns[5].isEmpty else { return nil }
        self.init(
            name: String(columns[5]), value: String(columns[6]), domain: String(columns[0]), path: String(columns[2]),
            includesSubdomains: columns[1] == "TRUE", expires: seconds == 0 ? nil : Date(timeIntervalSince1970: Double(seconds)),
            isSecure: columns[3] == "TRUE", isHTTPOnly: isHTTPOnly)
    }

    /// - Throws: what would break the line or the field that carries it (``HTTPSessionError/Code/invalidRequest``).
    var line: String {
        get throws(HTTPSessionError) {
            func isClean(_ text: String, without marks: String = "") -> Bool {
                text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F && !marks.unicodeScalars.contains($0) }
            }
            guard !name.isEmpty, isClean(name, without: "=; ,"), isClean(value, without: ";") else {
                throw HTTPSessionError(.invalidRequest, "the name or the value of a cookie has what none may have")
            }
            guard !domain.isEmpty, domain.utf8.last != UInt8(ascii: "."), isClean(domain, without: "#; /"), path.hasPrefix("/"),
                isClean(path, without: ";")
            else {
                throw HTTPSessionError(.invalidRequest, "the cookie '\(name)' needs a host, and a path that begins with a slash")
            }
            // RFC 6265bis, section 4.1.3: what such a name promises.
            let promise = name.lowercased()
            guard !promise.hasPrefix("__secure-") || isSecure,
                !promise.hasPrefix("__host-") || (isSecure && path == "/" && !includesSubdomains)
            else {
                throw HTTPSessionError(.invalidRequest, "the cookie '\(name)' is not as its name demands")
            }
            // 0 is no expiry.
            let seconds = expires.map { Int64(max(1, min($0.timeIntervalSince1970, 253_402_300_799))) } ?? 0
            let columns = [
                includesSubdomains ? ".\(domain)" : domain, includesSubdomains ? "TRUE" : "FALSE", path,
                isSecure ? "TRUE" : "FALSE", "\(seconds)", name, value,
            ]
            return (isHTTPOnly ? Cookie.httpOnlyMark : "") + columns.joined(separator: "\t")
        }
    }
}
