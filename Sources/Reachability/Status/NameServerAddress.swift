/// The address of a configured name server.
package struct NameServerAddress: Hashable, Sendable, Codable, CustomStringConvertible {
    package var address: IPAddress
    /// The interface of a link-local address, by name or number; `nil` for other addresses.
    package var zone: String?

    package init(_ address: IPAddress, zone: String? = nil) {
        self.address = address
        self.zone = zone
    }

    /// The server in the form `ADDRESS` or `ADDRESS%ZONE`.
    package var description: String { zone.map { "\(address)%\($0)" } ?? "\(address)" }
}
