internal import COpenSSL

/// The choice among the revocation lists that name the same issuer.
enum RevocationListChoice {
    /// Removes the lists that no certificate of the issuer in the chain has signed, if there is another one.
    ///
    /// - Parameters:
    ///   - lists: the lists (a stack of X509_CRL), which the caller owns. They stay as they are if all of them are forged, so that the
    ///     verification names the reason.
    ///   - issuer: the issuer of the lists (X509_NAME).
    ///   - chain: the certificates of the verified chain (a stack of X509).
    static func removeForged(from lists: OpaquePointer, by issuer: OpaquePointer?, in chain: OpaquePointer?) {
        let count = OPENSSL_sk_num(lists)
        guard count > 1 else { return }
        let keys = (0..<max(0, OPENSSL_sk_num(chain))).compactMap { index -> OpaquePointer? in
            guard let certificate = OPENSSL_sk_value(chain, index).map({ OpaquePointer($0) }),
                X509_NAME_cmp(X509_get_subject_name(certificate), issuer) == 0
            else { return nil }
            return X509_get0_pubkey(certificate)
        }
        let forged = (0..<count).filter { index in
            let list = OPENSSL_sk_value(lists, index).map { OpaquePointer($0) }
            return !keys.contains { X509_CRL_verify(list, $0) == 1 }
        }
        guard forged.count < Int(count) else { return }
        for index in forged.reversed() { X509_CRL_free(OPENSSL_sk_delete(lists, index).map { OpaquePointer($0) }) }
    }
}
