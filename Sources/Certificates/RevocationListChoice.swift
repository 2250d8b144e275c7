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

    /// Moves the lists that revoke a certificate before the others.
    ///
    /// OpenSSL uses the first of several lists that are equally new, by `thisUpdate` in seconds, and equally suitable. An issuer that
    /// revokes a certificate in the second of its last list would otherwise not be heard.
    ///
    /// - Parameters:
    ///   - lists: the lists (a stack of X509_CRL).
    ///   - certificate: the certificate that is checked (X509).
    static func moveRevocationsFirst(in lists: OpaquePointer, of certificate: OpaquePointer?) {
        guard let certificate, OPENSSL_sk_num(lists) > 1 else { return }
        for index in 1..<OPENSSL_sk_num(lists) {
            var entry: OpaquePointer?
            // 2 is an entry that takes back a revocation (removeFromCRL).
            guard X509_CRL_get0_by_cert(OPENSSL_sk_value(lists, index).map { OpaquePointer($0) }, &entry, certificate) == 1 else {
                continue
            }
            let list = OPENSSL_sk_delete(lists, index)
            // The stack has room for the list that was removed from it.
            OPENSSL_sk_insert(lists, list, 0)
        }
    }
}
