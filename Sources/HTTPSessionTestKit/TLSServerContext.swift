import COpenSSL
import Certificates

/// A server's SSL_CTX.
// @unchecked: OpenSSL counts its references atomically, and after `init` threads only make connections from it.
package final class TLSServerContext: @unchecked Sendable {
    package let pointer: OpaquePointer
    /// The protocol list of RFC 7301 with the one entry that the callback selects. Its address is the callback's argument.
    private let chosenProtocol: UnsafeMutableBufferPointer<UInt8>

    package init(_ settings: ServerTLS) throws {
        OpenSSL.prepare()
        guard let context = SSL_CTX_new(TLS_server_method()) else { throw TestServerError(openSSL: "SSL_CTX_new") }
        pointer = context
        let name = Array((settings.applicationProtocol ?? "").utf8.prefix(255))
        chosenProtocol = .allocate(capacity: name.count + 1)
        _ = chosenProtocol.initialize(from: [UInt8(name.count)] + name)
        do { try configure(settings) } catch { throw TestServerError(error) }
    }

    deinit {
        SSL_CTX_free(pointer)
        chosenProtocol.deallocate()
    }

    private func configure(_ settings: ServerTLS) throws {
        if settings.minimumVersion.rawValue < ServerTLS.Version.v1_2.rawValue { SSL_CTX_set_security_level(pointer, 0) }
        SSL_CTX_ctrl(pointer, SSL_CTRL_SET_MIN_PROTO_VERSION, settings.minimumVersion.rawValue, nil)
        SSL_CTX_ctrl(pointer, SSL_CTRL_SET_MAX_PROTO_VERSION, settings.maximumVersion.rawValue, nil)

        try settings.certificateChain.forEachCertificate { index, certificate in
            if index == 0 {
                guard SSL_CTX_use_certificate(pointer, certificate) == 1 else {
                    throw TestServerError(openSSL: "the certificate")
                }
            } else {
                // SSL_CTX_add1_chain_cert, a macro: 1 counts the reference up.
                let code = SSL_CTX_ctrl(pointer, SSL_CTRL_CHAIN_CERT, 1, UnsafeMutableRawPointer(certificate))
                guard code == 1 else { throw TestServerError(openSSL: "the certificate chain") }
            }
        }
        let key = try withMemoryBIO(settings.privateKey.contents()) { PEM_read_bio_PrivateKey($0, nil, nil, nil) }
        defer { EVP_PKEY_free(key) }
        guard let key, SSL_CTX_use_PrivateKey(pointer, key) == 1 else { throw TestServerError(openSSL: "the private key") }

        if settings.resumesSessions {
            SSL_CTX_ctrl(pointer, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_SERVER), nil)
            // Without a session ID context, OpenSSL refuses to resume sessions of clients with certificates.
            SSL_CTX_set_session_id_context(pointer, Array("testkit".utf8), 7)
        } else {
            SSL_CTX_ctrl(pointer, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
            SSL_CTX_set_options(pointer, 1 << 14)  // SSL_OP_NO_TICKET, a cast in C
            SSL_CTX_set_num_tickets(pointer, 0)
        }

        switch settings.clientCertificates {
        case .notRequested: break
        case .requested: SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER) { _, _ in 1 }
        case .required(authorities: nil):
            SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT) { _, _ in 1 }
        case .required(let authorities?):
            SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
            try authorities.forEachCertificate { _, authority in
                X509_STORE_add_cert(SSL_CTX_get_cert_store(pointer), authority)
                SSL_CTX_add_client_CA(pointer, authority)
            }
        }

        if settings.applicationProtocol != nil {
            SSL_CTX_set_alpn_select_cb(
                pointer,
                { _, out, outLength, _, _, argument in
                    guard let list = argument?.assumingMemoryBound(to: UInt8.self) else { return SSL_TLSEXT_ERR_NOACK }
                    out?.pointee = UnsafePointer(list + 1)
                    outLength?.pointee = list[0]
                    return SSL_TLSEXT_ERR_OK
                }, chosenProtocol.baseAddress)
        }
    }

    /// The parameters that the handshake of a connection has negotiated.
    package static func details(of tls: OpaquePointer) -> ReceivedRequest.TLSDetails {
        var certificate: [UInt8]?
        if let peer = SSL_get1_peer_certificate(tls) {
            defer { X509_free(peer) }
            var bytes: UnsafeMutablePointer<UInt8>?
            let count = i2d_X509(peer, &bytes)
            if count > 0 { certificate = Array(UnsafeBufferPointer(start: bytes, count: Int(count))) }
            CRYPTO_free(bytes, nil, 0)
        }
        return ReceivedRequest.TLSDetails(
            version: String(cString: SSL_get_version(tls)),
            serverName: SSL_get_servername(tls, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) },
            isResumed: SSL_session_reused(tls) == 1, clientCertificate: certificate)
    }
}
