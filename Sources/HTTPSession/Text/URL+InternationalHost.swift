internal import FoundationEssentials

extension URL {
    /// The URL with a host of other scripts as its A-labels (RFC 5891): the one way in which it is compared and looked up. Any other URL is left
    /// as it is, also one whose host IDNA does not allow.
    ///
    /// Foundation does it as it parses. FoundationEssentials percent-encodes such a host.
    var withASCIIHost: URL {
        guard absoluteString.utf8.contains(UInt8(ascii: "%")), let host = host(percentEncoded: false),
            !host.utf8.allSatisfy({ $0 < 0x80 }), let ascii = InternationalHost.ascii(host),
            var parts = URLComponents(url: self, resolvingAgainstBaseURL: true)
        else { return self }
        parts.encodedHost = ascii
        return parts.url ?? self
    }
}
