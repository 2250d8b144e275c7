internal import InternationalNames

/// The parser of an endpoint's text.
extension Endpoint {
    /// The maximum length of a path with its query in bytes. RFC 9112 section 3 recommends support of 8,000.
    private static let pathLimit = 8_000

    static func parse(_ text: String) throws(ParseError) -> Values {
        // A text with user information is refused in any case, and no error shows a password.
        let text = UserInformation.withoutPassword(text)
        // A search for a text is slow, and nearly no endpoint has a scheme.
        guard text.utf8.contains(UInt8(ascii: "/")), let separator = text.firstRange(of: "://") else {
            guard !text.utf8.contains(UInt8(ascii: "@")) else { throw userInformation("TCP", "HOST:PORT") }
            let (host, port) = try split(text[...])
            return Values(host: host, port: port, scheme: .tcp, path: nil, text: nil)
        }
        let name = text[..<separator.lowerBound].lowercased()
        guard let scheme = Scheme(rawValue: name) else {
            throw ParseError(
                description: "scheme: '\(name)' is not known; write HOST:PORT, or tcp://, tls://, http:// or https:// before it")
        }
        let remainder = text[separator.upperBound...]
        let end = remainder.firstIndex { "/?#".contains($0) } ?? remainder.endIndex
        let (authority, path) = (remainder[..<end], remainder[end...])
        guard !authority.contains("@") else {
            guard scheme.usesHTTP else { throw userInformation(name.uppercased(), "\(name)://HOST:PORT") }
            throw ParseError(description: "host: a user name or password in a URL is not accepted")
        }
        guard scheme.usesHTTP || path.isEmpty else {
            throw ParseError(
                description: "port: '\(path)' does not belong to a \(name.uppercased()) target; write \(name)://HOST:PORT")
        }
        let (host, port) = try split(authority, defaultPort: scheme.defaultPort, isURL: scheme.usesHTTP)
        return Values(host: host, port: port, scheme: scheme, path: scheme.usesHTTP ? try requestTarget(path) : nil, text: nil)
    }

    private static func userInformation(_ kind: String, _ form: String) -> ParseError {
        ParseError(description: "host: a user name or password does not belong to a \(kind) target; write \(form)")
    }

    /// Returns the path and the query in the form of RFC 9112 section 3.2.1; `nil` for the path `/` alone. A fragment is dropped, and
    /// characters beyond ASCII are percent-encoded (RFC 3986 section 2.5).
    private static func requestTarget(_ text: Substring) throws(ParseError) -> String? {
        let text = text.prefix { $0 != "#" }
        guard text.utf8.count <= pathLimit else {
            throw ParseError(description: "path: is longer than \(pathLimit) bytes")
        }
        var target = text.utf8.first == UInt8(ascii: "/") ? "" : "/"
        for byte in text.utf8 {
            switch byte {
            case 0...0x20, 0x7f:
                throw ParseError(description: "path: contains a space or a control character; write %\(hexadecimal(byte))")
            case 0x80...: target += "%\(hexadecimal(byte))"
            default: target.unicodeScalars.append(Unicode.Scalar(byte))
            }
        }
        return target == "/" ? nil : target
    }

    private static func hexadecimal(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 16, uppercase: true)
        return digits.count == 1 ? "0\(digits)" : digits
    }

    /// Returns the host and the port. In a URL, `%25` may stand for the `%` before a zone (RFC 6874 section 2).
    private static func split(
        _ text: Substring, defaultPort: UInt16? = nil, isURL: Bool = false
    ) throws(ParseError) -> (Host, UInt16) {
        guard !text.isEmpty else {
            throw ParseError(description: "host: is empty; write \(defaultPort == nil ? "HOST:PORT" : "HOST or HOST:PORT")")
        }
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
            let written = parts.count > 1 ? parts[1] : nil
            // An interface's index may be 25 itself.
            let isEncoded = isURL && written?.hasPrefix("25") == true && written != "25"
            let zone = written.map { String(isEncoded ? $0.dropFirst(2) : $0) }
            if let zone, zone.isEmpty || zone.utf8.count > 15 || zone.contains("/") {
                throw ParseError(description: "host: '\(zone)' is not the name of an interface")
            }
            let number = try behind.isEmpty ? port(behind, default: defaultPort) : port(behind)
            return (.address(address.unmapped, zone: zone), number)
        }
        let colons = text.utf8.count { $0 == UInt8(ascii: ":") }
        if colons == 0, let defaultPort { return (try name(text), defaultPort) }
        guard colons > 0 else { throw ParseError(description: "port: is missing; write \(text):PORT") }
        guard colons == 1, let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else {
            throw ParseError(description: "host: an IPv6 address needs brackets; write [ADDRESS]:PORT")
        }
        let number = try port(text[colon...])
        return (try name(text[..<colon]), number)
    }

    private static func port(_ text: Substring, default defaultPort: UInt16?) throws(ParseError) -> UInt16 {
        guard let defaultPort else { return try port(text) }
        return defaultPort
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
