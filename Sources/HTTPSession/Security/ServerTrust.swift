internal import Certificates
internal import EventLoop
internal import FoundationEssentials
package import Reachability

/// The evaluation of the servers of one attempt, and its results until the attempt ends.
///
/// The engine sets these options on the easy handle:
///
/// | option | value | reason |
/// |---|---|---|
/// | CURLOPT_SSL_CTX_FUNCTION | calls ``install(on:)``, returns CURLE_OK, for `false` CURLE_SSL_CERTPROBLEM | |
/// | CURLOPT_SSL_VERIFYPEER, …_PROXY_… | 1 | without the function libcurl trusts no server |
/// | CURLOPT_SSL_VERIFYHOST, …_PROXY_… | 0, 2 | the name is checked here, because a server's policy may skip the check |
/// | CURLOPT_CAINFO, …_PROXY_… | NULL | libcurl would load the system's authorities, which are not used |
/// | CURLOPT_CAPATH, …_PROXY_… | ``TrustParameters/connectionTag``, ``TrustParameters/proxyConnectionTag`` | separates connections |
/// | CURLOPT_SSLVERSION | CURL_SSLVERSION_DEFAULT | versions are set here |
/// | CURLOPT_PROXY_SSLVERSION | CURL_SSLVERSION_TLSv1_2 \| CURL_SSLVERSION_MAX_TLSv1_3 | marks the context of a proxy |
///
/// The function runs for an HTTPS proxy and for the server behind it, and no argument shows for which one. libcurl has set the newest version of
/// TLS of the context by then (0 for "any"). The proxy's context therefore gets a version as its mark, and every context without the mark is
/// evaluated as the server's.
///
/// libcurl ignores the function when it chooses a connection or a TLS session for reuse, but it compares the names of the files of authorities
/// (`Curl_ssl_config_matches`). This was measured with libcurl 7.88.1, TLS 1.2 and 1.3, and one multi handle. With the same CURLOPT_CAPATH, a
/// function that trusts no server was not called for a pooled connection. It was not called for a resumed TLS session with CURLOPT_FRESH_CONNECT
/// either. With another CURLOPT_CAPATH it was called and refused the server, and the first policy kept its connection.
package final class ServerTrust: Sendable {
    /// The result of a handshake.
    package enum Verdict: Sendable {
        /// The peer's certificate is trusted.
        case trusted
        /// The peer's certificate is not trusted. The certificates are those that the peer presented.
        case refused(HTTPSessionError, [Certificate])
        /// The peer is refused until a handler decides. Ask it, record its decision in ``ServerTrustDecisions``, and repeat the attempt.
        case undecided(ServerTrustChallenge)
    }

    /// The results of the attempt's handshakes so far, most of them recorded by OpenSSL's callbacks.
    struct Record: Sendable {
        var verdict: Verdict?
        var wantsClientCertificate = false
        /// The authorities that the server names, if it requests a client certificate and no identity has been chosen.
        var requestedAuthorities: [String]?
        /// Why the handshake would cost too much, as the end of a sentence about the peer.
        var excess: Excess?
        /// The fatal alert that the peer sent (RFC 8446 section 6).
        var alert: Alert?
        /// Whether this side has ended the handshake with an alert, because of the peer's version, cipher or certificate.
        var hasSentAlert = false
        /// The error because of which no handshake was started.
        var failure: HTTPSessionError?
        /// The number of TLS sessions that were not resumed because they were made under another context.
        var refusedSessions = 0
        /// The facts of the server's last handshake; `nil` without a host, and until the attempt makes a connection. A handshake with a proxy has no
        /// log.
        var log: HandshakeLog?
    }

    struct Excess: Sendable {
        let text: String
        let isOfProxy: Bool
    }

    struct Alert: Sendable {
        let description: Int32
        let isFromProxy: Bool
    }

    let parameters: TrustParameters
    private let record = Locked(Record())

    /// Prepares the evaluation of one attempt.
    init(_ parameters: TrustParameters) { self.parameters = parameters }

    /// Sets the policy on an SSL_CTX before libcurl uses it.
    ///
    /// - Parameters:
    ///   - context: the SSL_CTX.
    ///   - socket: the connected socket; `nil` if it is not known.
    /// - Returns: `false` if the connection must not be made; ``error`` is the reason.
    package func install(on context: UnsafeMutableRawPointer, socket: Int32? = nil) -> Bool {
        let log = logOfAttempt()
        log?.use(socket)
        return OpenSSLErrors.contained {
            do throws(HTTPSessionError) {
                try adopt(OpaquePointer(context), log)
                return true
            } catch {
                record.withLock { $0.failure = error }
                return false
            }
        }
    }

    /// Returns the log of the attempt, which the first connection makes.
    private func logOfAttempt() -> HandshakeLog? {
        guard let host = parameters.host else { return nil }
        return record.withLock { record in
            let log = record.log ?? HandshakeLog(serverName: host)
            record.log = log
            return log
        }
    }

    private func adopt(_ context: OpaquePointer, _ log: HandshakeLog?) throws(HTTPSessionError) {
        // The mark of a proxy's context. In the context of a server, the newest version is 0.
        let isProxy = HandshakeWatch.isLimitedToTLS13(context)
        let evaluator: ServerTrustEvaluator
        let sessionContext: Data
        if isProxy {
            guard let proxy = parameters.proxy, let proxyContext = parameters.sessionContexts.proxy else {
                throw HTTPSessionError(.proxyFailed, "libcurl connects to an HTTPS proxy that is not configured")
            }
            (evaluator, sessionContext) = (ServerTrustEvaluator(ofProxy: proxy, record: record), proxyContext)
        } else {
            evaluator = ServerTrustEvaluator(
                policy: parameters.policy, host: parameters.host, isProxy: false, decisions: parameters.decisions,
                asksForIdentity: parameters.asksForIdentity, record: record)
            sessionContext = parameters.sessionContexts.server
        }
        guard evaluator.policy.parameters.apply(to: context),
            HandshakeWatch(evaluator, sessionContext: sessionContext, log: isProxy ? nil : log).attach(to: context)
        else {
            throw HTTPSessionError(.secureConnectionFailed, "OpenSSL does not accept the policy: \(OpenSSLErrors.newest)")
        }
        if !isProxy, let identity = parameters.identity, !identity.install(on: context) {
            throw HTTPSessionError(
                .invalidConfiguration, "OpenSSL does not accept the client certificate \(identity.certificate.subject)")
        }
    }

    /// Whether a connection (the SSL of CURLINFO_TLS_SSL_PTR) was made under this policy, for this host, with this identity.
    ///
    /// It is checked before a request is sent: the last check against a connection of another policy.
    package func admits(_ ssl: UnsafeMutableRawPointer) -> Bool {
        let ssl = OpaquePointer(ssl)
        return HandshakeWatch.of(ssl)?.sessionContext == parameters.sessionContexts.server && HandshakeWatch.hasTrustedPeer(ssl)
    }

    /// The verdict of the last evaluated handshake; `nil` if there was none, for example because a TLS session was resumed.
    package var verdict: Verdict? { record.withLock { $0.verdict } }

    /// The authorities that the server names in its request for a client certificate, if that request ended the handshake; otherwise `nil`.
    ///
    /// Ask the handler, record its choice in ``ClientCertificateDecisions``, and repeat the attempt.
    package var requestedAuthorities: [String]? { record.withLock { $0.requestedAuthorities } }

    /// Whether the server has requested a client certificate.
    package var wantsClientCertificate: Bool { record.withLock { $0.wantsClientCertificate } }

    /// The number of TLS sessions that were not resumed because they were made under another policy, host, identity or decision.
    package var refusedSessions: Int { record.withLock { $0.refusedSessions } }

    /// The error of the handshake of a failed attempt; `nil` if the handshake did not cause the failure.
    ///
    /// It is read for every CURLcode, because the code depends on more than the cause. Measured with libcurl 7.88.1: a refused server gives 60
    /// (CURLE_PEER_FAILED_VERIFICATION), and behind an HTTPS proxy 35 (CURLE_SSL_CONNECT_ERROR). A missing client certificate gives 35 with TLS 1.2.
    /// With TLS 1.3 the server reports it after the handshake, which gives 56 (CURLE_RECV_ERROR). ``install(on:)`` with the result `false` gives 58.
    package var error: HTTPSessionError? {
        let record = record.withLock { $0 }
        if let failure = record.failure { return failure }
        if let excess = record.excess {
            let peer = excess.isOfProxy ? "the proxy \(parameters.proxy?.host ?? "")" : serverText
            return HTTPSessionError(.secureConnectionFailed, "\(peer) \(excess.text)")
        }
        switch record.verdict {
        case .refused(let error, _): return error
        case .undecided(let challenge):
            return challenge.policyError
                ?? HTTPSessionError(
                    .certificateUntrusted, "the session's handler has not decided about \(serverText) yet")
        case .trusted, nil: break
        }
        if record.requestedAuthorities != nil {
            return HTTPSessionError(.clientCertificateRequired, "\(serverText) requests a client certificate")
        }
        guard let alert = record.alert else { return nil }
        let text = TLSAlert.text(of: alert.description)
        if alert.isFromProxy {
            let proxy = parameters.proxy?.host ?? ""
            return HTTPSessionError(.secureConnectionFailed, "the proxy \(proxy) ended the handshake: \(text)")
        }
        guard record.wantsClientCertificate, Self.certificateAlerts.contains(alert.description) else {
            return HTTPSessionError(.secureConnectionFailed, "\(serverText) ended the handshake: \(text)")
        }
        return parameters.identity == nil
            ? HTTPSessionError(.clientCertificateRequired, "\(serverText) requests a client certificate: \(text)")
            : HTTPSessionError(.clientCertificateRejected, "\(serverText) refused the client certificate: \(text)")
    }

    /// Determines the cause of a failed attempt, as a `ServerMonitor` of the server reports it.
    ///
    /// - Parameters:
    ///   - address: the server in sentences: an address, or "this machine (127.0.0.1)"; `nil` for the host of the URL.
    ///   - isTimedOut: whether the time for the attempt has passed.
    ///   - systemError: the errno that libcurl reports; `nil` for none. Its BIO reports a reset as an end of file.
    ///   - now: the wall clock in seconds since 1970, to which ages of certificates refer.
    /// - Returns: The cause; `nil` if the handshake with the server is not the reason.
    package func cause(at address: String?, isTimedOut: Bool, systemError: Int32? = nil, now: Int64) -> Cause? {
        let isRefused: Bool
        switch record.withLock({ ($0.verdict, $0.requestedAuthorities) }) {
        // A handler is asked before the attempt is repeated.
        case (.undecided, _), (_, .some): return nil
        case (.refused, nil): isRefused = true
        case (.trusted, nil), (nil, nil): isRefused = false
        }
        guard let log = record.withLock({ $0.log }), var end = log.end(isRefused: isRefused, isTimedOut: isTimedOut) else {
            return nil
        }
        if end == .endOfFile, let systemError { end = .systemError(systemError) }
        let handshake = FinishedHandshake(
            facts: log.facts, end: end, host: address ?? serverText, now: now, certificateDays: 0)
        return handshake.cause
    }

    /// Whether the handshake ended by an error or an alert of either side, and not because the connection was lost. After internal_error (80) the
    /// next handshake may succeed.
    var wasRefused: Bool {
        record.withLock { $0.failure != nil || $0.hasSentAlert || ($0.alert.map { $0.description != 80 } ?? false) }
    }

    /// The server in sentences.
    private var serverText: String { parameters.host ?? "the server" }

    /// The alerts that servers send for a missing or refused client certificate: handshake_failure (TLS 1.2 has no better one), bad_certificate and
    /// similar ones, unknown_ca, access_denied, certificate_required.
    private static let certificateAlerts: Set<Int32> = [40, 41, 42, 43, 44, 45, 46, 48, 49, 116]
}
