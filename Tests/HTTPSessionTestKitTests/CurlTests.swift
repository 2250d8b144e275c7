import FoundationEssentials
import Glibc
import HTTPSessionTestKit
import NetworkLab
import Testing

/// That a real client meets what it is told to: the exit codes are those of curl(1).
@Suite(.timeLimit(.minutes(20)), .requires("/usr/bin/curl"))
struct CurlTests {
    static let cases: [(Reply, Int32)] = [
        (Reply(body: "fine"), 0),
        (Reply(body: .pattern(1000)).cut(afterBodyBytes: 10), 18),
        (Reply(body: .pattern(1000)).cut(afterBodyBytes: 10, .reset), 56),
        (Reply(body: "x").lyingLength(100), 18),
        (Reply(body: "x").chunked(), 0),
        (Reply(body: "goodlost").brokenChunks(.sizeIsNoNumber), 56),
        (Reply(body: "goodlost").brokenChunks(.lastChunkIsMissing), 18),
        (Reply.none(), 52),
        (Reply.none(.reset), 56),
        (Reply.raw("SSH-2.0-x\r\n"), 1),
        (Reply.redirect(to: "/again"), 47),
        (Reply().headerFlood(10_000, valueBytes: 100), 56),
        (Reply(fields: ["Content-Encoding": "gzip"], body: .gzip("hello".utf8)), 0),
        (Reply(fields: ["Content-Encoding": "gzip"], body: .badGzip("hello".utf8, .reservedBlock)), 61),
        (Reply(body: "x").interim(103), 0),
    ]

    @Test(arguments: cases)
    func `curl meets a misbehaviour`(_ reply: Reply, _ code: Int32) throws {
        let server = try MisbehavingServer { _ in reply }
        let result = try Curl().run(["--location", "--max-redirs", "5", "--compressed", server.url().absoluteString])
        #expect(result.code == code)
    }

    @Test func `curl trusts a certificate that it was given`() throws {
        let identity = try SelfSignedCertificate()
        let server = try MisbehavingServer(tls: identity.serverTLS) { _ in Reply(body: "secret") }
        let folder = try ScratchDirectory()
        try write(identity.certificate, to: folder.file("ca"))
        #expect(try Curl().run(["--cacert", folder.file("ca"), server.url().absoluteString]).output == "secret")
        #expect(try Curl().run([server.url().absoluteString]).code == 60)
        let old = try SelfSignedCertificate(validFrom: -7200, validUntil: -3600)
        let expired = try MisbehavingServer(tls: old.serverTLS) { _ in Reply(body: "secret") }
        try write(old.certificate, to: folder.file("old"))
        #expect(try Curl().run(["--cacert", folder.file("old"), expired.url().absoluteString]).code == 60)
    }

    @Test func `curl uploads and asks for permission`() throws {
        let server = try MisbehavingServer { Reply(body: .text("\($0.bodyLength)")) }
        let folder = try ScratchDirectory()
        try write(String(repeating: "u", count: 3_000_000), to: folder.file("file"))
        let result = try Curl().run(["--upload-file", folder.file("file"), server.url("/up").absoluteString])
        #expect(result.output == "3000000")
        #expect(server.requests.first?["expect"] == "100-continue" && server.requests.first?.body.count == 1 << 20)
    }
}

extension Curl {
}
