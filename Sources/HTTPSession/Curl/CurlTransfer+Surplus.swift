internal import CCurl
internal import EventLoop
internal import Glibc

/// The reused HTTP/1 connection that carries an attempt.
struct ReusedConnection {
    var socket: curl_socket_t
    var server: SurplusServers.Server
    /// The counters before the request was sent.
    var counters: ReceiveCounters?
}

/// What stands against a response on a reused connection being the response to its request (RFC 9112 section 9.2).
enum Surplus: Hashable, Sendable {
    /// The response was there before any byte of the request was acknowledged: it was sent before.
    case beforeRequest
    /// Another response follows: this one or that one belongs to no request.
    case anotherResponse
    /// Bytes follow that are not known.
    case unknownBytes
}

/// Responses that no request asked for.
///
/// A response is the next one on its connection, and nothing else: bytes that a server sends unasked become the response to the next
/// request. There are three looks at a connection that is used again:
/// 1. before the request is sent (``IdleSockets/hasSurplus(_:ssl:)``): bytes that are there belong to no request;
/// 2. at the response's first byte: a segment that a server sends after the request has reached it acknowledges the request. If none of the
///    request is acknowledged, the response was sent before. This covers the round trip;
/// 3. at the response's end: the server got one request. If there is more than one response, the first belongs to none, and
///    what follows is the right one.
/// A surplus response that arrives between the request's arrival at the server and the server's response is found by the third look only.
extension CurlTransfer {
    /// Whether a request may be sent on this connection, which has carried another.
    func mayReuse(_ connection: IdleSockets.Connection) -> Bool {
        let server = SurplusServers.Server(connection)
        guard let entry = engine.sockets.entry(of: connection) else { return true }
        // libcurl has given the connection away before the engine was told of its last exchange's end.
        if let user = entry.user, user !== self { user.lookBehindResponse() }
        let socket = entry.socket
        let ssl = plan.isSecure || isUpgraded ? handle.tlsPointer : nil
        guard !engine.sockets.endDoubt(of: connection) else { return false }
        guard !engine.isSurplusServer(server) else { return false }
        if IdleSockets.hasSurplus(socket, ssl: ssl) {
            // Over TLS it may be a session ticket, or close_notify.
            if ssl == nil, !IdleSockets.isTimeoutNotice(socket) { engine.noteSurplus(of: server) }
            return false
        }
        reused = ReusedConnection(socket: socket, server: server, counters: entry.counters ?? ReceiveCounters(socket))
        entry.counters = nil
        use(connection, entry)
        return true
    }

    /// The next request is sent on this connection, which may be a new one.
    func noteUse(of connection: IdleSockets.Connection) {
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

    /// The attempt is over, or continues on another connection.
    func leaveConnection() {
        if let entry = connectionInUse?.entry, entry.user === self { entry.user = nil }
        connectionInUse = nil
    }

    /// At the first byte of a response to the first request on a reused connection.
    ///
    /// - Returns: whether it was sent after the request.
    func mayBeResponse() -> Bool {
        guard let reused, requests == 1, let before = reused.counters, let now = ReceiveCounters(reused.socket),
            now.acknowledged == before.acknowledged
        else { return true }
        note(.beforeRequest, of: reused)
        refuse(with: CurlTransfer.surplusError)
        return false
    }

    /// At the end of an exchange that went well: looks at what follows the response.
    func lookBehindResponse() {
        guard let reused, requests == 1, !ending.isSecure, let before = reused.counters else { return }
        self.reused = nil
        // libcurl has closed the other connections, and another socket may have their descriptor.
        guard ending.keepsConnection else { return }
        guard let now = ReceiveCounters(reused.socket), now.received >= before.received,
            connectionInUse.map({ IdleSockets.port(of: reused.socket) == $0.connection.localPort }) == true
        else {
            // libcurl has closed the connection although the response permits another request: there was more in its buffer.
            note(.unknownBytes, of: reused)
            return
        }
        var text: (UInt8, UInt8, UInt8, UInt8, UInt8, UInt8, UInt8, UInt8) = (0, 0, 0, 0, 0, 0, 0, 0)
        let isCounted = ending.hasKnownSize
        let consumed = UInt64(clamping: handle.long(CURLINFO_HEADER_SIZE)) + UInt64(clamping: receivedBodyBytes)
        let surplus = now.received - before.received
        // A FIN is one.
        if isCounted, surplus <= consumed + 1 {
            connectionInUse?.entry.counters = now
            return
        }
        let count = recv(reused.socket, &text, 8, Int32(MSG_PEEK | MSG_DONTWAIT))
        if count > 0 {
            let isResponse = withUnsafeBytes(of: text) { IdleSockets.isBeginningOfResponse($0.prefix(count)) }
            note(isResponse ? .anotherResponse : .unknownBytes, of: reused)
        } else if isCounted, surplus >= consumed + CurlTransfer.shortestResponse {
            // libcurl 7.88 drops what follows a response without a body in its buffer.
            note(.unknownBytes, of: reused)
        } else {
            connectionInUse?.entry.counters = now
        }
    }

    private func note(_ surplus: Surplus, of reused: ReusedConnection) {
        self.surplus = surplus
        engine.noteSurplus(of: reused.server)
    }

    /// Why the attempt has failed although its response is complete, if it has.
    func surplusFailure() -> HTTPSessionError? {
        switch surplus {
        case .beforeRequest, .anotherResponse: CurlTransfer.surplusError
        case .unknownBytes: receiver.transferMayRepeat() ? CurlTransfer.surplusError : nil
        case nil: nil
        }
    }

    /// `HTTP/1.1 200 ` and an empty line.
    private static let shortestResponse: UInt64 = 17
    private static var surplusError: HTTPSessionError {
        HTTPSessionError(.connectionLost, "the server sent a response that was not asked for on a reused connection")
    }
}
