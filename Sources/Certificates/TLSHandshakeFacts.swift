internal import COpenSSL

/// The facts of one TLS handshake, complete or not.
///
/// Recordings keep them, so that a replay judges the handshake again.
package struct TLSHandshakeFacts: Hashable, Sendable, Codable {
    /// The maximum number of ``firstBytes``.
    package static let maximumFirstBytes = 32

    /// The name or address that the certificate must have, in lower case, without brackets, zone and final dot.
    package var serverName: String

    // MARK: bytes

    /// The number of bytes that the server has sent.
    package var bytesReceived = 0
    /// The server's first bytes, if they are not TLS; `nil` if they are, or if there are none.
    package var firstBytes: [UInt8]?
    /// Whether ``firstBytes`` are the bytes that the client has sent: the server is an echo server.
    package var isEcho = false
    /// Whether the server has sent at least the beginning of a TLS record (RFC 8446 section 5.1).
    package var hasBegunRecord = false

    // MARK: parameters

    /// Whether the client has finished the handshake. A server of TLS 1.3 may still refuse the client afterwards.
    package var isComplete = false
    /// The version: `TLSv1.2`, `TLSv1.3`, or an older one that the server offers and that is refused; `nil` before the server's
    /// hello.
    package var version: String?
    /// The cipher's name in the standards (IANA), such as `TLS_AES_256_GCM_SHA384`.
    package var cipher: String?
    /// The protocol agreed on by ALPN (RFC 7301), such as `h2`.
    package var applicationProtocol: String?
    /// Whether the server requests a certificate from the client (RFC 8446 section 4.3.2).
    package var isCertificateRequested = false
    /// The subject of the certificate that the server receives if it requests one; `nil` without one.
    package var clientSubject: String?
    /// Whether the server did not receive the client certificate, because its own is not accepted; otherwise `nil`.
    package var isIdentityWithheld: Bool?

    // MARK: certificates

    /// The server's own certificate; `nil` if it sent none, or none that can be decoded.
    package var certificate: TLSCertificateFacts?
    /// The number of certificates that the server sent, its own included.
    package var chainLength = 0
    /// The earliest end of the validity of the certificates from the server's own to a trusted authority, in seconds since 1970. If they
    /// lead to none, that of all certificates that the server sent.
    package var chainNotAfter: Int64?
    /// The errors of the chain and of the name, in the order in which they were found, also if the context is insecure.
    package var verificationErrors: [ChainError] = []
    /// Whether the server's own certificate names ``serverName``; `nil` without a certificate.
    package var nameMatches: Bool?
    /// The OCSP response that the server has stapled; `nil` without one.
    package var stapledResponse: StapledResponse?

    // MARK: the end

    /// The last alert of the server except close_notify: a fatal one, or a warning.
    package var alert: TLSAlert?
    /// The reason for which the client has ended the handshake or the connection.
    package var protocolError: TLSProtocolError?
    /// Why the client has ended the handshake or the connection because of its cost, as the end of a sentence about the server: ``sends a
    /// certificate with …``; `nil` if it has not.
    package var excess: String?

    package init(serverName: String) { self.serverName = serverName }

    /// Whether the server's certificate is accepted unless every certificate is. Without it, the server receives no request and no client
    /// certificate.
    package var isCertificateAccepted: Bool {
        verificationErrors.isEmpty && nameMatches != false && stapledResponse?.status != .revoked
    }

    /// Whether the server sent only its own certificate, whose issuer is not known: X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY
    /// for a certificate that another authority issued. The server's chain then lacks an intermediate certificate, or the issuer is a
    /// root that is not trusted: the certificate alone does not say which.
    package var isMissingIntermediate: Bool {
        chainLength == 1 && certificate?.isSelfIssued == false
            && verificationErrors.contains { $0.code == ChainError.unknownIssuer }
    }
}

extension TLSHandshakeFacts {
    /// The time at which the first of these certificates expires, in seconds since 1970: the server's own, and those with which it was
    /// verified; `nil` if it is not known.
    package var expiration: Int64? { [certificate?.notAfter, chainNotAfter].compactMap { $0 }.min() }
}

/// The facts of a server's own certificate.
package struct TLSCertificateFacts: Hashable, Sendable, Codable {
    /// The maximum number of ``names``.
    package static let maximumNames = 100

    /// The subject's name on one line (RFC 2253), at most 1,024 bytes.
    package var subject: String
    /// The issuer's name on one line (RFC 2253), at most 1,024 bytes.
    package var issuer: String
    /// Whether subject and issuer are the same.
    package var isSelfIssued: Bool
    /// The first host names and addresses of the certificate (RFC 5280 section 4.2.1.6), at most ``maximumNames``.
    package var names: [String]
    /// The number of all host names and addresses of the certificate.
    package var nameCount: Int
    /// The beginning of the validity, in seconds since 1970; `nil` if the time cannot be decoded.
    package var notBefore: Int64?
    /// The end of the validity, in seconds since 1970; `nil` if the time cannot be decoded.
    package var notAfter: Int64?
    /// The certificate's SHA-256, in hexadecimal.
    package var sha256: String
    /// The serial number in hexadecimal, with an even number of digits.
    package var serialNumber: String

    package init(
        subject: String, issuer: String, isSelfIssued: Bool, names: [String], nameCount: Int, notBefore: Int64?, notAfter: Int64?,
        sha256: String, serialNumber: String
    ) {
        self.subject = subject
        self.issuer = issuer
        self.isSelfIssued = isSelfIssued
        self.names = names
        self.nameCount = nameCount
        self.notBefore = notBefore
        self.notAfter = notAfter
        self.sha256 = sha256
        self.serialNumber = serialNumber
    }
}

/// An alert that a server has sent (RFC 8446 section 6).
package struct TLSAlert: Hashable, Sendable, Codable {
    /// The description's number, such as 40 for handshake_failure.
    package var number: Int32
    /// The description's text, such as `handshake failure`.
    package var text: String
    /// Whether the server has ended the connection with this alert.
    package var isFatal: Bool

    package init(number: Int32, text: String, isFatal: Bool = true) {
        self.number = number
        self.text = text
        self.isFatal = isFatal
    }

    /// Returns the text of a description: OpenSSL's own, or that of RFC 8446 section 6.2 if OpenSSL 3.0 has none.
    package static func text(of description: Int32) -> String {
        switch description {
        case 109: "missing extension"
        case 116: "certificate required"
        default: SSL_alert_desc_string_long(description).map { String(cString: $0) } ?? "alert \(description)"
        }
    }
}

/// The reason for which a client has ended a handshake or a connection itself.
package struct TLSProtocolError: Hashable, Sendable, Codable {
    /// The reason's number, SSL_R_… (openssl/sslerr.h); 0 for a limit of this client.
    package var reason: Int32
    /// The reason's text.
    package var text: String

    package init(reason: Int32, text: String) {
        self.reason = reason
        self.text = text
    }
}

/// The event that ended a TLS handshake.
package enum TLSHandshakeEnd: Hashable, Sendable, Codable {
    /// The client has finished the handshake.
    case completed
    /// The probe's deadline has passed.
    case deadline
    /// The server has closed the connection: end of file, or close_notify.
    case endOfFile
    /// The system has reported an errno, such as ECONNRESET.
    case systemError(Int32)
    /// An alert of the server, or ``TLSHandshakeFacts/protocolError``.
    case protocolError
}
