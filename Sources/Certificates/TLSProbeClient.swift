internal import COpenSSL
internal import Glibc

/// A TLS client without a socket: the owner passes the server's bytes, and sends those that the client returns. It serves probes,
/// which look at a server and trust it with nothing.
///
/// Only one thread uses a client. A handshake takes about 39 kB (OpenSSL 3.0); ``finish()`` frees them.
package final class TLSProbeClient {
    /// The progress of a client.
    package enum State: Hashable, Sendable {
        case handshaking
        /// The handshake is complete, and application data may be exchanged.
        case established
        /// The server has closed its side by the alert close_notify (RFC 8446 section 6.1).
        case closed
        case failed
    }

    package private(set) var state = State.handshaking
    /// The facts so far. The certificate is read when the handshake ends.
    package private(set) var facts = TLSHandshakeFacts()
    private var ssl: OpaquePointer?
    private var hasStarted = false
    private let context: TLSProbeContext
    private static let firstBytesLimit = 32
    private static let errorLimit = 20

    /// Creates a client.
    ///
    /// - Parameters:
    ///   - context: the trust.
    ///   - serverName: the name that the certificate must have, and that the server receives (RFC 6066 section 3); or an address,
    ///     which is only compared.
    ///   - protocols: the names of ALPN in order of preference, each of 1 to 255 bytes.
    /// - Returns: `nil` without memory.
    package init?(_ context: TLSProbeContext, serverName: String, isAddress: Bool, protocols: [String] = []) {
        guard let ssl = SSL_new(context.pointer), let input = BIO_new(BIO_s_mem()), let output = BIO_new(BIO_s_mem()) else {
            return nil
        }
        self.ssl = ssl
        self.context = context
        SSL_set_bio(ssl, input, output)
        SSL_set_connect_state(ssl)
        SSL_set_ex_data(ssl, TLSProbeCallbacks.index, Unmanaged.passUnretained(self).toOpaque())
        if isAddress {
            _ = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), serverName)
        } else {
            SSL_set_hostflags(ssl, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT))
            _ = SSL_set1_host(ssl, serverName)
            _ = netwatch_ssl_set_server_name(ssl, serverName)
        }
        let list = protocols.flatMap { name in
            let bytes = name.utf8.prefix(255)
            return bytes.isEmpty ? [] : [UInt8(bytes.count)] + bytes
        }
        if !list.isEmpty { _ = SSL_set_alpn_protos(ssl, list, UInt32(list.count)) }
    }

    deinit { SSL_free(ssl) }

    /// Frees the connection. The facts stay.
    package func finish() {
        SSL_free(ssl)
        ssl = nil
    }

    /// Begins the handshake: ``takeOutput()`` then returns the hello.
    package func start() { advance() }

    /// Takes bytes of the server, and returns the decrypted application data in them.
    package func receive(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        guard let ssl, state == .handshaking || state == .established, !bytes.isEmpty else { return [] }
        if state == .handshaking {
            if facts.receivedBytes < Self.firstBytesLimit { noteFirst(bytes) }
            facts.receivedBytes += bytes.count
        }
        _ = BIO_write(SSL_get_rbio(ssl), bytes.baseAddress, Int32(clamping: bytes.count))
        advance()
        return state == .established ? read() : []
    }

    /// Encrypts application data: ``takeOutput()`` then returns it.
    package func send(_ data: [UInt8]) {
        guard let ssl, state == .established, !data.isEmpty else { return }
        OpenSSLErrors.contained { _ = SSL_write(ssl, data, Int32(clamping: data.count)) }
    }

    /// Sends the alert close_notify: ``takeOutput()`` then returns it.
    package func close() {
        guard let ssl, state == .established else { return }
        OpenSSLErrors.contained { _ = SSL_shutdown(ssl) }
    }

    /// Returns the bytes that the owner must send.
    package func takeOutput() -> [UInt8] {
        guard let ssl, let output = SSL_get_wbio(ssl) else { return [] }
        let count = BIO_ctrl_pending(output)
        guard count > 0 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            initialized = Int(max(0, BIO_read(output, buffer.baseAddress, Int32(clamping: count))))
        }
    }

    private func advance() {
        guard let ssl, state == .handshaking else { return }
        OpenSSLErrors.contained {
            // The queue must be empty before an operation whose result SSL_get_error(3) interprets.
            ERR_clear_error()
            let result = SSL_do_handshake(ssl)
            if result == 1 {
                facts.isComplete = true
                state = .established
                readFacts()
            } else {
                interpret(SSL_get_error(ssl, result))
            }
        }
    }

    private func read() -> [UInt8] {
        guard let ssl else { return [] }
        var data: [UInt8] = []
        OpenSSLErrors.contained {
            var buffer = [UInt8](repeating: 0, count: 16_384)
            while true {
                ERR_clear_error()
                let count = SSL_read(ssl, &buffer, Int32(buffer.count))
                guard count > 0 else {
                    interpret(SSL_get_error(ssl, count))
                    break
                }
                data += buffer[..<Int(count)]
            }
        }
        return data
    }

    private func interpret(_ error: Int32) {
        switch error {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: break
        case SSL_ERROR_ZERO_RETURN: state = .closed
        default:
            let code = ERR_peek_error()
            if code != 0, facts.alert == nil {
                facts.reason = ERR_GET_REASON(code)
                facts.reasonText = ERR_reason_error_string(code).map { String(cString: $0) } ?? ""
            }
            state = .failed
            readFacts()
        }
    }

    private func noteFirst(_ bytes: UnsafeRawBufferPointer) {
        let missing = Self.firstBytesLimit - facts.receivedBytes
        let first = (facts.firstBytes ?? pending) + bytes.prefix(missing)
        pending = first
        // A record begins with its type and the major version 3 (RFC 8446 section 5.1). An echo is a record, but not an answer.
        let isRecord = first.isEmpty || (20...23).contains(first[0]) && (first.count < 2 || first[1] == 3)
        if !isRecord { facts.firstBytes = first }
    }
    private var pending: [UInt8] = []

    // MARK: Facts

    func verificationFailed(code: Int32, depth: Int32) {
        guard facts.verifyErrors.count < Self.errorLimit, !facts.verifyErrors.contains(where: { $0.code == code }) else { return }
        let text = X509_verify_cert_error_string(Int(code)).map { String(cString: $0) } ?? "error \(code)"
        facts.verifyErrors.append(TLSHandshakeFacts.VerifyError(code: code, depth: depth, text: text))
    }

    func certificateWasRequested() { facts.isCertificateRequested = true }

    func alertArrived(level: Int32, description: Int32) {
        if level == SSL3_AL_FATAL { facts.alert = UInt8(clamping: description) }
    }

    private func readFacts() {
        guard let ssl else { return }
        if let cipher = SSL_get_current_cipher(ssl) {
            facts.version = SSL_get_version(ssl).map { String(cString: $0) }
            facts.cipher = SSL_CIPHER_standard_name(cipher).map { String(cString: $0) }
        }
        var start: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &start, &count)
        facts.applicationProtocol = start.map {
            String(decoding: UnsafeBufferPointer(start: $0, count: Int(count)), as: UTF8.self)
        }
        if facts.certificate == nil { facts.certificate = CertificateReading.certificate(of: SSL_get_peer_cert_chain(ssl)) }
    }
}
