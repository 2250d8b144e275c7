/// The properties of a TLS handshake as far as it got, for the verdict about a server.
package struct TLSHandshakeFacts: Hashable, Sendable, Codable {
    /// The server's own certificate, and the chain that it sent.
    package struct Certificate: Hashable, Sendable, Codable {
        /// The maximum number of ``names``. Certificates of content networks have hundreds.
        package static let nameLimit = 100

        /// The subject on one line (RFC 2253); empty for an empty subject.
        package var subject: String
        package var issuer: String
        /// The subject alternative names: DNS names and addresses, in their order, at most ``nameLimit``.
        package var names: [String]
        /// The number of subject alternative names.
        package var nameCount: Int
        /// The beginning of the validity in seconds since 1970.
        package var notBefore: Int64
        /// The end of the validity in seconds since 1970.
        package var notAfter: Int64
        /// SHA-256 of the certificate in DER, in lowercase hexadecimal digits.
        package var sha256: String
        /// The number of certificates that the server sent.
        package var chainLength: Int
        /// The earliest end of validity of the certificates that the server sent, in seconds since 1970.
        package var chainNotAfter: Int64
    }

    /// An error of the verification (X509_STORE_CTX_get_error(3)).
    package struct VerifyError: Hashable, Sendable, Codable {
        /// The code, X509_V_ERR_….
        package var code: Int32
        /// The position of the certificate in the chain; 0 is the server's own.
        package var depth: Int32
        /// OpenSSL's text for the code.
        package var text: String
    }

    /// The negotiated version, such as `TLSv1.3`; `nil` before the server has answered the hello.
    package var version: String?
    /// The cipher's name in the standards (IANA); `nil` before it is negotiated.
    package var cipher: String?
    /// The protocol agreed on by ALPN (RFC 7301); `nil` for none.
    package var applicationProtocol: String?
    /// The server's certificate; `nil` before it has sent one.
    package var certificate: Certificate?
    /// All errors of the verification, each once, in the order in which OpenSSL found them.
    package var verifyErrors: [VerifyError] = []
    /// Whether the handshake is complete.
    package var isComplete = false
    /// Whether the server has requested a certificate of the client.
    package var isCertificateRequested = false
    /// The fatal alert of the server (RFC 8446 section 6); `nil` for none.
    package var alert: UInt8?
    /// OpenSSL's reason for which this side ended the handshake (ERR_GET_REASON(3)); 0 for none.
    package var reason: Int32 = 0
    /// OpenSSL's text for ``reason``; empty for none.
    package var reasonText = ""
    /// The number of bytes that arrived before the handshake was complete.
    package var receivedBytes = 0
    /// The first bytes of the server if they are not a TLS record, at most 32.
    package var firstBytes: [UInt8]?

    /// Creates the facts of a handshake that has not begun.
    package init() {}
}
