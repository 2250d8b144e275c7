/// The reason why a certificate chain is not valid (X509_verify_cert(3)).
package struct ChainError: Error, Sendable, Hashable, Codable {
    /// The code, X509_V_ERR_… (X509_STORE_CTX_get_error(3)).
    package let code: Int32
    /// OpenSSL's text for the code.
    package let text: String
    /// The position of the certificate in the chain: 0 is the server's own.
    package let depth: Int32
    /// The subject of a certificate above the server's own, if the error concerns its revocation.
    package let subject: String?

    /// The code for authorities that cannot be loaded: X509_V_ERR_OUT_OF_MEM.
    package static let outOfMemory: Int32 = 17

    package init(code: Int32, text: String, depth: Int32 = 0, subject: String? = nil) {
        self.code = code
        self.text = text
        self.depth = depth
        self.subject = subject
    }

    /// Whether no certificate of the chain is issued by a trusted authority: X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, …DEPTH_ZERO_SELF_SIGNED_CERT,
    /// …SELF_SIGNED_CERT_IN_CHAIN, …UNABLE_TO_GET_ISSUER_CERT_LOCALLY, …UNABLE_TO_VERIFY_LEAF_SIGNATURE, …CERT_UNTRUSTED
    /// (openssl/x509_vfy.h, the same numbers since 0.9).
    package var isUnknownAuthority: Bool { Self.isUnknownAuthority(code) }

    static func isUnknownAuthority(_ code: Int32) -> Bool {
        switch code {
        case 2, 18, 19, 20, 21, 27: true
        default: false
        }
    }

    /// Whether an authority's revocation list, or the authority that signed it, is missing: X509_V_ERR_UNABLE_TO_GET_CRL,
    /// …_GET_CRL_ISSUER.
    package var isMissingRevocationList: Bool { [3, 33].contains(code) }

    /// Whether the error is that of a revocation list: X509_V_ERR_UNABLE_TO_GET_CRL, …_DECRYPT_CRL_SIGNATURE, …CRL_SIGNATURE_FAILURE,
    /// …CRL_NOT_YET_VALID, …CRL_HAS_EXPIRED, …ERROR_IN_CRL_LAST_UPDATE_FIELD, …_NEXT_UPDATE_FIELD, …UNABLE_TO_GET_CRL_ISSUER,
    /// …KEYUSAGE_NO_CRL_SIGN, …UNHANDLED_CRITICAL_CRL_EXTENSION, …DIFFERENT_CRL_SCOPE, …CRL_PATH_VALIDATION_ERROR.
    package var isOfRevocationList: Bool { [3, 5, 8, 11, 12, 15, 16, 33, 35, 36, 44, 54].contains(code) }

    /// Returns the errors without those that revocation lists do not prove.
    ///
    /// - A list whose signature is not valid revokes nothing: X509_V_ERR_CERT_REVOKED of its depth is removed. OpenSSL continues with
    ///   such a list if the callback ignores the error.
    /// - If `requiresAllLists` is false, a certificate above the server's own needs no list, and the authority at `anchorDepth`, which
    ///   is trusted itself, is not checked (RFC 5280 section 6.1). Its issuer, who could sign a list, need not be known.
    package static func proven(_ errors: [ChainError], requiresAllLists: Bool, anchorDepth: Int32) -> [ChainError] {
        errors.filter { error in
            if error.depth > 0, !requiresAllLists, error.isOfRevocationList || error.code == revoked {
                guard error.code != missingList, error.depth != anchorDepth else { return false }
            }
            return error.code != revoked || !errors.contains { $0.code == listSignature && $0.depth == error.depth }
        }
    }

    /// The error of a chain that was not verified, because the trusted authorities cannot be loaded: X509_V_ERR_UNSPECIFIED.
    package static let missingAuthorities = ChainError(code: 1, text: "the trusted authorities cannot be loaded")

    /// The error of a verification that failed without a reason: X509_V_ERR_UNSPECIFIED.
    static let unspecified = ChainError(code: 1, text: "unspecified certificate verification error")

    /// Returns the error with a longer text.
    func appending(_ suffix: String) -> ChainError {
        ChainError(code: code, text: text + suffix, depth: depth, subject: subject)
    }

    // The numbers of openssl/x509_vfy.h, for code without OpenSSL.

    /// X509_V_ERR_CERT_CHAIN_TOO_LONG.
    package static let tooLong: Int32 = 22

    /// X509_V_ERR_UNABLE_TO_GET_CRL.
    package static let missingList: Int32 = 3
    /// X509_V_ERR_CRL_SIGNATURE_FAILURE.
    package static let listSignature: Int32 = 8
    /// X509_V_ERR_CERT_NOT_YET_VALID.
    package static let notYetValid: Int32 = 9
    /// X509_V_ERR_CERT_HAS_EXPIRED.
    package static let expired: Int32 = 10
    /// X509_V_ERR_CRL_NOT_YET_VALID.
    package static let listNotYetValid: Int32 = 11
    /// X509_V_ERR_CRL_HAS_EXPIRED.
    package static let listExpired: Int32 = 12
    /// X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT.
    package static let selfSigned: Int32 = 18
    /// X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY.
    package static let unknownIssuer: Int32 = 20
    /// X509_V_ERR_CERT_REVOKED.
    package static let revoked: Int32 = 23
    /// X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER.
    package static let missingListIssuer: Int32 = 33
    /// X509_V_ERR_HOSTNAME_MISMATCH.
    package static let hostnameMismatch: Int32 = 62
    /// X509_V_ERR_IP_ADDRESS_MISMATCH.
    package static let addressMismatch: Int32 = 64
}

/// The result of the verification of a chain.
package struct ChainVerification: Sendable {
    /// The chain from the peer's own certificate to an authority; empty if it is not valid.
    package var chain: [X509Certificate] = []
    /// The errors; empty if the chain is valid.
    package var errors: [ChainError] = []
    /// The earliest end of the validity of the certificates up to the authority, in seconds since 1970; `nil` if they lead to none.
    package var notAfter: Int64?

    package init(chain: [X509Certificate] = [], errors: [ChainError] = [], notAfter: Int64? = nil) {
        (self.chain, self.errors, self.notAfter) = (chain, errors, notAfter)
    }

    /// The valid chain, or the first error.
    package var result: Result<[X509Certificate], ChainError> {
        if let error = errors.first { return .failure(error) }
        return chain.isEmpty ? .failure(.unspecified) : .success(chain)
    }
}
