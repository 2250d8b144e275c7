internal import COpenSSL

/// What is asked of OpenSSL's objects that others have made: libcurl's SSL_CTX before a handshake, its SSL afterwards.
package enum TLSContext {
    /// TLS 1.3 as a bound of an SSL_CTX's versions.
    package static let v1_3 = Int(TLS1_3_VERSION)

    /// The newest version that an SSL_CTX allows; 0: any.
    package static func maximumVersion(of context: OpaquePointer) -> Int { netwatch_ssl_ctx_maximum_version(context) }

    /// Whether the handshake of an SSL has ended with a trusted peer.
    package static func hasTrustedPeer(_ ssl: OpaquePointer) -> Bool {
        SSL_get0_peer_certificate(ssl) != nil && SSL_get_verify_result(ssl) == Int(X509_V_OK)
    }

    /// What an alert says, in OpenSSL's words and, where OpenSSL 3.0 has none, those of RFC 8446 section 6.2.
    package static func text(ofAlert description: Int32) -> String {
        switch description {
        case 109: "missing extension"
        case 116: "certificate required"
        default: SSL_alert_desc_string_long(description).map { String(cString: $0) } ?? "alert \(description)"
        }
    }
}
