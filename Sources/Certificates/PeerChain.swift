internal import COpenSSL

/// The certificates that a peer sends in a handshake. Valid only during the call of the evaluator.
package struct PeerChain {
    /// The peer's own certificate, from OpenSSL's X509_STORE_CTX. The context's authorities are not used.
    let own: OpaquePointer?
    let sent: OpaquePointer?
    /// The minimum strength of keys and signatures (SSL_get_security_level(3)).
    private let securityLevel: Int32

    /// The certificates that a client has received. Valid as long as the SSL.
    init(of ssl: OpaquePointer) {
        own = SSL_get0_peer_certificate(ssl)
        sent = SSL_get_peer_cert_chain(ssl)
        securityLevel = SSL_get_security_level(ssl)
    }

    init(_ context: OpaquePointer, securityLevel: Int32) {
        own = X509_STORE_CTX_get0_cert(context)
        sent = X509_STORE_CTX_get0_untrusted(context)
        self.securityLevel = securityLevel
    }

    /// The certificates that the peer sent, its own first. Empty if its own cannot be decoded, so that no other one is
    /// evaluated in its place.
    package var certificates: [X509Certificate] {
        let leaf = own.flatMap { CertificateDecoding.certificate($0) }
        let others = CertificateDecoding.certificates(of: sent).filter { $0 != leaf }
        return leaf.map { [$0] + others } ?? []
    }

    /// Sets the purpose, the flags, the strength and the length that a verification requires.
    func configure(_ context: OpaquePointer, flags: UInt) {
        X509_STORE_CTX_set_default(context, "ssl_server")
        let parameters = X509_STORE_CTX_get0_param(context)
        X509_VERIFY_PARAM_set_flags(parameters, flags)
        X509_VERIFY_PARAM_set_auth_level(parameters, securityLevel)
        X509_VERIFY_PARAM_set_depth(parameters, HandshakeCost.maximumDepth)
    }

    /// Returns whether the peer's certificate names the host, by X509_check_host(3): only the subject alternative names count,
    /// never the common name (RFC 9525 section 6.3). A wildcard must be the complete leftmost label. `host` is in lower case,
    /// without brackets and without a dot at its end.
    package func isFor(host: String) -> Bool {
        // An IPv6 address may have a zone, which is never part of a certificate.
        let name = String(host.prefix { $0 != "%" })
        // With a leading dot, X509_check_host would accept any subdomain.
        guard let own, !name.isEmpty, !name.hasPrefix(".") else { return false }
        // -2: the text is not an address.
        let address = X509_check_ip_asc(own, name, 0)
        guard address == -2 else { return address == 1 }
        let flags = UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)
        return X509_check_host(own, name, name.utf8.count, flags, nil) == 1
    }
}
