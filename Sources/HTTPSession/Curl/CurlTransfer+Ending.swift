internal import CCurl
internal import Certificates

/// The rule by which a response ends, and the TLS connection that confirms its end.
struct ResponseEnding {
    fileprivate var framing = ResponseFraming.noBody
    /// The innermost TLS connection that carries the exchange: the server's, or that of an HTTPS proxy for an http URL.
    fileprivate var secureConnection: HandshakeWatch?
    /// Whether the connection is closed after this exchange: this changes the handle, which no other attempt uses then.
    fileprivate(set) var forbidsReuse = false
    /// The remote end of the connection.
    fileprivate var server: SurplusServers.Server?
    fileprivate var head: ResponseHead?

    /// Whether the response lets the connection carry another request (RFC 9112 section 9.3).
    var keepsConnection: Bool { !forbidsReuse && framing != .untilClose && head?.keepsConnection == true }
    /// Whether the exchange is encrypted as far as the server or proxy that the connection leads to.
    var isSecure: Bool { secureConnection != nil }
    var isUntilClose: Bool { framing == .untilClose }
    /// The values of Content-Encoding.
    var codings: [String] { head?.values(of: "content-encoding") ?? [] }
    /// Whether libcurl's counters say how many bytes the response took on the connection.
    var hasKnownSize: Bool {
        switch framing {
        case .noBody, .length: true
        case .chunked, .stream, .untilClose: false
        }
    }

    /// Throws ``HTTPSessionError/Code/connectionLost`` if the end of the body was the end of a TLS connection without close_notify: an
    /// attacker may have cut it there (RFC 9112 section 9.8).
    func check() throws(HTTPSessionError) {
        guard framing == .untilClose, let secureConnection, !secureConnection.hasReceivedCloseNotify else { return }
        throw HTTPSessionError(
            .connectionLost, "the connection ended without close_notify (TLS): the response may be incomplete")
    }
}

extension CurlTransfer {
    /// Records the connection of the next request. A further request of an authentication may use another one.
    func recordConnection(_ connection: IdleSockets.Connection) {
        ending.server = SurplusServers.Server(connection)
        ending.secureConnection = trust == nil ? nil : handle.tlsPointer.flatMap { HandshakeWatch.of(OpaquePointer($0)) }
    }

    /// Checks a challenge that libcurl answers. libcurl copies its realm, nonce and opaque byte for byte.
    ///
    /// - Returns: Whether these values may be part of a request.
    func mayAnswer(_ head: ResponseHead) -> Bool {
        let isAnswered = plan.login != nil || plan.proxyLogin != nil || plan.usesProxy
        guard isAnswered, head.statusCode == 401 || head.statusCode == 407,
            head.hasControlByte(in: "www-authenticate") || head.hasControlByte(in: "proxy-authenticate")
        else { return true }
        refusal = HTTPSessionError(
            .badServerResponse, "the challenge contains a control character", context: .init(statusCode: head.statusCode))
        return false
    }

    /// Reads how the body of a final response ends.
    ///
    /// - Returns: Whether the transfer may continue.
    func readFraming(_ head: ResponseHead) -> Bool {
        do throws(HTTPSessionError) { ending.framing = try ResponseFraming(head, method: plan.method) } catch {
            refusal = error
            return false
        }
        ending.head = head
        if head.hasAmbiguousFraming || ending.server.map(engine.isSurplusServer) == true {
            ending.forbidsReuse = (try? handle.set(CURLOPT_FORBID_REUSE, true)) != nil
        }
        return true
    }
}
