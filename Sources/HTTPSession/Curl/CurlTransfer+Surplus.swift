internal import CCurl
internal import EventLoop
internal import Glibc

/// The reused HTTP/1 connection that carries an attempt.
struct ReusedConnection {
    var socket: curl_socket_t
    var server: SurplusServers.Server
    /// The counters before the request was sent.
    var counters: ReceiveCounters?
    /// The counters at the beginning of the response.
    var countersAtResponse: ReceiveCounters?
    /// The value of ``WatchedSockets/closedCount`` before the request was sent.
    var closedCount: Int
}

/// The evidence that a response on a reused connection does not belong to its request (RFC 9112 section 9.2).
enum Surplus: Hashable, Sendable {
    /// The response arrived before any byte of the request was acknowledged, so it was sent before the request arrived.
    case beforeRequest
    /// Another response follows, and one of the two belongs to no request.
    case anotherResponse
    /// Unknown bytes follow.
    case unknownBytes
}

/// The detection of unsolicited responses.
///
/// In HTTP/1 only the order on a connection assigns a response to a request. Unsolicited bytes of a server therefore become the response
/// to the next request. A reused connection is checked three times:
/// 1. Before the request is sent (``IdleSockets/hasSurplus(_:ssl:)``): bytes in the socket belong to no request.
/// 2. At the response's first byte: every segment that a server sends after it has received the request acknowledges the request. If nothing of
///    the request is acknowledged, the response was sent before. This covers the round trip.
/// 3. At the response's end: the server received one request. If there is more than one response, the first belongs to no request, and the
///    following one is the right one.
/// Only the third check finds an unsolicited response that arrives between the request's arrival at the server and the server's response.
extension CurlTransfer {
    /// Whether a request may be sent on this connection, which has carried another.
    func mayReuse(_ connection: IdleSockets.Connection) -> Bool {
        let server = SurplusServers.Server(connection)
        guard let entry = engine.sockets.entry(of: connection) else { return true }
        // libcurl has reassigned the connection before it reported the end of its last exchange.
        if let user = entry.user, user !== self { user.lookBehindResponse() }
        let socket = entry.socket
        let ssl = plan.isSecure || isUpgraded ? handle.tlsPointer : nil
        guard !engine.sockets.removeStale(connection) else { return false }
        guard !engine.isSurplusServer(server) else { return false }
        if IdleSockets.hasSurplus(socket, ssl: ssl) {
            // Over TLS the bytes may be a session ticket, or close_notify.
            if ssl == nil, !IdleSockets.isTimeoutNotice(socket) { engine.recordSurplus(of: server) }
            return false
        }
        reused = ReusedConnection(
            socket: socket, server: server, counters: entry.counters ?? ReceiveCounters(socket),
            closedCount: engine.watched.closedCount)
        entry.counters = nil
        use(connection, entry)
        return true
    }

    /// Records that the next request is sent on this connection, which may be a new one.
    func recordUse(of connection: IdleSockets.Connection) {
        guard connectionInUse?.connection != connection, usesHTTP2 == false,
            let entry = engine.sockets.insert(connection, made: madeSockets)
        else { return }
        use(connection, entry)
    }

    private func use(_ connection: IdleSockets.Connection, _ entry: IdleSockets.Entry) {
        leaveConnection()
        entry.user = self
        connectionInUse = (connection, entry)
    }

    /// Releases the connection, when the attempt has ended or continues on another one.
    func leaveConnection() {
        if let entry = connectionInUse?.entry, entry.user === self { entry.user = nil }
        connectionInUse = nil
    }

    /// Checks the first byte of a response to the first request on a reused connection.
    ///
    /// - Returns: Whether the response was sent after the request arrived.
    func mayBeResponse() -> Bool {
        guard let reused, requests == 1, let before = reused.counters, let now = ReceiveCounters(reused.socket) else {
            return true
        }
        self.reused?.countersAtResponse = now
        guard now.acknowledged == before.acknowledged else { return true }
        record(.beforeRequest, of: reused)
        refuse(with: CurlTransfer.surplusError)
        return false
    }

    /// Checks the bytes that follow the response of a successful exchange.
    func lookBehindResponse() {
        guard let reused, requests == 1, !ending.isSecure, let before = reused.counters else { return }
        self.reused = nil
        // libcurl has closed the other connections, and another socket may have their descriptor.
        guard ending.keepsConnection else { return }
        let isOpen = reused.closedCount == engine.watched.closedCount || isOpen(reused.socket)
        let consumed = UInt64(clamping: handle.long(CURLINFO_HEADER_SIZE)) + UInt64(clamping: receivedBodyBytes)
        let isCounted = ending.hasKnownSize
        // Small responses arrive at once: at their first byte the kernel had received all of them, and nothing else. Bytes that followed are unread.
        if isOpen, isCounted, plan.body == .none, let first = reused.countersAtResponse, first.isAcknowledged,
            first.received == before.received + consumed, !IdleSockets.hasSurplus(reused.socket, ssl: nil)
        {
            connectionInUse?.entry.counters = first
            return
        }
        guard isOpen, let now = ReceiveCounters(reused.socket), now.received >= before.received else {
            // libcurl has closed the connection although the response permits another request: its buffer had further bytes.
            record(.unknownBytes, of: reused)
            return
        }
        var text: (UInt8, UInt8, UInt8, UInt8, UInt8, UInt8, UInt8, UInt8) = (0, 0, 0, 0, 0, 0, 0, 0)
        let surplus = now.received - before.received
        // A FIN counts as one byte.
        if isCounted, surplus <= consumed + 1 {
            connectionInUse?.entry.counters = now
            return
        }
        let count = recv(reused.socket, &text, 8, Int32(MSG_PEEK | MSG_DONTWAIT))
        if count > 0 {
            let isResponse = withUnsafeBytes(of: text) { IdleSockets.isBeginningOfResponse($0.prefix(count)) }
            record(isResponse ? .anotherResponse : .unknownBytes, of: reused)
        } else if isCounted, surplus >= consumed + CurlTransfer.shortestResponse {
            // libcurl 7.88 discards bytes in its buffer after a response without a body.
            record(.unknownBytes, of: reused)
        } else {
            connectionInUse?.entry.counters = now
        }
    }

    /// Whether the descriptor still belongs to the connection in use.
    private func isOpen(_ socket: curl_socket_t) -> Bool {
        connectionInUse.map { IdleSockets.isLocalEnd(socket, of: $0.connection) } == true
    }

    private func record(_ surplus: Surplus, of reused: ReusedConnection) {
        self.surplus = surplus
        engine.recordSurplus(of: reused.server)
    }

    /// The error of an attempt that fails although its response is complete; `nil` if it does not fail.
    func surplusFailure() -> HTTPSessionError? {
        switch surplus {
        case .beforeRequest, .anotherResponse: CurlTransfer.surplusError
        case .unknownBytes: receiver.transferMayRepeat() ? CurlTransfer.surplusError : nil
        case nil: nil
        }
    }

    /// The length of `HTTP/1.1 200 ` with an empty line, in bytes.
    private static let shortestResponse: UInt64 = 17
    private static var surplusError: HTTPSessionError {
        HTTPSessionError(.connectionLost, "the server sent an unsolicited response on a reused connection")
    }
}
