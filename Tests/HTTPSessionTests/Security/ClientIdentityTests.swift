import COpenSSL
import Expectations
import Foundation
import Testing

@testable import HTTPSession

@Suite struct ClientIdentityTests {
    static let versions = SessionResumptionTests.versions

    private func pem(_ name: String, key: String? = nil, passphrase: String? = nil) throws -> ClientIdentity {
        try ClientIdentity(
            certificate: MintedCertificates.data("\(name).pem"), privateKey: MintedCertificates.data(key ?? "\(name).key"),
            passphrase: passphrase)
    }

    private func connect(
        _ identity: ClientIdentity?, asksFor root: String? = "client-root", requires: Bool = true,
        versions: ClosedRange<Int32> = TLS1_2_VERSION...TLS1_3_VERSION
    ) throws -> (isComplete: Bool, trust: ServerTrust) {
        var policy = SecurityPolicy.default
        policy.roots = .given(try MintedCertificates.set("root"))
        let trust = ServerTrust(policy: try PreparedPolicy.of(policy), host: "localhost", identity: identity)
        let server = try TLSServer("leaf-chain", asksFor: root, requires: requires, versions: versions)
        let conversation = try TLSConversation(server, trust)
        return (conversation.isComplete, trust)
    }

    @Test(arguments: versions) func `a client identity is presented to a server that requires a certificate`(
        _ versions: ClosedRange<Int32>
    ) throws {
        let identities = [
            try pem("client"), try pem("client-rsa"), try pem("client", key: "client-encrypted.key", passphrase: "secret"),
            try ClientIdentity(pkcs12: MintedCertificates.data("client.p12"), passphrase: "secret"),
        ]
        for identity in identities {
            let (isComplete, trust) = try connect(identity, versions: versions)
            #expect(isComplete && trust.wantsClientCertificate && trust.error == nil)
        }
    }

    @Test(arguments: versions) func `without a client identity the error says that a certificate is required`(
        _ versions: ClosedRange<Int32>
    ) throws {
        let (isComplete, trust) = try connect(nil, versions: versions)
        #expect(!isComplete && trust.wantsClientCertificate)
        expectEqual(trust.error?.code, .clientCertificateRequired)
        let isNew = versions.lowerBound == TLS1_3_VERSION
        #expect((trust.error?.reason.hasSuffix(isNew ? ": certificate required" : ": handshake failure")) == true)
    }

    @Test(arguments: versions) func `a client certificate of another authority fails as clientCertificateRejected`(
        _ versions: ClosedRange<Int32>
    )
        throws
    {
        let (isComplete, trust) = try connect(pem("client"), asksFor: "foreign-root", versions: versions)
        #expect(!isComplete && trust.error?.code == .clientCertificateRejected)
    }

    @Test(arguments: versions) func `without a client identity a server that only requests a certificate accepts the client`(
        _ versions: ClosedRange<Int32>
    ) throws {
        let (isComplete, trust) = try connect(nil, requires: false, versions: versions)
        #expect(isComplete && trust.wantsClientCertificate && trust.error == nil)
    }

    @Test func `a client identity is not presented to a server that requests no certificate`() throws {
        let (isComplete, trust) = try connect(pem("client"), asksFor: nil)
        #expect(isComplete && !trust.wantsClientCertificate)
    }

    @Test func `PEM and PKCS#12 of the same files are the same client identity, with the chain`() throws {
        let container = try ClientIdentity(pkcs12: MintedCertificates.data("client.p12"), passphrase: "secret")
        expectEqual(container.certificate, (try pem("client").certificate))
        expectEqual(container.chain, [try MintedCertificates.one("client-root")])
        try expectEqual(pem("client"), pem("client", key: "client-encrypted.key", passphrase: "secret"))
        #expect(try pem("client") != pem("client-rsa"))
    }

    @Test func `descriptions and dumps of a client identity do not contain its private key`() throws {
        let identity = try pem("client")
        var dumped = ""
        dump(identity, to: &dumped)
        for text in ["\(identity)", identity.debugDescription, String(reflecting: identity), dumped, "\([identity])"] {
            #expect(text.contains("CN=client"))
            #expect(!text.contains("PrivateKey") && !text.contains("BEGIN"))
        }
    }

    @Test func `a client identity is read from files, and errors name the file`() throws {
        var contents: [String: Data] = ["empty.pem": Data(), "garbage.p12": Data("garbage".utf8)]
        for name in ["client.pem", "client.key", "client-encrypted.key", "client-rsa.key", "client.p12"] {
            contents[name] = try MintedCertificates.data(name)
        }
        try MintedCertificates.inDirectory(contents) { directory in
            func path(_ name: String) -> String { "\(directory)/\(name)" }
            _ = try ClientIdentity(certificateFile: path("client.pem"), privateKeyFile: path("client.key"))
            _ = try ClientIdentity(pkcs12File: path("client.p12"), passphrase: "secret")
            func file(_ name: String) -> URL { URL(fileURLWithPath: path(name)) }
            _ = try ClientIdentity(certificateFile: file("client.pem"), privateKeyFile: file("client.key"))
            _ = try ClientIdentity(pkcs12File: file("client.p12"), passphrase: "secret")
            let faults: [(String, () throws -> ClientIdentity)] = [
                ("missing.pem", { try .init(certificateFile: path("missing.pem"), privateKeyFile: path("client.key")) }),
                ("missing.key", { try .init(certificateFile: path("client.pem"), privateKeyFile: path("missing.key")) }),
                ("empty.pem", { try .init(certificateFile: path("empty.pem"), privateKeyFile: path("client.key")) }),
                ("client.pem", { try .init(certificateFile: path("client.pem"), privateKeyFile: path("client-rsa.key")) }),
                ("client.pem", { try .init(certificateFile: path("client.pem"), privateKeyFile: path("client.pem")) }),
                (
                    "client-encrypted.key",
                    { try .init(certificateFile: path("client.pem"), privateKeyFile: path("client-encrypted.key")) }
                ),
                (
                    "client-encrypted.key",
                    {
                        try .init(
                            certificateFile: path("client.pem"), privateKeyFile: path("client-encrypted.key"), passphrase: "no")
                    }
                ),
                ("client.p12", { try .init(pkcs12File: path("client.p12"), passphrase: "no") }),
                ("garbage.p12", { try .init(pkcs12File: path("garbage.p12"), passphrase: "secret") }),
                ("missing.p12", { try .init(pkcs12File: path("missing.p12"), passphrase: "secret") }),
                ("missing.p12", { try .init(pkcs12File: file("missing.p12"), passphrase: "secret") }),
                ("missing.key", { try .init(certificateFile: file("client.pem"), privateKeyFile: file("missing.key")) }),
            ]
            for (name, make) in faults {
                let error = #expect(throws: HTTPSessionError.self) { try make() }
                expectEqual(error?.code, .invalidConfiguration)
                expectEqual(error?.reason.contains(path(name)), true, "\(error?.reason ?? "")")
                #expect(error?.reason.contains("secret") == false)
            }
        }
    }
}
