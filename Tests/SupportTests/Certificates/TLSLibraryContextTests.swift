import COpenSSL
import Expectations
import FoundationEssentials
import MemoryCertificates
import Testing

@testable import Certificates

/// The library context of TLS clients: its certificates have the errors that those of OpenSSL's own context have.
@Suite struct TLSLibraryContextTests {
    @Test func `the context is used with OpenSSL 3.0`() {
        expectEqual((TLSLibraryContext.pointer != nil), (OPENSSL_version_major() == 3 && OPENSSL_version_minor() == 0))
    }

    @Test(.skippedByThreadSanitizer, arguments: MemoryCertificate.Algorithm.allCases, MemoryCertificate.Algorithm.allCases)
    func `chains of all algorithms are verified`(
        authority: MemoryCertificate.Algorithm, algorithm: MemoryCertificate.Algorithm
    ) throws {
        let root = try MemoryCertificate("Root", isAuthority: true, algorithm: authority)
        let strangeRoot = try MemoryCertificate("Root", isAuthority: true, algorithm: authority)
        let intermediate = try MemoryCertificate("Intermediate", issuer: root, isAuthority: true, algorithm: authority)
        let leaf = try MemoryCertificate("leaf", issuer: intermediate, names: ["DNS:a.test"], algorithm: algorithm)
        let lists = try [nil, intermediate.revocationList(of: []), intermediate.revocationList(of: [leaf])]
        for (list, codes) in zip(lists, [[], [], [23]] as [[Int32]]) {
            let facts = try facts(of: leaf, intermediate, trusting: root, list)
            #expect(facts.verificationErrors.map(\.code) == codes && facts.isComplete && facts.nameMatches == true)
        }
        // Its name is that of the root, its key is not: X509_V_ERR_CERT_SIGNATURE_FAILURE.
        let facts = try facts(of: leaf, intermediate, trusting: strangeRoot, nil)
        #expect(facts.verificationErrors.contains { $0.code == 7 || $0.code == 20 } && facts.isComplete)
    }

    private func facts(
        of leaf: MemoryCertificate, _ intermediate: MemoryCertificate, trusting root: MemoryCertificate, _ list: Data?
    ) throws -> TLSHandshakeFacts {
        let settings = try TLSClientSettings.reading(
            authorities: (root.derBytes, "root"), revocationLists: list.map { ($0, "list") })
        var found: [TLSHandshakeFacts] = []
        for version in [TLS1_2_VERSION, TLS1_3_VERSION] {
            let client = try TLSClient(
                context: TLSClientContext.of(settings), serverName: "a.test", nanosecondsSpent: patientStart)
            try converse(client, MemoryServer(leaf, chain: [intermediate], .init(versions: version...version)))
            found.append(client.facts)
        }
        expectEqual(found[0].chain, found[1].chain)
        return found[1]
    }
}
