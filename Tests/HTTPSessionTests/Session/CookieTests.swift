import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

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
        let session = try HTTPSessionManager(configuration: localConfiguration { $0.cookies = .file(jar) }, monitors: [log])
        _ = try await sentCookies(session, server.url("/set"))
        session.finishTasksAndInvalidate()
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
        let session = try HTTPSessionManager(configuration: localConfiguration { $0.cookies = .file(jar) }, monitors: [log])
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
        session.finishTasksAndInvalidate()
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
        let session = try HTTPSessionManager(configuration: localConfiguration { $0.cookies = .file(jar) }, monitors: [log])
        _ = try await sentCookies(session, server.url("/set"))
        expectEqual(sorted(try await sentCookies(session, server.url("/"))), ["a=1", "kept=2"])
        session.finishTasksAndInvalidate()
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
