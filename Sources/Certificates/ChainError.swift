/// The reason why a certificate chain is not valid (X509_verify_cert(3)).
package struct ChainError: Error, Sendable, Hashable {
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
}
