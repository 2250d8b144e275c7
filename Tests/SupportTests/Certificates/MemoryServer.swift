import COpenSSL
import Certificates
import Glibc
import MemoryCertificates

/// A TLS server of OpenSSL over memory BIOs.
final class MemoryServer {
    struct Settings {
        var versions: ClosedRange<Int32> = TLS1_2_VERSION...TLS1_3_VERSION
        var ciphers: String?
        /// The bits of the Diffie-Hellman group of the server, in TLS 1.2 with a cipher of `DHE`.
        var groupBits: Int?
        var requestsCertificate = false
        var requiresCertificate = false
        /// The only host name that the server accepts; alert 112 for another one.
        var onlyName: String?
        var applicationProtocol: String?
        /// The OCSP response that the server staples.
        var stapledResponse: [UInt8]?
    }

    private let context: OpaquePointer
    private let ssl: OpaquePointer
    private let input: OpaquePointer
    private let output: OpaquePointer
    private(set) var isEstablished = false
    /// The decrypted bytes of the client.
    private(set) var received: [UInt8] = []
    /// The host name that the client has sent.
    private(set) var serverName: String?
    private let onlyName: UnsafeMutablePointer<CChar>?
    private let stapledResponse: [UInt8]?

    init(_ certificate: MemoryCertificate, chain: [MemoryCertificate] = [], _ settings: Settings = Settings()) throws {
        OpenSSL.prepare()
        guard let context = SSL_CTX_new(TLS_server_method()) else { throw MemoryCertificate.Failure() }
        self.context = context
        if settings.versions.lowerBound < TLS1_2_VERSION { SSL_CTX_set_security_level(context, 0) }
        _ = netwatch_ssl_ctx_set_versions(context, settings.versions.lowerBound, settings.versions.upperBound)
        if let ciphers = settings.ciphers { SSL_CTX_set_cipher_list(context, ciphers) }
        if let bits = settings.groupBits, let group = costlyGroup(bits) { SSL_CTX_set0_tmp_dh_pkey(context, group) }
        SSL_CTX_use_certificate(context, certificate.x509)
        SSL_CTX_use_PrivateKey(context, certificate.key)
        for other in chain {
            SSL_CTX_ctrl(context, SSL_CTRL_CHAIN_CERT, 1, UnsafeMutableRawPointer(other.x509))
        }
        // The server sends the given certificates only.
        SSL_CTX_ctrl(context, SSL_CTRL_MODE, 8, nil)
        if settings.requestsCertificate { SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil) }
        if settings.requiresCertificate {
            SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
        }
        onlyName = settings.onlyName.map { strdup($0) } ?? nil
        if let onlyName {
            SSL_CTX_callback_ctrl_servername(context, onlyName)
        }
        if let name = settings.applicationProtocol {
            precondition(name == "h2")
            SSL_CTX_set_alpn_select_cb(
                context,
                { _, out, count, _, _, _ in
                    out?.pointee = protocolH2
                    count?.pointee = 2
                    return SSL_TLSEXT_ERR_OK
                }, nil)
        }
        stapledResponse = settings.stapledResponse
        if stapledResponse != nil { _ = netwatch_ssl_ctx_request_status(context, stapling) }
        guard let ssl = SSL_new(context), let input = BIO_new(BIO_s_mem()), let output = BIO_new(BIO_s_mem()) else {
            throw MemoryCertificate.Failure()
        }
        self.ssl = ssl
        self.input = input
        self.output = output
        SSL_set_bio(ssl, input, output)
        SSL_set_accept_state(ssl)
        // Index 0 is reserved for applications.
        SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Gives the client the response that it asks for. Returns the result of the callback.
    fileprivate func staple(_ ssl: OpaquePointer) -> Int32 {
        guard let response = stapledResponse, let bytes = CRYPTO_malloc(max(1, response.count), #file, #line) else {
            return SSL_TLSEXT_ERR_NOACK
        }
        response.withUnsafeBytes { bytes.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(bytes), byteCount: $0.count) }
        _ = netwatch_ssl_set_stapled_response(ssl, bytes.assumingMemoryBound(to: UInt8.self), response.count)
        return SSL_TLSEXT_ERR_OK
    }

    deinit {
        SSL_free(ssl)
        SSL_CTX_free(context)
        free(onlyName)
    }

    /// Takes bytes of the client, and returns the server's.
    func receive(_ bytes: [UInt8]) -> [UInt8] {
        if !bytes.isEmpty { BIO_write(input, bytes, Int32(bytes.count)) }
        ERR_clear_error()
        defer { ERR_clear_error() }
        if !isEstablished {
            isEstablished = SSL_do_handshake(ssl) == 1
            serverName = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) }
        }
        if isEstablished {
            var buffer = [UInt8](repeating: 0, count: 16_384)
            var count = 0
            while SSL_read_ex(ssl, &buffer, buffer.count, &count) == 1 { received += buffer[..<count] }
        }
        return drain()
    }

    func send(_ plaintext: [UInt8]) -> [UInt8] {
        var written = 0
        SSL_write_ex(ssl, plaintext, plaintext.count, &written)
        return drain()
    }

    func requestRenegotiation() -> [UInt8] {
        SSL_renegotiate(ssl)
        SSL_do_handshake(ssl)
        ERR_clear_error()
        return drain()
    }

    func close() -> [UInt8] {
        SSL_shutdown(ssl)
        return drain()
    }

    private func drain() -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: BIO_ctrl_pending(output))
        guard !bytes.isEmpty else { return [] }
        let count = BIO_read(output, &bytes, Int32(bytes.count))
        return Array(bytes.prefix(Int(max(0, count))))
    }
}

private let stapling: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { ssl, _ in
    guard let ssl, let server = SSL_get_ex_data(ssl, 0) else { return SSL_TLSEXT_ERR_NOACK }
    return Unmanaged<MemoryServer>.fromOpaque(server).takeUnretainedValue().staple(ssl)
}

/// Returns parameters (EVP_PKEY) of Diffie-Hellman with a random odd modulus and a short private key, which costs the server little.
private func costlyGroup(_ bits: Int) -> OpaquePointer? {
    var modulus = (0..<bits / 8).map { UInt8(truncatingIfNeeded: $0 &* 151 &+ 73) }
    modulus[0] |= 0xC0
    modulus[modulus.count - 1] |= 1
    // OSSL_PARAM has numbers in the byte order of the machine.
    modulus.reverse()
    var generator: [UInt8] = [2]
    var privateBits: [Int32] = [224]
    let context = EVP_PKEY_CTX_new_from_name(nil, "DH", nil)
    defer { EVP_PKEY_CTX_free(context) }
    var key: OpaquePointer?
    // OSSL_PARAM keeps the pointers to the names.
    func name(_ text: StaticString) -> UnsafePointer<CChar> {
        UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
    }
    modulus.withUnsafeMutableBufferPointer { modulus in
        generator.withUnsafeMutableBufferPointer { generator in
            privateBits.withUnsafeMutableBufferPointer { privateBits in
                var parameters = [
                    OSSL_PARAM_construct_BN(name("p"), modulus.baseAddress, modulus.count),
                    OSSL_PARAM_construct_BN(name("g"), generator.baseAddress, generator.count),
                    OSSL_PARAM_construct_int(name("priv_len"), privateBits.baseAddress), OSSL_PARAM_construct_end(),
                ]
                EVP_PKEY_fromdata_init(context)
                // EVP_PKEY_KEY_PARAMETERS, a macro.
                EVP_PKEY_fromdata(context, &key, 0x84, &parameters)
            }
        }
    }
    return key
}

// Allocated once: OpenSSL reads the text after the callback has returned.
private nonisolated(unsafe) let protocolH2: UnsafePointer<UInt8> = {
    let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: 2)
    bytes[0] = UInt8(ascii: "h")
    bytes[1] = UInt8(ascii: "2")
    return UnsafePointer(bytes)
}()

/// Lets a server refuse every other host name with alert 112 (SSL_CTX_set_tlsext_servername_callback, a macro).
private func SSL_CTX_callback_ctrl_servername(_ context: OpaquePointer, _ name: UnsafeMutablePointer<CChar>) {
    let callback: @convention(c) (OpaquePointer?, UnsafeMutablePointer<Int32>?, UnsafeMutableRawPointer?) -> Int32 = {
        ssl, alert, argument in
        guard let ssl, let argument, let name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name),
            strcmp(name, argument.assumingMemoryBound(to: CChar.self)) == 0
        else {
            alert?.pointee = 112
            return SSL_TLSEXT_ERR_ALERT_FATAL
        }
        return SSL_TLSEXT_ERR_OK
    }
    SSL_CTX_callback_ctrl(
        context, SSL_CTRL_SET_TLSEXT_SERVERNAME_CB, unsafeBitCast(callback, to: (@convention(c) () -> Void).self))
    SSL_CTX_ctrl(context, SSL_CTRL_SET_TLSEXT_SERVERNAME_ARG, 0, name)
}
