public import FoundationEssentials
internal import InternationalNames

/// A server to probe: a host and a TCP port, validated at creation.
///
/// Two endpoints are equal if they have the same host and port, whatever their ``text``: `DB.example:443` equals
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

    /// The error for text that is not an endpoint. The description names the invalid component and the reason.
    public struct ParseError: Error, Hashable, Sendable, CustomStringConvertible {
        /// One line: `host: …`, `port: …` or `scheme: …`.
        public let description: String

        // Shortened, and without control characters: the text may contain line ends, terminal escape sequences, or a complete
        // file.
        fileprivate init(description: String) {
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
    /// The text from which the endpoint was created, as the user wrote it.
    public var text: String { values.value.text ?? Self.text(host, port) }

    private struct Values: Hashable, Sendable {
        let host: Host
        let port: UInt16
        // `nil` if the text follows from host and port, so that a name is stored once.
        let text: String?
    }

    private let values: Boxed<Values>

    /// Creates an endpoint from `HOST:PORT` or `tcp://HOST:PORT`. An IPv6 address needs brackets: `[fe80::1%eth0]:22`.
    ///
    /// - Throws: ``ParseError``, which names the invalid component.
    public init(_ text: String) throws(ParseError) {
        var remainder = text[...]
        // A search for a text is slow, and nearly no endpoint has a scheme.
        if text.utf8.contains(UInt8(ascii: "/")), let separator = remainder.firstRange(of: "://") {
            let scheme = remainder[..<separator.lowerBound].lowercased()
            switch scheme {
            case "tcp": break
            case "tls", "http", "https":
                throw ParseError(
                    description: "scheme: this version cannot probe \(scheme):// yet; write HOST:PORT for a TCP probe")
            default:
                throw ParseError(description: "scheme: '\(scheme)' is not known; write HOST:PORT or tcp://HOST:PORT")
            }
            remainder = remainder[separator.upperBound...]
            if let slash = remainder.firstIndex(where: { "/?#@".contains($0) }) {
                throw ParseError(
                    description: "port: '\(remainder[slash...])' does not belong to a TCP target; write tcp://HOST:PORT")
            }
        }
        let (host, port) = try Self.split(remainder)
        values = Boxed(Values(host: host, port: port, text: Self.text(host, port) == text ? nil : text))
    }

    /// Returns the usual text of an endpoint: `HOST:PORT`, with brackets around an IPv6 address.
    private static func text(_ host: Host, _ port: UInt16) -> String {
        switch host {
        case .name(let name): "\(name):\(port)"
        case .address(let address, let zone) where address.family == .v6:
            "[\(address)\(zone.map { "%\($0)" } ?? "")]:\(port)"
        case .address(let address, _): "\(address):\(port)"
        }
    }

    /// Creates an endpoint from a host and a port.
    ///
    /// - Parameters:
    ///   - host: a name or an address. Brackets around an IPv6 address are optional; a link-local address needs its interface
    ///     (`fe80::1%eth0`).
    ///   - port: the TCP port, 1 to 65535.
    /// - Throws: ``ParseError``, which names the invalid component.
    public init(host: String, port: UInt16) throws(ParseError) {
        if IPAddress(host.prefix { $0 != "%" })?.family == .v6 {
            try self.init("[\(host)]:\(port)")
            return
        }
        let bare = host.firstRange(of: "://").map { host[$0.upperBound...] } ?? host[...]
        // Colons are valid only inside brackets.
        let remainder = bare.first == "[" ? bare.drop { $0 != "]" }.dropFirst() : bare
        guard remainder.count(where: { $0 == ":" }) < 2 else {
            throw ParseError(description: "host: '\(host)' is not an IPv6 address")
        }
        guard !remainder.contains(":") else {
            throw ParseError(description: "host: '\(host)' contains a port, which is an argument of its own")
        }
        try self.init("\(host):\(port)")
    }

    private static func split(_ text: Substring) throws(ParseError) -> (Host, UInt16) {
        guard !text.isEmpty else { throw ParseError(description: "host: is empty; write HOST:PORT") }
        if text.first == "[" {
            guard let close = text.firstIndex(of: "]") else {
                throw ParseError(description: "host: '[' without ']'; write [ADDRESS]:PORT")
            }
            let inside = text[text.index(after: text.startIndex)..<close]
            let behind = text[text.index(after: close)...]
            let parts = inside.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
            guard let address = IPAddress(parts[0]), address.family == .v6 else {
                throw ParseError(description: "host: '\(inside)' is not an IPv6 address")
            }
            let zone = parts.count > 1 ? String(parts[1]) : nil
            if let zone, zone.isEmpty || zone.utf8.count > 15 || zone.contains("/") {
                throw ParseError(description: "host: '\(zone)' is not the name of an interface")
            }
            return (.address(address.unmapped, zone: zone), try port(behind))
        }
        let colons = text.utf8.count { $0 == UInt8(ascii: ":") }
        guard colons > 0 else { throw ParseError(description: "port: is missing; write \(text):PORT") }
        guard colons == 1, let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else {
            throw ParseError(description: "host: an IPv6 address needs brackets; write [ADDRESS]:PORT")
        }
        let number = try port(text[colon...])
        return (try name(text[..<colon]), number)
    }

    private static func port(_ text: Substring) throws(ParseError) -> UInt16 {
        guard text.utf8.first == UInt8(ascii: ":") else { throw ParseError(description: "port: is missing; write HOST:PORT") }
        let digits = text.dropFirst()
        guard !digits.isEmpty else { throw ParseError(description: "port: is missing; write HOST:PORT") }
        guard digits.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else {
            throw ParseError(description: "port: '\(digits)' is not a number from 1 to 65535")
        }
        guard let number = UInt16(digits), number > 0 else {
            throw ParseError(description: "port: \(digits) is not between 1 and 65535")
        }
        return number
    }

    private static func name(_ text: Substring) throws(ParseError) -> Host {
        guard !text.isEmpty else { throw ParseError(description: "host: is empty; write HOST:PORT") }
        if let address = IPAddress(text) { return .address(address, zone: nil) }
        var text = text
        // In a name of ASCII, IDNA changes nothing but case. A name that IDNA does not allow is refused below.
        if !text.utf8.allSatisfy({ $0 < 0x80 }), let ascii = InternationalHost.ascii(String(text)) {
            text = ascii[...]
            if let address = IPAddress(text) { return .address(address, zone: nil) }
        }
        let name = text.hasSuffix(".") ? text.dropLast() : text
        guard name.utf8.count <= 253 else {
            throw ParseError(description: "host: is longer than the 253 characters of a DNS name")
        }
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        for label in labels {
            guard !label.isEmpty else { throw ParseError(description: "host: '\(text)' has an empty label") }
            guard label.utf8.count <= 63 else { throw ParseError(description: "host: a label is longer than 63 characters") }
            guard label.utf8.allSatisfy(isNameCharacter), label.first != "-", label.last != "-" else {
                throw ParseError(description: "host: '\(text)' is neither an address nor a DNS name")
            }
        }
        // Hexadecimal labels are refused too: libc reads 0x7f.1 as an address and asks no name server.
        if labels.allSatisfy({ isNumber($0) }) {
            throw ParseError(description: "host: '\(text)' is not an IPv4 address")
        }
        return .name(String(text))
    }

    private static func isNumber(_ label: Substring) -> Bool {
        if label.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) { return true }
        return label.lowercased().hasPrefix("0x") && label.dropFirst(2).allSatisfy(\.isHexDigit)
    }

    private static func isNameCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x5f: true
        default: false
        }
    }
}

extension Endpoint {
    /// Whether both have the same host and port.
    public static func == (one: Endpoint, other: Endpoint) -> Bool { one.port == other.port && one.host == other.host }
    /// Hashes the host and the port.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(host)
        hasher.combine(port)
    }
}

extension Endpoint.Host {
    /// Whether both are the same name, in upper or lower case, or the same address.
    public static func == (one: Endpoint.Host, other: Endpoint.Host) -> Bool {
        switch (one, other) {
        case (.name(let one), .name(let other)): lowercaseBytes(one).elementsEqual(lowercaseBytes(other))
        case (.address(let one, let oneZone), .address(let other, let otherZone)): one == other && oneZone == otherZone
        case (.name, .address), (.address, .name): false
        }
    }

    /// Hashes the name in lower case, or the address.
    public func hash(into hasher: inout Hasher) {
        switch self {
        case .name(let name): for byte in Self.lowercaseBytes(name) { hasher.combine(byte) }
        case .address(let address, let zone):
            hasher.combine(address)
            hasher.combine(zone)
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
    /// One line: `host: …`, `port: …` or `scheme: …`.
    public var errorDescription: String? { description }
}
