import Expectations
import Foundation
import HTTPSessionTestKit
import NetworkLab
import Testing

/// The authorities that `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
@Suite(.requires("/usr/bin/openssl"), .skippedUnderSanitizers, .timeLimit(.minutes(5))) struct EnvironmentAuthoritiesTests {
    private let folder: ProgramFolder
    private let certificate: SelfSignedCertificate
    private let server: TestServer

    init() throws {
        folder = try ProgramFolder()
        certificate = try SelfSignedCertificate(names: ["localhost"])
        server = try TestServer(tls: certificate.serverTLS) { _ in StubResponse(body: "trusted") }
    }

    private func get(file: String?, directory: String?) throws -> Program {
        try folder.get(
            "-q", "-o", "answer", "--timeout", "120s", "https://localhost:\(server.port)/",
            environment: ["SSL_CERT_FILE": file, "SSL_CERT_DIR": directory])
    }

    private func write(_ text: String, to name: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: folder.file(name)))
    }

    @Test(
        "an SSL_CERT_FILE without a certificate is an error, without fallback to the system's authorities",
        arguments: [
            ("missing.pem", "cannot read 'missing.pem': No such file or directory"), ("", "it is set but empty"),
            ("empty.pem", "'empty.pem' has no certificate"), ("text.pem", "'text.pem' has no certificate"),
            ("folder", "cannot read 'folder': Is a directory"), ("loop", "cannot read 'loop': Too many levels of symbolic links"),
        ])
    func file(_ file: String, reason: String) throws {
        try write("", to: "empty.pem")
        try write("no certificate\n", to: "text.pem")
        try FileManager.default.createDirectory(atPath: folder.file("folder"), withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(atPath: folder.file("loop"), withDestinationPath: "loop")
        let program = try get(file: file, directory: nil)
        try expectEqual(program.wait(), 66, "\(program.ending)")
        #expect(program.standardError.hasPrefix("netwatch: get: SSL_CERT_FILE: \(reason)"), "\(program.ending)")
        expectEqual(program.standardError.split(separator: "\n").count, 1)
        #expect(server.requests.isEmpty && folder.content("answer") == nil)
    }

    @Test(
        "an SSL_CERT_DIR without a hashed certificate is an error",
        arguments: [
            ("missing", "cannot read 'missing': No such file or directory"), ("", "it is set but empty"),
            ("unhashed", "'unhashed' has no certificate under the name of its hash"),
            ("hashed:missing", "cannot read 'missing': No such file or directory"),
        ])
    func directory(_ directory: String, reason: String) throws {
        try makeDirectories()
        let program = try get(file: nil, directory: directory)
        try expectEqual(program.wait(), 66, "\(program.ending)")
        #expect(program.standardError.hasPrefix("netwatch: get: SSL_CERT_DIR: \(reason)"), "\(program.ending)")
    }

    @Test("only the authorities of SSL_CERT_FILE and SSL_CERT_DIR are trusted")
    func trusted() throws {
        try makeDirectories()
        try write(SelfSignedCertificate(names: ["other.example"]).certificate, to: "other.pem")
        let cases: [(file: String?, directory: String?, code: Int32)] = [
            ("hashed/root.pem", nil, 0), (nil, "hashed", 0), ("other.pem", "hashed", 0), ("other.pem", nil, 1),
            ("hashed/root.pem", "missing", 66),
        ]
        for (file, directory, code) in cases {
            let program = try get(file: file, directory: directory)
            try expectEqual(program.wait(), code, "\(program.ending)")
        }
        expectEqual(folder.content("answer"), Data("trusted".utf8))
    }

    /// `hashed` has the server's certificate under the name of its hash, `unhashed` under another.
    private func makeDirectories() throws {
        for name in ["hashed", "unhashed"] {
            try FileManager.default.createDirectory(atPath: folder.file(name), withIntermediateDirectories: true)
            try write(certificate.certificate, to: "\(name)/root.pem")
        }
        let hash = try Program(["/usr/bin/openssl", "x509", "-hash", "-noout", "-in", folder.file("hashed/root.pem")])
        let name = try #require(try hash.nextLine())
        try FileManager.default.createSymbolicLink(
            atPath: folder.file("hashed/\(name).0"), withDestinationPath: "root.pem")
    }
}
