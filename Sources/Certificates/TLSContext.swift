internal import COpenSSL

/// Queries of OpenSSL objects that libcurl created: its SSL_CTX before a handshake, its SSL afterwards.
package enum TLSContext {
    /// OpenSSL's number of TLS 1.3.
    package static let v1_3 = Int(TLS1_3_VERSION)

    /// Returns the newest version that an SSL_CTX allows; 0 for any.
    package static func maximumVersion(of context: OpaquePointer) -> Int { netwatch_ssl_ctx_maximum_version(context) }

    /// Returns whether the handshake of an SSL has ended with a trusted peer.
    package static func hasTrustedPeer(_ ssl: OpaquePointer) -> Bool {
        SSL_get0_peer_certificate(ssl) != nil && SSL_get_verify_result(ssl) == Int(X509_V_OK)
    }

    /// Returns the text of an alert: OpenSSL's own, or that of RFC 8446 section 6.2 if OpenSSL 3.0 has none.
    package static func text(ofAlert description: Int32) -> String {
        switch description {
        case 109: "missing extension"
        case 116: "certificate required"
        default: SSL_alert_desc_string_long(description).map { String(cString: $0) } ?? "alert \(description)"
        }
    }
}
