internal import ByteComparison
public import FoundationEssentials
internal import Reachability

/// A scheme, host and port (RFC 6454 section 4), to which credentials and connections belong.
public struct Origin: Hashable, Sendable, CustomStringConvertible {
    /// The scheme: `http` or `https`.
    public let scheme: String
    /// The host in lower case; an IPv6 address without brackets.
    public let host: String
    /// The port; the scheme's default port if the URL has none.
    public let port: Int

    /// Creates the origin of a URL; `nil` if the URL is neither http nor https, or has no host.
    public init?(_ url: URL) {
        let url = url.withASCIIHost
        guard let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https",
            let host = url.host(percentEncoded: false), !host.isEmpty
        else { return nil }
        self.init(scheme: scheme, writtenHost: host, port: url.port)
    }

    /// The origin of a URL's parts; the scheme in lower case.
    init(scheme: String, writtenHost: String, port: Int?) {
        self.init(
            scheme: scheme, host: writtenHost.lowercased().withoutBrackets,
            port: port ?? (scheme == "https" ? 443 : 80))
    }

    /// The origin of a task that cannot start.
    package static let unknown = Origin(scheme: "", host: "", port: 0)

    private init(scheme: String, host: String, port: Int) {
        self.scheme = scheme
        self.host = host
        self.port = port
    }

    /// Whether both are the same, compared by the bytes of their texts.
    public static func == (one: Origin, other: Origin) -> Bool {
        one.port == other.port && one.host.isExactly(other.host) && one.scheme.isExactly(other.scheme)
    }

    /// Hashes the scheme, the host and the port.
    public func hash(into hasher: inout Hasher) {
        scheme.hashBytes(into: &hasher)
        host.hashBytes(into: &hasher)
        hasher.combine(port)
    }

    /// Whether the host is an address, which needs no lookup.
    package var isAddress: Bool { Origin.isAddress(host) }

    private static func isAddress(_ host: String) -> Bool {
        // Bytes are compared because Foundation's search in strings costs as much as all other preparation of a request.
        var (dots, isNumeric) = (0, true)
        for byte in host.utf8 {
            switch byte {
            case UInt8(ascii: ":"): return true
            case UInt8(ascii: "."): dots += 1
            case UInt8(ascii: "0")...UInt8(ascii: "9"): break
            default: isNumeric = false
            }
        }
        return isNumeric && dots == 3
    }

    /// Whether the host is this machine: `localhost` or a loopback address (RFC 6761 section 6.3).
    package var isLoopback: Bool { Origin.isLoopback(host) }

    /// Whether a host is this machine. It is in lower case, an IPv6 address without brackets.
    static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host.hasSuffix(".localhost") || host == "::1" || (isAddress(host) && host.hasPrefix("127."))
    }

    /// The host and the port, as CONNECT names them (RFC 9110 section 9.3.6).
    var authority: String { host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// The text of the origin, such as `https://example.com`; the port is added unless it is the scheme's default.
    public var description: String {
        let name = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
        return port == (scheme == "https" ? 443 : 80) ? "\(scheme)://\(name)" : "\(scheme)://\(name):\(port)"
    }
}
