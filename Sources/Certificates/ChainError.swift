/// The reason why a certificate chain is not valid (X509_verify_cert(3)).
package struct ChainError: Error, Sendable, Hashable, Codable {
    /// The code, X509_V_ERR_… (X509_STORE_CTX_get_error(3)).
    package let code: Int32
    /// OpenSSL's text for the code.
    package let text: String
    /// The position of the certificate in the chain: 0 is the server's own.
    package let depth: Int32

    package init(code: Int32, text: String, depth: Int32 = 0) {
        self.code = code
        self.text = text
        self.depth = depth
    }

    /// Whether no certificate of the chain is issued by a trusted authority: X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, …DEPTH_ZERO_SELF_SIGNED_CERT,
    /// …SELF_SIGNED_CERT_IN_CHAIN, …UNABLE_TO_GET_ISSUER_CERT_LOCALLY, …UNABLE_TO_VERIFY_LEAF_SIGNATURE, …CERT_UNTRUSTED
    /// (openssl/x509_vfy.h, the same numbers since 0.9).
    package var isUnknownAuthority: Bool { [2, 18, 19, 20, 21, 27].contains(code) }

    /// Whether an authority's revocation list, or the authority that signed it, is missing: X509_V_ERR_UNABLE_TO_GET_CRL,
    /// …_GET_CRL_ISSUER.
    package var isMissingRevocationList: Bool { [3, 33].contains(code) }

    // The numbers of openssl/x509_vfy.h, for code without OpenSSL.

    /// X509_V_ERR_CERT_NOT_YET_VALID.
    package static let notYetValid: Int32 = 9
    /// X509_V_ERR_CERT_HAS_EXPIRED.
    package static let expired: Int32 = 10
    /// X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT.
    package static let selfSigned: Int32 = 18
    /// X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY.
    package static let unknownIssuer: Int32 = 20
    /// X509_V_ERR_CERT_REVOKED.
    package static let revoked: Int32 = 23
    /// X509_V_ERR_HOSTNAME_MISMATCH.
    package static let hostnameMismatch: Int32 = 62
    /// X509_V_ERR_IP_ADDRESS_MISMATCH.
    package static let addressMismatch: Int32 = 64
}
