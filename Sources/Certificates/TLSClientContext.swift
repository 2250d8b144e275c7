internal import COpenSSL
internal import CTLSReading
internal import EventLoop
package import FoundationEssentials

/// The trust of TLS clients, and what they prove of themselves.
package struct TLSClientSettings: Hashable, Sendable {
    /// The trusted authorities and their revocation lists.
    package var authorities: Authorities
    /// Whether the errors of chains are evidence only. Authorities that cannot be loaded are such an error then.
    package var isInsecure: Bool
    /// The certificate that servers receive if they request one; `nil` for none.
    package var identity: ClientCertificate?

    package init(
        authorities: Authorities = Authorities(includesSystem: true), isInsecure: Bool = false, identity: ClientCertificate? = nil
    ) {
        self.authorities = authorities
        self.isInsecure = isInsecure
        self.identity = identity
    }

    /// Reads authorities, which replace the system's, and revocation lists, both in PEM or DER. `nil` stands for the system's
    /// authorities, and for no lists. Initializes OpenSSL if there is something to read.
    ///
    /// - Throws: ``CertificateError`` that names the file.
    package static func reading(
        authorities: (contents: Data, name: String)?, revocationLists: (contents: Data, name: String)?, isInsecure: Bool = false
    ) throws(CertificateError) -> TLSClientSettings {
        var trusted = Authorities(includesSystem: authorities == nil)
        if let authorities {
            trusted.given = Set(try CertificateDecoding.certificates(in: authorities.contents, named: authorities.name))
        }
        if let revocationLists {
            let lists = try CertificateDecoding.revocationLists(in: revocationLists.contents, named: revocationLists.name)
            trusted.revocation = Authorities.Revocation(lists: lists, coversCompleteChain: true, requiresAllLists: false)
        }
        return TLSClientSettings(authorities: trusted, isInsecure: isInsecure)
    }
}

/// The parts that the TLS clients of equal settings share: OpenSSL's SSL_CTX and the trust store.
///
/// Creating this object does not initialize OpenSSL: the first client does, or ``prepare()``. A context makes full handshakes
/// only, of TLS 1.2 or newer, because OpenSSL verifies no certificate of a resumed session. Any thread may use it.
package final class TLSClientContext: Sendable {
    package let settings: TLSClientSettings
    private let loaded = Locked<Loaded?>(nil)
    private static let shared = WeakCache<TLSClientSettings, TLSClientContext>()

    /// Returns the context of these settings, which all callers with equal settings share.
    package static func of(_ settings: TLSClientSettings) -> TLSClientContext {
        shared.object(for: settings) ?? shared.insert(TLSClientContext(settings), for: settings)
    }

    private init(_ settings: TLSClientSettings) { self.settings = settings }

    deinit { Self.shared.remove(ObjectIdentifier(self), for: settings) }

    /// Initializes OpenSSL and loads the authorities at the first call. That takes up to 80 ms, and later calls take less than
    /// 1 µs. A failed call is repeated by the next one.
    ///
    /// - Throws: ``CertificateError``; none for authorities if the context is insecure.
    package func prepare() throws(CertificateError) { _ = try load() }

    /// Returns the loaded parts. Files are read outside the lock; of two threads that load at once, one result is kept.
    func load() throws(CertificateError) -> Loaded {
        if let loaded = loaded.withLock({ $0 }) { return loaded }
        let created = try Loaded(authorities(), settings)
        return loaded.withLock { loaded in
            if let loaded { return loaded }
            loaded = created
            return created
        }
    }

    /// Returns the trust store; `nil` if the context is insecure and the authorities cannot be loaded.
    private func authorities() throws(CertificateError) -> TrustStore? {
        do { return try TrustStore.of(settings.authorities) } catch {
            guard settings.isInsecure else { throw error }
            return nil
        }
    }

    // @unchecked: an SSL_CTX counts its references atomically, and after `init` threads only create SSL objects from it. An EVP_MD
    // does not change.

    /// The SSL_CTX and the trust store; no trust store if the context is insecure and the authorities cannot be loaded.
    final class Loaded: @unchecked Sendable {
        let pointer: OpaquePointer
        let authorities: TrustStore?
        let chains = Locked(ChainFactsCache())
        /// The stapled responses that were verified before. About 2,500 fit into the limit.
        let stapledResponses = Locked(VerifiedFactsCache<StapledResponse>(limit: 1 << 20))
        /// SHA-256. OpenSSL would look up EVP_sha256() at each use.
        private let sha256: OpaquePointer?

        /// The subject of the client certificate; `nil` without one.
        let clientSubject: String?

        /// Whether every certificate of a server is accepted.
        let isInsecure: Bool

        init(_ authorities: TrustStore?, _ settings: TLSClientSettings) throws(CertificateError) {
            let identity = settings.identity
            isInsecure = settings.isInsecure
            OpenSSL.prepare()
            guard
                let pointer = OpenSSLErrors.contained({
                    SSL_CTX_new_ex(TLSLibraryContext.pointer, nil, TLS_client_method())
                })
            else {
                throw .invalid("OpenSSL gives no context for TLS")
            }
            self.pointer = pointer
            self.authorities = authorities
            clientSubject = identity?.certificate.subject
            sha256 = OpenSSLErrors.contained { EVP_MD_fetch(nil, "SHA2-256", nil) }
            guard netwatch_ssl_ctx_set_versions(pointer, TLS1_2_VERSION, 0) == 1 else {
                throw .invalid("OpenSSL does not support TLS 1.2")
            }
            SSL_CTX_ctrl(pointer, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
            netwatch_ssl_ctx_allow_one_handshake(pointer)
            // A waiting connection has no buffers then. A probe sends little, so small records do for it.
            SSL_CTX_ctrl(pointer, SSL_CTRL_MODE, Int(SSL_MODE_RELEASE_BUFFERS), nil)
            SSL_CTX_ctrl(pointer, SSL_CTRL_SET_MAX_SEND_FRAGMENT, 4096, nil)
            netwatch_tls_limit_cost(pointer)
            // The callback collects the errors of the certificates, and lets the handshake continue unless they cost too much.
            SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER, nil)
            SSL_CTX_set_cert_verify_callback(pointer, TLSCallbacks.collect, nil)
            SSL_CTX_set_msg_callback(pointer, TLSCallbacks.message)
            _ = netwatch_ssl_ctx_request_status(pointer, TLSCallbacks.stapledResponse)
            if let identity {
                guard identity.install(on: pointer) else {
                    throw .invalid("OpenSSL does not accept the client certificate \(identity.certificate.subject)")
                }
                SSL_CTX_set_cert_cb(pointer, TLSCallbacks.identityRequested, nil)
            }
        }

        deinit {
            SSL_CTX_free(pointer)
            EVP_MD_free(sha256)
        }

        /// Returns the SHA-256 of a message; `nil` if OpenSSL fails.
        func digest(of message: UnsafeRawBufferPointer) -> SIMD4<UInt64>? {
            var digest = SIMD4<UInt64>()
            guard let sha256, EVP_MD_get_size(sha256) == MemoryLayout.size(ofValue: digest) else { return nil }
            let isComplete = withUnsafeMutableBytes(of: &digest) {
                EVP_Digest(message.baseAddress, message.count, $0.bindMemory(to: UInt8.self).baseAddress, nil, sha256, nil) == 1
            }
            return isComplete ? digest : nil
        }
    }
}
