internal import COpenSSL
internal import Glibc

/// The facts of one client's handshake, which OpenSSL's callbacks complete. It belongs to one SSL, whose ex_data refers to it.
final class TLSHandshakeNotes {
    var facts: TLSHandshakeFacts
    /// Whether the server has closed its side of the connection by an alert (RFC 8446 section 6.1).
    var hasReceivedCloseNotify = false
    /// Whether a message of the server shows that it has accepted the client's part of the handshake.
    var isAccepted = false
    /// Whether the server's message with its certificates has arrived.
    private(set) var hasReceivedCertificates = false
    private let context: TLSClientContext.Loaded
    private let verificationTime: Int64?
    /// The digest of the server's Certificate message; `nil` before it, or if OpenSSL fails.
    private var chainDigest: SIMD4<UInt64>?

    /// Creates the notes of a handshake. `verificationTime` is the time for which certificates are verified, in seconds since 1970;
    /// `nil` for the time at which they arrive.
    init(serverName: String, context: TLSClientContext.Loaded, verificationTime: Int64?) {
        facts = TLSHandshakeFacts(serverName: serverName)
        facts.clientSubject = context.clientSubject
        self.context = context
        self.verificationTime = verificationTime
    }

    /// Installs the notes in an SSL, which does not retain them. - Returns: Whether OpenSSL accepted them.
    func attach(to ssl: OpaquePointer) -> Bool {
        // Index 0 is reserved for applications (SSL_set_app_data, a macro).
        SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque()) == 1
    }

    static func of(_ ssl: OpaquePointer) -> TLSHandshakeNotes? {
        SSL_get_ex_data(ssl, 0).map { Unmanaged<TLSHandshakeNotes>.fromOpaque($0).takeUnretainedValue() }
    }

    // MARK: OpenSSL's callbacks

    /// Called for each handshake message that arrives, with its header of 4 bytes, before OpenSSL acts on it.
    func handshakeMessageArrived(_ message: UnsafeRawBufferPointer, isTLS13: Bool) {
        switch message.first {
        case UInt8(SSL3_MT_SERVER_HELLO) where message.count >= 6:
            // TLS 1.3 has the number of TLS 1.2 here (RFC 8446 section 4.1.3).
            facts.version =
                switch (message[4], message[5]) {
                case (3, 0): "SSLv3"
                case (3, 1): "TLSv1"
                case (3, 2): "TLSv1.1"
                default: facts.version
                }
        case UInt8(SSL3_MT_CERTIFICATE):
            hasReceivedCertificates = true
            chainDigest = context.digest(of: message)
        case UInt8(SSL3_MT_CERTIFICATE_REQUEST): facts.isCertificateRequested = true
        case UInt8(SSL3_MT_NEWSESSION_TICKET) where isTLS13 && facts.isComplete: isAccepted = true
        default: break
        }
    }

    /// Called for each alert that arrives.
    func alertArrived(level: UInt8, description: UInt8, isTLS13: Bool) {
        guard Int32(description) != SSL3_AD_CLOSE_NOTIFY else {
            hasReceivedCloseNotify = true
            return
        }
        facts.noteAlert(level: Int32(level), description: Int32(description), isTLS13: isTLS13)
    }

    /// Called when the client's certificate is about to be sent. A server whose certificate is not accepted learns nothing of the client.
    func identityRequested(_ ssl: OpaquePointer) {
        // OpenSSL asks for the identity before it calls back for the stapled response, which has arrived.
        readStapledResponse(of: ssl)
        guard facts.clientSubject != nil, !context.isInsecure, !facts.isCertificateAccepted else { return }
        SSL_certs_clear(ssl)
        (facts.clientSubject, facts.isIdentityWithheld) = (nil, true)
    }

    /// Called with the server's certificates, which ``handshakeMessageArrived(_:isTLS13:)`` has seen in one message before.
    func certificatesArrived(_ chain: PeerChain, ssl: OpaquePointer) {
        facts.noteParameters(of: ssl)
        facts.chain = context.facts(
            of: chain, chainDigest, for: facts.serverName, at: verificationTime ?? Int64(time(nil)))
    }

    /// Verifies the OCSP response that the server has stapled, once. Called after its certificates.
    func readStapledResponse(of ssl: OpaquePointer) {
        var start: UnsafePointer<UInt8>?
        let count = netwatch_ssl_stapled_response(ssl, &start)
        guard facts.stapledResponse == nil, count >= 0, let start else { return }
        facts.stapledResponse = OpenSSLErrors.contained {
            context.stapledResponse(
                UnsafeRawBufferPointer(start: start, count: count), to: PeerChain(of: ssl), chainDigest,
                at: verificationTime ?? Int64(time(nil)))
        }
    }
}

extension TLSHandshakeFacts {
    /// Reads version, cipher and ALPN.
    mutating func noteParameters(of ssl: OpaquePointer) {
        version = SSL_get_version(ssl).map { String(cString: $0) }
        if let cipher = SSL_get_current_cipher(ssl) ?? SSL_get_pending_cipher(ssl) {
            self.cipher = SSL_CIPHER_standard_name(cipher).map { String(cString: $0) }
        }
        var start: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &start, &count)
        applicationProtocol = start.map {
            String(decoding: UnsafeBufferPointer(start: $0, count: Int(count)), as: UTF8.self)
        }
    }

    /// Notes an alert of the server, except close_notify. A warning does not replace a fatal alert.
    mutating func noteAlert(level: Int32, description: Int32, isTLS13: Bool) {
        // TLS 1.3 ignores the level (RFC 8446 section 6); 90 is user_canceled.
        let isFatal = level == SSL3_AL_FATAL || isTLS13 && description != 90
        guard isFatal || alert?.isFatal != true else { return }
        alert = TLSAlert(number: description, text: TLSAlert.text(of: description), isFatal: isFatal)
    }
}
