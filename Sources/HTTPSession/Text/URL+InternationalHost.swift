internal import FoundationEssentials
internal import InternationalNames

extension URL {
    /// The URL with a non-ASCII host converted to A-labels (RFC 5891), the form in which hosts are compared and resolved. Any
    /// other URL is unchanged, and so is one whose host IDNA does not allow.
    ///
    /// Foundation converts the host when it parses the URL. FoundationEssentials percent-encodes it instead.
    var withASCIIHost: URL {
        guard absoluteString.utf8.contains(UInt8(ascii: "%")), let host = host(percentEncoded: false),
            !host.utf8.allSatisfy({ $0 < 0x80 }), let ascii = InternationalHost.ascii(host),
            var parts = URLComponents(url: self, resolvingAgainstBaseURL: true)
        else { return self }
        parts.encodedHost = ascii
        return parts.url ?? self
    }
}
