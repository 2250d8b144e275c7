import Expectations
import Foundation
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

@testable import HTTPSession

@Suite(.timeLimit(.minutes(20))) struct CookieTests {
    private func server(at address: ListeningAddress = .loopback) throws -> TestServer {
        try TestServer(at: address) { request in
            switch request.path {
            case "/set":
                StubResponse(body: "set").field("Set-Cookie", "a=1; Path=/").field("Set-Cookie", "kept=2; Max-Age=3600; HttpOnly")
            case "/login": StubResponse.redirect(to: "/").field("Set-Cookie", "login=yes")
            case "/away": StubResponse.redirect(to: request.query?.removingPercentEncoding ?? "/")
            default: StubResponse(body: .text(request.values("cookie").joined(separator: "|")))
            }
        }
    }

    private func sentCookies(_ session: HTTPSessionManager, _ url: URL, _ change: (inout TransferRequest) -> Void = { _ in })
        async throws -> String
    {
        var request = TransferRequest(url: url)
        change(&request)
        return String(decoding: try await session.dataTask(for: request).response.data, as: UTF8.self)
    }

    private func sorted(_ cookies: String) -> [String] { cookies.components(separatedBy: "; ").sorted() }

    @Test func `a cookie that a server sets is sent back, also after a redirect`() async throws {
        let server = try server()
        let session = try localSession()
        _ = try await sentCookies(session, server.url("/set"))
        let first = try await sentCookies(session, server.url("/x"))
        expectEqual(sorted(first), ["a=1", "kept=2"])
        expectEqual(sorted(try await sentCookies(session, server.url("/login"))), ["a=1", "kept=2", "login=yes"])
    }

    @Test func `the cookies of a request and of the store are one field, the request's first`() async throws {
        let server = try server()
        let session = try localSession { $0.additionalHeaderFields[.cookie] = "more=3" }
        try session.store.setCookie(Cookie(name: "sid", value: "abc", domain: "127.0.0.1"))
        try await expectEqual(sentCookies(session, server.url("/")), "more=3; sid=abc")
        // The server joins several lines of the field by `|`.
        let own = { (request: inout TransferRequest) in
            request.headerFields.append(HTTPField(name: .cookie, value: "theme=dark"))
            request.headerFields.append(HTTPField(name: .cookie, value: "lang=en; a=1"))
        }
        try await expectEqual(sentCookies(session, server.url("/"), own), "theme=dark; lang=en; a=1; sid=abc")
        try await expectEqual(
            sentCookies(session, server.url("/")) {
                own(&$0)
                $0.options.handlesCookies = false
            }, "theme=dark; lang=en; a=1")
        try await expectEqual(sentCookies(localSession { $0.cookies = .none }, server.url("/"), own), "theme=dark; lang=en; a=1")
        // The cookies of one request are not those of the next on the same handle.
        try await expectEqual(sentCookies(session, server.url("/")), "more=3; sid=abc")
        try session.store.deleteAllCookies()
        try await expectEqual(sentCookies(session, server.url("/")) { $0.headerFields[.cookie] = "" }, "")
    }

    @Test func `the cookies that a store shows for a URL are those that a request to it sends`() async throws {
        let fields = [
            "a=1; Path=foo", "b=1; Path=", "c=1; Path=/", "d=1; Path=/set/x/deep", "e=1; Max-Age=12abc", "f=1; Domain=127.0.0.1",
            "g=1; Path=/set/",
            "h=1; Expires=Mon, 01 Jan 1900 00:00:00 GMT", "i=1; Path=/set; Secure",
        ]
        let server = try TestServer { request in
            var response = StubResponse(body: .text(request.values("cookie").joined(separator: "|")))
            if request.path == "/set/x" { for field in fields { response = response.field("Set-Cookie", field) } }
            return response
        }
        let session = try localSession()
        _ = try await sentCookies(session, server.url("/set/x"))
        for target in ["/", "/set", "/set/", "/set/x", "/set/x/deep", "/settings", "/foo", "/set?x=/set/x"] {
            let shown = try session.store.cookies(for: server.url(target)).map { "\($0.name)=\($0.value)" }
            try await expectEqual(sentCookies(session, server.url(target)), shown.joined(separator: "; "), "\(target)")
        }
        try expectEqual(session.store.cookies.filter { $0.path == "/set" }.map(\.name), ["a", "b", "e", "f", "i"])
    }

    @Test func `a proxy's challenge sets no cookie for the server`() async throws {
        let server = try TestServer { request in
            request["proxy-authorization"] == nil
                ? .proxyAuthenticationRequired("Basic realm=r").field("Set-Cookie", "proxy=1; Path=/")
                : StubResponse(body: .text(request.values("cookie").joined(separator: "|")))
        }
        let session = try localSession { $0.proxy = .explicit("http://me:word@127.0.0.1:\(server.port)") }
        try await expectEqual(sentCookies(session, #require(URL(string: "http://named.example/"))), "")
        try expectEmpty(session.store.cookies)
    }

    @Test func `a cookie set by a challenge is sent with the answer to it`() async throws {
        let server = try TestServer { request in
            request["authorization"] == nil
                ? StubResponse.unauthorized("Digest realm=\"r\", nonce=\"n\", algorithm=MD5, qop=\"auth\"").field(
                    "Set-Cookie", "route=7")
                : StubResponse(body: .text(request.values("cookie").joined(separator: "|")))
        }
        let session = try localSession(
            handlers: TransferHandlers(challenge: { _ in .useCredential(Credential(user: "me", password: "word")) }))
        try await expectEqual(sentCookies(session, server.url("/")) { $0.headerFields[.cookie] = "own=1" }, "own=1; route=7")
    }

    @Test func `a stored value that is not UTF-8 is sent unchanged`() async throws {
        let folder = try ScratchDirectory()
        try Data(Array("127.0.0.1\tFALSE\t/\tFALSE\t0\ta\tcaf".utf8) + [0xE9, 0x0A]).write(to: folder.url("jar"))
        let server = try server()
        let session = try localSession { $0.cookies = .file(folder.url("jar")) }
        // The server replaces what is not UTF-8.
        try await expectEqual(sentCookies(session, server.url("/")), "a=caf\u{FFFD}")
        let scope = try #require(CookieScope(server.url("/")))
        try expectEqual(session.store.field(for: scope, isSecure: true, now: 0), Array("a=caf".utf8) + [0xE9])
    }

    @Test func `cookies are not sent to other hosts, and not used without handlesCookies or a cookie store`()
        async throws
    {
        let server = try server()
        let other = try self.server(at: .loopbackIPv6)
        let session = try localSession()
        _ = try await sentCookies(session, server.url("/set"))
        try await expectEqual(sentCookies(session, other.url("/")), "")
        try await expectEqual(sentCookies(session, server.url("/away?\(other.url("/").absoluteString)")), "")
        try await expectEqual(sentCookies(session, server.url("/")) { $0.options.handlesCookies = false }, "")
        expectEqual(sorted(try await sentCookies(session, server.url("/"))), ["a=1", "kept=2"])

        let none = try localSession { $0.cookies = .none }
        _ = try await sentCookies(none, server.url("/set"))
        try await expectEqual(sentCookies(none, server.url("/")), "")
        try await expectEqual(sentCookies(none, server.url("/")) { $0.headerFields[.cookie] = "own=1" }, "own=1")

        let fresh = try localSession()
        _ = try await sentCookies(fresh, server.url("/set")) { $0.options.handlesCookies = false }
        try await expectEqual(sentCookies(fresh, server.url("/")), "")
    }

    @Test func `cookies in a file are read by the next session`() async throws {
        let server = try server()
        let folder = try ScratchDirectory()
        let log = EventLog()
        let jar = folder.url("jar")
        let session = try HTTPSessionManager(configuration: localConfiguration { $0.cookies = .file(jar) }, eventMonitors: [log])
        _ = try await sentCookies(session, server.url("/set"))
        session.cancel(afterTasks: true)
        _ = await log.awaitInvalidation()
        expectEqual(folder.names, ["jar"])
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.file("jar"))
        expectEqual((attributes[.posixPermissions] as? NSNumber)?.intValue, 0o600)
        #expect(try String(contentsOf: jar, encoding: .utf8).contains("#HttpOnly_127.0.0.1"))
        let next = try localSession { $0.cookies = .file(jar) }
        #expect(try await sentCookies(next, server.url("/")).contains("kept=2"))
    }

    @Test func `a cookie file is written soon after a change, and atomically`() async throws {
        let server = try server()
        let folder = try ScratchDirectory()
        let jar = folder.url("jar")
        let log = EventLog()
        let session = try HTTPSessionManager(configuration: localConfiguration { $0.cookies = .file(jar) }, eventMonitors: [log])
        _ = try await sentCookies(session, server.url("/set"))
        let first = try await text(of: jar) { $0.contains("kept") }
        #expect(first.hasPrefix("# Netscape HTTP Cookie File\n") && first.hasSuffix("\n"))
        let attributes = try FileManager.default.attributesOfItem(atPath: jar.path)
        expectEqual((attributes[.posixPermissions] as? NSNumber)?.intValue, 0o600)
        _ = try await sentCookies(session, server.url("/login"))
        _ = try await text(of: jar) { $0.contains("login") }
        try session.store.deleteAllCookies()
        _ = try await text(of: jar) { !$0.contains("127.0.0.1") }
        // If no cookie changes, the file is not written.
        try FileManager.default.removeItem(at: jar)
        _ = try await sentCookies(session, server.url("/"))
        session.cancel(afterTasks: true)
        _ = await log.awaitInvalidation()
        expectEqual(folder.names, [])
    }

    /// The text of the file, as soon as the condition is met.
    private func text(of file: URL, where isMet: (String) -> Bool) async throws -> String {
        while true {
            if let text = try? String(contentsOf: file, encoding: .utf8), isMet(text) { return text }
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    @Test func `a cookie file that cannot be written does not affect requests`() async throws {
        let server = try server()
        let folder = try ScratchDirectory()
        let log = EventLog()
        let jar = folder.url("none/jar")
        let session = try HTTPSessionManager(configuration: localConfiguration { $0.cookies = .file(jar) }, eventMonitors: [log])
        _ = try await sentCookies(session, server.url("/set"))
        expectEqual(sorted(try await sentCookies(session, server.url("/"))), ["a=1", "kept=2"])
        session.cancel(afterTasks: true)
        _ = await log.awaitInvalidation()
        expectEqual(folder.names, [])
    }

    @Test func `a cookie file without valid lines holds no cookies, and an unreadable one is a configuration error`() async throws
    {
        let server = try server()
        let folder = try ScratchDirectory()
        let jar = folder.url("jar")
        try Data([0, 0xFF, 0x0A] + Array("a\tb\tc\n#x\n\t\t\t\t\t\t\n".utf8)).write(to: jar)
        let session = try localSession { $0.cookies = .file(jar) }
        try await expectEqual(sentCookies(session, server.url("/")), "")
        let error = #expect(throws: HTTPSessionError.self) {
            try localSession { $0.cookies = .file(URL(fileURLWithPath: folder.path)) }
        }
        expectEqual(error?.code, .invalidConfiguration)
    }
}
