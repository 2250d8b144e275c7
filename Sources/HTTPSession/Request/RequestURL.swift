public import FoundationEssentials
public import HTTPTypes

/// Addresses as people write them, turned into ones that can be asked, or refused with a reason (RFC 3986).
package enum RequestURL {
    /// `text` against `base`. A base whose path does not end in `/` gets one, so that `v1` and `users` give `v1/users`.
    ///
    /// Control characters and backslashes are refused, whatever else Foundation would escape; other characters that no URL has are
    /// escaped. A backslash separates the host from the path for browsers (URL Standard) and is part of the user's name by RFC 3986: what
    /// one program checks would not be where another one connects.
    package static func resolve(_ text: String, against base: URL? = nil) throws(HTTPSessionError) -> URL {
        guard !text.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else {
            throw HTTPSessionError(.invalidRequest, "the URL has a control character in it")
        }
        guard !hasBackslash(text) else {
            throw HTTPSessionError(.invalidRequest, "the URL has a backslash in it; write %5C if it is meant")
        }
        let directory = base.map(asDirectory)
        // Foundation knows no empty reference, which RFC 3986 section 5.2.2 says is the base itself.
        guard let url = text.isEmpty ? directory : reference(text, relativeTo: directory) else {
            throw HTTPSessionError(.invalidRequest, "the URL cannot be read")
        }
        try validate(url)
        return url
    }

    /// Where `text` leads from `base` (RFC 3986 section 5), its host in ASCII; `nil` for what is no URL.
    package static func reference(_ text: String, relativeTo base: URL?) -> URL? {
        URL(string: text, relativeTo: base)?.absoluteURL.withASCIIHost
    }

    static func hasBackslash(_ text: String) -> Bool { text.utf8.contains(UInt8(ascii: "\\")) }

    /// Throws ``HTTPSessionError/Code/invalidRequest`` for an address without host, with a port beyond 65535, or of another scheme
    /// than `http` and `https`.
    ///
    /// - Returns: where the address leads to.
    @discardableResult
    package static func validate(_ url: URL) throws(HTTPSessionError) -> Origin {
        var context: HTTPSessionError.Context { HTTPSessionError.Context(url: url.withoutSecrets) }
        guard url.scheme != nil else {
            throw HTTPSessionError(
                .invalidRequest, "the URL is relative: a relative address needs a session with a base URL", context: context)
        }
        guard let scheme = url.scheme?.lowercased(), ["http", "https"].contains(scheme) else {
            throw HTTPSessionError(.invalidRequest, "the URL's scheme is neither http nor https", context: context)
        }
        guard let host = url.host(percentEncoded: false), !host.isEmpty, isPlain(host) else {
            throw HTTPSessionError(
                .invalidRequest, "the URL has no host, or one that is not written as hosts are", context: context)
        }
        let port = url.port
        guard (0...65535).contains(port ?? 0) else {
            throw HTTPSessionError(.invalidRequest, "the URL's port is above 65535", context: context)
        }
        return Origin(scheme: scheme, writtenHost: host, port: port)
    }

    /// `url` with `query` added to what it already asks, before its fragment.
    ///
    /// The query comes from a serializer, perhaps a user's own: whatever does not belong into one is an error, not escaped again.
    static func appending(query: String, to url: URL) throws(HTTPSessionError) -> URL {
        guard !query.isEmpty else { return url }
        let text = url.absoluteString
        let fragment = text.firstIndex(of: "#") ?? text.endIndex
        var address = String(text[..<fragment])
        if !address.contains("?") {
            address += "?"
        } else if address.last != "?" && address.last != "&" {
            address += "&"
        }
        guard query.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") }),
            let extended = URL(string: address + query + text[fragment...], encodingInvalidCharacters: false)
        else {
            throw HTTPSessionError(.cannotEncodeRequest, "the query string has characters that must be escaped")
        }
        return extended
    }

    static func asDirectory(_ base: URL) -> URL {
        guard !base.path(percentEncoded: true).isEmpty, !base.hasDirectoryPath else { return base }
        return base.appending(path: "", directoryHint: .isDirectory)
    }

    /// Whether a host is written in one way only: pins, exceptions and the certificate's name are compared with what is written, and libcurl
    /// asks what it makes of it. A name of other scripts is in ASCII by now (``Foundation/URL/withASCIIHost``); libcurl would decode what else is
    /// percent-encoded, and takes `127.1`, `0x7f000001` and `0177.0.0.1` for 127.0.0.1.
    static func isPlain(_ host: String) -> Bool {
        var host = host
        return host.withUTF8 { bytes in
            // An IPv6 address, perhaps with its zone.
            if bytes.contains(UInt8(ascii: ":")) { return bytes.allSatisfy { $0 > 0x20 && $0 < 0x7F } }
            guard bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !isDelimiter($0) }) else { return false }
            let name = bytes.last == UInt8(ascii: ".") ? bytes.dropLast() : bytes[...]
            let lastLabel = name.lastIndex(of: UInt8(ascii: ".")).map { name[($0 + 1)...] } ?? name
            guard let first = lastLabel.first, isDigit(first) else { return true }
            let isHexadecimal = first == UInt8(ascii: "0") && lastLabel.dropFirst().first.map { $0 | 0x20 } == UInt8(ascii: "x")
            return isHexadecimal || lastLabel.allSatisfy(isDigit) ? isDottedQuad(bytes) : true
        }
    }

    /// Four numbers of 0 to 255 without leading zeros, which would make them octal.
    private static func isDottedQuad(_ host: UnsafeBufferPointer<UInt8>) -> Bool {
        var (dots, digits, value) = (0, 0, 0)
        for byte in host {
            if byte == UInt8(ascii: ".") {
                guard digits > 0 else { return false }
                (dots, digits, value) = (dots + 1, 0, 0)
            } else {
                guard isDigit(byte), digits == 0 || value > 0 else { return false }
                (digits, value) = (digits + 1, value * 10 + Int(byte & 0xF))
                guard value <= 255 else { return false }
            }
        }
        return dots == 3 && digits > 0
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }

    /// What ends a host, or is in none (RFC 3986 sections 2.2 and 3.2.2).
    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "#"), UInt8(ascii: "%"), UInt8(ascii: "/"), UInt8(ascii: "<"), UInt8(ascii: ">"),
            UInt8(ascii: "?"), UInt8(ascii: "@"), UInt8(ascii: "["), UInt8(ascii: "\\"), UInt8(ascii: "]"), UInt8(ascii: "^"),
            UInt8(ascii: "`"), UInt8(ascii: "{"), UInt8(ascii: "|"), UInt8(ascii: "}"):
            true
        default: false
        }
    }
}

extension URL {
    /// Scheme, host, port and path: without user, password, query and fragment, which may be secret.
    package var withoutSecrets: String {
        let port = port.map { ":\($0)" } ?? ""
        let host = host(percentEncoded: true).map { $0.utf8.contains(UInt8(ascii: ":")) ? "[\($0)]" : $0 }
        return "\(scheme.map { "\($0)://" } ?? "")\(host ?? "")\(port)\(path(percentEncoded: true))"
    }

    /// The same without user and password.
    var withoutUser: URL {
        guard user != nil || password != nil, var parts = URLComponents(url: self, resolvingAgainstBaseURL: true) else {
            return self
        }
        (parts.user, parts.password) = (nil, nil)
        return parts.url ?? self
    }

    /// The user and the password in it.
    var credential: Credential? {
        user(percentEncoded: false).map { user in
            Credential(user: user, password: password(percentEncoded: false) ?? "", persistence: .none)
        }
    }

    /// The same with the user and the password of `other`, or without any, if it belongs to another origin.
    func withUser(of other: URL) -> URL {
        guard Origin(self) == Origin(other), other.user != nil else { return withoutUser }
        guard var parts = URLComponents(url: self, resolvingAgainstBaseURL: true) else { return withoutUser }
        let source = URLComponents(url: other, resolvingAgainstBaseURL: true)
        (parts.percentEncodedUser, parts.percentEncodedPassword) = (source?.percentEncodedUser, source?.percentEncodedPassword)
        return parts.url ?? withoutUser
    }

    /// The address without the user and the password, which are sent as a field, and without the fragment, which is never sent.
    var withoutUserAndFragment: URL {
        let url = withoutUser
        guard url.fragment != nil, var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return url }
        parts.fragment = nil
        return parts.url ?? url
    }
}

extension HTTPSessionError.Context {
    /// The request's address without its secrets, and its method.
    package init(of request: TransferRequest) {
        self.init(url: request.url.withoutSecrets, method: request.method.rawValue)
    }
}

extension TransferRequest {
    /// A request for an address in a text that may come from anywhere, relative to `base` where that is given (its path counts as a
    /// directory, with or without a `/` at its end).
    ///
    /// Throws ``HTTPSessionError/Code/invalidRequest`` for control characters and backslashes, for what is no URL, and for a URL without host, with a
    /// port beyond 65535, or of another scheme than `http` and `https`.
    public init(
        urlString: String, relativeTo base: URL? = nil, method: HTTPRequest.Method = .get, headerFields: HTTPFields = [:],
        body: RequestBody = .none, options: Options = Options()
    ) throws(HTTPSessionError) {
        let url = try RequestURL.resolve(urlString, against: base)
        self.init(url: url, method: method, headerFields: headerFields, body: body, options: options)
    }

    /// Why that field is refused.
    static let proxyCredentialPlace =
        "Proxy-Authorization would go through a tunnel to the server behind it: a proxy's user and password are given with the session's proxy, in its credential store or by a challenge handler"

    /// The fields that frame a message: the engine writes them.
    static let framing: [HTTPField.Name] = [.contentLength, .transferEncoding, .connection]

    /// Throws ``HTTPSessionError/Code/invalidRequest`` for an address that cannot be asked, for fields of HTTP's framing and for HEAD
    /// with a body, and for options out of bounds. Returns where the request goes to.
    ///
    /// Line breaks and NUL need no check: no `HTTPField.Name` holds one, and swift-http-types makes each a space in a value. The places
    /// that take names and values as text refuse them instead (``HTTPFields``).
    @discardableResult
    package func validate() throws(HTTPSessionError) -> Origin {
        let origin = try RequestURL.validate(url)
        if let name = Self.framing.first(where: headerFields.contains) {
            throw HTTPSessionError(.invalidRequest, "\(name.rawName) is the engine's to set", context: .init(of: self))
        }
        guard headerFields[.proxyAuthorization] == nil else {
            throw HTTPSessionError(.invalidRequest, TransferRequest.proxyCredentialPlace, context: .init(of: self))
        }
        // libcurl would wait for the body that the response's length speaks of.
        if method == .head {
            guard case .none = body else {
                throw HTTPSessionError(.invalidRequest, "HEAD is sent without a body", context: .init(of: self))
            }
        }
        if let objection = options.objection {
            throw HTTPSessionError(.invalidRequest, "options: \(objection)", context: .init(of: self))
        }
        return origin
    }
}

extension TransferRequest.Options {
    /// What of it cannot be meant, by the bounds of a session's configuration.
    fileprivate var objection: String? {
        if isOutOfBounds(connectTimeout) { return "connectTimeout is not 1 ms to 10 years" }
        if isOutOfBounds(requestTimeout) { return "requestTimeout is not 1 ms to 10 years" }
        if isOutOfBounds(resourceTimeout) { return "resourceTimeout is not 1 ms to 10 years" }
        return maximumResponseSize ?? 0 < 0 ? "maximumResponseSize is negative" : nil
    }

    private func isOutOfBounds(_ timeout: Duration?) -> Bool { timeout.map { !TransferRequest.timeouts.contains($0) } ?? false }
}
