internal import COpenSSL

/// A client certificate with its chain and its private key (RFC 8446 section 4.4.2.3). Its descriptions have the subject, never the key.
package struct ClientCertificate: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    private let key: PrivateKey
    /// The certificate of the client.
    package let certificate: X509Certificate
    /// The certificates that are sent after it, its issuer first.
    package let chain: [X509Certificate]

    /// Creates a client certificate from certificates, the client's own first, and its key.
    ///
    /// - Throws: ``CertificateError`` if there is no certificate, or if the key does not belong to the first one.
    package init(_ certificates: [X509Certificate], _ key: PrivateKey, named name: String) throws(CertificateError) {
        guard let own = certificates.first, key.belongs(to: own) else {
            throw .invalid("the private key does not belong to the certificate of \(name)")
        }
        self.key = key
        certificate = own
        chain = Array(certificates.dropFirst())
    }

    /// Throws ``CertificateError`` if OpenSSL does not use the certificates and the key, for example because the key is too short.
    package func check() throws(CertificateError) {
        let isUsable = OpenSSLErrors.contained {
            guard let context = SSL_CTX_new_ex(TLSLibraryContext.pointer, nil, TLS_client_method()) else { return true }
            defer { SSL_CTX_free(context) }
            return install(on: context)
        }
        guard isUsable else {
            throw .invalid("OpenSSL does not use this certificate: its key is too short, or of a kind that TLS has not")
        }
    }

    /// Sets the certificates and the key on an SSL_CTX. - Returns: whether OpenSSL accepts them.
    package func install(on context: OpaquePointer) -> Bool { key.use(for: certificate, chain: chain, on: context) }

    /// Whether both have the same certificates, and so the same key.
    package static func == (left: Self, right: Self) -> Bool {
        left.certificate == right.certificate && left.chain == right.chain
    }

    /// Hashes the certificate.
    package func hash(into hasher: inout Hasher) { hasher.combine(certificate) }

    /// The subject of the certificate.
    package var description: String { "ClientCertificate(\(certificate.subject))" }
    /// The subject of the certificate.
    package var debugDescription: String { description }
    /// The subject of the certificate, so that `dump` does not print the key.
    package var customMirror: Mirror { Mirror(self, children: ["certificate": certificate.subject]) }
}
