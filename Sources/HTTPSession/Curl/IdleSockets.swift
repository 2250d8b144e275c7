internal import ByteComparison
internal import CCurl
internal import CLinux
internal import Certificates
internal import EventLoop
internal import Glibc
internal import Reachability

/// The sockets of an engine's HTTP/1 connections, which are checked before they carry another request.
///
/// A connection that was idle when the network changed may be dead, and libcurl can be notified only since 8.16 (CURLMOPT_NETWORK_CHANGED). Bytes
/// that a server sends after its response would be taken for the next response, so such a connection carries no further request. libcurl 7.88
/// detects only a closed connection, and does not provide the socket before a request is sent.
final class IdleSockets {
    /// The key of a connection: its remote and its local endpoint. Connections from two local addresses may have the same ports.
    struct Connection: Hashable {
        @ExactString var remoteAddress: String
        var remotePort: Int32
        @ExactString var localAddress: String
        var localPort: Int32

        // The addresses take most of the time of a hash, and few connections have the same ports.
        func hash(into hasher: inout Hasher) {
            hasher.combine(remotePort)
            hasher.combine(localPort)
        }
    }

    /// The socket of a connection, and the attempt that uses it.
    final class Entry {
        let socket: curl_socket_t
        /// The attempt that uses the connection, until the engine has handled its end. libcurl may reassign the connection before that.
        var user: CurlTransfer?
        /// The counters after the last exchange, if they are known.
        var counters: ReceiveCounters?

        init(socket: curl_socket_t) { self.socket = socket }
    }

    private var sockets: [Connection: Entry] = [:]
    /// The connections that have carried nothing since the network changed.
    private var stale: Set<Connection> = []
    /// The number of entries at which those of closed connections are removed.
    private var limit = 256

    /// Adds a new connection that carries its first request.
    ///
    /// - Parameters:
    ///   - connection: The connection.
    ///   - made: The sockets of the attempt. Those of addresses that did not answer may be closed.
    /// - Returns: The entry of the connection; `nil` for a Unix socket, because without a port connections cannot be distinguished.
    func insert(_ connection: Connection, made: [curl_socket_t]) -> Entry? {
        guard connection.localPort > 0,
            let socket = made.last(where: { IdleSockets.isLocalEnd($0, of: connection) })
        else { return nil }
        if sockets.count >= limit {
            sockets = sockets.filter { $0.value.socket != socket && IdleSockets.isLocalEnd($0.value.socket, of: $0.key) }
            limit = max(256, sockets.count * 2)
        }
        let entry = Entry(socket: socket)
        sockets[connection] = entry
        return entry
    }

    /// Records a successful exchange: the connection is not stale.
    func recordEnd(on connection: Connection) { if !stale.isEmpty { stale.remove(connection) } }

    /// Marks all connections as stale, except those of the loopback interface, because the network has changed.
    func markAllStale() {
        stale = Set(sockets.keys.filter { !($0.remoteAddress == "::1" || $0.remoteAddress.hasPrefix("127.")) })
    }

    /// Removes a connection from the stale ones. - Returns: Whether it was stale, and so must not be used.
    func removeStale(_ connection: Connection) -> Bool { !stale.isEmpty && stale.remove(connection) != nil }

    /// The entry of a connection that has carried an exchange.
    func entry(of connection: Connection) -> Entry? { sockets[connection] }

    /// Whether the connection has received bytes without a request. Over TLS (`ssl`) they may be close_notify or a session ticket; then a new
    /// connection is used too.
    static func hasSurplus(_ socket: curl_socket_t, ssl: UnsafeMutableRawPointer?) -> Bool {
        // libcurl reads only the length of a body: the remaining bytes of the TLS record are in OpenSSL, and no longer in the socket.
        if let ssl, TLSFacts.hasUnread(ssl: ssl) { return true }
        var byte: UInt8 = 0
        return recv(socket, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) > 0
    }

    /// Whether bytes may begin a response, or the empty lines before one (RFC 9112 section 2.2).
    static func isBeginningOfResponse(_ bytes: some Sequence<UInt8>) -> Bool {
        let text = bytes.drop { $0 == 0x0D || $0 == 0x0A }
        return zip(text, "HTTP/".utf8).allSatisfy { $0 == $1 }
    }

    /// Whether the unread bytes are a response 408, with which servers announce that they close an idle connection (RFC 9110 section 15.5.9).
    static func isTimeoutNotice(_ socket: curl_socket_t) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 12)
        let count = recv(socket, &bytes, bytes.count, Int32(MSG_PEEK | MSG_DONTWAIT))
        return count == bytes.count && String(decoding: bytes.suffix(4), as: UTF8.self) == " 408"
    }

    /// Binds the socket to the loopback interface, so that it neither sends to nor receives from other machines (SO_BINDTODEVICE, socket(7)). Before
    /// Linux 5.7 this needs privileges, and does nothing without them.
    static func silence(_ socket: curl_socket_t) {
        setsockopt(socket, SOL_SOCKET, SO_BINDTODEVICE, "lo", socklen_t(2))
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(socket, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
    }

    /// Whether a socket has the local address and port of a connection.
    static func isLocalEnd(_ socket: curl_socket_t, of connection: Connection) -> Bool {
        isLocalEnd(socket, connection.localAddress, connection.localPort)
    }

    static func isLocalEnd(_ socket: curl_socket_t, _ address: String, _ port: Int32) -> Bool {
        guard let name = SocketAddress(of: socket), Int32(name.port) == port else { return false }
        // libcurl has no address for a socket that has just been closed.
        return IPAddress(address).map { name.address?.unmapped == $0 } ?? true
    }

    /// Whether the socket has a connection (getpeername(2)).
    static func isConnected(_ socket: curl_socket_t) -> Bool { SocketAddress(ofPeerOf: socket) != nil }

    /// The local address of an IP socket.
    static func address(of socket: curl_socket_t) -> IPAddress? { SocketAddress(of: socket)?.address?.unmapped }
}

/// The kernel's counters of a TCP connection (`TCP_INFO`, tcp(7); RFC 4898).
struct ReceiveCounters: Hashable, Sendable {
    /// Bytes that were received in order, read or not (tcpi_bytes_received). A FIN counts as one.
    var received: UInt64
    /// Bytes that the remote end has acknowledged (tcpi_bytes_acked).
    var acknowledged: UInt64
    /// Whether the remote end has acknowledged everything that was sent (tcpi_unacked).
    var isAcknowledged: Bool

    /// `nil` if the descriptor is not a TCP socket, or the kernel is older than 4.1.
    init?(_ socket: Int32) {
        var state = netwatch_tcp_state()
        guard netwatch_tcp_state_of(socket, &state) == 0, state.bytes_acknowledged != .max else { return nil }
        (acknowledged, received) = (state.bytes_acknowledged, state.bytes_received)
        isAcknowledged = state.unacknowledged == 0
    }
}
