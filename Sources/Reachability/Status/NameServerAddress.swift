/// The address and the port of a name server.
public struct NameServerAddress: Hashable, Sendable {
    /// The server's address.
    public var address: IPAddress
    /// The port; 53 by default.
    public var port: UInt16
    /// The interface of a link-local address, by name or number; `nil` for other addresses.
    public var zone: String?

    /// The port of name servers (RFC 1035 section 4.2).
    public static let usualPort: UInt16 = 53

    /// Creates an address.
    public init(_ address: IPAddress, port: UInt16 = NameServerAddress.usualPort, zone: String? = nil) {
        self.address = address
        self.port = port
        self.zone = zone
    }

    /// Creates an address from its text: `ADDRESS`, `ADDRESS:PORT`, or `[ADDRESS]:PORT` for IPv6; behind an IPv6 address, `%ZONE` names the interface of
    /// a link-local one. Returns `nil` for other texts, port 0, and addresses that belong to no single host.
    public init?(_ text: String) {
        var (host, portText): (Substring, Substring?) = (text[...], nil)
        if text.hasPrefix("[") {
            guard let end = text.lastIndex(of: "]") else { return nil }
            host = text[text.index(after: text.startIndex)..<end]
            let rest = text[text.index(after: end)...]
            guard rest.isEmpty || rest.hasPrefix(":"), host.contains(":") else { return nil }
            if !rest.isEmpty { portText = rest.dropFirst() }
        } else if let colon = text.firstIndex(of: ":"), colon == text.lastIndex(of: ":") {
            // An IPv6 address has at least two colons.
            (host, portText) = (text[..<colon], text[text.index(after: colon)...])
        }
        let parts = host.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let address = IPAddress(first)?.unmapped, !address.isMulticast,
            address != IPAddress(v4: .max)
        else { return nil }
        var zone: String?
        if parts.count == 2 {
            guard address.family == .v6, !parts[1].isEmpty else { return nil }
            zone = String(parts[1])
        }
        var port = Self.usualPort
        if let portText {
            guard portText.utf8.allSatisfy({ 0x30...0x39 ~= $0 }), let number = UInt16(portText), number > 0 else { return nil }
            port = number
        }
        self.init(address, port: port, zone: zone)
    }
}

extension NameServerAddress: CustomStringConvertible {
    /// The server in the form `ADDRESS` or `ADDRESS%ZONE`, with another port than 53 `ADDRESS:PORT` or `[ADDRESS]:PORT`.
    public var description: String {
        let host = zone.map { "\(address)%\($0)" } ?? "\(address)"
        if port == Self.usualPort { return host }
        return address.family == .v4 ? "\(host):\(port)" : "[\(host)]:\(port)"
    }
}

extension NameServerAddress: Codable {
    private enum CodingKeys: String, CodingKey {
        case address, port, zone
    }

    /// Decodes an address. Without a port, it is 53: recordings of earlier versions have none.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            try container.decode(IPAddress.self, forKey: .address),
            port: try container.decodeIfPresent(UInt16.self, forKey: .port) ?? Self.usualPort,
            zone: try container.decodeIfPresent(String.self, forKey: .zone))
    }

    /// Encodes the address, and the port unless it is 53.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(address, forKey: .address)
        if port != Self.usualPort { try container.encode(port, forKey: .port) }
        try container.encodeIfPresent(zone, forKey: .zone)
    }
}
