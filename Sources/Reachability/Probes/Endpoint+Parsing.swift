internal import InternationalNames

/// The parser of an endpoint's text.
extension Endpoint {
    static func parse(_ text: String) throws(ParseError) -> Values {
        // A text with user information is refused in any case, and no error shows a password.
        let text = UserInformation.withoutPassword(text)
        if let values = try name(of: text) { return values }
        // A search for a text is slow, and nearly no endpoint has a scheme.
        guard text.utf8.contains(UInt8(ascii: "/")), let separator = text.firstRange(of: "://") else {
            guard !text.utf8.contains(UInt8(ascii: "@")) else {
                throw userInformation(Scheme.unwritten.rawValue.uppercased(), "HOST:PORT")
            }
            let (host, port) = try split(text[...])
            return Values(host: host, port: port, scheme: .unwritten, path: nil, text: nil)
        }
        let name = text[..<separator.lowerBound].lowercased()
        guard let scheme = Scheme(rawValue: name), !scheme.form.isNameAlone else {
            let known = Scheme.allCases.map(\.form.prefix)
            let list = "\(known.dropLast().joined(separator: ", ")) or \(known.last ?? "")"
            throw ParseError(description: "scheme: '\(name)' is not known; write HOST:PORT, or \(list) before it")
        }
        let remainder = text[separator.upperBound...]
        let end = remainder.firstIndex { "/?#".contains($0) } ?? remainder.endIndex
        let (authority, path) = (remainder[..<end], remainder[end...])
        let form = scheme.form
        guard !authority.contains("@") else {
            guard form.path != nil else { throw userInformation(name.uppercased(), "\(name)://HOST:PORT") }
            throw ParseError(description: "host: a user name or password in a URL is not accepted")
        }
        guard form.path != nil || path.isEmpty else {
            throw ParseError(
                description: "port: '\(path)' does not belong to a \(name.uppercased()) target; write \(name)://HOST:PORT")
        }
        let (host, port) = try split(authority, defaultPort: form.defaultPort, isURL: form.path != nil)
        guard form.hasPort || port == 0 else {
            throw ParseError(description: "port: a \(name) target has none; write \(name)://\(authority.prefix { $0 != ":" })")
        }
        return Values(host: host, port: port, scheme: scheme, path: try form.path?(path), text: nil)
    }

    /// Returns a name that means something to this process alone: `heartbeat:backup`. A number behind the colon is a port of a host with that name.
    private static func name(of text: String) throws(ParseError) -> Values? {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), names.contains(text[..<colon].utf8.count) else {
            return nil
        }
        let word = text[..<colon].lowercased()
        guard let scheme = Scheme.allCases.first(where: { $0.form.isNameAlone && $0.rawValue == word }) else { return nil }
        let name = text[text.index(after: colon)...]
        guard !name.isEmpty, name.utf8.contains(where: { !(0x30...0x39 ~= $0) }) else { return nil }
        guard name.utf8.count <= 64, name.utf8.first != UInt8(ascii: "."),
            name.utf8.allSatisfy({ isNameCharacter($0) || $0 == UInt8(ascii: ".") })
        else {
            throw ParseError(
                description:
                    "host: '\(name)' is not a name; write \(word):NAME with 1 to 64 letters, digits, '-', '_' or '.', and not '.' first"
            )
        }
        return Values(host: .name(String(name)), port: 0, scheme: scheme, path: nil, text: nil)
    }

    /// The lengths of the schemes of such names, so that nearly every other text costs a comparison.
    private static let names = Set(Scheme.allCases.filter(\.form.isNameAlone).map(\.rawValue.utf8.count))

    private static func userInformation(_ kind: String, _ form: String) -> ParseError {
        ParseError(description: "host: a user name or password does not belong to a \(kind) target; write \(form)")
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

extension Endpoint {
    /// Returns why no packet can be sent to the endpoint from the source address of the settings, as the end of a sentence about the target; `nil` if
    /// that is not known.
    package func exclusion(bySourceOf settings: ProbeSettings) -> String? {
        guard let source = settings.sourceAddress else { return nil }
        let (own, other) = source.family == .v4 ? ("an IPv4", "IPv6") : ("an IPv6", "IPv4")
        guard settings.families.contains(source.family) else {
            return "is probed over \(other) alone, and its source address \(source) is \(own) address"
        }
        guard case .address(let address, _) = scheme.kind.peer(of: self, settings).host, address.family != source.family else {
            return nil
        }
        return "has an \(other) address, and its source address \(source) is \(own) address"
    }

    /// Returns the endpoint at one address of its name, with settings by which the server is asked for the same name.
    package func pinned(to address: IPAddress, _ settings: ProbeSettings) -> (Endpoint, ProbeSettings) {
        let target = Endpoint(
            Values(host: .address(address, zone: nil), port: port, scheme: scheme, path: path.isEmpty ? nil : path, text: nil))
        var settings = settings
        scheme.kind.pin(self, &settings)
        return (target, settings)
    }
}
