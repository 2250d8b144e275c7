import EventLoop
public import struct FoundationEssentials.URL

/// A proxy on loopback that forwards to loopback only: HTTP (CONNECT, and requests in absolute form), SOCKS5 and SOCKS4, which it tells
/// apart by the first byte. It looks no name up.
public final class ProxyServer: Sendable {
    /// What a client has to say to be let through.
    public struct Credentials: Hashable, Sendable {
        /// The user's name.
        public var user: String
        /// The password.
        public var password: String
        /// How HTTP clients have to say it.
        public var scheme: Scheme

        /// A name and its password.
        public init(user: String, password: String, scheme: Scheme = .basic) {
            self.user = user
            self.password = password
            self.scheme = scheme
        }
    }

    /// An authentication scheme.
    public enum Scheme: Hashable, Sendable, CaseIterable {
        /// RFC 7617.
        case basic
        /// RFC 7616, with MD5 and `qop=auth`; one nonce is good for ever.
        case digest
    }

    /// One wish to get through, granted or not.
    public struct Passage: Hashable, Sendable {
        /// How it was asked for.
        public enum Kind: Hashable, Sendable {
            /// A tunnel, by the HTTP method CONNECT.
            case connect
            /// A request with a URL for a target.
            case absoluteForm
            /// A tunnel, by SOCKS5 (RFC 1928).
            case socks5
            /// A tunnel, by SOCKS4, or by 4a where the host is a name.
            case socks4
        }
        /// What the proxy did.
        public enum Outcome: Hashable, Sendable {
            /// Let through.
            case forwarded
            /// Credentials are missing or wrong.
            case unauthorized
            /// The host is neither loopback nor in the proxy's list.
            case foreignHost
            /// Nobody listens there.
            case unreachable
        }
        /// How it was asked for.
        public let kind: Kind
        /// The host as it was written: a name that the client left to the proxy, or an address that it had looked up.
        public let host: String
        /// The port.
        public let port: UInt16
        /// The request that asked; nil for SOCKS.
        public let request: ReceivedRequest?
        /// What the proxy did.
        public let outcome: Outcome
    }

    /// What the proxy has seen so far.
    public struct Seen: Sendable {
        /// The first 4096 wishes, in order.
        public internal(set) var passages: [Passage] = []
        /// How many connections were accepted.
        public internal(set) var connections = 0
        /// How many of them are open.
        public internal(set) var openConnections = 0
        /// Bytes from clients to servers, after the wish was granted.
        public internal(set) var bytesUp: Int64 = 0
        /// Bytes from servers to clients.
        public internal(set) var bytesDown: Int64 = 0
    }

    /// The port.
    public let port: UInt16
    private let isEncrypted: Bool
    private let host: String
    private let listener: Listener
    private let log: ServerLog<Seen>

    /// Starts a proxy on a free port.
    ///
    /// - Parameters:
    ///   - address: where it listens; a loopback address.
    ///   - tls: how the way to the proxy itself is encrypted; nil for plain text.
    ///   - credentials: what clients have to show, over HTTP by their scheme, over SOCKS5 by its sub-negotiation (RFC 1929); SOCKS4
    ///     knows the name alone.
    ///   - names: hosts that stand for an address of loopback; `localhost` and loopback addresses stand for themselves.
    /// - Throws: ``TestServerError``.
    public init(
        at address: ListeningAddress = .loopback, tls: ServerTLS? = nil, credentials: Credentials? = nil,
        names: [String: String] = [:]
    ) throws {
        let context = try tls.map(TLSContext.init)
        let log = ServerLog(Seen())
        listener = try Listener(at: address, namespace: nil, maximumConnections: 256, receiveBuffer: nil) { socket, stop in
            let number = log.change { seen in
                seen.connections += 1
                seen.openConnections += 1
                return seen.connections
            }
            do {
                let channel = Channel(socket, stop: stop)
                ProxyConversation(
                    number: number, client: channel, stop: stop, tls: context, credentials: credentials, names: names, log: log
                ).run()
            }
            log.change { $0.openConnections -= 1 }
        }
        self.log = log
        port = listener.port
        isEncrypted = tls != nil
        host = if case .ip(let host, _) = address { host } else { "localhost" }
    }

    /// Ends all connections and threads, and waits for that.
    public func stop() {
        listener.end()
    }

    /// The proxy's URL; `scheme` is `socks4`, `socks4a`, `socks5` or `socks5h` for SOCKS, and nil for HTTP, encrypted or not.
    public func url(scheme: String? = nil) -> URL {
        let scheme = scheme ?? (isEncrypted ? "https" : "http")
        let text = "\(scheme)://\(host.contains(":") ? "[\(host)]" : host):\(port)"
        guard let url = URL(string: text) else { preconditionFailure("no URL: \(text)") }
        return url
    }

    /// All that was seen, at one moment.
    public var seen: Seen { log.state }

    /// The wishes to get through, in order.
    public var passages: [Passage] { log.state.passages }

    /// Waits for so many wishes.
    ///
    /// - Returns: those that there were then.
    /// - Throws: ``TestServerError`` when they did not come in time.
    @discardableResult
    public func awaitPassages(_ count: Int, within limit: Duration = .seconds(30)) async throws -> [Passage] {
        try await log.wait(for: "\(count) passages", within: limit) { $0.passages.count >= count }.passages
    }
}
