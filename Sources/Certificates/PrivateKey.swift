internal import COpenSSL
package import FoundationEssentials

/// A private key that OpenSSL holds. It has no description and cannot be exported.
// @unchecked: an EVP_PKEY that is never modified may be used from any thread; its reference count is atomic.
package final class PrivateKey: @unchecked Sendable {
    private let pointer: OpaquePointer

    private init(_ pointer: OpaquePointer) { self.pointer = pointer }

    deinit { EVP_PKEY_free(pointer) }

    /// Reads the first private key of a PEM text.
    package convenience init(pem: Data, passphrase: String?, named name: String) throws(CertificateError) {
        let key = OpenSSLErrors.contained {
            CertificateDecoding.withBIO(pem) { bio -> Result<OpaquePointer, CertificateError> in
                // This copy is overwritten afterwards. Swift's own copies of the String cannot be overwritten.
                var secret = passphrase.map { Array($0.utf8CString) }
                defer { secret?.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) } }
                let key =
                    secret?.withUnsafeMutableBytes { PEM_read_bio_PrivateKey(bio, nil, TLSCallbacks.passphrase, $0.baseAddress) }
                    ?? (secret == nil ? PEM_read_bio_PrivateKey(bio, nil, TLSCallbacks.passphrase, nil) : nil)
                if let key { return .success(key) }
                let how = passphrase == nil ? "without a passphrase" : "with the passphrase given"
                return .failure(
                    CertificateError.invalid(
                        "\(name) holds no private key that can be read \(how): \(OpenSSLErrors.newest)"))
            }
        }
        self.init(try key.get())
    }

    /// Opens a PKCS#12 container. Returns its key and its certificates, with the key's own certificate first.
    package static func open(
        pkcs12: Data, passphrase: String, named name: String
    ) throws(CertificateError) -> (key: PrivateKey, certificates: [X509Certificate]) {
        func unreadable() -> CertificateError {
            CertificateError.invalid(
                "\(name) is not a PKCS#12 file that can be opened with the passphrase given: \(OpenSSLErrors.newest)")
        }
        return try OpenSSLErrors.contained { () throws(CertificateError) in
            let container = pkcs12.withUnsafeBytes { bytes in
                var next = bytes.bindMemory(to: UInt8.self).baseAddress
                return d2i_PKCS12(nil, &next, bytes.count)
            }
            guard let container else { throw unreadable() }
            defer { PKCS12_free(container) }
            var (key, own, others): (OpaquePointer?, OpaquePointer?, OpaquePointer?) = (nil, nil, nil)
            guard PKCS12_parse(container, passphrase, &key, &own, &others) == 1 else { throw unreadable() }
            defer {
                X509_free(own)
                while let other = OPENSSL_sk_pop(others) { X509_free(OpaquePointer(other)) }
                OPENSSL_sk_free(others)
            }
            let owned = key.map { PrivateKey($0) }
            guard let owned, let certificate = own.flatMap({ CertificateDecoding.certificate($0) }) else {
                throw CertificateError.invalid("\(name) holds no certificate with its private key")
            }
            return (owned, [certificate] + CertificateDecoding.certificates(of: others))
        }
    }

    package func belongs(to certificate: X509Certificate) -> Bool {
        OpenSSLErrors.contained {
            guard let x509 = CertificateDecoding.x509(certificate) else { return false }
            defer { X509_free(x509) }
            return X509_check_private_key(x509, pointer) == 1
        }
    }

    /// Sets the key and its certificates on an SSL_CTX. Returns whether OpenSSL accepted them.
    package func use(for certificate: X509Certificate, chain: [X509Certificate], on context: OpaquePointer) -> Bool {
        OpenSSLErrors.contained {
            guard let own = CertificateDecoding.x509(certificate), let others = OPENSSL_sk_new_null() else { return false }
            defer {
                X509_free(own)
                while let other = OPENSSL_sk_pop(others) { X509_free(OpaquePointer(other)) }
                OPENSSL_sk_free(others)
            }
            for certificate in chain {
                guard let other = CertificateDecoding.x509(certificate) else { return false }
                OPENSSL_sk_push(others, UnsafeRawPointer(other))
            }
            return SSL_CTX_use_cert_and_key(context, own, pointer, others, 1) == 1
        }
    }
}
