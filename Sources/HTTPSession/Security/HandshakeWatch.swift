internal import COpenSSL
internal import COpenSSLSetup
internal import EventLoop
internal import Foundation
internal import Synchronization

/// Stands beside one SSL_CTX, and so beside one connection, for as long as that lives: it may outlive the attempt that made it,
/// and a server may start the handshake anew in the middle.
final class HandshakeWatch: Sendable {
    let policy: PreparedPolicy
    let host: String?
    let isProxy: Bool
    let decisions: ServerTrustDecisions?
    /// Under which a TLS session may be resumed: SHA-256 of the policy, the host, the client's identity and the decisions.
    let sessionContext: Data
    /// Whether somebody is to be asked what to show when the server wants a certificate.
    let asksForIdentity: Bool
    let record: Locked<ServerTrust.Record>
    /// Whether the peer has closed its side of the connection by an alert (RFC 8446 section 6.1). Kept here, not in ``record``: the alert
    /// may come after a later attempt has taken the connection over.
    private let closeNotify = Atomic(false)
    var hasReceivedCloseNotify: Bool { closeNotify.load(ordering: .relaxed) }

    init(
        policy: PreparedPolicy, host: String?, isProxy: Bool, decisions: ServerTrustDecisions?, sessionContext: Data,
        asksForIdentity: Bool, record: Locked<ServerTrust.Record>
    ) {
        self.policy = policy
        self.host = host
        self.isProxy = isProxy
        self.decisions = decisions
        self.asksForIdentity = asksForIdentity
        self.record = record
        self.sessionContext = sessionContext
    }

    static func sessionContext(
        _ policy: PreparedPolicy, host: String?, identity: ClientIdentity?, decisions: ServerTrustDecisions?,
        asksForIdentity: Bool = false
    ) -> Data {
        let decided = decisions.map { "\($0.number).\($0.generation)" } ?? "-"
        var text = Data("\(policy.number) \(decided) \(identity == nil) \(asksForIdentity) \(host ?? "")\n".utf8)
        for certificate in identity.map({ [$0.certificate] + $0.chain }) ?? [] { text += certificate.derBytes }
        return CertificateDecoding.sha256(text)
    }

    // MARK: On an SSL_CTX

    /// Where an SSL_CTX holds its watch (CRYPTO_get_ex_new_index(3)).
    private static let index = netwatch_ssl_ctx_new_index(TLSCallbacks.release)

    static func of(_ ssl: OpaquePointer) -> HandshakeWatch? {
        SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), index).map { Unmanaged<HandshakeWatch>.fromOpaque($0).takeUnretainedValue() }
    }

    func attach(to context: OpaquePointer) -> Bool {
        let earlier = SSL_CTX_get_ex_data(context, Self.index)
        let held = Unmanaged.passRetained(self)
        guard SSL_CTX_set_ex_data(context, Self.index, held.toOpaque()) == 1 else {
            held.release()
            return false
        }
        if let earlier { Unmanaged<HandshakeWatch>.fromOpaque(earlier).release() }
        let sets = sessionContext.withUnsafeBytes {
            SSL_CTX_set_session_id_context(context, $0.bindMemory(to: UInt8.self).baseAddress, UInt32($0.count))
        }
        // libcurl before 8.17 has asked for verification, later ones ask for none and look at the result.
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        SSL_CTX_set_cert_verify_callback(context, TLSCallbacks.verify, held.toOpaque())
        SSL_CTX_set_cert_cb(context, TLSCallbacks.certificateRequested, held.toOpaque())
        SSL_CTX_set_info_callback(context, TLSCallbacks.info)
        netwatch_tls_limit_reading(context)
        return sets == 1
    }

    // MARK: What OpenSSL tells

    /// A session that was made under another policy, host, identity or decision is taken away before the first message is
    /// written, so that the handshake is a full one and the server is judged.
    ///
    /// Measured (OpenSSL 3.0.19, TLS 1.2 and 1.3): a session that is resumed calls no verify callback. Where its context differs
    /// from the SSL's, OpenSSL ends the handshake ("attempt to reuse session in different context") as soon as the server agrees
    /// to resume: safe, but the connection is lost. With the session taken away here the handshake is complete and judged.
    func handshakeStarts(_ ssl: OpaquePointer) {
        guard let session = SSL_get_session(ssl) else { return }
        var count: UInt32 = 0
        let start = SSL_SESSION_get0_id_context(session, &count)
        let context = Data(UnsafeBufferPointer(start: start, count: Int(count)))
        guard context != sessionContext else { return }
        OpenSSLErrors.contained { _ = SSL_set_session(ssl, nil) }
        record.withLock { $0.refusedSessions += 1 }
    }

    /// - Returns: whether the handshake goes on with what there is.
    func certificateWasRequested(_ ssl: OpaquePointer) -> Bool {
        guard !isProxy else { return true }
        let authorities = asksForIdentity ? CertificateDecoding.names(of: SSL_get0_peer_CA_list(ssl)) : nil
        record.withLock { record in
            record.wantsClientCertificate = true
            record.identityQuestion = authorities
        }
        return !asksForIdentity
    }

    func alertArrived(level: Int32, description: Int32) {
        if description == SSL3_AD_CLOSE_NOTIFY { closeNotify.store(true, ordering: .relaxed) }
        guard level == SSL3_AL_FATAL else { return }
        record.withLock { $0.alert = .init(description: description, isProxys: isProxy) }
    }

    func alertSent(level: Int32) {
        guard level == SSL3_AL_FATAL else { return }
        record.withLock { $0.hasSentAlert = true }
    }

    /// Judges the peer. `context` holds its certificates, and afterwards the result that OpenSSL and libcurl read.
    ///
    /// Measured (a chain of three P-256 certificates, debug build, busy machine): 0.3 ms of a handshake's 1.3 ms.
    func verify(_ context: OpaquePointer) -> Bool {
        OpenSSLErrors.contained {
            let ssl = X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx()).map { OpaquePointer($0) }
            let verification = ChainVerification(
                policy: policy, host: host, securityLevel: ssl.map { SSL_get_security_level($0) } ?? 1)
            let facts = verification.facts(of: context)
            var refusal: TrustRefusal?
            do throws(TrustRefusal) { try TrustDecision.evaluate(policy.policy, host: host, facts) } catch { refusal = error }
            let verdict = verdict(refusal, facts.presented)
            record.withLock { $0.verdict = verdict }
            if case .believed = verdict {
                X509_STORE_CTX_set_error(context, X509_V_OK)
                return true
            }
            // The alert that the server gets depends on it.
            switch refusal {
            case .chain(let error): X509_STORE_CTX_set_error(context, error.code)
            case .name: X509_STORE_CTX_set_error(context, X509_V_ERR_HOSTNAME_MISMATCH)
            default: X509_STORE_CTX_set_error(context, X509_V_ERR_APPLICATION_VERIFICATION)
            }
            return false
        }
    }

    private func verdict(_ refusal: TrustRefusal?, _ presented: [Certificate]) -> ServerTrust.Verdict {
        let error = refusal?.error(host: host, isProxy: isProxy, presented: presented)
        guard let decisions else { return error.map { .refused($0, presented) } ?? .believed }
        var text = Data()
        for certificate in presented { text += Data("\(certificate.derBytes.count) ".utf8) + certificate.derBytes }
        let key = ServerTrustDecisions.Key(policy: policy.number, host: host, chain: CertificateDecoding.sha256(text))
        switch decisions.isBelieved(key, byPolicy: error == nil, at: .now) {
        case true?: return .believed
        case false?:
            return .refused(
                error ?? HTTPSessionError(.certificateUntrusted, "the session's handler refused \(host ?? "the server")"),
                presented)
        case nil:
            return .undecided(ServerTrustChallenge(host: host, certificates: presented, policyError: error, key: key))
        }
    }
}
