import Expectations
import Foundation
import MemoryCertificates
import NetworkLab
import Testing

/// Probes of the built program at a server that staples an OCSP response, on a loopback address.
@Suite(.timeLimit(.minutes(10))) struct StapledProbeTests {
    @Test func `a server whose stapled response says revoked receives no request, except with --insecure`() throws {
        let scratch = try ScratchDirectory()
        let root = try MemoryCertificate("Root", isAuthority: true)
        let leaf = try MemoryCertificate("server", issuer: root, names: ["IP:127.0.0.1"])
        try Data(root.pem.utf8).write(to: URL(fileURLWithPath: scratch.file("root.pem")))
        try Data((leaf.pem + leaf.keyPEM).utf8).write(to: URL(fileURLWithPath: scratch.file("own.pem")))
        try root.response(.revoked, for: leaf, of: root).write(to: URL(fileURLWithPath: scratch.file("response.der")))
        // With -WWW, the server writes the name of each file that is requested.
        let server = try Program(
            [
                "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", "own.pem", "-key", "own.pem", "-status_file",
                "response.der", "-WWW",
            ], directory: scratch.path)
        let line = try server.nextLine { $0.hasPrefix("ACCEPT ") }
        let target = "https://\(line.dropFirst("ACCEPT ".count).prefix { $0 != " " })/root.pem"
        func explanation(_ options: String...) throws -> String {
            let arguments = ["why", "--certificate-days", "0", "--cafile", scratch.file("root.pem")] + options + [target]
            return try Program([try Programs.netwatch] + arguments).remainingLines().joined(separator: "\n")
        }
        let revoked = try explanation()
        #expect(revoked.contains("CN=Root revoked on ") && revoked.contains("(tls/certificate-revoked)"), "\(revoked)")
        #expect(revoked.contains("  stapled  revoked at "), "\(revoked)")
        #expect(!server.standardError.contains("FILE:"), "\(server.standardError)")
        let insecure = try explanation("--insecure")
        #expect(insecure.contains("; it is revoked, which is ignored"), "\(insecure)")
        #expect(server.standardError.contains("FILE:root.pem"), "\(server.standardError)")
    }
}
