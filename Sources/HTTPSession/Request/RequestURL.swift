public import FoundationEssentials
public import HTTPTypes
internal import Wire

/// The parser of request URLs, which are resolved, checked, or refused with a reason (RFC 3986).
package enum RequestURL {
    /// Resolves `text` against `base`. A base whose path does not end in `/` gets one, so that `v1` and `users` give `v1/users`.
    ///
    /// Control characters and backslashes are refused; other invalid characters are escaped. A backslash separates the host from the path for
    /// browsers (URL Standard) and is part of the user name by RFC 3986. One program would check another host than the one that a second program
    /// connects to.
    package static func resolve(_ text: String, against base: URL? = nil) throws(HTTPSessionError) -> URL {
        guard !text.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else {
            throw HTTPSessionError(.invalidRequest, "the URL has a control character")
        }
        guard !hasBackslash(text) else {
            throw HTTPSessionError(.invalidRequest, "the URL has a backslash; write %5C for a literal one")
        }
        let directory = base.map(asDirectory)
        // Foundation does not parse an empty reference, which is the base itself (RFC 3986 section 5.2.2).
        guard let url = text.isEmpty ? directory : reference(text, relativeTo: directory) else {
            throw HTTPSessionError(.invalidRequest, "the URL cannot be parsed")
        }
        try validate(url)
        return url
    }

    /// The URL of the reference `text` relative to `base` (RFC 3986 section 5), with its host in ASCII; `nil` if it cannot be parsed.
    package static func reference(_ text: String, relativeTo base: URL?) -> URL? {
        URL(string: text, relativeTo: base)?.absoluteURL.withASCIIHost
    }

    static func hasBackslash(_ text: String) -> Bool { text.utf8.contains(UInt8(ascii: "\\")) }

    /// Checks a URL.
    ///
    /// - Returns: its origin.
    /// - Throws: ``HTTPSessionError/Code/invalidRequest`` for a URL without a host, with a port above 65535, or of another scheme than `http`
    ///   and `https`.
    @discardableResult
    package static func validate(_ url: URL) throws(HTTPSessionError) -> Origin {
        var context: HTTPSessionError.Context { HTTPSessionError.Context(url: url.withoutSecrets) }
        guard url.scheme != nil else {
            throw HTTPSessionError(
                .invalidRequest, "the URL is relative: a relative URL needs a session with a base URL", context: context)
        }
        guard let scheme = url.scheme?.lowercased(), ["http", "https"].contains(scheme) else {
            throw HTTPSessionError(.invalidRequest, "the URL's scheme is neither http nor https", context: context)
        }
        guard let host = url.host(percentEncoded: false), !host.isEmpty, isPlain(host) else {
            throw HTTPSessionError(
                .invalidRequest, "the URL has no host, or an invalid one", context: context)
        }
        let port = url.port
        guard (0...65535).contains(port ?? 0) else {
            throw HTTPSessionError(.invalidRequest, "the URL's port is above 65535", context: context)
        }
        return Origin(scheme: scheme, writtenHost: host, port: port)
    }

    /// The URL with `query` added to its query, before its fragment.
    ///
    /// The query comes from a serializer, which may be the user's own. Characters that a query cannot have are an error and are not escaped again.
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

    /// Whether a host has one spelling only.
    ///
    /// Pins, exceptions and the names in certificates are compared with the host as it is written, but libcurl connects to its own interpretation.
    /// It decodes percent-encoded hosts, and reads `127.1`, `0x7f000001` and `0177.0.0.1` as 127.0.0.1. International names are in ASCII at this
    /// point (``Foundation/URL/withASCIIHost``).
    static func isPlain(_ host: String) -> Bool {
        var host = host
        return host.withUTF8 { bytes in
            // An IPv6 address, with or without a zone.
            if bytes.contains(UInt8(ascii: ":")) { return bytes.allSatisfy { $0 > 0x20 && $0 < 0x7F } }
            guard bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !isDelimiter($0) }) else { return false }
            let name = bytes.last == UInt8(ascii: ".") ? bytes.dropLast() : bytes[...]
            let lastLabel = name.lastIndex(of: UInt8(ascii: ".")).map { name[($0 + 1)...] } ?? name
            guard let first = lastLabel.first, HTTPGrammar.isDigit(first) else { return true }
            let isHexadecimal = first == UInt8(ascii: "0") && lastLabel.dropFirst().first.map { $0 | 0x20 } == UInt8(ascii: "x")
            return isHexadecimal || lastLabel.allSatisfy(HTTPGrammar.isDigit) ? isDottedQuad(bytes) : true
        }
    }

    /// Whether the host is four numbers from 0 to 255. Leading zeros are refused, because they mean octal numbers.
    private static func isDottedQuad(_ host: UnsafeBufferPointer<UInt8>) -> Bool {
        var (dots, digits, value) = (0, 0, 0)
        for byte in host {
            if byte == UInt8(ascii: ".") {
                guard digits > 0 else { return false }
                (dots, digits, value) = (dots + 1, 0, 0)
            } else {
                guard HTTPGrammar.isDigit(byte), digits == 0 || value > 0 else { return false }
                (digits, value) = (digits + 1, value * 10 + Int(byte & 0xF))
                guard value <= 255 else { return false }
            }
        }
        return dots == 3 && digits > 0
    }

    /// Whether the byte ends a host, or cannot be in one (RFC 3986 sections 2.2 and 3.2.2).
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
    /// The scheme, host, port and path, without the user, password, query and fragment, which may be secret.
    package var withoutSecrets: String {
        let port = port.map { ":\($0)" } ?? ""
        let host = host(percentEncoded: true).map { $0.utf8.contains(UInt8(ascii: ":")) ? "[\($0)]" : $0 }
        return "\(scheme.map { "\($0)://" } ?? "")\(host ?? "")\(port)\(path(percentEncoded: true))"
    }

    /// The URL without user and password.
    var withoutUser: URL {
        guard user != nil || password != nil, var parts = URLComponents(url: self, resolvingAgainstBaseURL: true) else {
            return self
        }
        (parts.user, parts.password) = (nil, nil)
        return parts.url ?? self
    }

    /// The user and the password of the URL; `nil` if it has no user.
    var credential: Credential? {
        user(percentEncoded: false).map { user in
            Credential(user: user, password: password(percentEncoded: false) ?? "", persistence: .none)
        }
    }

    /// The URL with the user and the password of `other` if both have the same origin, otherwise without user and password.
    func withUser(of other: URL) -> URL {
        guard Origin(self) == Origin(other), other.user != nil else { return withoutUser }
        guard var parts = URLComponents(url: self, resolvingAgainstBaseURL: true) else { return withoutUser }
        let source = URLComponents(url: other, resolvingAgainstBaseURL: true)
        (parts.percentEncodedUser, parts.percentEncodedPassword) = (source?.percentEncodedUser, source?.percentEncodedPassword)
        return parts.url ?? withoutUser
    }

    /// The URL without the user and the password, which are sent as a field, and without the fragment, which is never sent.
    var withoutUserAndFragment: URL {
        let url = withoutUser
        guard url.fragment != nil, var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return url }
        parts.fragment = nil
        return parts.url ?? url
    }
}

extension HTTPSessionError.Context {
    /// Creates a context with the URL of a request without its secrets, and its method.
    package init(of request: TransferRequest) {
        self.init(url: request.url.withoutSecrets, method: request.method.rawValue)
    }
}

extension TransferRequest {
    /// Creates a request for a URL in untrusted text.
    ///
    /// The URL may be relative to `base`, whose path is a directory with or without a `/` at its end.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidRequest`` for text that cannot be parsed or has control characters or backslashes. The same error
    ///   is for a URL without a host, with a port above 65535, or with another scheme than `http` and `https`.
    public init(
        urlString: String, relativeTo base: URL? = nil, method: HTTPRequest.Method = .get, headerFields: HTTPFields = [:],
        body: RequestBody = .none, options: Options = Options()
    ) throws(HTTPSessionError) {
        let url = try RequestURL.resolve(urlString, against: base)
        self.init(url: url, method: method, headerFields: headerFields, body: body, options: options)
    }

    /// The reason why the field is refused.
    static let proxyAuthorizationRefusal =
        "Proxy-Authorization would be sent through the tunnel to the server: give the proxy's user and password in the session's proxy, in its credential store or in a challenge handler"

    /// The fields that frame a message, which the engine sets.
    static let framing: [HTTPField.Name] = [.contentLength, .transferEncoding, .connection]

    /// Checks the request.
    ///
    /// Line breaks and NUL need no check here: no `HTTPField.Name` has one, and swift-http-types replaces them by spaces in values. Initializers
    /// that take text refuse them (``HTTPFields``).
    ///
    /// - Returns: the origin of the request.
    /// - Throws: ``HTTPSessionError/Code/invalidRequest`` for an invalid URL, for fields of HTTP's framing, for a field that may occur only once and
    ///   occurs twice, for HEAD with a body, and for options
    ///   out of range.
    @discardableResult
    package func validate() throws(HTTPSessionError) -> Origin {
        let origin = try RequestURL.validate(url)
        if let name = Self.framing.first(where: headerFields.contains) {
            throw HTTPSessionError(.invalidRequest, "\(name.rawName) is set by the engine", context: .init(of: self))
        }
        if let name = headerFields.repeatedSingleton {
            throw HTTPSessionError(.invalidRequest, "\(name.rawName) may occur only once", context: .init(of: self))
        }
        guard headerFields[.proxyAuthorization] == nil else {
            throw HTTPSessionError(.invalidRequest, TransferRequest.proxyAuthorizationRefusal, context: .init(of: self))
        }
        // libcurl would wait for a response body of the length in Content-Length.
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
    /// The reason why an option is out of the range that a session's configuration allows; `nil` if all are in range.
    fileprivate var objection: String? {
        if isOutOfBounds(connectTimeout) { return "connectTimeout is not 1 ms to 10 years" }
        if isOutOfBounds(requestTimeout) { return "requestTimeout is not 1 ms to 10 years" }
        if isOutOfBounds(resourceTimeout) { return "resourceTimeout is not 1 ms to 10 years" }
        if isOutOfBounds(connectivityTimeout) { return "connectivityTimeout is not 1 ms to 10 years" }
        return maximumResponseSize ?? 0 < 0 ? "maximumResponseSize is negative" : nil
    }

    private func isOutOfBounds(_ timeout: Duration?) -> Bool { timeout.map { !TransferRequest.timeouts.contains($0) } ?? false }
}
