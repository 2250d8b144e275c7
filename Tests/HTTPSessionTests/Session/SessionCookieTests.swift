import Expectations
import Foundation
import HTTPSessionTestKit
import NetworkLab
import Testing

@testable import HTTPSession

/// Reading and changing a session's cookies from the program.
@Suite(.timeLimit(.minutes(20))) struct SessionCookieTests {
    private func server() throws -> TestServer {
        try TestServer { request in
            request.path == "/set"
                ? StubResponse(body: "set").field("Set-Cookie", "a=1; Path=/").field(
                    "Set-Cookie", "b=2; Path=/deep; Max-Age=3600; HttpOnly")
                : StubResponse(body: .text(request.values("cookie").joined(separator: "|")))
        }
    }

    private func sentCookies(_ session: HTTPSessionManager, _ url: URL) async throws -> String {
        String(decoding: try await session.dataTask(for: TransferRequest(url: url)).response.data, as: UTF8.self)
    }

    @Test func `cookies that a server set can be read, all and by URL`() async throws {
        let server = try server()
        let session = try localSession()
        try expectEmpty(session.store.cookies)
        _ = try await sentCookies(session, server.url("/set"))
        let all = try session.store.cookies.sorted { $0.name < $1.name }
        expectEqual(all.map(\.name), ["a", "b"])
        expectEqual(all.map(\.value), ["1", "2"])
        expectEqual(all.map(\.domain), ["127.0.0.1", "127.0.0.1"])
        expectEqual(all.map(\.path), ["/", "/deep"])
        expectEqual(all.map(\.isHTTPOnly), [false, true])
        expectNil(all[0].expires)
        #expect((3_000...3_700).contains(try #require(all[1].expires).timeIntervalSinceNow))
        try expectEqual(session.store.cookies(for: server.url("/")).map(\.name), ["a"])
        try expectEqual(session.store.cookies(for: server.url("/deep/er")).map(\.name), ["b", "a"])
        try await expectEqual(sentCookies(session, server.url("/deep/er")), "b=2; a=1")
    }

    @Test func `a cookie that the program sets is sent, replaced and deleted`() async throws {
        let server = try server()
        let session = try localSession()
        let cookie = Cookie(name: "own", value: "x y=", domain: "127.0.0.1")
        try session.store.setCookie(cookie)
        try session.store.setCookie(Cookie(name: "empty", value: "", domain: "127.0.0.1"))
        expectEqual(Set(try await sentCookies(session, server.url()).components(separatedBy: "; ")), ["own=x y=", "empty="])
        #expect(try session.store.cookies.contains(cookie))
        var changed = cookie
        (changed.value, changed.includesSubdomains) = ("z", true)
        try session.store.setCookie(changed)
        #expect(try await sentCookies(session, server.url()).contains("own=z"))
        try expectEqual(session.store.cookies.count { $0.name == "own" }, 1)
        try session.store.deleteCookie(cookie)
        try session.store.deleteCookie(cookie)
        try await expectEqual(sentCookies(session, server.url()), "empty=")
        try session.store.deleteAllCookies()
        try await expectEqual(sentCookies(session, server.url()), "")
        try expectEmpty(session.store.cookies)
    }

    @Test func `a request's own cookie replaces the stored one of its name`() async throws {
        let server = try TestServer { request in
            request.path == "/set"
                ? StubResponse().field("Set-Cookie", "a=stored").field("Set-Cookie", "b=stored").field("Set-Cookie", "ab=stored")
                : StubResponse()
        }
        let session = try localSession()
        _ = try await session.dataTask(for: TransferRequest(url: server.url("/set"))).response
        for (own, sent) in [
            ("a=own", "a=own; b=stored; ab=stored"), ("b=own; c=1", "b=own; c=1; a=stored; ab=stored"),
            ("A=own", "A=own; a=stored; b=stored; ab=stored"), (" a =x;ab=\"y\"", nil),
        ] as [(String, String?)] {
            var request = TransferRequest(url: server.url())
            request.headerFields[.cookie] = own.trimmingCharacters(in: .whitespaces)
            _ = try await session.dataTask(for: request).response
            let cookies = try #require(server.requests.last).values("cookie")
            if let sent {
                expectEqual(cookies, [sent])
            } else {
                #expect(cookies.count == 1 && !cookies[0].contains("=stored; ab=stored") && cookies[0].contains("b=stored"))
                #expect(!cookies[0].contains("a=stored"), "\(cookies)")
            }
        }
    }

    @Test func `setting an expired cookie deletes the stored one`() async throws {
        let session = try localSession()
        var cookie = Cookie(name: "a", value: "1", domain: "host.example", expires: Date(timeIntervalSinceNow: 1_000))
        try session.store.setCookie(cookie)
        cookie.expires = Date(timeIntervalSince1970: 0)
        try session.store.setCookie(cookie)
        try expectEmpty(session.store.cookies)
    }

    @Test func `a cookie that no server could set is refused and changes no cookie`() async throws {
        let session = try localSession()
        let good = Cookie(name: "a", value: "1", domain: "host.example")
        try session.store.setCookie(good)
        for bad in [
            Cookie(name: "", value: "1", domain: "host.example"), Cookie(name: "a\tb", value: "1", domain: "host.example"),
            Cookie(name: "a=b", value: "1", domain: "host.example"),
            Cookie(name: "a", value: "1\r\nX: y", domain: "host.example"),
            Cookie(name: "a", value: "1; Secure", domain: "host.example"), Cookie(name: "a", value: "\0", domain: "host.example"),
            Cookie(name: "a", value: "1", domain: ""), Cookie(name: "a", value: "1", domain: "#HttpOnly_x"),
            Cookie(name: "a", value: "1", domain: "host.example", path: "deep"),
            Cookie(name: "__Host-a", value: "1", domain: "host.example", includesSubdomains: true, isSecure: true),
            Cookie(name: "__Secure-a", value: "1", domain: "host.example"),
        ] {
            let error = #expect(throws: HTTPSessionError.self) { try session.store.setCookie(bad) }
            expectEqual(error?.code, .invalidRequest, "\(bad)")
        }
        try expectEqual(session.store.cookies, [good])
        try session.store.setCookie(Cookie(name: "__Host-a", value: "1", domain: "host.example", isSecure: true))
        try expectEqual(session.store.cookies.count, 2)
    }

    @Test func `reading and setting cookies fails on a session without cookies and after invalidation`() async throws {
        let none = try localSession { $0.cookies = .none }
        expectNil(none.cookieStore)
        let ended = try localSession()
        ended.cancel()
        await ended.waitUntilEnded()
        let cookie = Cookie(name: "a", value: "1", domain: "host.example")
        try ended.store.setCookie(cookie)
        try expectEqual(ended.store.cookies, [cookie])
    }

    @Test func `two sessions with the default configuration do not share their cookies`() async throws {
        let server = try server()
        let (one, other) = (try localSession(), try localSession())
        _ = try await sentCookies(one, server.url("/set"))
        try expectEqual(one.store.cookies.count, 2)
        try expectEmpty(other.store.cookies)
        try await expectEqual(sentCookies(other, server.url("/deep/er")), "")
    }

    @Test func `reading cookies while the session is invalidated returns`() async throws {
        for _ in 0..<50 {
            let session = try localSession()
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<10 { group.addTask { _ = try? session.store.cookies } }
                group.addTask { session.cancel() }
                for number in 0..<10 {
                    group.addTask { try? session.store.setCookie(Cookie(name: "a\(number)", value: "", domain: "a")) }
                }
            }
        }
    }

    @Test(arguments: [
        ("http://host.example/", true), ("http://HOST.example", true), ("http://a.host.example/", false),
        ("http://other/", false),
    ])
    func `a host-only cookie matches only its host`(_ url: String, _ isSent: Bool) throws {
        expectEqual(Cookie(name: "a", value: "", domain: "host.example").matches(try #require(URL(string: url))), isSent)
    }

    @Test(arguments: [
        ("https://host.example/a", true), ("https://x.y.host.example/a/b", true), ("https://host.example/ab", false),
        ("https://evilhost.example/a", false), ("http://host.example/a", false), ("https://host.example/", false),
        ("https://host.example/a?b", true),
    ])
    func `a domain cookie matches subdomains, its path, and https only if it is secure`(_ url: String, _ isSent: Bool) throws {
        let cookie = Cookie(name: "a", value: "", domain: ".Host.example", path: "/a", includesSubdomains: true, isSecure: true)
        expectEqual(cookie.matches(try #require(URL(string: url))), isSent)
    }

    @Test func `a line of a cookie file is read as a cookie and written unchanged`() throws {
        for line in [
            "#HttpOnly_.host.example\tTRUE\t/a\tTRUE\t1999999999\tname\tvalue", "host.example\tFALSE\t/\tFALSE\t0\tname\t",
        ] {
            let cookie = try #require(Cookie(line: line))
            try expectEqual(cookie.line, line)
            #expect(!"\(cookie)\(String(reflecting: cookie))".contains("value"))
        }
        for line in ["", "# comment", "a\tb\tc", "host\tTRUE\t/\tTRUE\tsoon\tname\tvalue", "host\tTRUE\t/\tTRUE\t0\t\tvalue"] {
            expectNil(Cookie(line: line))
        }
    }

    @Test func `a cookie value that is not UTF-8 stays unchanged in the file when another cookie changes`() async throws {
        let folder = try ScratchDirectory()
        let latin = Array("127.0.0.1\tFALSE\t/\tFALSE\t0\ta\tcaf".utf8) + [0xE9]
        try Data(latin + [0x0A]).write(to: folder.url("jar"))
        let log = EventLog()
        let session = try HTTPSessionManager(
            configuration: localConfiguration { $0.cookies = .file(folder.url("jar")) }, eventMonitors: [log])
        try session.store.setCookie(Cookie(name: "b", value: "1", domain: "127.0.0.1"))
        try session.store.setCookie(Cookie(name: "b", value: "2", domain: "127.0.0.1"))
        try expectEqual(session.store.cookies.map(\.value).sorted(), ["2", "caf\u{FFFD}"])
        session.cancel()
        _ = await log.awaitInvalidation()
        #expect(try Data(contentsOf: folder.url("jar")).split(separator: 0x0A).contains(Data(latin)))
    }

    @Test func `when there are too many cookies the oldest of the domain with the most are evicted`() {
        let lines = ["a\t1", "a\t2", "b\t1", "a\t3", "c\t1", "c\t2", "a\t4"].map { CookieLine($0) }
        expectEqual(CookieLimit.kept(lines, most: 7), lines)
        expectEqual(CookieLimit.kept(lines, most: 6).map(\.text), ["a\t2", "b\t1", "a\t3", "c\t1", "c\t2", "a\t4"])
        expectEqual(CookieLimit.kept(lines, most: 4).map(\.text), ["b\t1", "c\t2", "a\t4"])
        let secure = CookieLine(Array("#HttpOnly_a\tTRUE\t/\tTRUE\t0\tsid\t1".utf8))
        let plain = (0..<9).map { CookieLine(Array("a\tTRUE\t/\tFALSE\t0\tj\($0)\t1".utf8)) }
        expectEqual(CookieLimit.kept([secure] + plain, most: 3), [secure] + plain.suffix(2))
    }

    @Test func `the number of cookies is bounded when a server sets many`() async throws {
        let count = Counter()
        let server = try TestServer { _ in
            var reply = StubResponse()
            let number = count.add()
            reply.fields = (0..<50).map { HeaderField("Set-Cookie", "c\(number)-\($0)=v") }
            return reply
        }
        let session = try localSession()
        for _ in 0..<70 { _ = try await session.dataTask(for: TransferRequest(url: server.url())).response }
        let all = try session.store.cookies
        #expect((2_700...3_300).contains(all.count))
        #expect(all.contains { $0.name == "c70-49" })
        #expect(!all.contains { $0.name == "c1-0" })
    }
}
