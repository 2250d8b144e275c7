import Expectations
import Foundation
import Testing

@testable import netwatch_service

/// Request targets in absolute-form (RFC 9112 section 3.2.2).
@Suite(.timeLimit(.minutes(5))) struct AbsoluteTargetTests {
    @Test(
        arguments: [
            ("/", nil, nil, "/"), ("//x/y?z", nil, nil, "//x/y?z"),
            ("http://localhost", "http", "localhost", "/"), ("HTTP://LocalHost:80/a?b#c", "http", "LocalHost:80", "/a?b#c"),
            ("http://localhost?q=/x", "http", "localhost", "/?q=/x"), ("http://localhost#x", "http", "localhost", "/#x"),
            ("http://u:p@h/", "http", "u:p@h", "/"), ("a+b-c.1://h/://", "a+b-c.1", "h", "/://"),
            ("http://[::1]:1/x", "http", "[::1]:1", "/x"), ("http://h\\@localhost/", "http", "h\\@localhost", "/"),
        ] as [(String, String?, String?, String)])
    func `a target has a scheme, an authority and a resource`(text: String, scheme: String?, authority: String?, resource: String)
        throws
    {
        let target = try #require(RequestTarget(text))
        #expect(target.origin?.scheme == scheme && target.origin?.authority == authority && target.resource == resource)
    }

    @Test(arguments: [
        "", "*", "localhost", "localhost:1", "http:", "http:/x", "http:x", "http://", "http:///x", "://x", "1a://x", "a b://x",
        "http://?x",
    ])
    func `other texts are no targets`(text: String) {
        expectNil(RequestTarget(text))
    }

    private func status(_ site: Site, _ target: String, method: String = "GET", _ fields: [String] = ["Host: localhost"])
        async throws -> Int
    {
        try await site.with { site in
            let client = try site.client()
            client.send("\(method) \(target) HTTP/1.1\r\n\(fields.map { $0 + "\r\n" }.joined())\r\n")
            return try client.head().status
        }
    }

    @Test(arguments: [
        ("http://localhost/", 200), ("http://127.0.0.1:9130/", 200), ("http://[::1]", 200), ("HTTP://BOX.EXAMPLE./", 200),
        ("http://localhost?span=7d", 200), ("http://localhost/-/healthy", 200), ("http://localhost/nothing", 404),
        ("http://evil.example/", 421), ("http://localhost.evil.example/", 421), ("http://127.0.0.1.evil.example:9130/", 421),
        ("http://2130706433/", 421), ("http://0x7f.1/", 421), ("http://localhost:99x/", 421), ("http://[::1/", 421),
        ("http://localhost%00.evil.example/", 421), ("http://%6cocalhost/", 421), ("http://10.0.0.1/", 421),
        ("http://evil.example/-/healthy", 421), ("https://localhost/", 421), ("ftp://localhost/", 421),
        ("javascript://localhost/", 421),
        ("http://localhost@evil.example/", 400), ("http://evil.example@localhost/", 400),
        ("http://localhost:80@evil.example/", 400),
        ("http://user:secret@localhost/", 400), ("http:///", 400), ("http://", 400),
    ])
    func `the authority of the target must be a name of this service`(target: String, status: Int) async throws {
        let site = try Site()
        try await expectEqual(self.status(site, target), status)
        try await site.stop()
    }

    @Test func `the authority of the target replaces the value of Host, which must be there once`() async throws {
        let site = try Site()
        try await expectEqual(status(site, "http://localhost/", ["Host: evil.example"]), 200)
        try await expectEqual(status(site, "http://evil.example/", ["Host: localhost"]), 421)
        try await expectEqual(status(site, "http://localhost/", []), 421)
        try await expectEqual(status(site, "http://localhost/", ["Host: localhost", "Host: localhost"]), 400)
        try await site.stop()
    }

    @Test func `the origin of a change must be the authority of the target`() async throws {
        let site = try Site()
        let target = "http://localhost/-/reload"
        let own = ["Host: evil.example", "Origin: http://localhost", "Content-Length: 0"]
        try await expectEqual(status(site, target, method: "POST", own), 200)
        let foreign = ["Host: evil.example", "Origin: http://evil.example", "Content-Length: 0"]
        try await expectEqual(status(site, target, method: "POST", foreign), 403)
        try await site.stop()
    }

    @Test func `a stream by a complete target has the checks and the places of streams`() async throws {
        var limits = WebLimits()
        limits.streams = 1
        let site = try Site(limits: limits)
        let target = "http://localhost/api/v1/events"
        try await expectEqual(status(site, target, ["Host: localhost", "Sec-Fetch-Site: cross-site"]), 403)
        try await site.with { site in
            let first = try site.client()
            try expectEqual(first.stream(target).status, 200)
            try expectEqual(first.event().type, "hello")
            try expectEqual(site.client().stream(target).status, 503)
        }
        try await site.stop()
    }

    @Test func `a target with a scheme also works on the Unix socket`() async throws {
        let site = try Site()
        let answer = try await site.with { site in
            let client = try RawClient(path: site.path)
            client.send("GET http://any.example/-/healthy HTTP/1.1\r\n\r\n")
            return try client.response()
        }
        #expect(answer.status == 200 && answer.body == "ok\n")
        try await site.stop()
    }
}
