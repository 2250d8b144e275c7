import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// A cookie store shared by several sessions.
@Suite(.timeLimit(.minutes(20))) struct CookieStoreTests {
    /// `/set?a=1; Max-Age=9` sets that cookie; any other path returns the received cookies.
    private func server() throws -> TestServer {
        try TestServer { request in
            request.path == "/set"
                ? StubResponse(body: "set").field("Set-Cookie", request.query?.removingPercentEncoding ?? "")
                : StubResponse(body: .text(request.values("cookie").joined(separator: "|")))
        }
    }

    private func sentCookies(_ session: HTTPSessionManager, _ url: URL) async throws -> Set<String> {
        let text = String(decoding: try await session.dataTask(for: TransferRequest(url: url)).response.data, as: UTF8.self)
        return Set(text.components(separatedBy: "; ").filter { !$0.isEmpty })
    }

    private func set(_ cookie: String, at server: TestServer, by session: HTTPSessionManager) async throws {
        let query = cookie.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        try await expectEqual(sentCookies(session, server.url("/set?\(query)")), ["set"])
    }

    private func session(_ store: CookieStore, _ eventMonitors: [any EventMonitor] = []) throws -> HTTPSessionManager {
        try HTTPSessionManager(configuration: localConfiguration { $0.cookies = .shared(store) }, eventMonitors: eventMonitors)
    }

    @Test func `a cookie that one session receives is sent, changed and deleted by the other`() async throws {
        let server = try server()
        let store = CookieStore()
        let (one, other) = (try session(store), try session(store))
        try await expectEqual(sentCookies(other, server.url("/")), [])
        try await set("a=1", at: server, by: one)
        expectEqual(store.cookies.map(\.name), ["a"])
        try await expectEqual(sentCookies(other, server.url("/")), ["a=1"])
        try await set("a=2; Max-Age=1000", at: server, by: other)
        try await set("b=1; Path=/; HttpOnly", at: server, by: other)
        try await expectEqual(sentCookies(one, server.url("/")), ["a=2", "b=1"])
        try await set("a=; Max-Age=0", at: server, by: one)
        try await expectEqual(sentCookies(other, server.url("/")), ["b=1"])
        expectEqual(store.cookies(for: server.url("/")).map(\.isHTTPOnly), [true])
        expectEqual(store.cookies(for: try #require(URL(string: "http://other.example/"))), [])
    }

    @Test func `cookies set and deleted through the store or through a session apply to every session`() async throws {
        let server = try server()
        let store = CookieStore()
        let (one, other) = (try session(store), try session(store))
        let cookie = Cookie(name: "own", value: "1", domain: "127.0.0.1")
        try store.setCookie(cookie)
        try await expectEqual(sentCookies(one, server.url("/")), ["own=1"])
        try await expectEqual(sentCookies(other, server.url("/")), ["own=1"])
        try one.store.setCookie(Cookie(name: "more", value: "2", domain: "127.0.0.1"))
        try await expectEqual(sentCookies(other, server.url("/")), ["own=1", "more=2"])
        expectEqual(Set(try other.store.cookies), Set(store.cookies))
        try other.store.deleteCookie(cookie)
        expectEqual(store.cookies.map(\.name), ["more"])
        try await expectEqual(sentCookies(one, server.url("/")), ["more=2"])
        // The domain cookie replaces the host-only cookie of the same name, domain and path.
        try store.setCookie(Cookie(name: "more", value: "3", domain: "127.0.0.1", includesSubdomains: true))
        expectEqual(store.cookies.count, 1)
        try await expectEqual(sentCookies(one, server.url("/")), ["more=3"])
        try store.setCookie(Cookie(name: "more", value: "", domain: "127.0.0.1", includesSubdomains: true, expires: .distantPast))
        try await expectEqual(sentCookies(one, server.url("/")), [])
        try store.setCookie(cookie)
        store.deleteAllCookies()
        try await expectEqual(sentCookies(other, server.url("/")), [])
        expectEqual(store.cookies, [])
    }

    @Test func `a cookie that no server could set is refused by a shared cookie store`() async throws {
        let store = CookieStore()
        let session = try session(store)
        for bad in [
            Cookie(name: "a\tb", value: "1", domain: "host.example"), Cookie(name: "a", value: "1\r\n", domain: "host.example"),
            Cookie(name: "__Host-a", value: "1", domain: "host.example", includesSubdomains: true, isSecure: true),
            Cookie(name: "__Secure-a", value: "1", domain: "host.example"),
        ] {
            expectEqual(#expect(throws: HTTPSessionError.self) { try store.setCookie(bad) }?.code, .invalidRequest)
            let error = #expect(throws: HTTPSessionError.self) { try session.store.setCookie(bad) }
            expectEqual(error?.code, .invalidRequest)
        }
        expectEqual(store.cookies, [])
    }

    @Test func `sessions that use a shared cookie store concurrently lose no cookie and end with the same cookies`() async throws
    {
        let server = try server()
        let store = CookieStore()
        let sessions = [try session(store), try session(store), try session(store)]
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, session) in sessions.enumerated() {
                for number in 0..<60 {
                    group.addTask { try await set("c\(index)-\(number)=1", at: server, by: session) }
                    group.addTask { try await set("common=\(index)-\(number)", at: server, by: session) }
                }
            }
            for number in 0..<60 {
                group.addTask { try store.setCookie(Cookie(name: "own\(number)", value: "", domain: "127.0.0.1")) }
                group.addTask { store.deleteCookie(Cookie(name: "own\(number - 1)", value: "", domain: "127.0.0.1")) }
            }
            try await group.waitForAll()
        }
        let all = Set(store.cookies)
        expectEqual(all.count { $0.name.hasPrefix("c") }, 3 * 60 + 1)
        for session in sessions { expectEqual(Set(try session.store.cookies), all) }
    }

    @Test func `invalidating a session writes the shared cookie file, and other sessions still use the store`() async throws {
        let server = try server()
        let folder = try ScratchDirectory()
        let file = folder.url("cookies")
        let (log, otherLog) = (EventLog(), EventLog())
        let store = try CookieStore(file: file)
        let sessions = [try session(store, [log]), try session(store, [otherLog])]
        try await set("a=1", at: server, by: sessions[0])
        sessions[0].cancel(afterTasks: true)
        _ = await log.awaitInvalidation()
        #expect(try String(contentsOf: file, encoding: .utf8).contains("a\t1\n"))
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
        expectEqual((attributes[.posixPermissions] as? NSNumber)?.intValue, 0o600)
        try await expectEqual(sentCookies(sessions[1], server.url("/")), ["a=1"])
        try await set("b=2; Max-Age=1000", at: server, by: sessions[1])
        try await store.save()
        #expect(try String(contentsOf: file, encoding: .utf8).contains("b\t2\n"))
        try await set("c=3", at: server, by: sessions[1])
        sessions[1].cancel(afterTasks: true)
        _ = await otherLog.awaitInvalidation()
        let next = try CookieStore(file: file)
        expectEqual(Set(next.cookies.map(\.name)), ["a", "b", "c"])
        try await expectEqual(sentCookies(session(next), server.url("/")), ["a=1", "b=2", "c=3"])
    }

    @Test func `an http response does not replace a secure cookie that another session received meanwhile`() async throws {
        let store = CookieStore()
        let good = Cookie(name: "a", value: "good", domain: "host.example", isSecure: true)
        let server = try TestServer { _ in
            // The secure cookie arrives as by another session's response, after this session's request was sent.
            try? store.setCookie(good)
            return StubResponse(body: "x").field("Set-Cookie", "a=evil").field("Set-Cookie", "b=own")
        }
        let session = try localSession {
            $0.cookies = .shared(store)
            $0.hostOverrides = [.init(host: "host.example", port: Int(server.port), addresses: ["127.0.0.1"])]
        }
        let url = try #require(URL(string: "http://host.example:\(server.port)/"))
        _ = try await session.dataTask(for: TransferRequest(url: url)).response
        expectEqual(Set(store.cookies.map(\.value)), ["good", "own"])
        expectEqual(Set(try session.store.cookies), Set(store.cookies))
    }

    @Test func `expired cookies are neither read from the cookie file nor written to it`() async throws {
        let folder = try ScratchDirectory()
        let file = folder.url("cookies")
        let start = "host.example\tFALSE\t/\tFALSE"
        try Data("\(start)\t100\tdead\tv\n\(start)\t0\talive\tv\n".utf8).write(to: file)
        let store = try CookieStore(file: file)
        expectEqual(store.cookies.map(\.name), ["alive"])
        try await store.save()
        let text = try String(contentsOf: file, encoding: .utf8)
        #expect(text.contains("alive") && !text.contains("dead"))
    }

    @Test func `a cookie file is written soon after a change, without a session`() async throws {
        let folder = try ScratchDirectory()
        let store = try CookieStore(file: folder.url("cookies"))
        expectEqual(folder.names, [])
        for number in 0..<100 { try store.setCookie(Cookie(name: "c\(number)", value: "", domain: "host.example")) }
        var count = 0
        while count < 101 {
            count = (try? String(contentsOf: folder.url("cookies"), encoding: .utf8))?.split(separator: "\n").count ?? 0
            await Task.yield()
        }
        expectEqual(count, 101)
        expectEqual(folder.names, ["cookies"])
    }

    @Test func `a cookie file has the last change when its store is released`() throws {
        let folder = try ScratchDirectory()
        do { try CookieStore(file: folder.url("cookies")).setCookie(Cookie(name: "a", value: "1", domain: "host.example")) }
        try expectEqual(CookieStore(file: folder.url("cookies")).cookies.map(\.value), ["1"])
    }

    @Test func `a cookie file that cannot be read or written is an error`() async throws {
        let folder = try ScratchDirectory()
        for bad in [URL(fileURLWithPath: folder.path), try #require(URL(string: "https://host.example/cookies"))] {
            let error = #expect(throws: HTTPSessionError.self) { try CookieStore(file: bad) }
            expectEqual(error?.code, .invalidConfiguration)
        }
        let store = try CookieStore(file: folder.url("none/cookies"))
        try await store.save()
        try store.setCookie(Cookie(name: "a", value: "", domain: "host.example"))
        await #expect(throws: HTTPSessionError.self) { try await store.save() }
        expectEqual(store.cookies.count, 1)
        try FileManager.default.createDirectory(at: folder.url("none"), withIntermediateDirectories: false)
        try await store.save()
        try expectEqual(CookieStore(file: folder.url("none/cookies")).cookies, store.cookies)
    }

    @Test func `requests without handlesCookies and sessions without the store do not use the shared cookies`() async throws {
        let server = try server()
        let store = CookieStore()
        let (one, stranger) = (try session(store), try localSession())
        try await set("a=1", at: server, by: one)
        try await set("b=1", at: server, by: stranger)
        var request = TransferRequest(url: server.url("/"))
        request.options.handlesCookies = false
        try await expectEmpty(one.dataTask(for: request).response.data)
        try await expectEqual(sentCookies(stranger, server.url("/")), ["b=1"])
        try await expectEqual(sentCookies(one, server.url("/")), ["a=1"])
    }

    @Test func `a cookie received with an authentication challenge is shared, also if libcurl answers the challenge`()
        async throws
    {
        let server = try TestServer { request in
            guard request.path == "/" else { return StubResponse(body: .text(request.values("cookie").joined())) }
            guard request.values("authorization").first?.hasPrefix("Digest ") == true else {
                return StubResponse(401).field("WWW-Authenticate", "Digest realm=\"r\", nonce=\"n\", qop=\"auth\"")
                    .field("Set-Cookie", "seen=\(request.values("cookie").count)")
            }
            return StubResponse(body: "in")
        }
        let store = CookieStore()
        let credentials = CredentialStore()
        let one = try HTTPSessionManager(
            configuration: localConfiguration { $0.cookies = .shared(store) },
            handlers: TransferHandlers(challenge: { _ in .useCredential(Credential(user: "me", password: "word")) }),
            credentials: credentials)
        let other = try session(store)
        try await expectEqual(sentCookies(one, server.url("/")), ["in"])
        expectEqual(store.cookies.map(\.name), ["seen"])
        try await expectEqual(sentCookies(other, server.url("/say")), Set(store.cookies.map { "seen=\($0.value)" }))
    }
}
