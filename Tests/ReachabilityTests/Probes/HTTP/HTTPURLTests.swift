import Expectations
import Testing

@testable import Reachability

@Suite struct HTTPURLTests {
    @Test(arguments: [
        ("http://example.com", "http://example.com/", UInt16(80)),
        ("https://example.com/a?b=c#d", "https://example.com/a?b=c", 443),
        ("HTTP://Example.com:8080/A", "http://Example.com:8080/A", 8080), ("http://example.com:/", "http://example.com/", 80),
        ("https://example.com:443?q", "https://example.com/?q", 443), ("http://[::1]:81/", "http://[::1]:81/", 81),
        ("http://192.0.2.1/a b", "http://192.0.2.1/a%20b", 80),
        ("http://bücher.de/ü?\"<>", "http://xn--bcher-kva.de/%C3%BC?%22%3C%3E", 80),
        ("http://example.com/a/./b/../c", "http://example.com/a/c", 80),
        ("http://a.example/?q=http://b/", "http://a.example/?q=http://b/", 80),
        ("http://a.example/%zz\r\nX: y", "http://a.example/%zz%0D%0AX:%20y", 80),
    ])
    func `a URL is parsed`(text: String, expected: String, port: UInt16) throws {
        let url = try HTTPURL(text)
        #expect(url.description == expected && url.endpoint.port == port)
    }

    @Test(arguments: [
        ("example.com", "scheme: is missing; write http:// or https://"), ("ftp://a/", "scheme: 'ftp' is neither http nor https"),
        ("localhost:80/", "scheme: 'localhost' is neither http nor https"), ("http:", "host: is missing"),
        ("http:///a", "host: is missing"), ("http://:80/", "host: is missing"), ("http:a", "host: is missing"),
        ("http://user:secret@a/", "host: user information is not accepted"),
        ("http://a:b/", "port: 'b' is not a number from 1 to 65535"),
        ("http://a:0/", "port: '0' is not a number from 1 to 65535"),
        ("http://a:65536/", "port: '65536' is not a number from 1 to 65535"),
        ("http://::1/", "port: ':1' is not a number from 1 to 65535"),
        ("http://[::1/", "host: '[' without ']'"),
        ("http://a..b/", "host: 'a..b' has an empty label"), ("http://a b/", "host: 'a b' is neither an address nor a DNS name"),
        ("http://[::1]x/", nil), ("http://%41/", nil), ("http://1.2.3/", nil), ("http://a\\b/", nil), ("", nil),
    ])
    func `text that is no URL of HTTP is refused with its reason`(text: String, reason: String?) {
        let error = #expect(throws: HTTPURL.ParseError.self) { try HTTPURL(text) }
        if let reason { expectEqual(error?.description, reason) }
    }

    @Test func `a URL longer than 8 KiB is refused`() {
        #expect(throws: HTTPURL.ParseError.self) { try HTTPURL("http://a/" + String(repeating: "a", count: 8192)) }
    }

    // RFC 3986 sections 5.4.1 and 5.4.2, without fragments.
    @Test(arguments: [
        ("g", "/b/c/g"), ("./g", "/b/c/g"), ("g/", "/b/c/g/"), ("/g", "/g"), ("?y", "/b/c/d;p?y"), ("g?y", "/b/c/g?y"),
        ("#s", "/b/c/d;p?q"), ("g#s", "/b/c/g"), ("g?y#s", "/b/c/g?y"), (";x", "/b/c/;x"), ("g;x", "/b/c/g;x"),
        ("g;x?y#s", "/b/c/g;x?y"), ("", "/b/c/d;p?q"), (".", "/b/c/"), ("./", "/b/c/"), ("..", "/b/"), ("../", "/b/"),
        ("../g", "/b/g"), ("../..", "/"), ("../../", "/"), ("../../g", "/g"), ("../../../g", "/g"), ("../../../../g", "/g"),
        ("/./g", "/g"), ("/../g", "/g"), ("g.", "/b/c/g."), (".g", "/b/c/.g"), ("g..", "/b/c/g.."), ("..g", "/b/c/..g"),
        ("./../g", "/b/g"), ("./g/.", "/b/c/g/"), ("g/./h", "/b/c/g/h"), ("g/../h", "/b/c/h"), ("g;x=1/./y", "/b/c/g;x=1/y"),
        ("g;x=1/../y", "/b/c/y"), ("g?y/./x", "/b/c/g?y/./x"), ("g?y/../x", "/b/c/g?y/../x"), ("g#s/./x", "/b/c/g"),
        ("//g", "//g/"), ("  g\t", "/b/c/g"), ("1:2", "/b/c/1:2"), ("a//../b", "/b/c/a/b"),
    ])
    func `a relative reference is resolved as RFC 3986 section 5.4 shows`(reference: String, expected: String) throws {
        let base = try HTTPURL("http://a/b/c/d;p?q")
        let resolved = try base.resolving(Array(reference.utf8)[...])
        expectEqual(resolved.description, (expected.hasPrefix("//") ? "http:\(expected)" : "http://a\(expected)"))
    }

    @Test func `an absolute reference replaces the base`() throws {
        let base = try HTTPURL("https://a.example:8443/b")
        try expectEqual(base.resolving(Array("http://c.example/d".utf8)[...]).description, "http://c.example/d")
        try expectEqual(base.resolving(Array("//c.example/d".utf8)[...]).description, "https://c.example/d")
        try expectEqual(base.resolving(Array("c".utf8)[...]).description, "https://a.example:8443/c")
        #expect(throws: HTTPURL.ParseError.self) { try base.resolving(Array("mailto:a".utf8)[...]) }
        #expect(throws: HTTPURL.ParseError.self) { try base.resolving(Array("https:d".utf8)[...]) }
        #expect(throws: HTTPURL.ParseError.self) { try base.resolving(Array("http://a:b@c/".utf8)[...]) }
    }

    @Test func `bytes that are not UTF-8 are percent-encoded`() throws {
        try expectEqual(HTTPURL("http://a/").resolving([0x62, 0xE4, 0x20, 0x63]).target, "/b%E4%20c")
    }

    @Test func `a zone stays in the endpoint and is not sent`() throws {
        let url = try HTTPURL("http://[fe80::1%eth0]:81/a")
        expectEqual(url.authority, "[fe80::1]:81")
        try expectEqual(url.resolving(Array("/b".utf8)[...]).endpoint, url.endpoint)
    }

    @Test func `an origin is scheme, host and port`() throws {
        let url = try HTTPURL("https://a.example/")
        #expect(try url.hasSameOrigin(as: HTTPURL("https://A.example:443/b")))
        for other in ["http://a.example/", "https://b.example/", "https://a.example:444/"] {
            #expect(try !url.hasSameOrigin(as: HTTPURL(other)))
        }
    }
}
