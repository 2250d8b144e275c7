import Expectations
import FoundationEssentials
import Glibc
import HTTPSessionTestKit
import NetworkLab
import Testing

/// Faults as a real client meets them: the exit codes are those of curl(1).
@Suite(.timeLimit(.minutes(20)), .requires("/usr/bin/curl"))
struct CurlTests {
    static let cases: [(StubResponse, Int32)] = [
        (StubResponse(body: "fine"), 0),
        (StubResponse(body: .pattern(1000)).cut(afterBodyBytes: 10), 18),
        (StubResponse(body: .pattern(1000)).cut(afterBodyBytes: 10, .reset), 56),
        (StubResponse(body: "x").declaredLength(100), 18),
        (StubResponse(body: "x").chunked(), 0),
        (StubResponse(body: "goodlost").brokenChunks(.sizeIsNoNumber), 56),
        (StubResponse(body: "goodlost").brokenChunks(.lastChunkIsMissing), 18),
        (StubResponse.none(), 52),
        (StubResponse.none(.reset), 56),
        (StubResponse.raw("SSH-2.0-x\r\n"), 1),
        (StubResponse.redirect(to: "/again"), 47),
        (StubResponse().headerFlood(10_000, valueBytes: 100), 56),
        (StubResponse(fields: ["Content-Encoding": "gzip"], body: .gzip("hello".utf8)), 0),
        (StubResponse(fields: ["Content-Encoding": "gzip"], body: .badGzip("hello".utf8, .reservedBlock)), 61),
        (StubResponse(body: "x").interim(103), 0),
    ]

    @Test(arguments: cases)
    func `curl meets a misbehavior`(_ reply: StubResponse, _ code: Int32) throws {
        let server = try TestServer { _ in reply }
        let result = try Curl().run(["--location", "--max-redirs", "5", "--compressed", server.url().absoluteString])
        expectEqual(result.code, code)
    }

    @Test func `curl trusts a certificate that it was given`() throws {
        let identity = try SelfSignedCertificate()
        let server = try TestServer(tls: identity.serverTLS) { _ in StubResponse(body: "secret") }
        let folder = try ScratchDirectory()
        try write(identity.certificate, to: folder.file("ca"))
        try expectEqual(Curl().run(["--cacert", folder.file("ca"), server.url().absoluteString]).output, "secret")
        try expectEqual(Curl().run([server.url().absoluteString]).code, 60)
        let old = try SelfSignedCertificate(validFrom: -7200, validUntil: -3600)
        let expired = try TestServer(tls: old.serverTLS) { _ in StubResponse(body: "secret") }
        try write(old.certificate, to: folder.file("old"))
        try expectEqual(Curl().run(["--cacert", folder.file("old"), expired.url().absoluteString]).code, 60)
    }

    @Test func `curl uploads and asks for permission`() throws {
        let server = try TestServer { StubResponse(body: .text("\($0.bodyLength)")) }
        let folder = try ScratchDirectory()
        try write(String(repeating: "u", count: 3_000_000), to: folder.file("file"))
        let result = try Curl().run(["--upload-file", folder.file("file"), server.url("/up").absoluteString])
        expectEqual(result.output, "3000000")
        #expect(server.requests.first?["expect"] == "100-continue" && server.requests.first?.body.count == 1 << 20)
    }
}

extension Curl {
}
