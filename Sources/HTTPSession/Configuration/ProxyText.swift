package import FoundationEssentials
internal import Reachability

/// The check of a proxy's URL before it is used. libcurl reports a URL that it cannot parse as a proxy whose name is not found, which looks like a
/// fault that may pass.
package enum ProxyText {
    private static let schemes = ["http://", "https://", "socks4://", "socks4a://", "socks5://", "socks5h://"]
    private static let form = "give http://, https://, socks4://, socks4a://, socks5:// or socks5h:// and a host"
    /// The characters that libcurl (urlapi.c) accepts in no host's name, beside the delimiters of a URL.
    private static let refused = Set(" \r\n\t{}\\$'\"^`*<>=;,+&()|!:[]@".utf8)

    /// Checks a URL.
    ///
    /// - Parameters:
    ///   - text: the URL.
    ///   - needsScheme: whether a scheme must be written; the proxies of the environment need none.
    /// - Returns: why the URL is not that of a proxy; `nil` if it is. The text has no part of the URL, which may contain a password.
    package static func problem(_ text: String, needsScheme: Bool = true) -> String? {
        let scheme = schemes.first { text.lowercased().hasPrefix($0) }
        guard scheme != nil || (!needsScheme && !text.contains("://")) else { return form }
        let remainder = text.utf8.dropFirst(scheme?.utf8.count ?? 0)
        let authority = remainder.prefix { !"/?#".utf8.contains($0) }
        guard authority.count(where: { $0 == UInt8(ascii: "@") }) <= 1 else {
            return "write %40 for '@' of a user's name or password"
        }
        let host = authority.lastIndex(of: UInt8(ascii: "@")).map { authority[authority.index(after: $0)...] } ?? authority
        let (name, behind): (Substring.UTF8View, Substring.UTF8View)
        if host.first == UInt8(ascii: "[") {
            guard let close = host.firstIndex(of: UInt8(ascii: "]")) else { return "'[' without ']'" }
            (name, behind) = (host[host.index(after: host.startIndex)..<close], host[host.index(after: close)...])
            let address = Substring(name.prefix { $0 != UInt8(ascii: "%") })
            guard IPAddress(address)?.family == .v6 else { return "the host in brackets is not an IPv6 address" }
        } else {
            let end = host.firstIndex(of: UInt8(ascii: ":")) ?? host.endIndex
            (name, behind) = (host[..<end], host[end...])
            guard behind.count(where: { $0 == UInt8(ascii: ":") }) <= 1 else {
                return "write an IPv6 address in brackets, and %3A, %40 and %2F for ':', '@' and '/' of a user's name or password"
            }
            guard !name.isEmpty else { return "the host is missing; \(form)" }
            guard !name.contains(where: refused.contains) else { return "the host is neither an address nor a name" }
        }
        guard let colon = behind.first else { return nil }
        let digits = behind.dropFirst()
        // libcurl takes a colon without digits for the default port.
        guard colon == UInt8(ascii: ":"), digits.isEmpty || isPort(digits) else {
            return "the port is not a number from 1 to 65535"
        }
        return nil
    }

    private static func isPort(_ digits: Substring.UTF8View) -> Bool {
        digits.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            && UInt16(Substring(digits)).map { $0 > 0 } ?? false
    }
}

extension SessionConfiguration.Proxy {
    /// Returns why the proxy through which one of these URLs is requested cannot be used, as ``ProxyText/problem(_:needsScheme:)`` does; `nil` if each
    /// can be, or needs no proxy.
    package func problem(for urls: [URL]) -> String? {
        let proxies = ProxyOrigins(self, environment: ProcessInfo.processInfo.environment)
        return urls.lazy.compactMap { url in
            Origin(url).flatMap { proxies.proxyText(for: $0, isSecure: false) }.flatMap {
                ProxyText.problem($0, needsScheme: false)
            }
        }.first
    }
}
