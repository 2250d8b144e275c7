internal import COpenSSL
internal import EventLoop

/// A TLS client without a socket, for probes: it takes the server's bytes, and returns the bytes to send and the facts.
///
/// Its owner has the socket, and so knows errno, end of file and the number of bytes exactly. The handshake continues with every
/// certificate; ``facts`` has the errors. Not thread-safe: one thread creates, uses and releases it.
///
/// ```
/// handshaking ──→ established ──→ closed (close_notify)
///      └───────────────┴────────→ failed (alert, protocol error)
/// ```
///
/// Release the client as soon as its facts are complete: a handshake in flight takes about 40 kB.
package final class TLSClient {
    package enum State: Hashable, Sendable {
        /// The handshake waits for the server.
        case handshaking
        /// The client has finished the handshake.
        case established
        /// The server has closed its side of the connection by close_notify.
        case closed
        /// The connection cannot be used any more: an alert arrived, or the server breaks the protocol.
        case failed
    }

    /// The result of an event.
    package struct Step: Hashable, Sendable {
        /// The bytes to send to the server, also after a failure: an alert.
        package var bytesToSend: [UInt8]
        /// The decrypted bytes of the application. At most 16 KiB more than the bytes received.
        package var plaintext: [UInt8]
        package var state: State
    }

    /// The maximum number of bytes that a server may send without one byte of the application.
    package static let maximumBytesWithoutPlaintext = 262_144

    package private(set) var state = State.handshaking
    private let notes: TLSHandshakeNotes
    private let context: TLSClientContext.Loaded
    /// Released as soon as the client has failed.
    private var ssl: OpaquePointer?
    private let input: OpaquePointer
    private let output: OpaquePointer
    private var hasStarted = false
    private var firstBytes = HandshakeFirstBytes()
    private var bytesWithoutPlaintext = 0
    /// The processor time of this connection, and of those before it, in nanoseconds.
    package private(set) var nanosecondsSpent: Int64
    private var plaintextCount = 0

    /// Creates a client. Its context loads the authorities if this is its first client.
    ///
    /// - Parameters:
    ///   - context: the trust.
    ///   - serverName: the host that the certificate must name, in ASCII. It is sent to the server too (SNI, RFC 6066 section 3)
    ///     unless it is an address.
    ///   - applicationProtocols: the protocols for ALPN, the preferred one first; none sends no list.
    ///   - verificationTime: the time for which certificates are verified, in seconds since 1970; `nil` for the time at which they
    ///     arrive.
    ///   - nanosecondsSpent: the processor time of earlier connections of the same probe, which share the limit.
    /// - Throws: ``CertificateError`` if the authorities cannot be loaded, or if memory is exhausted.
    package init(
        context: TLSClientContext, serverName: String, applicationProtocols: [String] = [], verificationTime: Int64? = nil,
        nanosecondsSpent: Int64 = 0
    ) throws(CertificateError) {
        let loaded = try context.load()
        self.nanosecondsSpent = nanosecondsSpent
        let name = Self.normalizedName(serverName)
        notes = TLSHandshakeNotes(serverName: name, context: loaded, verificationTime: verificationTime)
        self.context = loaded
        guard let ssl = SSL_new(loaded.pointer), let input = BIO_new(BIO_s_mem()), let output = BIO_new(BIO_s_mem()),
            notes.attach(to: ssl)
        else { throw .invalid("no memory for a TLS client") }
        self.ssl = ssl
        self.input = input
        self.output = output
        SSL_set_bio(ssl, input, output)
        SSL_set_connect_state(ssl)
        OpenSSLErrors.contained {
            // A name that OpenSSL refuses, because it is too long, is not sent. No certificate names it either.
            if !name.isEmpty, !PeerChain.isAddress(name) { netwatch_ssl_set_server_name(ssl, name) }
            let list = applicationProtocols.map { Array($0.utf8) }.filter { 1...255 ~= $0.count }
                .flatMap { [UInt8($0.count)] + $0 }
            if !list.isEmpty { SSL_set_alpn_protos(ssl, list, UInt32(clamping: list.count)) }
        }
    }

    deinit { SSL_free(ssl) }

    /// The facts so far.
    package var facts: TLSHandshakeFacts {
        var facts = notes.facts
        firstBytes.describe(in: &facts)
        return facts
    }

    /// The end of the handshake as far as the client knows it; `nil` while the handshake waits.
    package var handshakeEnd: TLSHandshakeEnd? {
        switch state {
        case .handshaking: nil
        case .established: .completed
        case .closed: notes.facts.isComplete ? .completed : .endOfFile
        case .failed: .protocolError
        }
    }

    /// Whether the server may still refuse the established connection: in TLS 1.3, a client without a certificate finishes the
    /// handshake before the server can demand one (alert 116). Read until one round trip has passed, or until this is `false`.
    package var mayStillBeRefused: Bool {
        state == .established && notes.facts.version == "TLSv1.3" && notes.facts.isCertificateRequested && !notes.isAccepted
    }

    /// Whether the server has closed its side of the connection by close_notify. An end of file without it may be an attack
    /// (RFC 8446 section 6.1).
    package var hasReceivedCloseNotify: Bool { notes.hasReceivedCloseNotify }

    // MARK: Events

    /// Starts the handshake. Returns the hello; nothing if it was called before.
    package func start() -> [UInt8] {
        guard !hasStarted else { return [] }
        hasStarted = true
        var plaintext: [UInt8] = []
        advance(&plaintext)
        let hello = drain()
        firstBytes.noteSent(hello)
        return hello
    }

    /// Receives bytes of the server.
    package func receive(_ bytes: UnsafeRawBufferPointer) -> Step {
        var plaintext: [UInt8] = []
        var bytes = bytes[...]
        // OpenSSL takes all bytes of each piece before the next one, so the BIO stays small.
        while !bytes.isEmpty, hasStarted, state == .handshaking || state == .established {
            let piece = UnsafeRawBufferPointer(rebasing: bytes.prefix(2048))
            bytes = bytes.dropFirst(piece.count)
            receive(piece, &plaintext)
        }
        return Step(bytesToSend: drain(), plaintext: plaintext, state: state)
    }

    /// Receives bytes of the server.
    package func receive(_ bytes: [UInt8]) -> Step { bytes.withUnsafeBytes { receive($0) } }

    /// Encrypts bytes of the application. Returns the bytes to send; none if the connection is not established, or fails now.
    package func send(_ plaintext: [UInt8]) -> [UInt8] {
        guard let ssl, state == .established, !plaintext.isEmpty else { return [] }
        ERR_clear_error()
        defer { ERR_clear_error() }
        var written = 0
        if SSL_write_ex(ssl, plaintext, plaintext.count, &written) != 1 { fail(openSSLReason) }
        return drain()
    }

    /// Closes this side of the connection. Returns the bytes to send: close_notify, or nothing if there is no connection.
    package func close() -> [UInt8] {
        guard let ssl, state == .established || state == .closed, notes.facts.isComplete else { return [] }
        ERR_clear_error()
        defer { ERR_clear_error() }
        SSL_shutdown(ssl)
        return drain()
    }

    // MARK: OpenSSL

    private func receive(_ piece: UnsafeRawBufferPointer, _ plaintext: inout [UInt8]) {
        notes.facts.bytesReceived += piece.count
        firstBytes.noteReceived(piece)
        let count = plaintext.count
        let began = ProcessorClock.ofThread()
        guard BIO_write(input, piece.baseAddress, Int32(piece.count)) == Int32(piece.count) else {
            return fail(TLSProtocolError(reason: 0, text: "no memory"))
        }
        advance(&plaintext)
        plaintextCount += plaintext.count - count
        nanosecondsSpent += max(0, ProcessorClock.ofThread() - began)
        checkCost()
        bytesWithoutPlaintext = plaintext.count > count ? 0 : bytesWithoutPlaintext + piece.count
        guard bytesWithoutPlaintext > Self.maximumBytesWithoutPlaintext, state == .handshaking || state == .established else {
            return
        }
        let limit = Self.maximumBytesWithoutPlaintext
        fail(
            TLSProtocolError(
                reason: 0,
                text: state == .handshaking
                    ? "the handshake is longer than \(limit) bytes" : "\(limit) bytes of messages without data"))
    }

    /// Ends a connection whose processor time is above the limit.
    private func checkCost() {
        let limit = HandshakeCost.limit(plaintextBytes: plaintextCount, listBytes: context.authorities?.revocationListBytes ?? 0)
        guard nanosecondsSpent > limit, notes.facts.excess == nil else { return }
        let (spent, allowed) = (nanosecondsSpent / 1_000_000, limit / 1_000_000)
        notes.facts.excess = "takes \(spent) ms of this machine's processor for TLS, and the limit is \(allowed) ms"
        if state == .handshaking || state == .established {
            fail(TLSProtocolError(reason: 0, text: "the limit of processor time"))
        }
    }

    /// Lets OpenSSL act on the input until it needs more.
    private func advance(_ plaintext: inout [UInt8]) {
        guard let ssl else { return }
        // SSL_get_error(3) requires an empty error queue.
        ERR_clear_error()
        defer { ERR_clear_error() }
        if state == .handshaking {
            let result = SSL_do_handshake(ssl)
            guard result == 1 else { return stop(SSL_get_error(ssl, result)) }
            notes.facts.isComplete = true
            notes.facts.noteParameters(of: ssl)
            state = .established
        }
        let size = 16_384
        withUnsafeTemporaryAllocation(byteCount: size, alignment: 1) { buffer in
            var count = 0
            while SSL_read_ex(ssl, buffer.baseAddress, size, &count) == 1 {
                plaintext += buffer[..<count]
                notes.isAccepted = true
            }
        }
        stop(SSL_get_error(ssl, 0))
    }

    /// Decides what an unfinished call of OpenSSL means.
    private func stop(_ error: Int32) {
        switch error {
        case SSL_ERROR_WANT_READ: break
        case SSL_ERROR_ZERO_RETURN: state = .closed
        default: fail(notes.facts.alert?.isFatal == true ? nil : openSSLReason)
        }
    }

    /// OpenSSL's newest error. Its reasons from 1,000 on are alerts of the server.
    private var openSSLReason: TLSProtocolError {
        let reason = ERR_GET_REASON(ERR_peek_last_error())
        return TLSProtocolError(reason: reason, text: certificateFault(reason) ?? OpenSSLErrors.newest)
    }

    /// The fault of the certificates with which the handshake fails. OpenSSL's text is that of its decoder, such as "ASN1 lib".
    private func certificateFault(_ reason: Int32) -> String? {
        guard notes.hasReceivedCertificates, !notes.facts.isComplete else { return nil }
        let isWithoutKey = reason == SSL_R_UNABLE_TO_FIND_PUBLIC_KEY_PARAMETERS
        guard notes.facts.certificate == nil else {
            return isWithoutKey ? "the public key of its certificate cannot be parsed" : nil
        }
        // OpenSSL finds out that there is no certificate when it looks for the key.
        return isWithoutKey ? "it sends no certificate" : "its certificate cannot be parsed"
    }

    private func fail(_ error: TLSProtocolError?) {
        notes.facts.protocolError = error
        if let error, let excess = HandshakeCost.excess(ofError: error.reason) { notes.facts.excess = excess }
        // Before TLS 1.3, a fatal close_notify is an alert like others.
        if error?.reason == SSL_AD_REASON_OFFSET { notes.facts.noteAlert(level: SSL3_AL_FATAL, description: 0, isTLS13: false) }
        state = .failed
        pendingAlert = drain()
        SSL_free(ssl)
        ssl = nil
    }

    /// The last bytes to send of a client that has failed.
    private var pendingAlert: [UInt8] = []

    /// Returns the bytes that OpenSSL has written.
    private func drain() -> [UInt8] {
        guard ssl != nil else {
            defer { pendingAlert = [] }
            return pendingAlert
        }
        let count = min(BIO_ctrl_pending(output), Int(Int32.max))
        guard count > 0 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            initialized = Int(max(0, BIO_read(output, buffer.baseAddress, Int32(count))))
        }
    }

    /// Returns a host without brackets, zone and final dot, in lower case.
    private static func normalizedName(_ host: String) -> String {
        var name = host.prefix { $0 != "%" }
        if name.hasPrefix("["), name.hasSuffix("]") { name = name.dropFirst().dropLast() }
        if name.hasPrefix("[") { name = name.dropFirst() }
        if name.hasSuffix(".") { name = name.dropLast() }
        return name.lowercased()
    }
}
