internal import Wire

/// An absolute URL of http or https, as a probe requests it (RFC 9110 section 4.2). A fragment is removed.
package struct HTTPURL: Hashable, Sendable {
    package enum Scheme: String, Hashable, Sendable, Codable {
        case http
        case https

        /// The port of URLs without a port.
        package var port: UInt16 { self == .http ? 80 : 443 }
    }

    /// The error for text that is no such URL. The description is one line that names the invalid component.
    package struct ParseError: Error, Hashable, Sendable, CustomStringConvertible {
        package let description: String

        init(_ description: String) { self.description = ExternalText.shortened(description) }
    }

    package let scheme: Scheme
    /// The host and the port of the server. An international name is in its ASCII form.
    package let endpoint: Endpoint
    /// The path and the query: the target of the request (RFC 9112 section 3.2.1). It begins with a slash.
    package let target: String

    /// Creates a URL from text such as `https://example.com/health?full`.
    ///
    /// - Throws: ``ParseError``, which names the invalid component. User information is refused: it would be shown with the URL.
    package init(_ text: String) throws(ParseError) {
        guard text.utf8.count <= HTTPLimit.location.value else { throw ParseError("url: is longer than 8 KiB") }
        let reference = URLReference(text)
        guard reference.scheme != nil else { throw ParseError("scheme: is missing; write http:// or https://") }
        var resolved = reference
        resolved.path = URLReference.removingDotSegments(reference.path)
        try self.init(resolved)
    }

    /// Creates the URL of a target; `nil` for other schemes.
    init?(_ endpoint: Endpoint) {
        guard let scheme = Scheme(rawValue: endpoint.scheme.rawValue) else { return nil }
        self.scheme = scheme
        self.endpoint = endpoint.withoutScheme
        target = endpoint.path
    }

    private init(_ reference: URLReference) throws(ParseError) {
        guard let name = reference.scheme, let scheme = Scheme(rawValue: name) else {
            throw ParseError("scheme: '\(reference.scheme ?? "")' is neither http nor https")
        }
        self.scheme = scheme
        guard let authority = reference.authority, !authority.isEmpty else { throw ParseError("host: is missing") }
        endpoint = try Self.endpoint(authority, scheme)
        target = reference.path + (reference.query.map { "?\($0)" } ?? "")
    }

    private static func endpoint(_ authority: String, _ scheme: Scheme) throws(ParseError) -> Endpoint {
        guard !authority.utf8.contains(UInt8(ascii: "@")) else { throw ParseError("host: user information is not accepted") }
        // A colon within brackets belongs to an IPv6 address. A port may be empty (RFC 3986 section 3.2.3).
        guard !authority.hasPrefix("[") || authority.contains("]") else { throw ParseError("host: '[' without ']'") }
        let end = authority.utf8.lastIndex(of: UInt8(ascii: "]")) ?? authority.startIndex
        let colon = authority.utf8[end...].firstIndex(of: UInt8(ascii: ":"))
        let host = authority[..<(colon ?? authority.endIndex)]
        var port = scheme.port
        if let colon {
            let digits = authority.utf8[colon...].dropFirst()
            if !digits.isEmpty {
                guard digits.allSatisfy(HTTPGrammar.isDigit), let number = UInt16(Substring(digits)), number > 0 else {
                    throw ParseError("port: '\(Substring(digits))' is not a number from 1 to 65535")
                }
                port = number
            }
        }
        guard !host.isEmpty else { throw ParseError("host: is missing") }
        do {
            return try Endpoint(host: String(host), port: port)
        } catch {
            throw ParseError(error.description)
        }
    }

    /// Returns the URL to which a reference leads, such as the value of a `Location` field (RFC 9110 section 10.2.2).
    ///
    /// - Throws: ``ParseError``, if it does not lead to a URL of http or https.
    package func resolving(_ reference: ArraySlice<UInt8>) throws(ParseError) -> HTTPURL {
        var base = URLReference("\(scheme.rawValue)://\(authority)\(target)")
        // The authority is that of the endpoint, which is validated, also with the zone of a link-local address.
        base.authority = nil
        let relative = URLReference(bytes: HTTPGrammar.trimmed(reference))
        let resolved = relative.resolved(against: base)
        if resolved.authority == nil, relative.scheme == nil { return HTTPURL(scheme, endpoint, resolved) }
        return try HTTPURL(resolved)
    }

    /// Throws if another machine cannot mean the URL's host: an address with a zone, which only this machine knows (RFC 6874), or an
    /// unspecified address, to which Linux connects as to this machine.
    func requireAddressOfServer() throws(ParseError) {
        guard case .address(let address, let zone) = endpoint.host else { return }
        guard zone == nil else { throw ParseError("host: a server cannot name a zone of this machine") }
        guard !address.isUnspecified else { throw ParseError("host: \(address) is not the address of a server") }
    }

    private init(_ scheme: Scheme, _ endpoint: Endpoint, _ reference: URLReference) {
        self.scheme = scheme
        self.endpoint = endpoint
        target = reference.path + (reference.query.map { "?\($0)" } ?? "")
    }

    /// The URL as the endpoint of probes.
    var probeEndpoint: Endpoint {
        let scheme: Endpoint.Scheme = scheme == .https ? .https : .http
        return Endpoint(
            Endpoint.Values(
                host: endpoint.host, port: endpoint.port, scheme: scheme, path: target == "/" ? nil : target, text: nil))
    }

    /// The value of the `Host` field: the host, and the port unless it is that of the scheme (RFC 9110 section 7.2). An IPv6 address has
    /// no zone, which only this machine knows (RFC 6874).
    package var authority: String {
        let port = endpoint.port == scheme.port ? "" : ":\(endpoint.port)"
        return Self.text(endpoint.host) + port
    }

    /// Whether both have the same scheme, host and port (RFC 6454 section 5).
    package func hasSameOrigin(as other: HTTPURL) -> Bool { scheme == other.scheme && endpoint == other.endpoint }

    /// A host in a URL: an IPv6 address has brackets, and no zone.
    static func text(_ host: Endpoint.Host) -> String {
        switch host {
        case .name(let name): name
        case .address(let address, _): address.family == .v6 ? "[\(address)]" : "\(address)"
        }
    }
}

extension HTTPURL: CustomStringConvertible {
    /// The URL as text, without the port of its scheme.
    package var description: String { "\(scheme.rawValue)://\(authority)\(target)" }
}

extension HTTPURL: Codable {
    /// Decodes a URL from its text.
    package init(from decoder: any Decoder) throws { try self.init(decoder.singleValueContainer().decode(String.self)) }

    /// Encodes a URL as text. The zone of a link-local address is not encoded.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

extension Endpoint {
    /// The host and the port, as CONNECT names them (RFC 9110 section 9.3.6).
    var hostAndPort: String { "\(HTTPURL.text(host)):\(port)" }
}
