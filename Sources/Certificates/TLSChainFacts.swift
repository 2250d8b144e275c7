/// The facts of the certificates that a server has sent, for one server name and one set of authorities.
struct TLSChainFacts: Hashable, Sendable, SizedFacts {
    /// ``TLSHandshakeFacts/certificate``.
    var certificate: TLSCertificateFacts?
    /// ``TLSHandshakeFacts/chainLength``.
    var length: Int
    /// ``TLSHandshakeFacts/chainNotAfter``.
    var notAfter: Int64?
    /// ``TLSHandshakeFacts/verificationErrors``.
    var errors: [ChainError]
    /// ``TLSHandshakeFacts/nameMatches``.
    var nameMatches: Bool?

    /// ``TLSHandshakeFacts/excess``, as far as it is that of the certificates.
    var excess: String?

    /// Whether an error may have another reason than the certificates: OpenSSL had no memory, or failed without a reason
    /// (X509_V_ERR_OUT_OF_MEM, X509_V_ERR_UNSPECIFIED), or could not decode the server's own certificate.
    var mayBeTransient: Bool { certificate == nil || errors.contains { $0.code == 17 || $0.code == 1 } }

    var byteCount: Int {
        // Measured: 10,000 entries of a cache with two short names take 1.1 kB each.
        var count = 768
        if let certificate {
            for text in [certificate.subject, certificate.issuer, certificate.serialNumber] { count += text.utf8.count }
            for name in certificate.names { count += 64 + name.utf8.count }
        }
        for error in errors { count += 64 + error.text.utf8.count }
        count += excess?.utf8.count ?? 0
        return count
    }
}

extension TLSHandshakeFacts {
    /// The facts of the certificates alone.
    var chain: TLSChainFacts {
        get {
            TLSChainFacts(
                certificate: certificate, length: chainLength, notAfter: chainNotAfter, errors: verificationErrors,
                nameMatches: nameMatches, excess: excess)
        }
        set {
            certificate = newValue.certificate
            chainLength = newValue.length
            chainNotAfter = newValue.notAfter
            verificationErrors = newValue.errors
            nameMatches = newValue.nameMatches
            excess = newValue.excess
        }
    }
}
