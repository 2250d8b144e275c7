import COpenSSL
import FoundationEssentials

@testable import Certificates

extension FuzzDriver {
    /// Certificates and revocation lists, in DER or PEM.
    static let certificate = FuzzDriver(name: "certificate") { input in
        let data = Data(input)
        do {
            for list in try CertificateDecoding.revocationLists(in: data, named: "input") {
                let again = try CertificateDecoding.revocationLists(in: list, named: "list")
                try require(again == [list], "the encoding of a revocation list changes")
            }
        } catch is CertificateError {
            // The input is no revocation list.
        }
        let certificates: [X509Certificate]
        do {
            certificates = try CertificateDecoding.certificates(in: data, named: "input")
        } catch is CertificateError {
            return
        }
        try require(!certificates.isEmpty && certificates.count <= input.count, "\(certificates.count) certificates")
        for certificate in certificates {
            let again = try CertificateDecoding.certificates(in: certificate.derBytes, named: "certificate")
            try require(again == [certificate], "the encoding of a certificate changes")
        }
        try checkChain(certificates, of: input.count)
    }

    /// Judges the certificates as the chain of a server.
    private static func checkChain(_ certificates: [X509Certificate], of count: Int) throws {
        let objects = certificates.prefix(8).compactMap(CertificateDecoding.x509)
        defer { for object in objects { X509_free(object) } }
        guard let own = objects.first, let context = X509_STORE_CTX_new(), let stack = OPENSSL_sk_new_null() else { return }
        defer {
            X509_STORE_CTX_free(context)
            OPENSSL_sk_free(stack)
        }
        for object in objects { OPENSSL_sk_push(stack, UnsafeRawPointer(object)) }
        guard X509_STORE_CTX_init(context, nil, own, stack) == 1 else { return }
        let chain = PeerChain(context, securityLevel: 1)
        try require(chain.count == objects.count, "the chain has \(chain.count) certificates")
        if let excess = chain.excess { try require(!excess.isEmpty && excess.utf8.count < 256, excess) }
        if let facts = chain.ownFacts {
            try checkFacts(facts, of: count)
            try require(
                facts.notAfter == nil || chain.facts(for: "a.test", nil).notAfter ?? .max <= facts.notAfter ?? .max,
                "dates: \(facts)")
            for name in facts.names.prefix(4) { _ = chain.isFor(host: name) }
        }
        let store = try TrustStore.of(Authorities(includesSystem: false))
        let errors = chain.verify(against: store).errors
        try require((1...32).contains(errors.count), "\(errors.count) errors of a chain without an authority")
    }
}
