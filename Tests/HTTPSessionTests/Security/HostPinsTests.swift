import Expectations
import Foundation
import Testing

@testable import HTTPSession

@Suite struct HostPinsTests {
    static let pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

    @Test(arguments: [
        ("example.com", "example.com", true), ("example.com", "EXAMPLE.com.", true), ("Example.COM", "example.com", true),
        ("example.com", "a.example.com", false), ("example.com", "notexample.com", false),
        ("*.example.com", "a.example.com", true), ("*.example.com", "example.com", false),
        ("*.example.com", "b.a.example.com", false), ("*.example.com", ".example.com", false),
        ("*.example.com", "aexample.com", false),
        ("**.example.com", "example.com", true), ("**.example.com", "a.example.com", true),
        ("**.example.com", "b.a.example.com", true), ("**.example.com", "notexample.com", false),
        ("**.example.com", "example.com.evil.test", false),
        ("127.0.0.1", "127.0.0.1", true), ("::1", "[::1]", true), ("[::1]", "::1", true), ("localhost", "localhost", true),
        ("::1", "[0:0:0:0:0:0:0:1]", true), ("[FE80:0::1]", "fe80::1%eth0", true), ("::1", "::2", false),
    ])
    func `a host pattern matches its hosts only`(_ pattern: String, _ host: String, _ isFor: Bool) throws {
        try expectEqual(HostPattern(pattern).matches(host), isFor)
    }

    @Test(arguments: [
        "", ".", "*", "**", "*.", "**.", "a.*.com", "*a.com", "***.com", "*.*.com", "a b.com", "exämple.com", "a..com", "a/b",
        "a.com:443", "*.0.0.1", "**.1", "*.::1", "a\u{0}.com", "a\r\n.com", String(repeating: "a", count: 64) + ".com",
    ])
    func `an invalid host pattern is an error that names it`(_ text: String) {
        let error = #expect(throws: HTTPSessionError.self) { try HostPattern(text) }
        expectEqual(error?.code, .invalidConfiguration)
        #expect(error?.reason.contains(excerpt(of: text)) == true)
        #expect((error?.reason.contains { $0.isNewline || $0 == "\0" }) == false)
    }

    @Test func `a public key pin is parsed and described alike`() throws {
        try expectEqual(PublicKeyPin(Self.pin).description, Self.pin)
        try expectEqual(PublicKeyPin(Self.pin).digest, Data(count: 32))
    }

    @Test(arguments: [
        "", "sha256/", "sha1/AAAAAAAAAAAAAAAAAAAAAAAAAAA=", "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        "SHA256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB=", "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "sha256/AAAAAAAAAAAAAAAAAAAA-_AAAAAAAAAAAAAAAAAAAAA=", " sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    ])
    func `an invalid public key pin is an error that names it`(_ text: String) {
        let error = #expect(throws: HTTPSessionError.self) { try HostPins("example.com", pins: [Self.pin], backupPins: [text]) }
        expectEqual(error?.code, .invalidConfiguration)
        #expect(error?.reason.contains(excerpt(of: text)) == true)
    }

    @Test func `host pins without a pin are an error`() {
        #expect(throws: HTTPSessionError.self) { try HostPins("example.com", pins: []) }
        #expect(throws: HTTPSessionError.self) { try PublicKeyPin(digest: Data(count: 20)) }
    }

    @Test func `host pins decoded from a configuration file are validated`() throws {
        func decode(_ text: String) throws -> HostPins { try JSONDecoder().decode(HostPins.self, from: Data(text.utf8)) }
        try expectEqual(decode(#"{"pattern":"*.a.test","pins":["\#(Self.pin)"]}"#).pattern.description, "*.a.test")
        for text in [
            #"{"pattern":"*.a.test","pins":[]}"#, #"{"pattern":"*.*.test","pins":["\#(Self.pin)"]}"#,
            #"{"pattern":"a.test","pins":["sha256/AA"]}"#,
        ] {
            #expect(throws: DecodingError.self) { try decode(text) }
        }
    }

    @Test func `a certificate's public key pin equals the output of openssl`() throws {
        let certificate = try MintedCertificates.one("leaf")
        let expected = try MintedCertificates.inDirectory(["leaf.pem": MintedCertificates.data("leaf.pem")]) { directory in
            let shell = Process()
            let output = Pipe()
            shell.executableURL = URL(fileURLWithPath: "/bin/sh")
            shell.arguments = [
                "-c",
                "openssl x509 -in \(directory)/leaf.pem -pubkey -noout | openssl pkey -pubin -outform DER | openssl dgst -sha256 -binary | base64",
            ]
            shell.standardOutput = output
            try shell.run()
            shell.waitUntilExit()
            return String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        }
        expectEqual("\(certificate.publicKeyPin)\n", "sha256/" + expected)
        expectEqual(certificate.description, "\(certificate.publicKeyPin) CN=leaf")
    }
}
