internal import Reachability

/// The host names that pins are for.
///
/// `example.com` is that host alone. `*.example.com` is one label more: `a.example.com`, neither `example.com` nor
/// `b.a.example.com`. `**.example.com` is any depth, none included. Upper and lower case are the same, a dot at the end is
/// nothing. International names are given in their ASCII form, as they are on the wire; IPv6 addresses in any form.
public struct HostPattern: Sendable, Hashable, CustomStringConvertible {
    private enum Depth: Hashable { case none, one, any }

    private let name: String
    private let depth: Depth

    /// Reads a pattern; one that is no host name, or has an asterisk elsewhere, is an `invalidConfiguration` error that names it.
    public init(_ text: String) throws(HTTPSessionError) {
        let lowered = normalizedHost(text)
        if lowered.hasPrefix("**.") {
            (name, depth) = (String(lowered.dropFirst(3)), .any)
        } else if lowered.hasPrefix("*.") {
            (name, depth) = (String(lowered.dropFirst(2)), .one)
        } else {
            (name, depth) = (lowered, .none)
        }
        guard Self.isHost(name, wildcard: depth != .none) else {
            throw HTTPSessionError(.invalidConfiguration, "not a host name or a pattern of one: \(excerpt(of: text))")
        }
    }

    /// Whether the pattern is for `host`.
    public func matches(_ host: String) -> Bool {
        // An IPv6 address may carry the zone it is reached through.
        let host = normalizedHost(String(host.prefix { $0 != "%" }))
        switch depth {
        case .none: return host == name
        case .any where host == name: return true
        case .one, .any:
            guard host.hasSuffix("." + name) else { return false }
            let prefix = host.dropLast(name.count + 1)
            return !prefix.isEmpty && (depth == .any || !prefix.contains("."))
        }
    }

    private static func isHost(_ name: String, wildcard: Bool) -> Bool {
        if name.contains(":") {
            return !wildcard && name.utf8.allSatisfy { $0 == 0x3A || $0 == 0x2E || isHexDigit($0) }
        }
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        return name.utf8.count <= 253
            && labels.allSatisfy { label in
                (1...63).contains(label.utf8.count)
                    && label.utf8.allSatisfy {
                        (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2D || $0 == 0x5F
                    }
            }
            // *.0.0.1 would be a pattern of addresses.
            && !(wildcard && labels.allSatisfy { $0.utf8.allSatisfy { (0x30...0x39).contains($0) } })
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte) }

    /// The pattern as it is written, in lower case.
    public var description: String {
        switch depth {
        case .none: name
        case .one: "*.\(name)"
        case .any: "**.\(name)"
        }
    }
}

/// The keys that the hosts of a pattern may have.
///
/// One certificate of the verified chain having one of them is enough, whichever it is: pin a key of your own leaf, or of the
/// authority. Always name a backup, a key that is not in use yet, or the day on which the first is lost is the day on which no
/// installed program connects again. Where several patterns are for a host, the pins of all of them count together.
public struct HostPins: Sendable, Hashable {
    /// The hosts.
    public let pattern: HostPattern
    /// The keys, backups included. Never empty.
    public let pins: Set<PublicKeyPin>

    /// Pins that have been parsed. None at all is an `invalidConfiguration` error: it would refuse every connection.
    public init(pattern: HostPattern, pins: Set<PublicKeyPin>) throws(HTTPSessionError) {
        guard !pins.isEmpty else { throw HTTPSessionError(.invalidConfiguration, "no pin for \(pattern)") }
        self.pattern = pattern
        self.pins = pins
    }

    /// Pins as texts: `HostPins("*.example.com", pins: ["sha256/…"], backupPins: ["sha256/…"])`. What does not parse is an
    /// `invalidConfiguration` error that names the text.
    public init(_ host: String, pins: [String], backupPins: [String] = []) throws(HTTPSessionError) {
        var parsed: Set<PublicKeyPin> = []
        for text in pins + backupPins { parsed.insert(try PublicKeyPin(text)) }
        try self.init(pattern: HostPattern(host), pins: parsed)
    }
}

/// A host name as it is compared: in lower case, without the dot that ends an absolute name, an IPv6 address without its brackets and in
/// the form of RFC 5952.
func normalizedHost(_ host: String) -> String {
    var text = host.lowercased().withoutBrackets[...]
    if text.hasSuffix("."), text.count > 1 { text = text.dropLast() }
    if text.utf8.contains(UInt8(ascii: ":")), let address = IPAddress(text) { return address.description }
    return String(text)
}
