internal import COpenSSL

/// The certificates that a peer shows in a handshake, while they are evaluated, and not afterwards.
package struct PeerChain {
    /// OpenSSL's own X509_STORE_CTX; it is read, its authorities are not asked.
    private let own: OpaquePointer?
    private let sent: OpaquePointer?
    /// SSL_get_security_level(3): how weak keys and signatures may be.
    private let securityLevel: Int32

    init(_ context: OpaquePointer, securityLevel: Int32) {
        own = X509_STORE_CTX_get0_cert(context)
        sent = X509_STORE_CTX_get0_untrusted(context)
        self.securityLevel = securityLevel
    }

    /// What the peer sent, its own first, and only if that can be read: the judgment is about that one, never about the next.
    package var certificates: [X509Certificate] {
        let leaf = own.flatMap { CertificateDecoding.certificate($0) }
        let others = CertificateDecoding.certificates(of: sent).filter { $0 != leaf }
        return leaf.map { [$0] + others } ?? []
    }

    /// The chain from the peer's own certificate to one of the authorities, dates and what they ask of revocation included, or why there is
    /// none. `checksRevocation`: whether lists are asked at all.
    package func verify(
        against authorities: TrustStore, checksRevocation: Bool = true
    ) -> Result<[X509Certificate], ChainError> {
        guard let context = X509_STORE_CTX_new(), X509_STORE_CTX_init(context, authorities.store, own, sent) == 1 else {
            return .failure(ChainError(code: X509_V_ERR_OUT_OF_MEM, text: "no memory to verify the chain"))
        }
        defer { X509_STORE_CTX_free(context) }
        X509_STORE_CTX_set_default(context, "ssl_server")
        let parameters = X509_STORE_CTX_get0_param(context)
        let unasked = checksRevocation ? 0 : UInt(X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL)
        X509_VERIFY_PARAM_set_flags(parameters, authorities.flags & ~unasked)
        X509_VERIFY_PARAM_set_auth_level(parameters, securityLevel)
        if X509_verify_cert(context) == 1 {
            return .success(CertificateDecoding.certificates(of: X509_STORE_CTX_get0_chain(context)))
        }
        let code = X509_STORE_CTX_get_error(context)
        var text = X509_verify_cert_error_string(Int(code)).map { String(cString: $0) } ?? "error \(code)"
        if authorities.isEmpty { text += ", and the policy has no authority" }
        // X509_V_OK with a failure is an internal error of OpenSSL: never to be taken for success.
        return .failure(
            ChainError(
                code: code == X509_V_OK ? X509_V_ERR_UNSPECIFIED : code, text: text,
                depth: X509_STORE_CTX_get_error_depth(context)))
    }

    /// Whether the peer's certificate names the host, by X509_check_host(3): only the alternative names count, never the common name
    /// (RFC 9525 section 6.3). A wildcard is a whole leftmost label. The host is in lower case, without brackets and a dot at its end.
    package func isFor(host: String) -> Bool {
        // An IPv6 address may carry the zone it is reached through, which no certificate knows.
        let name = String(host.prefix { $0 != "%" })
        // A leading dot would make X509_check_host accept any host below.
        guard let own, !name.isEmpty, !name.hasPrefix(".") else { return false }
        // -2: not the text of an address.
        let address = X509_check_ip_asc(own, name, 0)
        guard address == -2 else { return address == 1 }
        let flags = UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)
        return X509_check_host(own, name, name.utf8.count, flags, nil) == 1
    }
}
