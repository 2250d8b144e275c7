internal import COpenSSL

/// Collects what ``TrustDecision`` wants to know about the certificates of a handshake.
struct ChainVerification {
    let policy: PreparedPolicy
    let host: String?
    /// SSL_get_security_level(3): how weak keys and signatures may be.
    let securityLevel: Int32

    /// `peer` is OpenSSL's own X509_STORE_CTX; it is read, its authorities are not asked.
    func facts(of peer: OpaquePointer) -> ChainFacts {
        let own = X509_STORE_CTX_get0_cert(peer)
        let sent = X509_STORE_CTX_get0_untrusted(peer)
        // The server's own first, and only if it can be read: the decision is about that one, never about the next.
        let leaf = own.flatMap { CertificateDecoding.certificate($0) }
        let others = CertificateDecoding.certificates(of: sent).filter { $0 != leaf }
        var facts = ChainFacts(presented: leaf.map { [$0] + others } ?? [])
        facts.nameMatches = host.map { Self.isFor(own, host: $0) }
        if !policy.policy.allowsInvalidCertificates {
            facts.verified = verify(own, sent: sent, against: policy.roots, flags: policy.roots.flags)
        }
        if let pins = policy.pins {
            facts.anchoredByPins = verify(own, sent: sent, against: pins, flags: pins.flags)
            // X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER and …_GET_CRL: a chain that ends at a pinned certificate need not hold the one
            // that signed the list. What is on a list that could be asked has been refused.
            if case .failure(let error) = facts.anchoredByPins,
                [X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER, X509_V_ERR_UNABLE_TO_GET_CRL].contains(error.code)
            {
                let unasked = UInt(X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL)
                facts.anchoredByPins = verify(own, sent: sent, against: pins, flags: pins.flags & ~unasked)
            }
        }
        return facts
    }

    private func verify(
        _ own: OpaquePointer?, sent: OpaquePointer?, against authorities: TrustStore, flags: UInt
    ) -> Result<[Certificate], ChainError> {
        guard let context = X509_STORE_CTX_new(), X509_STORE_CTX_init(context, authorities.store, own, sent) == 1 else {
            return .failure(ChainError(code: X509_V_ERR_OUT_OF_MEM, text: "no memory to verify the chain"))
        }
        defer { X509_STORE_CTX_free(context) }
        X509_STORE_CTX_set_default(context, "ssl_server")
        let parameters = X509_STORE_CTX_get0_param(context)
        X509_VERIFY_PARAM_set_flags(parameters, flags)
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

    /// Whether the certificate names the host, by X509_check_host(3): only the alternative names count, never the common name (RFC 9525
    /// section 6.3). A wildcard is a whole leftmost label.
    static func isFor(_ certificate: OpaquePointer?, host: String) -> Bool {
        // An IPv6 address may carry the zone it is reached through, which no certificate knows.
        let name = String(normalizedHost(host).prefix { $0 != "%" })
        // A leading dot would make X509_check_host accept any host below.
        guard let certificate, !name.isEmpty, !name.hasPrefix(".") else { return false }
        // -2: not the text of an address.
        let address = X509_check_ip_asc(certificate, name, 0)
        guard address == -2 else { return address == 1 }
        let flags = UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)
        return X509_check_host(certificate, name, name.utf8.count, flags, nil) == 1
    }
}
