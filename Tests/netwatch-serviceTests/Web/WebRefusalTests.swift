import Console
import Expectations
import Foundation
import NetworkLab
import Pacing
import Testing

@testable import netwatch_service

@Suite(.timeLimit(.minutes(5))) struct WebRefusalTests {
    /// Sends a request, and returns the status of each response until the server closes the connection.
    private func statuses(_ site: Site, _ text: String) async throws -> [Int] {
        try await site.with { site in
            let client = try site.client()
            client.send(text)
            client.endInput()
            let received = try client.readToEnd()
            return received.matches(of: #/HTTP/1\.[01] (\d+)/#).compactMap { Int($0.1) }
        }
    }

    @Test(arguments: [
        ("localhost", 200), ("LOCALHOST:9", 200), ("127.0.0.1", 200), ("127.0.0.1:9130", 200), ("[::1]", 200), ("[::1]:80", 200),
        ("box.example", 200), ("box.example.:1", 200), ("evil.example", 421), ("127.0.0.1.evil.example", 421), ("", 421),
        ("localhost:99x", 421), ("localhost:", 200), ("[::1", 421), ("localhost@evil", 421), ("10.0.0.1", 421),
    ])
    func `only the names of this service are answered`(host: String, status: Int) async throws {
        let site = try Site()
        try await expectEqual(statuses(site, "GET / HTTP/1.1\r\nHost: \(host)\r\n\r\n"), [status])
        try await site.stop()
    }

    @Test func `a request without Host is misdirected, and HTTP/1.0 closes the connection`() async throws {
        let site = try Site()
        try await expectEqual(statuses(site, "GET / HTTP/1.0\r\n\r\n"), [421])
        try await expectEqual(statuses(site, "GET / HTTP/1.1\r\n\r\n"), [421])
        try await expectEqual(statuses(site, "GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"), [400])
        let old = try await site.with { site in
            let client = try site.client()
            client.send("GET /-/healthy HTTP/1.0\r\nHost: localhost\r\n\r\n")
            return try client.readToEnd()
        }
        #expect(old.hasPrefix("HTTP/1.0 200") && old.hasSuffix("ok\n"))
        try await site.stop()
    }

    @Test(arguments: [
        ("Sec-Fetch-Site: cross-site", 403), ("Sec-Fetch-Site: same-site", 403), ("Sec-Fetch-Site: same-origin", 200),
        ("Origin: http://evil.example", 403), ("Origin: null", 403), ("Origin: http://localhost", 200),
        ("Origin: http://localhost:8080", 403), ("Origin: https://localhost", 200), ("X: y", 200),
    ])
    func `another site can neither reload nor open a stream`(field: String, status: Int) async throws {
        let site = try Site()
        let reload = try await site.with { try $0.client().get("/-/reload", method: "POST", field) }
        expectEqual(reload.status, status)
        try await expectEqual(site.with { try $0.client().stream("/api/v1/events", field) }.status, status)
        // A page may be linked.
        try await expectEqual(site.with { try $0.client().get("/", field) }.status, 200)
        try await site.stop()
    }

    @Test(arguments: ["cross-site", "same-site"])
    func `another site causes no work by images, frames and scripts`(origin: String) async throws {
        let site = try Site()
        for target in [
            "/", "/target/office", "/api/v1/status", "/api/v1/history?report=1", "/badge/office.svg", "/style.css", "/-/healthy",
        ] {
            let isCheap = ["/badge/office.svg", "/style.css", "/-/healthy"].contains(target)
            for (mode, kind) in [("no-cors", "image"), ("navigate", "iframe"), ("cors", "empty"), ("navigate", "document")] {
                let status = try await site.with { site in
                    try site.client().get(
                        target, "Sec-Fetch-Site: \(origin)", "Sec-Fetch-Mode: \(mode)", "Sec-Fetch-Dest: \(kind)"
                    ).status
                }
                let isLink = kind == "document" && !target.hasPrefix("/api/")
                expectEqual(status, isCheap || isLink ? 200 : 403, "\(target) \(mode) \(kind)")
            }
        }
        // The page's own script, and an address that somebody types.
        for own in ["same-origin", "none"] {
            try await expectEqual(site.with { try $0.client().get("/api/v1/status", "Sec-Fetch-Site: \(own)") }.status, 200)
        }
        try await site.stop()
    }

    @Test func `a name that is not allowed is refused with the sentence that allows it`() async throws {
        let site = try Site()
        let response = try await site.with { site in
            let client = try site.client()
            client.send("GET / HTTP/1.1\r\nHost: Kiosk.lan:9130\r\n\r\n")
            return try client.response()
        }
        expectEqual(response.status, 421)
        let document = try #require(try JSONSerialization.jsonObject(with: Data(response.body.utf8)) as? [String: String])
        expectEqual(
            document["detail"],
            "'kiosk.lan' is no name of this service: open it as 'localhost', or add 'kiosk.lan' to 'allowed_hosts' in the "
                + "configuration if nobody else can answer for that name")
        try await site.stop()
    }

    @Test func `heads and contents above their limits are refused`() async throws {
        let site = try Site()
        let host = "Host: localhost\r\n"
        let long = String(repeating: "a", count: 100_000)
        let fields = (0..<500).map { "x\($0): y\r\n" }.joined()
        try await expectEqual(statuses(site, "GET / HTTP/1.1\r\n\(host)X: \(long)\r\n\r\n"), [431])
        try await expectEqual(statuses(site, "GET / HTTP/1.1\r\n\(host)\(fields)\r\n"), [431])
        try await expectEqual(statuses(site, "GET /\(long) HTTP/1.1\r\n\(host)\r\n"), [431])
        try await expectEqual(statuses(site, "POST /-/reload HTTP/1.1\r\n\(host)Content-Length: 65537\r\n\r\n"), [413])
        try await expectEqual(
            statuses(site, "POST /-/reload HTTP/1.1\r\n\(host)Content-Length: 99999999999999999999\r\n\r\n"), [400])
        let chunks = String(repeating: "4000\r\n\(String(repeating: "b", count: 0x4000))\r\n", count: 5)
        try await expectEqual(
            statuses(site, "POST /-/reload HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\n\r\n\(chunks)0\r\n\r\n"),
            [413])
        let content = String(repeating: "b", count: 65_536)
        try await expectEqual(
            statuses(
                site, "POST /-/reload HTTP/1.1\r\n\(host)Content-Length: 65536\r\n\r\n\(content)GET / HTTP/1.1\r\n\(host)\r\n"),
            [200, 200])
        try await site.stop()
    }

    @Test(arguments: [
        "\r\n\r\n\0\0\0", "GET\r\n\r\n", "GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", "\u{16}\u{3}\u{1}\u{2}\0",
        "GET / HTTP/1.1\r\nA\r\n\r\n",
        "GET http:/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", "FOO / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ])
    func `malformed requests are answered once with 400`(text: String) async throws {
        let site = try Site()
        try await expectEqual(statuses(site, text), [400])
        try await site.stop()
    }

    @Test func `garbage after pipelined requests is answered after them`() async throws {
        let site = try Site()
        let request = "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n"
        let many = String(repeating: request, count: 40)
        try await expectEqual(
            statuses(site, many + "\u{1}\u{2}garbage\r\n\r\n\(request)"), Array(repeating: 200, count: 40) + [400])
        try await expectEqual(statuses(site, request + "GET / HTTP/1.1\r\n\r\n" + request), [200, 421])
        try await expectEqual(
            statuses(site, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" + many), [200])
        try await site.stop()
    }

    @Test func `random bytes are answered or the connection is closed`() async throws {
        let site = try Site()
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = SplitMix64(seed: seed)
        for _ in 0..<50 {
            var bytes = Array("GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc".utf8)
            for _ in 0..<Int.random(in: 1...6, using: &generator) {
                let place = Int.random(in: 0..<bytes.count, using: &generator)
                bytes[place] = UInt8.random(in: 0...255, using: &generator)
            }
            let sent = bytes
            let received = try await site.with { site in
                let client = try site.client()
                client.send(sent)
                client.endInput()
                return try client.readToEnd()
            }
            #expect(received.isEmpty || received.hasPrefix("HTTP/1."), "seed \(seed)")
        }
        try await expectEqual(site.with { try $0.client().get("/-/healthy") }.status, 200, "seed \(seed)")
        try await site.stop()
    }

    @Test func `errors contain foreign text only as escaped text`() async throws {
        let site = try Site()
        let received = try await site.with { site in
            let client = try site.client()
            client.send("GET / HTTP/1.1\r\nHost: \"<b>\u{202e}\r\n\r\n")
            return try client.response()
        }
        #expect(received.status == 421 || received.status == 400)
        #expect(received.body.unicodeScalars.allSatisfy { $0.isASCII } || !received.body.contains("\u{202e}"))
        #expect(try JSONSerialization.jsonObject(with: Data(received.body.utf8)) is [String: Any])
        try await site.stop()
    }
}
