internal import Reachability

/// A pattern of host names.
///
/// `example.com` matches this host only. `*.example.com` matches one more label: `a.example.com`, but neither `example.com` nor
/// `b.a.example.com`. `**.example.com` matches `example.com` and all its subdomains. Case and a dot at the end are ignored. Write international
/// names in their ASCII form; IPv6 addresses may have any form.
public struct HostPattern: Sendable, Hashable, CustomStringConvertible {
    private enum Depth: Hashable { case none, one, any }

    private let name: String
    private let depth: Depth

    /// Parses a pattern.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration``, naming the text, if it is not a host name, or has an asterisk at another place.
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
            throw HTTPSessionError(.invalidConfiguration, "not a host name or a pattern of host names: \(excerpt(of: text))")
        }
    }

    /// Whether the pattern matches `host`.
    public func matches(_ host: String) -> Bool {
        // An IPv6 address may have a zone.
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
            // *.0.0.1 would match addresses.
            && !(wildcard && labels.allSatisfy { $0.utf8.allSatisfy { (0x30...0x39).contains($0) } })
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte) }

    /// The text of the pattern, in lower case.
    public var description: String {
        switch depth {
        case .none: name
        case .one: "*.\(name)"
        case .any: "**.\(name)"
        }
    }
}

/// The public keys that are pinned for the hosts of a pattern.
///
/// One certificate of the verified chain must have one of the keys: pin the key of the server's certificate or of its authority. Always pin a
/// backup key that is not in use yet: without one, installed programs cannot connect again after the first key is lost. If several patterns match
/// a host, the pins of all of them are accepted.
public struct HostPins: Sendable, Hashable {
    /// The pattern of the hosts.
    public let pattern: HostPattern
    /// The pins of the keys, including backups; never empty.
    public let pins: Set<PublicKeyPin>

    /// Creates pins for the hosts of a pattern.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration`` if `pins` is empty, because this would refuse every connection.
    public init(pattern: HostPattern, pins: Set<PublicKeyPin>) throws(HTTPSessionError) {
        guard !pins.isEmpty else { throw HTTPSessionError(.invalidConfiguration, "no pin for \(pattern)") }
        self.pattern = pattern
        self.pins = pins
    }

    /// Creates pins from text: `HostPins("*.example.com", pins: ["sha256/…"], backupPins: ["sha256/…"])`.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration``, naming the text that cannot be parsed, or if there is no pin.
    public init(_ host: String, pins: [String], backupPins: [String] = []) throws(HTTPSessionError) {
        var parsed: Set<PublicKeyPin> = []
        for text in pins + backupPins { parsed.insert(try PublicKeyPin(text)) }
        try self.init(pattern: HostPattern(host), pins: parsed)
    }
}

/// The form of a host name in which hosts are compared: in lower case, without the dot that ends an absolute name.
///
/// An IPv6 address has no brackets and the form of RFC 5952.
func normalizedHost(_ host: String) -> String {
    // Most hosts are in this form. The functions below take thousands of instructions.
    if host.utf8.last != UInt8(ascii: "."), host.utf8.allSatisfy(isNormal) { return host }
    var text = host.lowercased().withoutBrackets[...]
    if text.hasSuffix("."), text.count > 1 { text = text.dropLast() }
    if text.utf8.contains(UInt8(ascii: ":")), let address = IPAddress(text) { return address.description }
    return String(text)
}

/// Whether a byte is one of a host name in lower case, or of an IPv4 address.
private func isNormal(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."): true
    default: false
    }
}
