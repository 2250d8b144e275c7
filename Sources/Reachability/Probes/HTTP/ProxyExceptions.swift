internal import ByteComparison
internal import InternationalNames

/// The hosts that are connected to without a proxy: the list of `no_proxy`, of a session, or of probes.
///
/// The words are separated by commas or whitespace:
///
/// | word | matches |
/// |---|---|
/// | `*` | every host |
/// | `example.com`, `.example.com`, `*.example.com`, each also with a dot at the end | this name and all names below it |
/// | `192.0.2.7`, `2001:db8::1`, `[2001:db8::1]` | this address |
/// | `10.0.0.0/8`, `fd00::/8`, `[fd00::]/8` | the addresses of this network; `0.0.0.0/0` has every IPv4 address |
/// | a name or an address with a port: `example.com:8080`, `[::1]:8080` | the same, if the request has this port |
///
/// Names are compared without regard to case and in their ASCII form. An IPv4-mapped IPv6 address counts as its IPv4 address, and zones of
/// addresses (RFC 4007) are ignored. A word of another form matches no host.
package struct ProxyExceptions: Hashable, Sendable {
    private struct Exception: Hashable, Sendable {
        enum Hosts: Hashable, Sendable {
            case every
            case name(ExactString)
            case network(IPPrefix)
        }

        let hosts: Hosts
        let port: Int?
    }

    private let exceptions: [Exception]

    /// Parses a list.
    package init(_ list: String) {
        exceptions = list.split { $0 == "," || $0.isWhitespace }.compactMap { ProxyExceptions.exception(String($0)) }
    }

    /// Whether a host in lower case and in its ASCII form is one of the hosts, or below one, at a port.
    package func contains(_ host: String, port: Int) -> Bool {
        guard !exceptions.isEmpty else { return false }
        let address = ProxyExceptions.address(host)
        let name = host.utf8.last == UInt8(ascii: ".") ? String(host.dropLast()) : host
        return exceptions.contains { exception in
            guard exception.port == nil || exception.port == port else { return false }
            return switch exception.hosts {
            case .every: true
            case .network(let network): address.map(network.contains) ?? false
            case .name(let domain): address == nil && ProxyExceptions.isName(name, in: domain.wrappedValue)
            }
        }
    }

    private static func isName(_ name: String, in domain: String) -> Bool {
        guard name.utf8.count > domain.utf8.count else { return name.isExactly(domain) }
        return name.utf8.reversed().starts(with: domain.utf8.reversed())
            && name.utf8.dropLast(domain.utf8.count).last == UInt8(ascii: ".")
    }

    private static func exception(_ word: String) -> Exception? {
        if word.isExactly("*") { return Exception(hosts: .every, port: nil) }
        if let network = network(word) { return Exception(hosts: .network(network), port: nil) }
        let (host, port) = splitPort(word)
        if port != nil, let address = address(host) { return Exception(hosts: .network(IPPrefix(address)), port: port) }
        var name = host[...]
        if name.hasPrefix("*.") { name = name.dropFirst(2) } else if name.hasPrefix(".") { name = name.dropFirst() }
        if name.hasSuffix(".") { name = name.dropLast() }
        let text = String(name).lowercased()
        guard !text.isEmpty else { return nil }
        let ascii = text.utf8.allSatisfy { $0 < 0x80 } ? text : InternationalHost.ascii(text)
        return ascii.map { Exception(hosts: .name(ExactString($0)), port: port) }
    }

    /// `HOST:PORT` in two parts. An IPv6 address without brackets has no port.
    private static func splitPort(_ word: String) -> (host: String, port: Int?) {
        guard let colon = word.lastIndex(of: ":"), let port = UInt16(word[word.index(after: colon)...]) else {
            return (word, nil)
        }
        let host = word[..<colon]
        guard !host.contains(":") || host.hasSuffix("]") else { return (word, nil) }
        return (String(host), Int(port))
    }

    /// The address of a host, which may have brackets and a zone; an IPv4-mapped one as its IPv4 address.
    private static func address(_ host: String) -> IPAddress? {
        let text = host.withoutBrackets
        guard text.utf8.contains(UInt8(ascii: "%")) else { return IPAddress(text)?.unmapped }
        return IPAddress(String(text.prefix { $0 != "%" }))?.unmapped
    }

    /// An address, or `ADDRESS/LENGTH`.
    private static func network(_ text: String) -> IPPrefix? {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return address(text).map { IPPrefix($0) } }
        guard let address = IPAddress(String(parts[0]).withoutBrackets), parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let length = UInt8(parts[1]), length <= (address.family == .v4 ? 32 : 128)
        else { return nil }
        let unmapped = address.unmapped
        guard unmapped != address else { return IPPrefix(address, length: length) }
        return length >= 96 ? IPPrefix(unmapped, length: length - 96) : nil
    }
}

extension String {
    /// The text without the brackets that surround an IPv6 address in a URL (RFC 3986 section 3.2.2); any other text unchanged.
    package var withoutBrackets: String {
        utf8.first == UInt8(ascii: "[") && utf8.last == UInt8(ascii: "]") ? String(dropFirst().dropLast()) : self
    }
}

extension IPPrefix {
    /// The network of one address.
    fileprivate init(_ address: IPAddress) { self.init(address, length: address.family == .v4 ? 32 : 128) }
}
