import EventLoop
package import HTTPSessionTestKit
package import struct FoundationEssentials.URL

/// A proxy on a loopback address that forwards to loopback addresses only. It speaks HTTP (CONNECT, and requests in absolute form), SOCKS5 and
/// SOCKS4, and recognizes them by the first byte. It resolves no name.
package final class ProxyServer: Sendable {
    /// The credentials that a client must present.
    package struct Credentials: Hashable, Sendable {
        /// The user's name.
        package var user: String
        /// The password.
        package var password: String
        /// The scheme by which HTTP clients present the credentials.
        package var scheme: Scheme

        /// Creates the credentials of a user.
        package init(user: String, password: String, scheme: Scheme = .basic) {
            self.user = user
            self.password = password
            self.scheme = scheme
        }
    }

    /// An authentication scheme.
    package enum Scheme: Hashable, Sendable, CaseIterable {
        /// Basic (RFC 7617).
        case basic
        /// Digest (RFC 7616), with MD5 and `qop=auth`; a nonce never expires.
        case digest
    }

    /// One request to pass the proxy, whether it was granted or not.
    package struct Passage: Hashable, Sendable {
        /// The protocol of the request.
        package enum Kind: Hashable, Sendable {
            /// A tunnel, by the HTTP method CONNECT.
            case connect
            /// A request whose target is a URL.
            case absoluteForm
            /// A tunnel, by SOCKS5 (RFC 1928).
            case socks5
            /// A tunnel, by SOCKS4, or by SOCKS4a if the host is a name.
            case socks4
        }
        /// The outcome of the request.
        package enum Outcome: Hashable, Sendable {
            /// The proxy has forwarded the request.
            case forwarded
            /// Credentials are missing or wrong.
            case unauthorized
            /// The host is neither a loopback address nor in the proxy's list.
            case foreignHost
            /// No program listens at the port.
            case unreachable
        }
        /// The protocol of the request.
        package let kind: Kind
        /// The host as it was written: a name that the client leaves to the proxy, or an address that the client had resolved.
        package let host: String
        /// The TCP port.
        package let port: UInt16
        /// The HTTP request; `nil` for SOCKS.
        package let request: ReceivedRequest?
        /// The outcome of the request.
        package let outcome: Outcome
    }

    /// The counts and records of the proxy so far.
    package struct Seen: Sendable {
        /// The first 4,096 requests to pass, in their order.
        package internal(set) var passages: [Passage] = []
        /// The number of accepted connections.
        package internal(set) var connections = 0
        /// The number of connections that are open.
        package internal(set) var openConnections = 0
        /// The number of bytes from clients to servers, after the request was granted.
        package internal(set) var bytesUp: Int64 = 0
        /// The number of bytes from servers to clients.
        package internal(set) var bytesDown: Int64 = 0
    }

    /// The TCP port.
    package let port: UInt16
    private let isEncrypted: Bool
    private let host: String
    private let listener: Listener
    private let log: ServerLog<Seen>

    /// Starts a proxy on a free port.
    ///
    /// - Parameters:
    ///   - address: the loopback address to listen at.
    ///   - tls: the TLS settings of the connection to the proxy itself; `nil` for plain text.
    ///   - credentials: the credentials that clients must present: over HTTP by their scheme, over SOCKS5 by RFC 1929. SOCKS4 has only a
    ///     user name.
    ///   - names: hosts and the loopback addresses to which they resolve; `localhost` and loopback addresses need no entry.
    /// - Throws: ``TestServerError``.
    package init(
        at address: ListeningAddress = .loopback, tls: ServerTLS? = nil, credentials: Credentials? = nil,
        names: [String: String] = [:]
    ) throws {
        let context = try tls.map(TLSServerContext.init)
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

    /// Ends all connections and threads, and waits until they have ended.
    package func stop() {
        listener.end()
    }

    /// Returns the proxy's URL. `scheme` is `socks4`, `socks4a`, `socks5` or `socks5h` for SOCKS, and `nil` for HTTP with or without TLS.
    package func url(scheme: String? = nil) -> URL {
        let scheme = scheme ?? (isEncrypted ? "https" : "http")
        let text = "\(scheme)://\(host.contains(":") ? "[\(host)]" : host):\(port)"
        guard let url = URL(string: text) else { preconditionFailure("no URL: \(text)") }
        return url
    }

    /// The counts and records at this moment.
    package var seen: Seen { log.state }

    /// The requests to pass, in their order.
    package var passages: [Passage] { log.state.passages }

    /// Waits until this number of requests to pass has arrived, for at most `limit`; 30 s by default.
    ///
    /// - Returns: the requests so far.
    /// - Throws: ``TestServerError`` if they do not come in time.
    @discardableResult
    package func awaitPassages(_ count: Int, within limit: Duration = .seconds(30)) async throws -> [Passage] {
        try await log.wait(for: "\(count) passages", within: limit) { $0.passages.count >= count }.passages
    }
}
