internal import COpenSSL

/// The properties of a TLS connection, for the metrics.
package struct TLSFacts: Sendable, Hashable {
    /// The version: `TLSv1.2`, `TLSv1.3`.
    package let version: String
    /// The cipher's name in the standards (IANA), such as `TLS_AES_256_GCM_SHA384`.
    package let cipher: String
    /// Whether a TLS session was resumed, so that the peer sent no certificate.
    package let isResumed: Bool
    /// The protocol agreed on by ALPN, such as `h2`.
    package let applicationProtocol: String?

    /// Reads the properties of an SSL (CURLINFO_TLS_SSL_PTR, backend CURLSSLBACKEND_OPENSSL). Call it on the thread that drives
    /// the SSL, while the transfer holds its connection. `nil` before a cipher is negotiated.
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

    /// Returns whether decrypted bytes are still unread (SSL_pending(3)).
    package static func hasUnread(ssl: UnsafeMutableRawPointer) -> Bool { SSL_pending(OpaquePointer(ssl)) > 0 }
}
