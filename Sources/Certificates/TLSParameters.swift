internal import COpenSSL

/// Versions and ciphers of TLS.
package struct TLSParameters: Hashable, Sendable {
    package enum Version: Hashable, Sendable {
        /// RFC 5246.
        case v1_2
        /// RFC 8446.
        case v1_3
    }

    package var minimum: Version
    /// `nil`: the newest that OpenSSL knows.
    package var maximum: Version?
    /// Of TLS 1.2, as in openssl-ciphers(1); `nil`: OpenSSL's own.
    package var cipherList: String?
    /// Of TLS 1.3, separated by colons; `nil`: OpenSSL's own.
    package var cipherSuites: String?

    package init(minimum: Version = .v1_2, maximum: Version? = nil, cipherList: String? = nil, cipherSuites: String? = nil) {
        self.minimum = minimum
        self.maximum = maximum
        self.cipherList = cipherList
        self.cipherSuites = cipherSuites
    }

    /// Whether OpenSSL knows the ciphers.
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

    /// Without the ciphers that need no certificate: without one, no peer would be evaluated.
    private static func authenticated(_ list: String) -> String { list + ":!aNULL:!eNULL" }

    /// Sets them on an SSL_CTX. - Returns: whether OpenSSL takes them.
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
