import COpenSSL
import Certificates
import FoundationEssentials
import Glibc

/// A certificate with its key, made for a test.
final class Issued: @unchecked Sendable {
    let x509: OpaquePointer
    let key: OpaquePointer

    /// Creates a certificate.
    ///
    /// - Parameters:
    ///   - name: the common name.
    ///   - issuer: the signer; `nil` for a self-signed certificate.
    ///   - names: the subject alternative names, as OpenSSL writes them: `DNS:a,IP:192.0.2.1`.
    ///   - days: the validity in days from now.
    init(_ name: String, by issuer: Issued? = nil, names: String? = nil, days: ClosedRange<Int> = -1...30, isAuthority: Bool = false) {
        OpenSSL.prepare()
        let context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil)
        defer { EVP_PKEY_CTX_free(context) }
        var pair: OpaquePointer?
        EVP_PKEY_keygen_init(context)
        EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1)
        EVP_PKEY_generate(context, &pair)
        guard let pair, let made = X509_new() else { preconditionFailure("no memory for a certificate") }
        (x509, key) = (made, pair)
        X509_set_version(x509, 2)
        ASN1_INTEGER_set_uint64(X509_get_serialNumber(x509), UInt64.random(in: 1..<UInt64.max >> 1))
        X509_gmtime_adj(X509_getm_notBefore(x509), days.lowerBound * 86_400)
        X509_gmtime_adj(X509_getm_notAfter(x509), days.upperBound * 86_400)
        let text = Array(name.utf8)
        X509_NAME_add_entry_by_NID(X509_get_subject_name(x509), NID_commonName, 0x1000, text, Int32(text.count), -1, 0)
        X509_set_issuer_name(x509, X509_get_subject_name(issuer?.x509 ?? x509))
        X509_set_pubkey(x509, key)
        var extensions = [(NID_basic_constraints, isAuthority ? "critical,CA:TRUE" : "critical,CA:FALSE")]
        if let names { extensions.append((NID_subject_alt_name, names)) }
        for (kind, value) in extensions {
            guard let made = X509V3_EXT_conf_nid(nil, nil, kind, value) else { preconditionFailure(value) }
            X509_add_ext(x509, made, -1)
            X509_EXTENSION_free(made)
        }
        X509_sign(x509, issuer?.key ?? key, EVP_sha256())
    }

    deinit {
        X509_free(x509)
        EVP_PKEY_free(key)
    }

    /// The certificate as a value.
    var certificate: X509Certificate {
        var bytes: UnsafeMutablePointer<UInt8>?
        let count = i2d_X509(x509, &bytes)
        defer { CRYPTO_free(bytes, nil, 0) }
        let data = Data(UnsafeBufferPointer(start: bytes, count: Int(max(0, count))))
        guard let value = try? CertificateDecoding.certificates(in: data, named: "test").first else {
            preconditionFailure("the certificate does not decode")
        }
        return value
    }

    /// A revocation list of this authority with these certificates, in DER.
    func revocationList(_ revoked: [Issued]) -> Data {
        let list = X509_CRL_new()
        defer { X509_CRL_free(list) }
        X509_CRL_set_version(list, 1)
        X509_CRL_set_issuer_name(list, X509_get_subject_name(x509))
        let time = ASN1_TIME_new()
        defer { ASN1_TIME_free(time) }
        X509_gmtime_adj(time, -3_600)
        X509_CRL_set1_lastUpdate(list, time)
        for one in revoked {
            let entry = X509_REVOKED_new()
            X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(one.x509))
            X509_REVOKED_set_revocationDate(entry, time)
            X509_CRL_add0_revoked(list, entry)
        }
        X509_gmtime_adj(time, 86_400)
        X509_CRL_set1_nextUpdate(list, time)
        X509_CRL_sign(list, key, EVP_sha256())
        var bytes: UnsafeMutablePointer<UInt8>?
        let count = i2d_X509_CRL(list, &bytes)
        defer { CRYPTO_free(bytes, nil, 0) }
        return Data(UnsafeBufferPointer(start: bytes, count: Int(max(0, count))))
    }
}

/// A TLS server in memory.
final class MemoryServer {
    struct Settings {
        var versions = TLS1_2_VERSION...TLS1_3_VERSION
        var ciphers: String?
        var requiresClientCertificate = false
        var refusesName = false
        var applicationProtocol: String?
    }

    private let context: OpaquePointer?
    private let ssl: OpaquePointer?
    private(set) var serverName: String?

    /// Creates a server that sends this certificate and the further ones of its chain.
    init(_ own: Issued, chain: [Issued] = [], _ settings: Settings = Settings()) {
        context = SSL_CTX_new(TLS_server_method())
        if settings.versions.lowerBound < TLS1_2_VERSION { SSL_CTX_set_security_level(context, 0) }
        SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(settings.versions.lowerBound), nil)
        SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(settings.versions.upperBound), nil)
        if let ciphers = settings.ciphers { SSL_CTX_set_cipher_list(context, ciphers) }
        SSL_CTX_use_certificate(context, own.x509)
        SSL_CTX_use_PrivateKey(context, own.key)
        for one in chain { SSL_CTX_ctrl(context, SSL_CTRL_CHAIN_CERT, 1, UnsafeMutableRawPointer(one.x509)) }
        if settings.requiresClientCertificate {
            SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT) { _, _ in 1 }
        }
        if settings.refusesName {
            // SSL_CTX_set_tlsext_servername_callback, a macro: alert 112.
            let refuse: @convention(c) (OpaquePointer?, UnsafeMutablePointer<Int32>?, UnsafeMutableRawPointer?) -> Int32 = {
                _, alert, _ in
                alert?.pointee = 112
                return SSL_TLSEXT_ERR_ALERT_FATAL
            }
            SSL_CTX_callback_ctrl(context, SSL_CTRL_SET_TLSEXT_SERVERNAME_CB, unsafeBitCast(refuse, to: (@convention(c) () -> Void).self))
        }
        if settings.applicationProtocol != nil {
            SSL_CTX_set_alpn_select_cb(
                context,
                { _, out, count, list, length, _ in
                    guard let list, length > 1, list[0] < length else { return SSL_TLSEXT_ERR_NOACK }
                    out?.pointee = list + 1
                    count?.pointee = list[0]
                    return SSL_TLSEXT_ERR_OK
                }, nil)
        }
        ssl = SSL_new(context)
        SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()))
        SSL_set_accept_state(ssl)
    }

    deinit {
        SSL_free(ssl)
        SSL_CTX_free(context)
    }

    /// Takes bytes of the client, and returns the answer.
    func answer(_ bytes: [UInt8]) -> [UInt8] {
        if !bytes.isEmpty { BIO_write(SSL_get_rbio(ssl), bytes, Int32(bytes.count)) }
        if SSL_do_handshake(ssl) == 1 {
            var buffer = [UInt8](repeating: 0, count: 4_096)
            let count = SSL_read(ssl, &buffer, Int32(buffer.count))
            if count > 0 { SSL_write(ssl, buffer, count) }
        }
        ERR_clear_error()
        serverName = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) }
        let output = SSL_get_wbio(ssl)
        var answer = [UInt8](repeating: 0, count: BIO_ctrl_pending(output))
        if !answer.isEmpty { BIO_read(output, &answer, Int32(answer.count)) }
        return answer
    }
}
