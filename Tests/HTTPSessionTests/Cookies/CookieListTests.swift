import Expectations
import Pacing
import Testing

@testable import HTTPSession

/// The changes of a session's cookies, and their effect on a shared store.
@Suite struct CookieListTests {
    private func line(
        _ name: String, _ value: String = "v", at domain: String = "host.example", path: String = "/", isSecure: Bool = false,
        expires: Int = 0
    ) -> CookieLine {
        let (below, secure) = (domain.hasPrefix(".") ? "TRUE" : "FALSE", isSecure ? "TRUE" : "FALSE")
        return CookieLine("\(domain)\t\(below)\t\(path)\t\(secure)\t\(expires)\t\(name)\t\(value)")
    }

    @Test func `a cookie is identified by domain, path and name only`() {
        let key = CookieLine("#HttpOnly_.Host.example\tTRUE\t/A\tTRUE\t7\tname\tvalue").key
        expectEqual(CookieLine("host.EXAMPLE\tFALSE\t/A\tFALSE\t0\tname\tother").key, key)
        for other in [
            ".host.example\tTRUE\t/a\tTRUE\t7\tname\tvalue", ".host.example\tTRUE\t/A\tTRUE\t7\tName\tvalue",
            ".other.example\tTRUE\t/A\tTRUE\t7\tname\tvalue",
        ] { #expect(CookieLine(other).key != key) }
    }

    @Test func `a cookie list reports whether a cookie was set or removed`() {
        var list = CookieList([line("a"), line("b")], now: 0)
        let isUnchanged = !list.apply(CookieChanges(removed: [line("c")], set: [line("a")]), now: 0)
        #expect(isUnchanged)
        let hasChanged = list.apply(CookieChanges(removed: [line("b", "other")], set: [line("a", "w"), line("c")]), now: 0)
        #expect(hasChanged)
        expectEqual(list.lines, [line("a", "w"), line("c")])
    }

    @Test func `a cookie store evicts cookies above its maximum`() {
        var list = CookieList()
        for number in 0..<25 {
            list.apply(CookieChanges(set: [line("\(number)"), line("x", at: "other.example")]), now: 0, most: 20)
        }
        #expect((15...20).contains(list.lines.count))
        #expect(list.lines.contains(line("x", at: "other.example")) && list.lines.contains(line("24")))
        #expect(!list.lines.contains(line("0")))
    }

    // MARK: Size

    /// The list in its simplest form, which compares each cookie with all others.
    private struct SimpleList {
        var lines: [CookieLine] = []

        mutating func apply(_ changes: CookieChanges, now seconds: Int64, most: Int) {
            for line in changes.removed { lines.removeAll { $0.key == line.key } }
            for line in changes.set {
                if let index = lines.firstIndex(where: { $0.key == line.key }) { lines[index] = line } else { lines.append(line) }
            }
            lines.removeAll { $0.hasExpired(at: seconds) }
            if lines.count > most { lines = CookieLimit.kept(lines, most: most * 9 / 10) }
        }
    }

    @Test func `random changes, expiries and evictions leave the cookies of a simple list, in its order`() {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SplitMix64(seed: seed)
        func some(_ count: Int, now: Int) -> [CookieLine] {
            (0..<Int.random(in: 0...count, using: &random)).map { _ in
                let domain = ["a.example", ".a.example", "A.example", "b.example"].randomElement(using: &random) ?? ""
                return line(
                    "\(Int.random(in: 0..<12, using: &random))", "\(Int.random(in: 0..<3, using: &random))", at: domain,
                    isSecure: Bool.random(using: &random),
                    expires: Bool.random(using: &random) ? 0 : now + Int.random(in: 0..<20, using: &random))
            }
        }
        var (list, simple) = (CookieList(), SimpleList())
        for now in 1...2_000 {
            let changes = CookieChanges(removed: some(3, now: now), set: some(4, now: now))
            list.apply(changes, now: Int64(now), most: 20)
            simple.apply(changes, now: Int64(now), most: 20)
            expectEqual(list.lines, simple.lines, "seed \(seed), step \(now)")
            guard let first = list.lines.first, let cookie = Cookie(line: first.text) else { continue }
            let same = simple.lines.filter { Cookie(line: $0.text)?.identity == cookie.identity }
            expectEqual(list.lines(sameAs: cookie), same, "seed \(seed), step \(now)")
        }
    }

    @Test func `a store keeps the newest of many cookies, and a cookie of the domain replaces one of the host`() throws {
        let store = CookieStore()
        // Each cookie was compared with all others before: tens of seconds in a debug build.
        for number in 0...CookieLimit.most {
            try store.setCookie(Cookie(name: "\(number)", value: "v", domain: "host.example"))
        }
        expectEqual(store.lines.count, CookieLimit.most * 9 / 10)
        let newest = Cookie(name: "\(CookieLimit.most)", value: "w", domain: "host.example", includesSubdomains: true)
        try store.setCookie(newest)
        expectEqual(store.lines.count, CookieLimit.most * 9 / 10)
        expectEqual(store.cookies.filter { $0.identity == newest.identity }, [newest])
        for cookie in store.cookies { store.deleteCookie(cookie) }
        expectEmpty(store.lines)
    }

    // MARK: Expiry

    @Test func `expired cookies are evicted before others`() {
        var list = CookieList([line("login")], now: 0)
        for number in 0..<100 {
            list.apply(CookieChanges(set: [line("short\(number)", expires: number + 2)]), now: Int64(number), most: 20)
        }
        expectEqual(list.lines, [line("login"), line("short98", expires: 100), line("short99", expires: 101)])
        expectEqual(list.lines(at: 100), [line("login"), line("short99", expires: 101)])
        expectEqual(list.lines(at: 101), [line("login")])
        // After the eviction the index is correct: this change replaces the cookie with this key only.
        list.apply(CookieChanges(set: [line("short99", "renewed", expires: 300)]), now: 100)
        expectEqual(list.lines, [line("login"), line("short99", "renewed", expires: 300)])
        list.apply(CookieChanges(), now: 300)
        expectEqual(list.lines, [line("login")])
        expectEqual(CookieList([line("old", expires: 7), line("a")], now: 7).lines, [line("a")])
    }

    // MARK: Secure cookies

    @Test func `over http no secure cookie is removed, changed or shadowed`() {
        let secure = line("a", "good", at: "www.host.example", path: "/in", isSecure: true)
        let list = CookieList([secure, line("b")], now: 0)
        #expect(list.allowedInClear(CookieChanges(removed: [secure]), now: 0).isEmpty)
        // The jar knew this cookie before it was secure.
        #expect(list.allowedInClear(CookieChanges(removed: [line("a", at: "www.host.example", path: "/in")]), now: 0).isEmpty)
        for bad in [
            line("a", at: "www.host.example", path: "/in"), line("a", at: "WWW.host.example", path: "/in/deep"),
            line("a", at: ".www.host.example", path: "/in/"), line("a", at: ".host.example", path: "/in"),
            line("a", at: "its.www.host.example", path: "/in"),
            CookieLine("#HttpOnly_www.host.example\tFALSE\t/in\tFALSE\t0\ta\tevil"),
        ] { #expect(list.allowedInClear(CookieChanges(set: [bad]), now: 0).isEmpty, "\(bad.text)") }
        let good = [
            line("A", at: "www.host.example", path: "/in"), line("a", at: "www.host.example", path: "/"),
            line("a", at: "www.host.example", path: "/inner"), line("a", at: "w.host.example", path: "/in"),
            line("a", at: "ww.host.example", path: "/in"), line("b", "w"),
            // `SetCookie` takes such a cookie only from an https response.
            line("a", "next", at: "www.host.example", path: "/in", isSecure: true),
        ]
        let changes = CookieChanges(removed: [line("b")], set: good)
        expectEqual(list.allowedInClear(changes, now: 0), changes)
    }

    @Test func `a cookie that no session accepts is removed and the former cookie restored`() throws {
        let store = CookieStore()
        try store.setCookie(Cookie(name: "a", value: "1", domain: "host.example"))
        let domain = Cookie(name: "a", value: "2", domain: "host.example", includesSubdomains: true)
        try store.setCookie(domain)
        expectEqual(store.cookies, [domain])
    }
}
