import Reachability

/// The address at which the page and the API listen. Only loopback addresses are accepted: the service has no authentication.
struct ListenAddress: Hashable, Sendable, CustomStringConvertible {
    static let standard = ListenAddress(text: "127.0.0.1:9130", address: IPAddress(v4: 0x7f00_0001), port: 9130)

    /// The reason why another address is refused.
    static let loopbackOnly = "not a loopback address; others are not supported, because the page has no login"

    private let text: String
    /// The loopback address.
    let address: IPAddress
    /// The port; 0 for any free one.
    let port: UInt16

    private init(text: String, address: IPAddress, port: UInt16) {
        (self.text, self.address, self.port) = (text, address, port)
    }

    init(_ text: String) throws(ConfigurationReader.Invalid) {
        let form = "write ADDRESS:PORT, as in 127.0.0.1:9130 or [::1]:9130"
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
            throw ConfigurationReader.Invalid("not an address; \(form)")
        }
        var host = text[..<colon]
        let hasBrackets = host.first == "[" && host.last == "]" && host.count > 1
        if hasBrackets { host = host.dropFirst().dropLast() }
        guard let address = IPAddress(host), (address.family == .v6) == hasBrackets else {
            throw ConfigurationReader.Invalid("not an address; \(form)")
        }
        guard address.isLoopback else {
            throw ConfigurationReader.Invalid(Self.loopbackOnly)
        }
        self.init(text: text, address: address, port: port)
    }

    /// Returns the text of an address and a port: `127.0.0.1:9130`, `[::1]:9130`.
    static func text(_ address: IPAddress, port: UInt16) -> String {
        address.family == .v6 ? "[\(address)]:\(port)" : "\(address):\(port)"
    }

    /// Returns the same address with another port.
    func with(port: UInt16) -> ListenAddress {
        let host = text.lastIndex(of: ":").map { String(text[..<$0]) } ?? text
        return ListenAddress(text: "\(host):\(port)", address: address, port: port)
    }

    var description: String { text }
}
