internal import COpenSSL

/// The allowed versions and ciphers of TLS.
package struct TLSParameters: Hashable, Sendable {
    package enum Version: Hashable, Sendable {
        /// TLS 1.2 (RFC 5246).
        case v1_2
        /// TLS 1.3 (RFC 8446).
        case v1_3
    }

    package var minimum: Version
    /// The newest version; `nil` for the newest that OpenSSL supports.
    package var maximum: Version?
    /// The ciphers of TLS 1.2 in the format of openssl-ciphers(1); `nil` for OpenSSL's default.
    package var cipherList: String?
    /// The cipher suites of TLS 1.3, separated by colons; `nil` for OpenSSL's default.
    package var cipherSuites: String?

    package init(minimum: Version = .v1_2, maximum: Version? = nil, cipherList: String? = nil, cipherSuites: String? = nil) {
        self.minimum = minimum
        self.maximum = maximum
        self.cipherList = cipherList
        self.cipherSuites = cipherSuites
    }

    /// Checks the ciphers.
    ///
    /// - Throws: ``CertificateError`` if OpenSSL does not know them.
    package func check() throws(CertificateError) {
        try OpenSSLErrors.contained { () throws(CertificateError) in
            guard let context = SSL_CTX_new(TLS_client_method()) else {
                throw .invalid("OpenSSL gives no context: \(OpenSSLErrors.newest)")
            }
            defer { SSL_CTX_free(context) }
            if let cipherList, SSL_CTX_set_cipher_list(context, Self.authenticated(cipherList)) != 1 {
                throw .unknownCiphers(cipherList)
            }
            if let cipherSuites, SSL_CTX_set_ciphersuites(context, cipherSuites) != 1 { throw .unknownCipherSuites(cipherSuites) }
        }
    }

    /// Removes the ciphers that need no certificate: without a certificate, the peer would not be evaluated.
    private static func authenticated(_ list: String) -> String { list + ":!aNULL:!eNULL" }

    /// Sets the versions and ciphers on an SSL_CTX. - Returns: Whether OpenSSL accepted them.
    package func apply(to context: OpaquePointer) -> Bool {
        func number(_ version: Version?) -> Int32 {
            switch version {
            case nil: 0
            case .v1_2: TLS1_2_VERSION
            case .v1_3: TLS1_3_VERSION
            }
        }
        guard netwatch_ssl_ctx_set_versions(context, number(minimum), number(maximum)) == 1 else { return false }
        if let cipherList, SSL_CTX_set_cipher_list(context, Self.authenticated(cipherList)) != 1 { return false }
        if let cipherSuites, SSL_CTX_set_ciphersuites(context, cipherSuites) != 1 { return false }
        return true
    }
}
