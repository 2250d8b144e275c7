internal import CCurl
internal import Certificates
internal import Glibc
internal import Reachability

/// The sockets of an engine's HTTP/1 connections, to look at one before it carries another request.
///
/// One that was idle when the network changed may be dead, and libcurl can be told so only since 8.16 (CURLMOPT_NETWORK_CHANGED). And what a
/// server sends behind its answer would be taken for the answer to the next request: such a connection carries none. libcurl 7.88 sees
/// only a connection that was closed meanwhile, and does not tell its socket while a request is about to go.
final class IdleSockets {
    /// A connection by its far end and its near port.
    struct Connection: Hashable {
        var remoteAddress: String
        var remotePort: Int32
        var localPort: Int32
    }

    /// The socket of a connection, and the attempt that uses it.
    final class Entry {
        let socket: curl_socket_t
        /// Until the engine has taken note of the attempt's end: libcurl may have given the connection to another one by then.
        var user: CurlTransfer?
        /// The counters after the last exchange, if they are known.
        var counters: ReceiveCounters?

        init(socket: curl_socket_t) { self.socket = socket }
    }

    private var sockets: [Connection: Entry] = [:]
    /// Those that have carried nothing since the network changed.
    private var doubted: Set<Connection> = []
    /// Before so many are known, those that are closed are not looked for.
    private var limit = 256

    /// A new connection carries its first request. Its socket is one of `made`: those of addresses that did not answer may be closed.
    ///
    /// - Returns: `nil` for a Unix socket. It has no port: one is not told from another.
    func insert(_ connection: Connection, made: [curl_socket_t]) -> Entry? {
        guard connection.localPort > 0,
            let socket = made.last(where: { IdleSockets.port(of: $0) == connection.localPort })
        else { return nil }
        if sockets.count >= limit {
            sockets = sockets.filter { $0.value.socket != socket && IdleSockets.port(of: $0.value.socket) == $0.key.localPort }
            limit = max(256, sockets.count * 2)
        }
        let entry = Entry(socket: socket)
        sockets[connection] = entry
        return entry
    }

    /// An exchange on this connection has ended well.
    func noteEnd(on connection: Connection) { if !doubted.isEmpty { doubted.remove(connection) } }

    /// The network has changed: what is idle may be dead.
    func doubt() { doubted = Set(sockets.keys.filter { !($0.remoteAddress == "::1" || $0.remoteAddress.hasPrefix("127.")) }) }

    /// Whether it was doubted: it is not any more, and has to end.
    func endDoubt(of connection: Connection) -> Bool { !doubted.isEmpty && doubted.remove(connection) != nil }

    /// That of a connection which has carried an exchange.
    func entry(of connection: Connection) -> Entry? { sockets[connection] }

    /// Whether bytes have come where nothing has been asked. Over TLS (`ssl`) they may be a farewell, or a ticket: a new connection is as
    /// good then.
    static func hasSurplus(_ socket: curl_socket_t, ssl: UnsafeMutableRawPointer?) -> Bool {
        // libcurl reads no more of a body than its length: the rest of the record waits in OpenSSL, out of the socket already.
        if let ssl, TLSFacts.hasUnread(ssl: ssl) { return true }
        var byte: UInt8 = 0
        return recv(socket, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) > 0
    }

    /// Whether bytes may begin a response, or the empty lines before one (RFC 9112 section 2.2).
    static func isBeginningOfResponse(_ bytes: some Sequence<UInt8>) -> Bool {
        let text = bytes.drop { $0 == 0x0D || $0 == 0x0A }
        return zip(text, "HTTP/".utf8).allSatisfy { $0 == $1 }
    }

    /// Whether the bytes that wait are a 408: servers announce so that they close an idle connection (RFC 9110 section 15.5.9).
    static func isTimeoutNotice(_ socket: curl_socket_t) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 12)
        let count = recv(socket, &bytes, bytes.count, Int32(MSG_PEEK | MSG_DONTWAIT))
        return count == bytes.count && String(decoding: bytes.suffix(4), as: UTF8.self) == " 408"
    }

    /// Nothing of the socket leaves the machine any more, and nothing comes to it: it belongs to the loopback interface now
    /// (SO_BINDTODEVICE, socket(7); since Linux 5.7 for everybody, before that nothing happens here).
    static func silence(_ socket: curl_socket_t) {
        setsockopt(socket, SOL_SOCKET, SO_BINDTODEVICE, "lo", socklen_t(2))
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(socket, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
    }

    /// The near end's, of a connection by IP.
    static func port(of socket: curl_socket_t) -> Int32? {
        // The port is at the same place in both families.
        name(of: socket).map { Int32(UInt16(bigEndian: $0.sin6_port)) }
    }

    /// The near end's, of a socket by IP.
    static func address(of socket: curl_socket_t) -> IPAddress? {
        guard var name = name(of: socket) else { return nil }
        return withUnsafePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { KernelRoutes.address($0) }
        }
    }

    /// Of either family: what they have in common is at the same place.
    private static func name(of socket: curl_socket_t) -> sockaddr_in6? {
        var address = sockaddr_in6()
        var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        let result = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &length) }
        }
        return result == 0 ? address : nil
    }
}
