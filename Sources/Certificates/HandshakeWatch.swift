internal import COpenSSL
internal import CTLSReading
package import FoundationEssentials
internal import Synchronization

/// Decides whether a peer's certificates are trusted. OpenSSL calls it on the thread that drives the handshake; it must not block.
package protocol HandshakeEvaluator: Sendable {
    func evaluate(_ chain: PeerChain) -> HandshakeVerdict
    /// The peer has asked for a certificate by one of these authorities (a line each, RFC 2253).
    ///
    /// - Returns: whether the handshake continues with the client certificate that is set, or without one.
    func certificateWasRequested(by authorities: () -> [String]) -> Bool
    /// A fatal alert of the peer's (RFC 8446 section 6).
    func alertArrived(description: Int32)
    /// This side has sent a fatal alert.
    func alertWasSent()
    /// A TLS session that was made in another context was not resumed.
    func sessionWasRefused()
}

/// The decision of a ``HandshakeEvaluator``. It selects the TLS alert that the peer receives.
package enum HandshakeVerdict: Hashable, Sendable {
    case trusted
    case refused
    case refusedForName
    /// X509_V_ERR_….
    case refusedForChain(code: Int32)
}

/// The state of one SSL_CTX, and so of one connection, with the same lifetime: it may outlive the attempt that made it, and the server may
/// renegotiate (RFC 5246 section 7.4.1.1).
package final class HandshakeWatch: Sendable {
    private let evaluator: any HandshakeEvaluator
    /// Under which a TLS session may be resumed: a digest of at most 32 bytes of everything that the evaluation depends on.
    package let sessionContext: Data
    /// Whether the peer has closed its side of the connection by an alert (RFC 8446 section 6.1). Kept here: the alert may come after a
    /// later attempt has taken the connection over.
    private let closeNotify = Atomic(false)
    package var hasReceivedCloseNotify: Bool { closeNotify.load(ordering: .relaxed) }

    package init(_ evaluator: any HandshakeEvaluator, sessionContext: Data) {
        self.evaluator = evaluator
        self.sessionContext = sessionContext
    }

    // MARK: On an SSL_CTX

    /// The index of an SSL_CTX's watch in its ex_data (CRYPTO_get_ex_new_index(3)).
    private static let index = netwatch_ssl_ctx_new_index(TLSCallbacks.release)

    /// The watch of a connection's context; `nil` where it has none.
    package static func of(_ ssl: OpaquePointer) -> HandshakeWatch? {
        SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), index).map { Unmanaged<HandshakeWatch>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Takes over an SSL_CTX, which holds its watch from now on. - Returns: whether OpenSSL takes it.
    package func attach(to context: OpaquePointer) -> Bool {
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
    /// written, so that the handshake is a full one and the server is evaluated.
    ///
    /// Measured (OpenSSL 3.0.19, TLS 1.2 and 1.3): a session that is resumed calls no verify callback. Where its context differs
    /// from the SSL's, OpenSSL ends the handshake ("attempt to reuse session in different context") as soon as the server agrees
    /// to resume: safe, but the connection is lost. With the session taken away here the handshake is complete and evaluated.
    func handshakeStarts(_ ssl: OpaquePointer) {
        guard let session = SSL_get_session(ssl) else { return }
        var count: UInt32 = 0
        let start = SSL_SESSION_get0_id_context(session, &count)
        let context = Data(UnsafeBufferPointer(start: start, count: Int(count)))
        guard context != sessionContext else { return }
        OpenSSLErrors.contained { _ = SSL_set_session(ssl, nil) }
        evaluator.sessionWasRefused()
    }

    /// - Returns: the result of the evaluator.
    func certificateWasRequested(_ ssl: OpaquePointer) -> Bool {
        evaluator.certificateWasRequested { CertificateDecoding.names(of: SSL_get0_peer_CA_list(ssl)) }
    }

    func alertArrived(level: Int32, description: Int32) {
        if description == SSL3_AD_CLOSE_NOTIFY { closeNotify.store(true, ordering: .relaxed) }
        if level == SSL3_AL_FATAL { evaluator.alertArrived(description: description) }
    }

    func alertSent(level: Int32) {
        if level == SSL3_AL_FATAL { evaluator.alertWasSent() }
    }

    /// Evaluates the peer. `context` holds its certificates, and afterwards the result that OpenSSL and libcurl read.
    ///
    /// Measured (a chain of three P-256 certificates, debug build, busy machine): 0.3 ms of a handshake's 1.3 ms.
    func verify(_ context: OpaquePointer) -> Bool {
        OpenSSLErrors.contained {
            let ssl = X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx()).map { OpaquePointer($0) }
            let verdict = evaluator.evaluate(PeerChain(context, securityLevel: ssl.map { SSL_get_security_level($0) } ?? 1))
            let code =
                switch verdict {
                case .trusted: X509_V_OK
                case .refused: X509_V_ERR_APPLICATION_VERIFICATION
                case .refusedForName: X509_V_ERR_HOSTNAME_MISMATCH
                case .refusedForChain(let code): code
                }
            X509_STORE_CTX_set_error(context, code)
            return verdict == .trusted
        }
    }
}
