import Expectations
import HTTPSessionTestKit
import Foundation
import HTTPSessionTestKit
import NetworkLab
import Testing

/// The servers that other tests rely on behave as documented, checked with curl(1).
@Suite(.timeLimit(.minutes(20)))
struct ServerFixtureTests {
    /// The output of curl, whose last line has the status and the protocol version.
    private func curl(_ arguments: [String]) throws -> String {
        let program = try Program(
            [
                "curl", "--disable", "--silent", "--noproxy", "*", "--max-time", "60", "--write-out",
                "\n%{http_code} %{http_version}",
            ]
                + arguments, output: .file)
        try expectEqual(program.wait(within: .seconds(120)), 0, "\(program.ending)")
        return program.output
    }

    @Test(.requires(Nginx.program)) func `nginx serves files, ranges, rate-limited and gzipped responses`() throws {
        let nginx = try Nginx.shared.get()
        let folder = try ScratchDirectory()
        try expectEqual(curl(["-o", folder.file("a"), nginx.url("/1k").absoluteString]), "\n200 1.1")
        expectEqual(FileManager.default.contents(atPath: folder.file("a")), Nginx.pattern(1024))
        try expectEqual(curl(["-o", folder.file("a"), "-r", "1000-", nginx.url("/1k").absoluteString]), "\n206 1.1")
        expectEqual(FileManager.default.contents(atPath: folder.file("a")), Nginx.pattern(1024).suffix(24))
        try expectEqual(curl(["-o", folder.file("a"), nginx.url("/slow/1k?rate=1k").absoluteString]), "\n200 1.1")
        #expect(try curl(["--head", nginx.url("/huge").absoluteString]).contains("Content-Length: 2147483648"))
        let gzipped = try curl(["--compressed", "-D", "-", "-o", folder.file("a"), nginx.url("/text").absoluteString])
        #expect(gzipped.contains("Content-Encoding: gzip"))
        expectEqual(FileManager.default.contents(atPath: folder.file("a"))?.count, 100_000)
    }

    @Test(.requires(Nginx.program)) func `nginx serves HTTP/2 and a Unix socket`() throws {
        let nginx = try Nginx.shared.get()
        let folder = try ScratchDirectory()
        try Data(nginx.identity.certificate.utf8).write(to: URL(fileURLWithPath: folder.file("ca")))
        let tls = try curl(["--cacert", folder.file("ca"), "--http2", nginx.tlsURL("/echo-headers").absoluteString])
        #expect(tls.hasPrefix("GET\nHTTP/2.0\n") && tls.hasSuffix("\n200 2"))
        let old = try curl(["--cacert", folder.file("ca"), "--http1.1", nginx.tlsURL("/1k").absoluteString, "-o", "/dev/null"])
        expectEqual(old, "\n200 1.1")
        try expectEqual(curl(["--unix-socket", nginx.unixSocket, "http://localhost/status/204"]), "\n204 1.1")
    }

    @Test(.requires(Nginx.program)) func `nginx accepts request bodies and sends redirects`() throws {
        let nginx = try Nginx.shared.get()
        let folder = try ScratchDirectory()
        try Nginx.pattern(1 << 20).write(to: URL(fileURLWithPath: folder.file("body")))
        #expect(try curl(["--upload-file", folder.file("body"), nginx.url("/sink").absoluteString]).hasSuffix("\n200 1.1"))
        let redirect = try curl(["-D", "-", nginx.url("/redirect/307?to=/1k").absoluteString])
        #expect(redirect.contains("307") && redirect.contains("/1k"))
    }

    @Test(.requires(Httpbin.program)) func `httpbin echoes, sends challenges and redirects`() throws {
        let httpbin = try Httpbin.shared.get()
        #expect(try curl(["-d", "a=b", httpbin.url("/post").absoluteString]).contains(#""a":"b""#))
        #expect(
            try curl(["--digest", "-u", "me:secret", httpbin.url("/digest-auth/auth/me/secret").absoluteString])
                .contains(#""authenticated":true"#))
        let moved = try curl(["--location", httpbin.url("/redirect/2").absoluteString])
        #expect(moved.hasSuffix("\n200 1.1"))
        let compressed = try curl(["--compressed", httpbin.url("/gzip").absoluteString])
        #expect(compressed.contains(#""gzipped":true"#))
    }
}
