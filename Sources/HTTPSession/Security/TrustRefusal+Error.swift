internal import Certificates

extension TrustRefusal {
    /// The error for the user: the server of `host` presented the certificates `presented`.
    func error(host: String?, isProxy: Bool, presented: [Certificate]) -> HTTPSessionError {
        let server = "\(isProxy ? "the proxy " : "")\(host ?? "the server")"
        return switch self {
        case .pinsNeeded:
            HTTPSessionError(
                .certificateUntrusted,
                "\(server) is not trusted: if invalid certificates are allowed, only pins can prove a host's name, and the policy has none"
            )
        case .nothingPinned:
            HTTPSessionError(.pinMismatch, "\(server) is not trusted: the policy requires pinned certificates and has none")
        case .noCertificate:
            HTTPSessionError(.certificateUntrusted, "\(server) presented no certificate")
        case .chain(let error):
            HTTPSessionError(
                error.httpCode, "the certificate of \(server) is not valid: \(error.text)\(error.place(in: presented))")
        case .name:
            HTTPSessionError(
                .certificateUntrusted,
                "the certificate of \(server) is for another host\(presented.first.map { ": \($0.subject)" } ?? "")")
        case .pins:
            HTTPSessionError(.pinMismatch, "\(server) matches no pin; it presented \(Self.list(presented))")
        case .hostPins(let patterns):
            HTTPSessionError(
                .pinMismatch,
                "\(server) has none of the keys pinned for \(patterns.map(\.description).joined(separator: ", ")); it presented \(Self.list(presented))"
            )
        }
    }

    /// The pins and subjects of the peer's certificates, for a list of pins.
    private static func list(_ certificates: [Certificate]) -> String {
        // A server may send a hundred certificates; the first ones identify it.
        let listed = certificates.prefix(10).map { "\($0.publicKeyPin) (\($0.subject.prefix(200)))" }
        return listed.joined(separator: ", ") + (certificates.count > 10 ? " and \(certificates.count - 10) more" : "")
    }
}

extension ChainError {
    /// X509_V_ERR_CERT_NOT_YET_VALID 9, …CERT_HAS_EXPIRED 10, …CERT_REVOKED 23 (openssl/x509_vfy.h).
    var httpCode: HTTPSessionError.Code {
        switch code {
        case 9: .certificateNotYetValid
        case 10: .certificateExpired
        case 23: .certificateRevoked
        default: isUnknownAuthority ? .certificateHasUnknownRoot : .certificateUntrusted
        }
    }

    fileprivate func place(in certificates: [Certificate]) -> String {
        guard depth >= 0, Int(depth) < certificates.count else { return "" }
        return " (\(certificates[Int(depth)].subject.prefix(200)))"
    }
}
