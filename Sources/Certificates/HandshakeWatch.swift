internal import COpenSSL
internal import CTLSReading
internal import EventLoop
package import FoundationEssentials
internal import Synchronization

/// A type that decides whether a peer's certificates are trusted. OpenSSL calls it on the thread that drives the handshake; it
/// must not block.
package protocol HandshakeEvaluator: Sendable {
    func evaluate(_ chain: PeerChain) -> HandshakeEvaluation
    /// Called when the handshake ends because it would cost too much. `excess` is the end of a sentence about the peer.
    func costIsExcessive(_ excess: String)
    /// Called when the peer requests a certificate by one of these authorities (a line each, RFC 2253).
    ///
    /// - Returns: Whether the handshake continues, with the client certificate that is set or without one.
    func certificateWasRequested(by authorities: () -> [String]) -> Bool
    /// Called when a fatal alert of the peer arrives (RFC 8446 section 6).
    func alertArrived(description: Int32)
    /// Called when this side has sent a fatal alert.
    func alertWasSent()
    /// Called when a TLS session that was created in another context is not resumed.
    func sessionWasRefused()
}

/// The decision of a ``HandshakeEvaluator``, and what it has found.
package struct HandshakeEvaluation: Sendable {
    package var verdict: HandshakeVerdict
    /// The verification of the chain by the policy; `nil` if the policy requires none.
    package var verification: ChainVerification?
    /// Whether another name is an error.
    package var checksName: Bool

    package init(_ verdict: HandshakeVerdict, verification: ChainVerification?, checksName: Bool) {
        (self.verdict, self.verification, self.checksName) = (verdict, verification, checksName)
    }
}

/// The verdict of a ``HandshakeEvaluator``. It selects the TLS alert that the peer receives.
package enum HandshakeVerdict: Hashable, Sendable {
    case trusted
    case refused
    case refusedForName
    /// The chain is not valid; `code` is an X509_V_ERR_….
    case refusedForChain(code: Int32)
}

/// The state of one SSL_CTX, and so of one connection, with the same lifetime. It may outlive the attempt that created it, and
/// the server may renegotiate (RFC 5246 section 7.4.1.1).
package final class HandshakeWatch: Sendable {
    private let evaluator: any HandshakeEvaluator
    /// The log of the handshake's facts; `nil` without one.
    private let log: HandshakeLog?
    /// The context in which a TLS session may be resumed: a digest, at most 32 bytes, of everything on which the decision
    /// depends.
    package let sessionContext: Data
    /// Whether the peer has closed its side of the connection by an alert (RFC 8446 section 6.1). Stored here, because the
    /// alert may arrive after a later attempt has reused the connection.
    private let closeNotify = Atomic(false)
    package var hasReceivedCloseNotify: Bool { closeNotify.load(ordering: .relaxed) }
    /// The properties of the connection; `nil` until they are read after its handshake.
    private let facts = Locked<TLSFacts?>(nil)

    package init(_ evaluator: any HandshakeEvaluator, sessionContext: Data, log: HandshakeLog? = nil) {
        self.evaluator = evaluator
        self.log = log
        self.sessionContext = sessionContext
    }

    // MARK: On an SSL_CTX

    /// The index of the watch in an SSL_CTX's ex_data (CRYPTO_get_ex_new_index(3)).
    private static let index = netwatch_ssl_ctx_new_index(TLSCallbacks.release)

    /// Returns the watch of a connection's context; `nil` if it has none.
    package static func of(_ ssl: OpaquePointer) -> HandshakeWatch? {
        SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), index).map { Unmanaged<HandshakeWatch>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Returns the properties of a connection as ``TLSFacts/init(ssl:)`` does, but reads them only once after each handshake. `nil` without
    /// a watch, and before a cipher is negotiated.
    package static func facts(of ssl: UnsafeMutableRawPointer) -> TLSFacts? {
        of(OpaquePointer(ssl))?.facts.withLock { facts in
            facts = facts ?? TLSFacts(ssl: ssl)
            return facts
        }
    }

    /// Installs the watch in an SSL_CTX, which retains it. - Returns: Whether OpenSSL accepted it.
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
        // libcurl before 8.17 requests verification itself; later versions do not, and read the result.
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        SSL_CTX_set_cert_verify_callback(context, TLSCallbacks.verify, held.toOpaque())
        SSL_CTX_set_cert_cb(context, TLSCallbacks.certificateRequested, held.toOpaque())
        SSL_CTX_set_info_callback(context, TLSCallbacks.info)
        netwatch_tls_limit_reading(context)
        netwatch_tls_limit_cost(context)
        return sets == 1
    }

    /// Whether an SSL_CTX allows versions up to TLS 1.3, and not any version.
    package static func isLimitedToTLS13(_ context: OpaquePointer) -> Bool {
        netwatch_ssl_ctx_maximum_version(context) == Int(TLS1_3_VERSION)
    }

    /// Whether the handshake of an SSL has ended with a trusted peer.
    package static func hasTrustedPeer(_ ssl: OpaquePointer) -> Bool {
        SSL_get0_peer_certificate(ssl) != nil && SSL_get_verify_result(ssl) == Int(X509_V_OK)
    }

    // MARK: OpenSSL's callbacks

    /// Removes a TLS session that was created with another policy, host, identity or decision. This happens before the first
    /// message is written, so the handshake is a full one and the server is evaluated.
    ///
    /// Measured (OpenSSL 3.0.19, TLS 1.2 and 1.3): OpenSSL calls no verify callback for a resumed session. If its context
    /// differs from the SSL's, OpenSSL ends the handshake ("attempt to reuse session in different context") as soon as the
    /// server agrees to resume. That is safe, but the connection is lost. With the session removed here, the handshake is
    /// complete and the server is evaluated.
    func handshakeStarts(_ ssl: OpaquePointer) {
        log?.begins(ssl)
        guard let session = SSL_get_session(ssl) else { return }
        var count: UInt32 = 0
        let start = SSL_SESSION_get0_id_context(session, &count)
        let context = Data(UnsafeBufferPointer(start: start, count: Int(count)))
        guard context != sessionContext else { return }
        OpenSSLErrors.contained { _ = SSL_set_session(ssl, nil) }
        evaluator.sessionWasRefused()
    }

    func handshakeIsDone(_ ssl: OpaquePointer) {
        // A further handshake of TLS 1.2 may negotiate another cipher.
        facts.withLock { $0 = nil }
        log?.completes(ssl)
    }

    /// Called when OpenSSL returns from the handshake without success: it waits, or it has failed.
    func handshakeStops() {
        let error = ERR_peek_last_error()
        guard error != 0 else { return }
        log?.fails(TLSProtocolError(reason: ERR_GET_REASON(error), text: OpenSSLErrors.newest))
        if let excess = HandshakeCost.excess(ofError: ERR_GET_REASON(error)) { costIsExcessive(excess) }
    }

    private func costIsExcessive(_ excess: String) {
        log?.update { $0.excess = excess }
        evaluator.costIsExcessive(excess)
    }

    /// - Returns: The evaluator's decision.
    func certificateWasRequested(_ ssl: OpaquePointer) -> Bool {
        log?.update { $0.isCertificateRequested = true }
        return evaluator.certificateWasRequested { CertificateDecoding.names(of: SSL_get0_peer_CA_list(ssl)) }
    }

    func alertArrived(_ ssl: OpaquePointer, level: Int32, description: Int32) {
        if description == SSL3_AD_CLOSE_NOTIFY {
            closeNotify.store(true, ordering: .relaxed)
        } else {
            let isTLS13 = SSL_version(ssl) == TLS1_3_VERSION
            log?.update { $0.noteAlert(level: level, description: description, isTLS13: isTLS13) }
        }
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
            let chain = PeerChain(context, securityLevel: ssl.map { SSL_get_security_level($0) } ?? 1)
            if let excess = chain.excess {
                log?.update { facts in
                    if let ssl { facts.noteParameters(of: ssl) }
                    facts.chain = chain.facts(for: facts.serverName, authorities: nil)
                }
                costIsExcessive(excess)
                X509_STORE_CTX_set_error(context, X509_V_ERR_APPLICATION_VERIFICATION)
                return false
            }
            let evaluation = evaluator.evaluate(chain)
            log?.update { facts in
                if let ssl { facts.noteParameters(of: ssl) }
                facts.chain = chain.facts(
                    for: facts.serverName, evaluation.verification, checksName: evaluation.checksName)
            }
            let code =
                switch evaluation.verdict {
                case .trusted: X509_V_OK
                case .refused: X509_V_ERR_APPLICATION_VERIFICATION
                case .refusedForName: X509_V_ERR_HOSTNAME_MISMATCH
                case .refusedForChain(let code): code
                }
            X509_STORE_CTX_set_error(context, code)
            return evaluation.verdict == .trusted
        }
    }
}
