internal import ByteComparison
public import FoundationEssentials

/// A server to probe: a host, a TCP port, and the protocol that its probes speak, validated at creation.
///
/// Two endpoints are equal if they have the same scheme, host, port and path, whatever their ``text``: `DB.example:443` equals
/// `tcp://db.example:443`.
public struct Endpoint: Hashable, Sendable {
    /// The host of an endpoint: a name to resolve, or an address.
    ///
    /// Names are compared without regard to the case of ASCII letters (RFC 4343, RFC 3986 section 3.2.2). A final dot counts: it
    /// excludes the search list of resolv.conf(5), so `db.example.` and `db.example` may be different servers.
    @nonexhaustive public enum Host: Hashable, Sendable {
        /// A DNS name (RFC 1123: at most 253 characters, labels of 1 to 63 letters, digits, hyphens or underscores). An
        /// international name is in its ASCII form (RFC 5891).
        case name(String)
        /// An IP address. `zone` is the interface of a link-local address, and `nil` for other addresses.
        case address(IPAddress, zone: String?)
    }

    /// The protocol of an endpoint's probes: the word before `://`. Later versions may add protocols.
    public struct Scheme: Hashable, Sendable {
        /// The place among the schemes of all kinds of probes. A target of 100,000 stores a byte.
        let index: UInt8
    }

    /// The error for text that is not an endpoint. The description names the invalid component and the reason.
    public struct ParseError: Error, Hashable, Sendable, CustomStringConvertible {
        /// One line: `host: …`, `port: …`, `scheme: …` or `path: …`.
        public let description: String

        // Shortened, and without control characters: the text may contain line ends, terminal escape sequences, or a complete
        // file.
        init(description: String) {
            let shown = description.unicodeScalars.prefix(Self.limit).map { scalar -> Character in
                let isControl = scalar.properties.generalCategory == .control || scalar.properties.isWhitespace && scalar != " "
                return isControl ? "\u{fffd}" : Character(scalar)
            }
            self.description = String(shown) + (shown.count == Self.limit ? "…" : "")
        }

        private static let limit = 400
    }

    /// The name or address of the server.
    public var host: Host { values.value.host }
    /// The TCP port, 1 to 65535.
    public var port: UInt16 { values.value.port }
    /// The protocol of the probes.
    public var scheme: Scheme { values.value.scheme }
    /// What follows the host and the port: the path and the query of an HTTP request (RFC 9112 section 3.2.1), `/` by default; empty for protocols
    /// without a path.
    public var path: String { values.value.path ?? scheme.form.emptyPath }
    /// The text from which the endpoint was created, as the user wrote it.
    public var text: String { values.value.text ?? Self.text(values.value) }

    struct Values: Hashable, Sendable {
        let host: Host
        let port: UInt16
        let scheme: Scheme
        // `nil` for the default.
        let path: String?
        // `nil` if the text follows from the other values, so that a name is stored once.
        let text: String?
    }

    private let values: Boxed<Values>

    init(_ values: Values) { self.values = Boxed(values) }

    /// Creates an endpoint from its text: `HOST:PORT`, or `SCHEME://HOST` with a port, a path or both, as the kind of the probes has them, such as
    /// `https://HOST[:PORT][/PATH]` and `ping://HOST`. An IPv6 address needs brackets: `[fe80::1%eth0]:22`.
    ///
    /// - Throws: ``ParseError``, which names the invalid component.
    public init(_ text: String) throws(ParseError) {
        let values = try Self.parse(text)
        let usual = Self.text(values)
        self.init(
            Values(
                host: values.host, port: values.port, scheme: values.scheme, path: values.path, text: usual == text ? nil : text))
    }

    /// Returns the usual text of an endpoint: `HOST:PORT`, with brackets around an IPv6 address, or a URL.
    private static func text(_ values: Values) -> String {
        if values.scheme == .unwritten { return text(values.host, port: values.port) }
        if values.scheme.form.isNameAlone { return "\(values.scheme.form.prefix)\(text(values.host, port: nil))" }
        let port = values.port == values.scheme.defaultPort ? nil : values.port
        return "\(values.scheme.rawValue)://\(text(values.host, port: port))\(values.path ?? values.scheme.form.emptyPath)"
    }

    /// Returns a host with brackets around an IPv6 address, and its port, if there is one.
    private static func text(_ host: Host, port: UInt16?) -> String {
        let port = port.map { ":\($0)" } ?? ""
        switch host {
        case .name(let name): return "\(name)\(port)"
        case .address(let address, let zone) where address.family == .v6:
            return "[\(address)\(zone.map { "%\($0)" } ?? "")]\(port)"
        case .address(let address, _): return "\(address)\(port)"
        }
    }

    /// The host and the port alone, as a TCP endpoint.
    var withoutScheme: Endpoint { Endpoint(Values(host: host, port: port, scheme: .unwritten, path: nil, text: nil)) }

    /// The same host and port with another scheme, which has no path. The text stays that of the user.
    func with(_ scheme: Scheme) -> Endpoint { Endpoint(Values(host: host, port: port, scheme: scheme, path: nil, text: text)) }

    /// Creates an endpoint from a host and a port.
    ///
    /// - Parameters:
    ///   - host: a name or an address. Brackets around an IPv6 address are optional; a link-local address needs its interface
    ///     (`fe80::1%eth0`).
    ///   - port: the TCP port, 1 to 65535.
    /// - Throws: ``ParseError``, which names the invalid component.
    public init(host: String, port: UInt16) throws(ParseError) {
        let host = UserInformation.withoutPassword(host)
        if IPAddress(host.prefix { $0 != "%" })?.family == .v6 {
            try self.init("[\(host)]:\(port)")
            return
        }
        guard !host.contains("/") else {
            let hasScheme = host.contains("://")
            throw ParseError(
                description: hasScheme ? "scheme: '\(host)' has one; write the host alone" : "host: '\(host)' contains '/'")
        }
        // Colons are valid only inside brackets.
        let remainder = host.first == "[" ? host.drop { $0 != "]" }.dropFirst() : host[...]
        guard remainder.count(where: { $0 == ":" }) < 2 else {
            throw ParseError(description: "host: '\(host)' is not an IPv6 address")
        }
        guard !remainder.contains(":") else {
            throw ParseError(description: "host: '\(host)' contains a port, which is an argument of its own")
        }
        try self.init("\(host):\(port)")
    }
}

extension Endpoint {
    /// Whether both have the same scheme, host, port and path.
    public static func == (one: Endpoint, other: Endpoint) -> Bool {
        one.port == other.port && one.scheme == other.scheme && one.host == other.host
            && one.values.value.path.isExactly(other.values.value.path)
    }
    /// Hashes the scheme, the host, the port and the path.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(host)
        hasher.combine(port)
        hasher.combine(scheme)
        values.value.path?.hashBytes(into: &hasher)
    }
}

extension Endpoint.Host {
    /// Whether both are the same name, in upper or lower case, or the same address.
    public static func == (one: Endpoint.Host, other: Endpoint.Host) -> Bool {
        switch (one, other) {
        case (.name(let one), .name(let other)): lowercaseBytes(one).elementsEqual(lowercaseBytes(other))
        case (.address(let one, let oneZone), .address(let other, let otherZone)): one == other && oneZone.isExactly(otherZone)
        case (.name, .address), (.address, .name): false
        }
    }

    /// Hashes the name in lower case, or the address.
    public func hash(into hasher: inout Hasher) {
        switch self {
        case .name(let name): for byte in Self.lowercaseBytes(name) { hasher.combine(byte) }
        case .address(let address, let zone):
            hasher.combine(address)
            zone?.hashBytes(into: &hasher)
        }
    }

    private static func lowercaseBytes(_ name: String) -> some Sequence<UInt8> {
        name.utf8.lazy.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 }
    }
}

extension Endpoint: CustomStringConvertible {
    /// The text from which the endpoint was created.
    public var description: String { text }
}

extension Endpoint.ParseError: LocalizedError {
    /// One line: `host: …`, `port: …`, `scheme: …` or `path: …`.
    public var errorDescription: String? { description }
}

extension Endpoint {
    /// The name, or the address with its zone.
    package var hostText: String {
        switch host {
        case .name(let name): name
        case .address(let address, let zone): zone.map { "\(address)%\($0)" } ?? "\(address)"
        }
    }
}
