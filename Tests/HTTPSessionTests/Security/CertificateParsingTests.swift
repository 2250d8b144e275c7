import Certificates
import Expectations
import Foundation
import Pacing
import Testing

@testable import HTTPSession

@Suite struct CertificateParsingTests {
    @Test func `DER and PEM of a certificate are equal`() throws {
        let der = try Certificate(MintedCertificates.data("leaf.der"))
        expectEqual(der, (try MintedCertificates.one("leaf")))
        expectEqual(der.derBytes, (try MintedCertificates.data("leaf.der")))
        expectEqual(der.subject, "CN=leaf")
    }

    @Test func `a text of several certificates is read in order`() throws {
        try expectEqual(
            Certificate.all(in: MintedCertificates.data("leaf-chain.pem")).map(\.subject),
            [
                "CN=leaf", "CN=Test Intermediate",
            ])
        #expect(throws: HTTPSessionError.self) { try Certificate(MintedCertificates.data("leaf-chain.pem")) }
    }

    @Test func `text around PEM certificates is ignored`() throws {
        let text = Data("Subject: somebody\n".utf8) + (try MintedCertificates.data("leaf.pem")) + Data("the end\n".utf8)
        try expectEqual(Certificate.all(in: text).count, 1)
    }

    @Test(arguments: [
        Data(), Data("hello".utf8), Data("-----BEGIN CERTIFICATE-----\n".utf8),
        Data("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".utf8),
        Data("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n".utf8), Data([0x30, 0x80]),
        Data([0x30, 0x84, 0xFF, 0xFF, 0xFF, 0xFF]),
    ])
    func `data without a valid certificate is an error`(_ data: Data) {
        let error = #expect(throws: HTTPSessionError.self) { try Certificate.all(in: data) }
        expectEqual(error?.code, .invalidConfiguration)
        #expect(throws: HTTPSessionError.self) { try RevocationLists(data) }
    }

    @Test func `bytes after a DER certificate are an error`() throws {
        let data = try MintedCertificates.data("leaf.der") + [0]
        #expect(throws: HTTPSessionError.self) { try Certificate(data) }
    }

    @Test func `a private key beside its certificate is ignored`() throws {
        let text = try MintedCertificates.data("leaf.key") + MintedCertificates.data("leaf.pem")
        try expectEqual(Certificate.all(in: text).map(\.subject), ["CN=leaf"])
    }

    @Test func `the certificates of a directory are read from files with four extensions`() throws {
        let pem = try MintedCertificates.data("leaf-chain.pem")
        let contents = [
            "a.cer": try MintedCertificates.data("root.der"), "b.PEM": pem,
            "c.crt": try MintedCertificates.data("foreign-root.pem"),
            "d.der": try MintedCertificates.data("self-signed-san.der"), "key.txt": Data("no certificate".utf8),
        ]
        try MintedCertificates.inDirectory(contents) { directory in
            let expected = try MintedCertificates.set("root", "leaf", "intermediate", "foreign-root", "self-signed-san")
            let found = try Certificate.all(inDirectory: directory)
            expectEqual(found, expected)
            let policy = try SecurityPolicy(pinningMode: .certificate, certificatesInDirectory: directory)
            #expect(policy.pinnedCertificates == expected && policy.pinsAnything)
        }
    }

    @Test func `the error names the certificate file that cannot be read or parsed`() throws {
        let remote = try #require(URL(string: "https://user:password@host/a.pem"))
        let contents = ["bad.pem": Data("nothing".utf8), "leaf.pem": try MintedCertificates.data("leaf.pem")]
        try MintedCertificates.inDirectory(contents) { directory in
            let faults: [(String, () throws -> Void)] = [
                ("\(directory)/bad.pem", { _ = try Certificate.all(inDirectory: directory) }),
                ("\(directory)/bad.pem", { _ = try Certificate.all(inFile: "\(directory)/bad.pem") }),
                ("\(directory)/none.pem", { _ = try Certificate.all(inFile: "\(directory)/none.pem") }),
                ("\(directory)/none", { _ = try Certificate.all(inDirectory: "\(directory)/none") }),
                (directory, { _ = try Certificate.all(inFile: directory) }),
                ("\(directory)/leaf.pem", { _ = try RevocationLists(files: ["\(directory)/leaf.pem"]) }),
                ("\(directory)/none.crl", { _ = try RevocationLists(files: ["\(directory)/none.crl"]) }),
                ("no revocation list", { _ = try RevocationLists(files: [String]()) }),
                ("\(directory)/none.pem", { _ = try Certificate.all(inFile: URL(fileURLWithPath: "\(directory)/none.pem")) }),
                ("\(directory)/none.crl", { _ = try RevocationLists(files: [URL(fileURLWithPath: "\(directory)/none.crl")]) }),
                ("https://host/a.pem is not the URL of a file", { _ = try Certificate.all(inFile: remote) }),
                ("https://host/a.pem is not the URL of a file", { _ = try RevocationLists(files: [remote]) }),
            ]
            for (named, make) in faults {
                let error = #expect(throws: HTTPSessionError.self) { try make() }
                expectEqual(error?.code, .invalidConfiguration)
                expectEqual(error?.reason.contains(named), true, "\(error?.reason ?? "")")
            }
        }
    }

    @Test func `a certificate file larger than the maximum is not read`() throws {
        try MintedCertificates.inDirectory(["large.pem": Data(count: SecurityFile.maximumSize + 1)]) { directory in
            #expect(throws: HTTPSessionError.self) { try Certificate.all(inFile: "\(directory)/large.pem") }
        }
    }

    /// Inputs whose bytes are changed, cut, duplicated and mixed give an error or a value, and no crash. The seed is printed.
    @Test func `parsers of certificates, keys and pins return a value or an error for random bytes`() throws {
        let seed = UInt64.random(in: .min ... .max)
        print("seed of the parsers' test: \(seed)")
        var random = SplitMix64(seed: seed)
        let names = [
            "leaf.der", "leaf.pem", "leaf-chain.pem", "intermediate.crl", "client.p12", "client.key", "client-encrypted.key",
        ]
        let samples = try names.map(MintedCertificates.data) + [Data(HostPinsTests.pin.utf8), Data("**.example.com".utf8)]
        for _ in 0..<2000 {
            let sample = Int(random.next() % UInt64(samples.count))
            var bytes = [UInt8](samples[sample])
            for _ in 0..<(random.next() % 8) where !bytes.isEmpty {
                let place = Int(random.next() % UInt64(bytes.count))
                switch random.next() % 5 {
                case 0: bytes[place] = UInt8(truncatingIfNeeded: random.next())
                case 1: bytes[place] ^= 1 << (random.next() % 8)
                case 2: bytes.removeSubrange(place...)
                case 3: bytes.insert(contentsOf: bytes[place...].prefix(64), at: place)
                default: bytes.remove(at: place)
                }
            }
            let data = Data(bytes)
            let text = String(decoding: bytes, as: UTF8.self)
            if let certificates = try? Certificate.all(in: data) {
                // An accepted certificate can be used.
                var policy = SecurityPolicy(pinningMode: .certificate, pinnedCertificates: Set(certificates))
                policy.roots = .given(Set(certificates))
                _ = try? PreparedPolicy.of(policy)
                #expect(certificates.allSatisfy { (try? Certificate($0.derBytes)) == $0 })
            }
            if let lists = try? RevocationLists(data) { _ = try? TrustStore(Authorities(.given([]), revocation: lists)) }
            // Opening an encrypted key takes milliseconds, so only samples made from a key are tried.
            let name = sample < names.count ? names[sample] : ""
            if name.hasSuffix(".key") { _ = try? PrivateKey(pem: data, passphrase: "secret", named: name) }
            if name.hasSuffix(".p12") { _ = try? ClientIdentity(pkcs12: data, passphrase: "secret") }
            if let pin = try? PublicKeyPin(text) { expectEqual(pin.description, text) }
            if let pattern = try? HostPattern(text) { _ = pattern.matches("a.example.com") }
        }
    }
}
