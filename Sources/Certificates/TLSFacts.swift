internal import COpenSSL

/// What a TLS connection is, for the metrics.
package struct TLSFacts: Sendable, Hashable {
    /// `TLSv1.2`, `TLSv1.3`.
    package let version: String
    /// The cipher's name in the standards (IANA), such as `TLS_AES_256_GCM_SHA384`.
    package let cipher: String
    /// Whether a TLS session was resumed, and so no certificate shown.
    package let isResumed: Bool
    /// The protocol agreed on by ALPN, such as `h2`.
    package let applicationProtocol: String?

    /// Of an SSL (CURLINFO_TLS_SSL_PTR, backend CURLSSLBACKEND_OPENSSL), read on the thread that drives it while the transfer
    /// holds its connection. `nil` before a cipher is agreed on.
    package init?(ssl: UnsafeMutableRawPointer) {
        let ssl = OpaquePointer(ssl)
        guard let cipher = SSL_get_current_cipher(ssl) else { return nil }
        version = SSL_get_version(ssl).map { String(cString: $0) } ?? ""
        self.cipher = SSL_CIPHER_standard_name(cipher).map { String(cString: $0) } ?? ""
        isResumed = SSL_session_reused(ssl) == 1
        var start: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &start, &count)
        applicationProtocol = start.map { String(decoding: UnsafeBufferPointer(start: $0, count: Int(count)), as: UTF8.self) }
    }

    /// Whether decrypted bytes wait that nobody has read (SSL_pending(3)).
    package static func hasUnread(ssl: UnsafeMutableRawPointer) -> Bool { SSL_pending(OpaquePointer(ssl)) > 0 }

    /// The certificates that the peer sent, its own first; empty for a session resumed from another process.
    package static func peerCertificates(ssl: UnsafeMutableRawPointer) -> [X509Certificate] {
        OpenSSLErrors.contained { CertificateDecoding.certificates(of: SSL_get_peer_cert_chain(OpaquePointer(ssl))) }
    }
}
