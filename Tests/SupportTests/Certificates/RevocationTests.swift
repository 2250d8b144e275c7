import Certificates
import Expectations
import FoundationEssentials
import Glibc
import MemoryCertificates
import Testing

@testable import Reachability

/// Revocation lists that the user has given: the certificates that they revoke, and their own faults.
@Suite struct RevocationTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// Returns the cause, its sentence and the codes of the errors of a handshake whose client has these lists.
    ///
    /// - Parameters:
    ///   - lists: the revocation lists, in the order in which the client reads them.
    ///   - authorities: the trusted certificates; the root without a value.
    ///   - chain: the server's certificate and the others that it sends; those of the tests without a value.
    /// - Returns: The cause, the sentence, and the codes of the errors.
    /// - Throws: an error of OpenSSL.
    private func result(
        _ lists: [Data], trusting authorities: [MemoryCertificate]? = nil, of chain: [MemoryCertificate]? = nil
    ) throws -> (String, String, [Int32]) {
        let text = lists.map { "-----BEGIN X509 CRL-----\n\($0.base64EncodedString())\n-----END X509 CRL-----\n" }.joined()
        let trusted = try (authorities ?? [certificates.root]).map { try $0.pem }.joined()
        let settings = try TLSClientSettings.reading(
            authorities: (Data(trusted.utf8), "authorities"), revocationLists: (Data(text.utf8), "lists"))
        let client = try TLSClient(
            context: TLSClientContext.of(settings), serverName: "a.test", nanosecondsSpent: patientStart)
        let chain = chain ?? [certificates.leaf, certificates.intermediate]
        converse(client, try MemoryServer(chain[0], chain: Array(chain.dropFirst())))
        let cause = causeOf(client)
        return (name(cause), cause?.detail ?? "", client.facts.verificationErrors.map(\.code))
    }

    @Test func `an intermediate certificate that is revoked is named, and one without a list is accepted`() throws {
        let (root, intermediate) = (certificates.root, certificates.intermediate)
        let own = try intermediate.revocationList(of: [])
        #expect(try result([own]) == ("none", "", []))
        #expect(try result([own, root.revocationList(of: [])]) == ("none", "", []))
        let revoked = try result([own, root.revocationList(of: [intermediate])])
        #expect(
            revoked == (
                "tls/certificate-revoked",
                "203.0.113.5 sends a chain with the certificate CN=Intermediate, which its issuer has revoked", [23]
            ))
        // An authority that is trusted itself needs no list of the root, which is not known.
        #expect(try result([own, root.revocationList(of: [intermediate])], trusting: [intermediate]) == ("none", "", []))
        try expectEqual(result([intermediate.revocationList(of: [certificates.leaf])], trusting: [intermediate]).2, [23])
    }

    @Test func `a revoked intermediate certificate is refused also if it is trusted itself beside its root`() throws {
        let (root, intermediate, leaf) = (certificates.root, certificates.intermediate, certificates.leaf)
        let (both, own) = ([root, intermediate], try intermediate.revocationList(of: []))
        let revoked = try result([own, root.revocationList(of: [intermediate])], trusting: both)
        #expect(
            revoked == (
                "tls/certificate-revoked",
                "203.0.113.5 sends a chain with the certificate CN=Intermediate, which its issuer has revoked", [23]
            ))
        // The server need not send the certificate that the client has.
        try expectEqual(result([own, root.revocationList(of: [intermediate])], trusting: both, of: [leaf]).2, [23])
        // The list of an issuer that is trusted itself counts also if its root is not known.
        let upper = try MemoryCertificate("Upper", issuer: root, isAuthority: true)
        let between = try MemoryCertificate("Between", issuer: upper, isAuthority: true)
        let below = try MemoryCertificate("leaf", issuer: between, names: ["DNS:a.test"])
        let lists = try [between.revocationList(of: []), upper.revocationList(of: [between])]
        try expectEqual(result(lists, trusting: [upper, between], of: [below]).2, [23])
        // An issuer that only the server sends is not trusted.
        try expectEqual(result(lists, trusting: [between], of: [below, upper, root]).2, [])
        // Without a list of the root, or with one that does not revoke the certificate, it stays trusted.
        #expect(try result([own], trusting: both) == ("none", "", []))
        #expect(try result([own, root.revocationList(of: [])], trusting: both) == ("none", "", []))
        try expectEqual(result([own, certificates.strangeRoot.revocationList(of: [intermediate])], trusting: both).2, [])
        // A list of the root that cannot be used is at fault, as it is for an intermediate certificate that is not trusted itself.
        try expectEqual(result([own, root.revocationList(of: [], hours: -48 ... -24)], trusting: both).2, [12])
        let forger = try MemoryCertificate("Root", isAuthority: true)
        try expectEqual(result([own, forger.revocationList(of: [intermediate])], trusting: both).2, [8])
    }

    @Test func `an intermediate certificate that is trusted itself needs no valid root`() throws {
        let old = try MemoryCertificate("Old Root", isAuthority: true, days: -40 ... -24)
        let intermediate = try MemoryCertificate("Young", issuer: old, isAuthority: true)
        let leaf = try MemoryCertificate("leaf", issuer: intermediate, names: ["DNS:a.test"])
        let (chain, own) = ([leaf, intermediate], try intermediate.revocationList(of: []))
        #expect(try result([own], trusting: [old, intermediate], of: chain) == ("none", "", []))
        #expect(try result([own, old.revocationList(of: [])], trusting: [old, intermediate], of: chain) == ("none", "", []))
        try expectEqual(result([own, old.revocationList(of: [intermediate])], trusting: [old, intermediate], of: chain).2, [23])
    }

    @Test(arguments: [false, true]) func `a forged list does not replace a good one of the same issuer, whatever their order`(
        forgedFirst: Bool
    ) throws {
        let (root, intermediate, leaf) = (certificates.root, certificates.intermediate, certificates.leaf)
        let forger = try MemoryCertificate("Intermediate", issuer: root, isAuthority: true)
        func codes(_ good: Data, _ forged: Data, _ others: Data...) throws -> [Int32] {
            try result((forgedFirst ? [forged, good] : [good, forged]) + others).2
        }
        let good = try intermediate.revocationList(of: [])
        try expectEqual(codes(good, forger.revocationList(of: [leaf])), [])
        // Also if the forged list is the newer one, which OpenSSL prefers.
        try expectEqual(codes(good, forger.revocationList(of: [leaf], hours: 0...48)), [])
        try expectEqual(codes(intermediate.revocationList(of: [leaf]), forger.revocationList(of: [], hours: 0...48)), [23])
        // A good list that has expired is the one that counts.
        try expectEqual(codes(intermediate.revocationList(of: [], hours: -48 ... -24), forger.revocationList(of: [])), [12])
        // Of several lists that are all forged, none revokes.
        try expectEqual(codes(forger.revocationList(of: [leaf]), forger.revocationList(of: [leaf], hours: 0...48)), [8])
        let forgedRoot = try MemoryCertificate("Root", isAuthority: true)
        let lists = try [forgedRoot.revocationList(of: [intermediate], hours: 0...48), root.revocationList(of: [])]
        try expectEqual(result([good] + (forgedFirst ? lists : lists.reversed())).2, [])
    }

    @Test func `a revocation in one of several equally new lists counts, whatever their order`() throws {
        let (root, intermediate, leaf) = (certificates.root, certificates.intermediate, certificates.leaf)
        // The lists have the same second.
        let now = time(nil)
        let lists = try [
            intermediate.revocationList(of: [leaf], at: now), intermediate.revocationList(of: [], at: now),
            intermediate.revocationList(of: [certificates.other], at: now), root.revocationList(of: [intermediate], at: now),
            root.revocationList(of: [], at: now),
        ]
        for order in [[0, 1], [1, 0], [1, 2, 0], [2, 0, 1], [0, 2, 1]] {
            try expectEqual(result(order.map { lists[$0] }).2, [23], "\(order)")
        }
        #expect(try result([lists[1], lists[2]]).2 == [] && result([lists[2], lists[1]]).2 == [])
        for order in [[3, 4], [4, 3]] { try expectEqual(result([lists[1]] + order.map { lists[$0] }).2, [23], "\(order)") }
        // A newer list replaces an older one, as the issuer may revoke a certificate for a time (RFC 5280 section 5.3.1).
        let newer = try intermediate.revocationList(of: [], hours: 0...24)
        #expect(try result([lists[0], newer]).2 == [] && result([newer, lists[0]]).2 == [])
    }

    @Test func `a list that cannot be used is at fault, and not the certificate`() throws {
        let (root, intermediate, leaf) = (certificates.root, certificates.intermediate, certificates.leaf)
        let unknown = "so it is not known whether the certificate of 203.0.113.5 is revoked"
        let untrusted = "tls/certificate-untrusted"
        #expect(
            try result([intermediate.revocationList(of: [], hours: -48 ... -24)])
                == (untrusted, "the revocation list that was given has expired, \(unknown)", [12]))
        #expect(
            try result([intermediate.revocationList(of: [], hours: 24...48)])
                == (untrusted, "the revocation list that was given is not valid yet, \(unknown)", [11]))
        #expect(
            try result([certificates.strangeRoot.revocationList(of: [leaf])])
                == (untrusted, "no revocation list that was given is by CN=Intermediate, \(unknown)", [3]))
        let forger = try MemoryCertificate("Intermediate", issuer: root, isAuthority: true)
        #expect(
            try result([forger.revocationList(of: [leaf])])
                == (untrusted, "the revocation list that was given has an invalid signature, \(unknown)", [8]))
        let expired = try result([intermediate.revocationList(of: []), root.revocationList(of: [], hours: -48 ... -24)])
        expectEqual(
            expired.1,
            "the revocation list that was given has expired, so it is not known whether CN=Intermediate in the chain "
                + "of 203.0.113.5 is revoked")
        // A certificate stays revoked when the list expires.
        try expectEqual(
            result([intermediate.revocationList(of: [leaf], hours: -48 ... -24)]).0, "tls/certificate-revoked")
    }

    @Test func `errors that revocation lists do not prove are removed`() {
        func codes(_ errors: [(Int32, Int32)], all: Bool = false) -> [Int32] {
            let errors = errors.map { ChainError(code: $0.0, text: "", depth: $0.1) }
            return ChainError.proven(errors, requiresAllLists: all, anchorDepth: 2).map(\.code)
        }
        #expect(codes([(3, 0), (3, 1), (3, 2)]) == [3] && codes([(3, 0), (3, 1)], all: true) == [3, 3])
        expectEqual(codes([(8, 0), (23, 0), (23, 1)]), [8, 23])
        expectEqual(codes([(33, 2), (8, 2), (23, 2), (10, 2), (23, 1), (12, 1)]), [10, 23, 12])
        expectEqual(codes([(33, 0), (8, 0), (23, 0)]), [33, 8])
    }

    @Test func `a broken certificate behind a valid one is named by its number`() throws {
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        func reason(_ text: String) throws -> String {
            let error = #expect(throws: CertificateError.self) {
                try CertificateDecoding.certificates(in: Data(text.utf8), named: "ca.pem")
            }
            guard case .invalid(let reason) = error else { return "" }
            return reason
        }
        let second = try reason(certificates.root.pem + broken)
        #expect(second.hasPrefix("ca.pem: certificate 2 cannot be parsed: "), "\(second)")
        let first = try reason(broken)
        #expect(first.hasPrefix("ca.pem holds no certificate that can be parsed: "), "\(first)")
    }
}
