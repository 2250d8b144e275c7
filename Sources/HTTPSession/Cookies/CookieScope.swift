internal import FoundationEssentials

/// The parts of a request's URL by which its cookies are selected, and the cookies of its response are stored (RFC 6265 section 5.1).
struct CookieScope: Equatable, Sendable {
    /// The host in lower case; an IPv6 address without brackets.
    let host: [UInt8]
    /// Whether the host is an address, which no domain contains.
    let isAddress: Bool
    /// The path, which begins with a slash.
    let path: [UInt8]
    /// Whether the URL itself is secure enough for secure cookies: it has https, or its host is this machine.
    let isSecure: Bool

    /// The scope of a URL; `nil` for a URL that has no cookies.
    ///
    /// These are URLs of other schemes than http and https, and those of a host that ends in a dot. No public-suffix list has such a host's domain, so
    /// a cookie of `co.uk.` would be sent to all hosts in it.
    init?(_ url: URL) {
        guard let origin = Origin(url), origin.host.utf8.last != UInt8(ascii: ".") else { return nil }
        host = Array(origin.host.utf8)
        isAddress = origin.isAddress
        isSecure = origin.scheme == "https" || origin.isLoopback
        let path = url.path(percentEncoded: true)
        self.path = path.utf8.first == UInt8(ascii: "/") ? Array(path.utf8) : [UInt8(ascii: "/")]
    }

    /// The path of a cookie without a Path attribute (section 5.1.4): up to the last slash, and without it.
    var defaultPath: ArraySlice<UInt8> {
        let end = path.lastIndex(of: UInt8(ascii: "/")) ?? 0
        return end == 0 ? [UInt8(ascii: "/")] : path[..<end]
    }

    /// Calls `body` with the host, and with each domain above it: `a.b.c`, `b.c`, `c`. An address has none.
    func forEachDomain(_ body: (_ domain: ArraySlice<UInt8>, _ isHost: Bool) -> Void) {
        body(host[...], true)
        guard !isAddress else { return }
        for index in host.indices where host[index] == UInt8(ascii: ".") { body(host[(index + 1)...], false) }
    }

    /// Whether the host is in a domain: it equals the domain, or is a name below it (section 5.1.3).
    func isIn(_ domain: [UInt8]) -> Bool {
        if host == domain { return true }
        guard !isAddress, !domain.isEmpty, host.count > domain.count else { return false }
        return host.suffix(domain.count).elementsEqual(domain) && host[host.count - domain.count - 1] == UInt8(ascii: ".")
    }

    /// Whether the path equals a cookie's path, or is below it (section 5.1.4).
    func isBelow(_ cookiePath: some BidirectionalCollection<UInt8>) -> Bool {
        guard path.starts(with: cookiePath) else { return false }
        return path.count == cookiePath.count || cookiePath.last == UInt8(ascii: "/")
            || path[cookiePath.count] == UInt8(ascii: "/")
    }
}
