internal import CCurl

/// A URL that libcurl has parsed (libcurl-url(3)).
final class ParsedURL {
    private var raw: OpaquePointer?

    deinit { curl_url_cleanup(raw) }

    /// Parses a URL as a transfer does that has only its text (lib/url.c).
    ///
    /// - Returns: The URL for CURLOPT_CURLU, valid until the next call. `nil` if the transfer has to parse the text itself: it then reports what is
    ///   wrong with it.
    func parse(_ text: String) -> UnsafeMutableRawPointer? {
        guard ParsedURL.isCopiedCompletely(text) else { return nil }
        raw = raw ?? curl_url()
        let flags = UInt32(CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME)
        guard let raw, curl_url_set(raw, CURLUPART_URL, text, flags) == CURLUE_OK else { return nil }
        return UnsafeMutableRawPointer(raw)
    }

    /// Whether a transfer's copy of the parsed URL (curl_url_dup(3)) has all its parts. libcurl before 8.3 does not copy the zone of an IPv6
    /// address (RFC 6874). Newer versions omit the `?` of an empty query when they write the URL as text.
    private static func isCopiedCompletely(_ text: String) -> Bool {
        let bytes = text.utf8
        if bytes.last == UInt8(ascii: "?") { return false }
        return !bytes.contains(UInt8(ascii: "[")) || !bytes.contains(UInt8(ascii: "%"))
    }
}
