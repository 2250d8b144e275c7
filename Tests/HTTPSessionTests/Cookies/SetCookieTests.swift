import Expectations
import Foundation
import Pacing
import Testing

@testable import HTTPSession

/// The moment at which responses arrive: 2030-01-01.
private let now: Int64 = 1_893_456_000

/// The rules of RFC 6265 for one cookie: what a store takes from a response, and which requests send it.
@Suite struct SetCookieTests {
    /// The store after a response to this URL.
    private func store(_ fields: String..., from url: String = "https://www.host.example/set/x") throws -> CookieStore {
        let store = CookieStore()
        try receive(fields, from: url, in: store)
        return store
    }

    private func scope(_ text: String) throws -> CookieScope {
        let url = try #require(URL(string: text))
        return try #require(CookieScope(url))
    }

    private func receive(_ fields: [String], from url: String, in store: CookieStore) throws {
        let lines = fields.map { "Set-Cookie: \($0)\r\n" }.joined()
        let head = try #require(ResponseHead(bytes: Array("HTTP/1.1 200 OK\r\n\(lines)\r\n".utf8)))
        let scope = try scope(url)
        store.receive(head, from: scope, isSecure: scope.isSecure, now: now)
    }

    private func sent(_ store: CookieStore, to url: String, at moment: Int64 = now) throws -> String {
        let scope = try scope(url)
        return String(decoding: store.field(for: scope, isSecure: scope.isSecure, now: moment), as: UTF8.self)
    }

    @Test(
        arguments: [
            // RFC 6265 section 5.1.1, RFC 9110 section 5.6.7, and what servers write.
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777), ("06 11 1994 nov 8:49:37", 1_320_569_377),
            ("1994 6 nov 8:49:37x y", 784_111_777),
            ("nov-6-1994 08:49:37", 784_111_777), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Mon, 01-Jan-1601 00:00:00 GMT", -11_644_473_600),
            ("Mon, 01 Jan 1900 00:00:00 GMT", -2_208_988_800), ("Fri, 01 Jan 1965 00:00:00 GMT", -157_766_400),
            ("1 jan 69 0:0:0", 3_124_224_000), ("1 jan 70 0:0:0", 0), ("29 Feb 2028 00:00:00", 1_835_395_200),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799), ("29 Feb 2027 00:00:00", nil), ("31 Apr 2030 00:00:00", nil),
            ("1 Jan 1600 00:00:00", nil), ("32 Jan 2030 00:00:00", nil), ("1 Jan 2030 24:00:00", nil),
            ("1 Jan 2030 00:60:00", nil),
            ("1 Jan 2030 00:00:60", nil), ("1 Jan 2030", nil), ("00:00:00 Jan 2030", nil), ("tomorrow", nil), ("", nil),
            ("1 Jan 2030 000:00:00", nil), ("1 Jan 2030 1:2", nil), ("1 January 2030 00:00:00 +0100", 1_893_456_000),
        ] as [(String, Int64?)])
    func `a cookie's date is read in the forms that servers write`(_ text: String, _ seconds: Int64?) {
        expectEqual(CookieDate.parse(text.utf8), seconds)
    }

    @Test(arguments: [
        "Expires=Mon, 01-Jan-1601 00:00:00 GMT", "Expires=Mon, 01 Jan 1900 00:00:00 GMT", "expires=Fri, 01 Jan 1965 00:00:00 GMT",
        "Expires=Thu, 01 Jan 1970 00:00:00 GMT", "EXPIRES=Mon, 31 Dec 2029 23:59:59 GMT", "Max-Age=0", "Max-Age=-1",
        "max-age = -99999999999999999999", "Expires=Fri, 31 Dec 9999 23:59:59 GMT; Max-Age=0",
    ])
    func `a cookie that expires in the past logs out`(_ attribute: String) throws {
        let store = try store("sid=abc; Path=/")
        try expectEqual(sent(store, to: "https://www.host.example/"), "sid=abc")
        try receive(["sid=; Path=/; \(attribute)"], from: "https://www.host.example/logout", in: store)
        try expectEqual(sent(store, to: "https://www.host.example/"), "")
        expectEmpty(store.lines)
    }

    @Test(
        arguments: [
            ("Max-Age=60", now + 60), ("Max-Age=12abc", nil), ("Max-Age=", nil), ("Max-Age=+5", nil), ("Max-Age=1.5", nil),
            ("Max-Age=-", nil),
            ("Max-Age=99999999999999999999", 253_402_300_799), ("Max-Age=60; Max-Age=70", now + 70),
            ("Max-Age=60; Max-Age=7x", now + 60), ("Max-Age=60; Expires=Tue, 01 Jan 2030 01:00:00 GMT", now + 60),
            ("Max-Age=x; Expires=Tue, 01 Jan 2030 01:00:00 GMT", now + 3_600),
            ("Expires=Tue, 01 Jan 2030 01:00:00 GMT; Expires=never", now + 3_600), ("Expires=never", nil), ("Expires", nil),
            ("Expires=Sun, 31 Dec 10000 23:59:59 GMT", nil),
        ] as [(String, Int64?)])
    func `a cookie's expiry comes from Max-Age, else from Expires, and invalid values are ignored`(
        _ attributes: String, _ expiry: Int64?
    ) throws {
        let cookie = try #require(SetCookie("a=1; \(attributes)".utf8, now: now))
        expectEqual(cookie.expiry, expiry)
    }

    @Test(arguments: [
        ("https://host.example", "/"), ("https://host.example/", "/"), ("https://host.example/set", "/"),
        ("https://host.example/set/x", "/set"), ("https://host.example/set/", "/set"), ("https://host.example/a/b/c?d/e", "/a/b"),
        ("https://host.example//x", "/"), ("https://host.example/a%2Fb/c", "/a%2Fb"),
    ])
    func `a cookie without a valid Path has the default path of its URL`(_ url: String, _ path: String) throws {
        for attribute in ["", "; Path=", "; Path=foo", "; Path", "; Path=\"/\"", "; Path=/deep; Path=", "; path = bar"] {
            try expectEqual(store("a=1\(attribute)", from: url).cookies.map(\.path), [path], "\(attribute)")
        }
    }

    @Test(arguments: [
        // RFC 6265 section 5.1.4.
        ("/", "/any", true), ("/set", "/set", true), ("/set", "/set/", true), ("/set", "/set/x", true),
        ("/set", "/settings", false),
        ("/set", "/", false), ("/set/", "/set/x", true), ("/set/", "/set", false), ("/Set", "/set", false),
        ("/a b", "/a%20b", false),
        ("/set", "/set?x", true), ("/set", "/set%2Fx", false),
    ])
    func `a cookie is shown for and sent to the paths below its own`(_ path: String, _ target: String, _ isSent: Bool) throws {
        let store = try store("a=1; Path=\(path)")
        let url = "https://www.host.example\(target)"
        try expectEqual(sent(store, to: url), isSent ? "a=1" : "")
        try expectEqual(store.cookies(for: #require(URL(string: url))).count, isSent ? 1 : 0)
        try expectEqual(store.cookies.map { $0.matches(try #require(URL(string: url))) }, [isSent])
    }

    @Test(
        arguments: [
            // RFC 6265 sections 5.1.3, 5.2.3 and 5.3, steps 4 to 6.
            ("", "www.host.example", false), ("Domain=www.host.example", "www.host.example", true),
            ("Domain=.HOST.example", "host.example", true), ("Domain=host.example", "host.example", true),
            ("Domain=", "www.host.example", false),
            ("Domain", "www.host.example", false), ("Domain=other.example; Domain=host.example", "host.example", true),
            ("Domain=host.example; Domain=", "host.example", true), ("Domain=deep.www.host.example", nil, false),
            ("Domain=ost.example", nil, false), ("Domain=host.example; Domain=other.example", nil, false),
            ("Domain=..host.example", nil, false), ("Domain=.", nil, false), ("Domain=host.example.", nil, false),
            ("Domain=example", nil, false),
        ] as [(String, String?, Bool)])
    func `a server sets cookies for its host and the domains above it`(_ attribute: String, _ domain: String?, _ isBelow: Bool)
        throws
    {
        let cookies = try store("a=1; \(attribute)").cookies
        expectEqual(cookies.map(\.domain), domain.map { [$0] } ?? [])
        expectEqual(cookies.map(\.includesSubdomains), domain.map { _ in [isBelow] } ?? [])
    }

    @Test(
        arguments: [
            ("http://127.0.0.1/", "Domain=127.0.0.1", "127.0.0.1"), ("http://127.0.0.1/", "Domain=0.0.1", nil),
            ("http://[::1]/", "", "::1"),
            ("http://localhost/", "Domain=localhost", "localhost"), ("http://1.2.3.4/", "Domain=.1.2.3.4", "1.2.3.4"),
        ] as [(String, String, String?)])
    func `a cookie of an address or a public suffix is for that host alone`(_ url: String, _ attribute: String, _ domain: String?)
        throws
    {
        let store = try store("a=1; \(attribute)", from: url)
        expectEqual(store.cookies.map(\.domain), domain.map { [$0] } ?? [])
        expectEqual(store.cookies.map(\.includesSubdomains), domain.map { _ in [false] } ?? [])
        try expectEqual(sent(store, to: url), domain == nil ? "" : "a=1")
    }

    @Test(arguments: [
        ("a=1", "a=1"), ("  a\t=  1 2\t ; x", "a=1 2"), ("a=", "a="), ("a==b=", "a==b="), ("a=\"x y\"", "a=\"x y\""), ("a", ""),
        ("=1", ""), (" =1", ""),
        ("", ""), (";a=1", ""), ("a=1\u{1}", ""), ("a\t b=1", ""), ("a=x\ty", ""), ("a=é", "a=é"), ("a=1; Path=/\u{2}", ""),
        ("A=1; SameSite=Strict", "A=1"),
        (
            "\(String(repeating: "n", count: 96))=\(String(repeating: "v", count: 4_000))",
            "\(String(repeating: "n", count: 96))=\(String(repeating: "v", count: 4_000))"
        ),
        ("\(String(repeating: "n", count: 97))=\(String(repeating: "v", count: 4_000))", ""),
    ])
    func `a cookie's name and value are taken as sent, and a field without a name or with control bytes is ignored`(
        _ field: String, _ pair: String
    ) throws {
        let store = try store(field)
        try expectEqual(sent(store, to: "https://www.host.example/set/x"), pair)
    }

    @Test(arguments: [
        ("https://www.host.example/", "__Secure-a=1; Secure", true), ("https://www.host.example/", "__Secure-a=1", false),
        ("https://www.host.example/", "__Host-a=1; Secure; Path=/", true),
        ("https://www.host.example/", "__host-a=1; Secure", false),
        ("https://www.host.example/", "__Host-a=1; Secure; Path=/x", false),
        ("https://www.host.example/", "__HOST-a=1; Secure; Path=/; Domain=host.example", false),
        ("http://www.host.example/", "a=1; Secure", false), ("http://127.0.0.1/", "a=1; Secure", true),
        ("http://www.host.example/", "a=1", true),
    ])
    func `Secure and the prefixes of names are enforced when a cookie is set`(_ url: String, _ field: String, _ isTaken: Bool)
        throws
    {
        try expectEqual(store(field, from: url).cookies.count, isTaken ? 1 : 0)
    }

    @Test func `secure cookies are sent over https and to this machine only`() throws {
        let store = try store("s=1; Secure; Path=/", "p=2; Path=/")
        try expectEqual(sent(store, to: "https://www.host.example/"), "s=1; p=2")
        try expectEqual(sent(store, to: "http://www.host.example/"), "p=2")
    }

    @Test func `a response sets and removes a cookie in the order of its fields, and the first of equal paths stays the first`()
        throws
    {
        let store = try store(
            "a=1; Path=/", "b=1; Path=/", "c=1; Path=/set", "a=2; Path=/; Domain=www.host.example", "d=1", "d=; Max-Age=0")
        // The host's cookie and the domain's have one identity (section 5.3, step 11).
        try expectEqual(sent(store, to: "https://www.host.example/set/x"), "c=1; a=2; b=1")
        try expectEqual(sent(store, to: "https://a.www.host.example/"), "a=2")
    }

    @Test func `a request sends a limited number of cookies, those of the longest paths`() throws {
        let store = CookieStore()
        for number in 0..<200 { try receive(["c\(number)=1; Path=/"], from: "https://www.host.example/", in: store) }
        try receive(["deep=1; Path=/deep"], from: "https://www.host.example/", in: store)
        let url = try #require(URL(string: "https://www.host.example/deep"))
        let names = try sent(store, to: url.absoluteString).components(separatedBy: "; ")
        expectEqual(names.count, 150)
        expectEqual(names[0], "deep=1")
        expectEqual(store.cookies(for: url).map { "\($0.name)=\($0.value)" }, names)
        let large = CookieStore()
        for number in 0..<4 {
            try receive(["c\(number)=\(String(repeating: "x", count: 4_000))"], from: "https://www.host.example/", in: large)
        }
        try expectEqual(sent(large, to: "https://www.host.example/").components(separatedBy: "; ").count, 2)
    }

    @Test func `a response sets at most fifty cookies`() throws {
        let store = CookieStore()
        try receive((0..<60).map { "c\($0)=1" }, from: "https://www.host.example/", in: store)
        expectEqual(store.cookies.count, 50)
    }

    @Test func `an expired cookie is neither sent nor shown, although nothing has removed it`() throws {
        let store = try store("a=1; Path=/; Max-Age=60")
        try expectEqual(sent(store, to: "https://www.host.example/", at: now + 59), "a=1")
        try expectEqual(sent(store, to: "https://www.host.example/", at: now + 60), "")
    }

    @Test func `random fields never make a request that differs from what is shown, or that has control bytes`() throws {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SplitMix64(seed: seed)
        let parts = [
            "a", "=", ";", " ", "\t", "Path", "Domain", "/", "host", ".", "example", "Max-Age", "9", "Expires", "\u{1}", "é",
            "Secure", ",", "-",
        ]
        let store = CookieStore()
        for _ in 0..<3_000 {
            let field = (0..<Int.random(in: 0..<14, using: &random)).map { _ in parts.randomElement(using: &random) ?? "" }
                .joined()
            let host = ["host.example", "www.host.example", "example", "127.0.0.1"].randomElement(using: &random) ?? ""
            let url = "https://\(host)\(["", "/", "/a", "/a/9", "/9"].randomElement(using: &random) ?? "")"
            try receive([field], from: url, in: store)
            let field1 = try sent(store, to: url, at: Int64(Date().timeIntervalSince1970))
            #expect(!field1.utf8.contains { $0 < 0x20 || $0 == 0x7F }, "seed \(seed)")
            let shown = store.cookies(for: try #require(URL(string: url)))
            expectEqual(shown.map { "\($0.name)=\($0.value)" }.joined(separator: "; "), field1, "seed \(seed)")
            let shownURL = try #require(URL(string: url))
            #expect(shown.allSatisfy { $0.matches(shownURL) }, "seed \(seed)")
        }
    }
}
