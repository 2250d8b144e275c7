internal import Certificates

/// The sentences about revocation, and about the lists that the user has given.
extension FinishedHandshake {
    /// Returns the end of a sentence about a certificate that is revoked.
    static func revocation(_ error: ChainError, issuer: String) -> String {
        guard error.depth > 0 else { return "presents a certificate that its issuer \(issuer) has revoked" }
        let certificate = error.subject.map { "the certificate \($0), which" } ?? "a certificate that"
        return "sends a chain with \(certificate) its issuer has revoked"
    }

    /// Returns the end of a sentence about a certificate that the stapled response says is revoked.
    static func revocation(_ response: StapledResponse, issuer: String) -> String {
        let date = response.revokedAt.map { "revoked on \(CivilDate($0))" } ?? "has revoked"
        return "presents a certificate that its issuer \(issuer) \(date), as its stapled response says"
    }

    /// Returns the sentence about a revocation list that cannot be used. The list is at fault, and not the certificate.
    static func fault(ofListIn error: ChainError, issuer: String, host: String) -> String {
        let fault =
            switch error.code {
            case ChainError.missingList:
                "no revocation list that was given is \(error.depth > 0 ? "for this issuer" : "by \(issuer)")"
            case ChainError.missingListIssuer: "the issuer of the revocation list that was given is not known"
            case ChainError.listSignature: "the revocation list that was given has an invalid signature"
            case ChainError.listNotYetValid: "the revocation list that was given is not valid yet"
            case ChainError.listExpired: "the revocation list that was given has expired"
            default: "the revocation list that was given cannot be used (\(error.text))"
            }
        let certificate = error.depth > 0 ? "\(error.subject ?? "a certificate") in the chain" : "the certificate"
        return "\(fault), so it is not known whether \(certificate) of \(host) is revoked"
    }
}
