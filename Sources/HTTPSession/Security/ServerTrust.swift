internal import Certificates
internal import EventLoop
internal import FoundationEssentials

/// Judges the servers of one attempt, and keeps what was found until the attempt has ended.
///
/// What the engine sets on the easy handle:
///
/// | option | value | why |
/// |---|---|---|
/// | CURLOPT_SSL_CTX_FUNCTION | calls ``install(on:)``, returns CURLE_OK, for `false` CURLE_SSL_CERTPROBLEM | |
/// | CURLOPT_SSL_VERIFYPEER, …_PROXY_… | 1 | without the hook libcurl believes nobody |
/// | CURLOPT_SSL_VERIFYHOST, …_PROXY_… | 0, 2 | the name is judged here: a server's policy may not ask for it |
/// | CURLOPT_CAINFO, …_PROXY_… | NULL | libcurl would load the system's authorities, which nobody asks |
/// | CURLOPT_CAPATH, …_PROXY_… | ``connectionTag``, ``proxyConnectionTag`` | keeps connections apart |
/// | CURLOPT_SSLVERSION | CURL_SSLVERSION_DEFAULT | versions are set here |
/// | CURLOPT_PROXY_SSLVERSION | CURL_SSLVERSION_TLSv1_2 \| CURL_SSLVERSION_MAX_TLSv1_3 | ``proxyMark`` |
///
/// The function runs for an HTTPS proxy as well as for the server behind it, and is not told which. libcurl has set the context's
/// newest version of TLS by then (0 for "any"), so the proxy's is given one: what bears the mark is a proxy, and anything else is
/// judged as the server.
///
/// libcurl does not compare the function when it looks for a connection or a TLS session to use again, but it compares the names of
/// the files of authorities (`Curl_ssl_config_matches`). Measured with libcurl 7.88.1, TLS 1.2 and 1.3, one multi handle: with one
/// CURLOPT_CAPATH a function that believes nobody was given a pooled connection, and with CURLOPT_FRESH_CONNECT a resumed TLS
/// session, without being asked; with another CURLOPT_CAPATH it was asked and refused, and the first policy kept its connection.
package final class ServerTrust: Sendable {
    /// Whom an HTTPS proxy must be, and how that is judged. Pins are of servers: a proxy's policy usually has none.
    package struct Proxy: Sendable {
        package let policy: PreparedPolicy
        package let host: String

        package init(policy: PreparedPolicy, host: String) {
            self.policy = policy
            self.host = host
        }
    }

    /// What came of a handshake.
    package enum Verdict: Sendable {
        /// The peer is who it should be.
        case believed
        /// It is not; and what it showed.
        case refused(HTTPSessionError, [Certificate])
        /// Refused until a handler has decided: ask it, keep its word in ``ServerTrustDecisions``, repeat the attempt.
        case undecided(ServerTrustChallenge)
    }

    /// What OpenSSL has told.
    struct Record: Sendable {
        var verdict: Verdict?
        var wantsClientCertificate = false
        /// The authorities that the server names, where it wants a certificate and nobody has said which.
        var identityQuestion: [String]?
        /// The fatal alert that the peer sent (RFC 8446 section 6).
        var alert: Alert?
        /// Whether this side has ended the handshake with one: it has met a version, a cipher or a certificate that it does not want.
        var hasSentAlert = false
        /// Why the connection was not even begun.
        var failure: HTTPSessionError?
        /// TLS sessions that were not resumed because they were made under something else.
        var refusedSessions = 0
    }

    struct Alert: Sendable {
        let description: Int32
        let isProxys: Bool
    }

    /// Under what TLS sessions and connections are made: equal only for the same policies, hosts, identity (or question for one) and decisions.
    struct SessionContexts: Hashable, Sendable {
        let server: Data
        /// `nil` where no HTTPS proxy is.
        let proxy: Data?
    }

    private let policy: PreparedPolicy
    private let host: String?
    private let proxy: Proxy?
    private let identity: ClientIdentity?
    private let asksForIdentity: Bool
    private let decisions: ServerTrustDecisions?
    let sessionContexts: SessionContexts
    private let record = Locked(Record())

    /// `host` is the server's name or address as in the URL; where it is `nil`, no name is checked. `decisions` are given where a
    /// handler is to be asked about every server: without its word none is believed. `asksForIdentity`: a server that wants a certificate
    /// is a question as well (``identityQuestion``), where `identity` is none.
    package init(
        policy: PreparedPolicy, host: String?, proxy: Proxy? = nil, identity: ClientIdentity? = nil,
        decisions: ServerTrustDecisions? = nil, asksForIdentity: Bool = false
    ) {
        self.policy = policy
        let host = host.map(normalizedHost)
        self.host = host
        self.proxy = proxy
        self.identity = identity
        self.decisions = decisions
        self.asksForIdentity = asksForIdentity && identity == nil
        sessionContexts = SessionContexts(
            server: ServerJudge.sessionContext(
                policy, host: host, identity: identity, decisions: decisions, asksForIdentity: self.asksForIdentity),
            proxy: proxy.map {
                ServerJudge.sessionContext($0.policy, host: normalizedHost($0.host), identity: nil, decisions: nil)
            })
    }

    /// A path that no file has, the same only for the same policy, host, identity (or question for one) and decisions.
    package var connectionTag: String { Self.tag(sessionContexts.server) }
    /// The same for the proxy; `nil` where there is none.
    package var proxyConnectionTag: String? { sessionContexts.proxy.map(Self.tag) }

    private static func tag(_ context: Data) -> String { "/nonexistent/\(context.base64EncodedString())" }

    /// The newest version of TLS that marks the context of a proxy: TLS 1.3, where a server's has 0.
    static let proxyMark = TLSContext.v1_3

    /// Takes over an SSL_CTX that libcurl is about to use. `false`: the connection must not be made, and ``error`` says why.
    package func install(on context: UnsafeMutableRawPointer) -> Bool {
        OpenSSLErrors.contained {
            do throws(HTTPSessionError) {
                try take(OpaquePointer(context))
                return true
            } catch {
                record.withLock { $0.failure = error }
                return false
            }
        }
    }

    private func take(_ context: OpaquePointer) throws(HTTPSessionError) {
        let isProxy = TLSContext.maximumVersion(of: context) == Self.proxyMark
        let judge: ServerJudge
        let sessionContext: Data
        if isProxy {
            guard let proxy, let proxyContext = sessionContexts.proxy else {
                throw HTTPSessionError(.proxyFailed, "libcurl connects to an HTTPS proxy that nobody named")
            }
            (judge, sessionContext) = (ServerJudge(ofProxy: proxy, record: record), proxyContext)
        } else {
            judge = ServerJudge(
                policy: policy, host: host, isProxy: false, decisions: decisions, asksForIdentity: asksForIdentity, record: record
            )
            sessionContext = sessionContexts.server
        }
        guard judge.policy.parameters.apply(to: context),
            HandshakeWatch(judge, sessionContext: sessionContext).attach(to: context)
        else {
            throw HTTPSessionError(.secureConnectionFailed, "OpenSSL does not take the policy: \(OpenSSLErrors.newest)")
        }
        if !isProxy, let identity, !identity.isTaken(by: context) {
            throw HTTPSessionError(
                .invalidConfiguration, "OpenSSL does not take the client certificate \(identity.certificate.subject)")
        }
    }

    /// Whether a connection (the SSL that CURLINFO_TLS_SSL_PTR gives) was made under this policy, for this host, with this
    /// identity. Asked before a request is sent, it is the last gate before a connection of another policy.
    package func admits(_ ssl: UnsafeMutableRawPointer) -> Bool {
        let ssl = OpaquePointer(ssl)
        return HandshakeWatch.of(ssl)?.sessionContext == sessionContexts.server && TLSContext.hasTrustedPeer(ssl)
    }

    /// The verdict of the last handshake that was judged; `nil` where none was, as when a TLS session was resumed.
    package var verdict: Verdict? { record.withLock { $0.verdict } }

    /// By which authorities the server wants a certificate, where that ended the handshake: ask the handler, keep its word in
    /// ``ClientCertificateDecisions``, repeat the attempt.
    package var identityQuestion: [String]? { record.withLock { $0.identityQuestion } }

    /// Whether the server has asked for a client certificate.
    package var wantsClientCertificate: Bool { record.withLock { $0.wantsClientCertificate } }

    /// TLS sessions that were not resumed because they were made under another policy, host, identity or decision.
    package var refusedSessions: Int { record.withLock { $0.refusedSessions } }

    /// What the handshake says about an attempt that has failed, `nil` where it has nothing to say. It is asked whatever the
    /// CURLcode: measured with libcurl 7.88.1, a server that is refused gives 60 (CURLE_PEER_FAILED_VERIFICATION), behind an HTTPS
    /// proxy 35 (CURLE_SSL_CONNECT_ERROR); a client certificate that is missing 35 with TLS 1.2, and with TLS 1.3, whose server
    /// answers after the handshake, 56 (CURLE_RECV_ERROR); ``install(on:)`` answering `false` 58.
    package var error: HTTPSessionError? {
        let record = record.withLock { $0 }
        if let failure = record.failure { return failure }
        switch record.verdict {
        case .refused(let error, _): return error
        case .undecided(let challenge):
            return challenge.policyError
                ?? HTTPSessionError(.certificateUntrusted, "\(host ?? "the server") waits for the session's handler")
        case .believed, nil: break
        }
        if record.identityQuestion != nil {
            return HTTPSessionError(.clientCertificateRequired, "\(host ?? "the server") asks for a client certificate")
        }
        guard let alert = record.alert else { return nil }
        let text = TLSContext.text(ofAlert: alert.description)
        if alert.isProxys {
            return HTTPSessionError(.secureConnectionFailed, "the proxy \(proxy?.host ?? "") ended the handshake: \(text)")
        }
        let server = host ?? "the server"
        guard record.wantsClientCertificate, Self.certificateAlerts.contains(alert.description) else {
            return HTTPSessionError(.secureConnectionFailed, "\(server) ended the handshake: \(text)")
        }
        return identity == nil
            ? HTTPSessionError(.clientCertificateRequired, "\(server) asks for a client certificate: \(text)")
            : HTTPSessionError(.clientCertificateRejected, "\(server) refused the client certificate: \(text)")
    }

    /// Whether the handshake ended with a word, ours or the peer's, and not because the connection did. internal_error (80) alone says
    /// nothing of the next one.
    var wasRefused: Bool {
        record.withLock { $0.failure != nil || $0.hasSentAlert || ($0.alert.map { $0.description != 80 } ?? false) }
    }

    /// What servers say to a certificate that is missing or not wanted: handshake_failure (TLS 1.2 knows no better), the
    /// bad_certificate family, unknown_ca, access_denied, certificate_required.
    private static let certificateAlerts: Set<Int32> = [40, 41, 42, 43, 44, 45, 46, 48, 49, 116]
}
