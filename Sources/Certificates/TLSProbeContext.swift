internal import COpenSSL

/// The trust and the protocol of handshakes that only look at a server: an SSL_CTX.
///
/// The handshake continues with a certificate that is not valid, so that all facts are known; the errors of the verification are
/// collected. Sessions are never resumed, because a resumed one verifies nothing.
// @unchecked: OpenSSL counts the references of an SSL_CTX atomically, and nothing is changed after `init`.
package final class TLSProbeContext: @unchecked Sendable {
    let pointer: OpaquePointer
    private let store: TrustStore

    /// Creates a context. Reads the files of the system's authorities.
    package init(_ authorities: Authorities) throws(CertificateError) {
        store = try TrustStore.of(authorities)
        guard let context = SSL_CTX_new(TLS_client_method()) else { throw .invalid("no memory for TLS") }
        pointer = context
        _ = netwatch_ssl_ctx_set_versions(context, Int32(TLS1_2_VERSION), 0)
        SSL_CTX_set1_cert_store(context, store.store)
        X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), store.flags)
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, TLSProbeCallbacks.verify)
        SSL_CTX_set_client_cert_cb(context, TLSProbeCallbacks.certificateRequested)
        SSL_CTX_set_info_callback(context, TLSProbeCallbacks.info)
        netwatch_ssl_ctx_prepare_probes(context)
    }

    deinit { SSL_CTX_free(pointer) }
}

/// The callbacks of ``TLSProbeContext``. Each finds the client of its SSL; none blocks, throws or traps.
enum TLSProbeCallbacks {
    /// The index of the client in an SSL's ex_data. The client releases itself.
    static let index = netwatch_ssl_new_index()

    static func client(of ssl: OpaquePointer?) -> TLSProbeClient? {
        guard let ssl, let held = SSL_get_ex_data(ssl, index) else { return nil }
        return Unmanaged<TLSProbeClient>.fromOpaque(held).takeUnretainedValue()
    }

    /// Collects an error of the verification, and continues (SSL_CTX_set_verify(3)).
    static let verify: @convention(c) (Int32, OpaquePointer?) -> Int32 = { isValid, context in
        guard isValid == 0, let context else { return 1 }
        let ssl = X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx()).map { OpaquePointer($0) }
        client(of: ssl)?.verificationFailed(
            code: X509_STORE_CTX_get_error(context), depth: X509_STORE_CTX_get_error_depth(context))
        return 1
    }

    /// Notes the request for a client certificate, and continues without one (SSL_CTX_set_client_cert_cb(3)).
    static let certificateRequested:
        @convention(c) (OpaquePointer?, UnsafeMutablePointer<OpaquePointer?>?, UnsafeMutablePointer<OpaquePointer?>?) -> Int32 = {
            ssl, _, _ in
            client(of: ssl)?.certificateWasRequested()
            return 0
        }

    /// Notes the alerts of the server (SSL_CTX_set_info_callback(3)).
    static let info: @convention(c) (OpaquePointer?, Int32, Int32) -> Void = { ssl, place, value in
        guard place & SSL_CB_ALERT != 0, place & SSL_CB_READ != 0 else { return }
        client(of: ssl)?.alertArrived(level: value >> 8, description: value & 0xFF)
    }
}
