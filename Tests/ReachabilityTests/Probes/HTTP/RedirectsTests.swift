import Expectations
import Testing
import Wire

@testable import Reachability

@Suite struct RedirectsTests {
    private func head(_ status: Int, _ location: String?) throws -> HTTPResponseReader.Head {
        var exchange = HTTPExchange(method: "HEAD")
        exchange.receive(Array("HTTP/1.1 \(status) X\r\n\(location.map { "Location: \($0)\r\n" } ?? "")\r\n".utf8))
        return try #require(exchange.head)
    }

    private func request(_ method: String = "GET", _ url: String = "https://a.example/") throws -> HTTPProbeRequest {
        try HTTPProbeRequest(
            method: method, url: HTTPURL(url), host: "host.example",
            fields: [.init("Cookie", "a=b"), .init("Content-Type", "text/plain")],
            body: [1], authorization: .bearer("secret"))
    }

    private func next(_ status: Int, _ location: String, of request: HTTPProbeRequest) throws -> HTTPProbeRequest? {
        var redirects = Redirects(of: request)
        guard case .follow(let next) = try redirects.next(after: head(status, location), to: request) else { return nil }
        return next
    }

    @Test(arguments: [
        (301, "POST", "GET"), (302, "POST", "GET"), (303, "POST", "GET"), (307, "POST", "POST"), (308, "POST", "POST"),
        (301, "PUT", "PUT"), (302, "DELETE", "DELETE"), (303, "PUT", "GET"), (303, "HEAD", "HEAD"), (301, "HEAD", "HEAD"),
        (303, "GET", "GET"),
    ])
    func `the status decides about the method of the next request`(status: Int, method: String, expected: String) throws {
        let next = try #require(try next(status, "/b", of: request(method)))
        expectEqual(next.method, expected)
        let isChanged = method != expected
        expectEqual(next.body, (isChanged ? [] : [1]))
        expectEqual(next.fields.map(\.name), (isChanged ? ["Cookie"] : ["Cookie", "Content-Type"]))
        expectEqual(next.url.description, "https://a.example/b")
    }

    @Test(arguments: [
        ("https://a.example/", "https://b.example/", [], ["Accept", "Range", "user-agent"]),
        ("https://a.example/", "https://b.example/", ["x-trace"], ["Accept", "Range", "X-Trace", "user-agent"]),
        ("https://a.example/", "http://a.example/", ["X-Trace"], ["Accept", "Range", "user-agent"]),
        ("http://a.example/", "https://a.example/", ["X-Trace", "Cookie"], ["Accept", "Range", "X-Trace", "user-agent"]),
        ("https://a.example/", "/b", [], ["Accept", "Cookie", "Range", "X-Api-Key", "X-Trace", "user-agent"]),
    ])
    func `another origin receives fields that are no secret by their meaning, and those that the target names`(
        from: String, to: String, forwarded: [String], kept: [String]
    ) throws {
        let names = ["Accept", "Range", "user-agent", "X-Api-Key", "X-Trace", "Cookie"]
        let request = try HTTPProbeRequest(url: HTTPURL(from), fields: names.map { .init($0, "v") }, forwarding: forwarded)
        try expectEqual(next(302, to, of: request)?.fields.map(\.name).sorted(), kept)
        // A level that continues on another host has a request of its own.
        let isDowngrade = from.hasPrefix("https:") && to.hasPrefix("http:")
        if to != "/b" { expectEqual(request.forOtherOrigin(isDowngrade: isDowngrade).fields.map(\.name).sorted(), kept) }
    }

    @Test(arguments: [
        ("/b", true), ("https://A.example:443/b", true), ("http://a.example/", false), ("https://a.example:444/", false),
        ("https://b.example/", false), ("//www.a.example/", false),
    ])
    func `another origin receives no credentials and no Host of the user`(location: String, isSame: Bool) throws {
        let next = try #require(try next(307, location, of: request()))
        expectEqual((next.authorization != nil), isSame)
        expectEqual((next.host != nil), isSame)
        expectEqual(next.fields.contains { $0.name == "Cookie" }, isSame)
    }

    @Test func `credentials do not come back with the first origin`() throws {
        let first = try request()
        var redirects = Redirects(of: first)
        guard case .follow(let second) = try redirects.next(after: head(302, "http://b.example/"), to: first),
            case .follow(let third) = try redirects.next(after: head(302, "https://a.example/c"), to: second)
        else {
            Issue.record("not followed")
            return
        }
        expectNil(third.authorization)
        expectEqual(redirects.locations, ["http://b.example/", "https://a.example/c"])
        #expect(redirects.isDowngraded && redirects.otherHost == "b.example")
    }

    @Test func `a loop is named`() throws {
        let first = try request()
        var redirects = Redirects(of: first)
        guard case .follow(let second) = try redirects.next(after: head(302, "/b"), to: first) else {
            Issue.record("not followed")
            return
        }
        try expectEqual(
            redirects.next(after: head(302, "/#again"), to: second),
            .failed(RedirectFailure(.loop, location: "https://a.example/")))
        var own = Redirects(of: first)
        try expectEqual(
            own.next(after: head(302, ""), to: first), .failed(RedirectFailure(.loop, location: "https://a.example/")))
    }

    @Test func `a redirect that sets a cookie is followed with the cookie, and is a loop if it sets the same one again`() throws {
        let first = try HTTPProbeRequest(url: HTTPURL("https://a.example/"))
        var redirects = Redirects(of: first)
        let answer = "HTTP/1.1 302 Found\r\nLocation: /\r\nSet-Cookie: a=1; Path=/; HttpOnly\r\nSet-Cookie: b=2; Secure\r\n\r\n"
        func head(_ text: String) throws -> HTTPResponseReader.Head {
            var exchange = HTTPExchange(method: "GET", keepsBody: false)
            exchange.receive(Array(text.utf8))
            return try #require(exchange.head)
        }
        guard case .follow(let second) = try redirects.next(after: head(answer), to: first) else {
            Issue.record("not followed")
            return
        }
        let lines = String(decoding: second.bytes(), as: UTF8.self)
        #expect(lines.contains("\r\nCookie: a=1; b=2\r\n"))
        try expectEqual(
            redirects.next(after: head(answer), to: second),
            .failed(RedirectFailure(.loop, location: "https://a.example/")))
        // Another host receives no cookie, and http none with Secure.
        let other = "HTTP/1.1 302 Found\r\nLocation: http://b.example/\r\nSet-Cookie: c=3\r\n\r\n"
        guard case .follow(let third) = try redirects.next(after: head(other), to: second) else {
            Issue.record("not followed")
            return
        }
        #expect(!String(decoding: third.bytes(), as: UTF8.self).contains("Cookie"))
        let plain = "HTTP/1.1 302 Found\r\nLocation: http://a.example/\r\n\r\n"
        guard case .follow(let fourth) = try redirects.next(after: head(plain), to: second) else {
            Issue.record("not followed")
            return
        }
        #expect(String(decoding: fourth.bytes(), as: UTF8.self).contains("\r\nCookie: a=1\r\n"))
    }

    @Test func `cookies that are no cookies are not sent, and the user's own cookie is first`() throws {
        let own = try HTTPProbeRequest(url: HTTPURL("https://a.example/"), fields: [.init("Cookie", "own=0")])
        let values = ["=1", "novalue", "x=\u{e9}", "y=" + String(repeating: "y", count: 5000), " z = 3 ; Secure"]
        let fields = values.map { "Set-Cookie: \($0)\r\n" }.joined()
        var exchange = HTTPExchange(method: "GET", keepsBody: false)
        exchange.receive(Array("HTTP/1.1 302 Found\r\nLocation: /b\r\n\(fields)\r\n".utf8))
        var redirects = Redirects(of: own)
        guard case .follow(let next) = try redirects.next(after: #require(exchange.head), to: own) else {
            Issue.record("not followed")
            return
        }
        #expect(String(decoding: next.bytes(), as: UTF8.self).contains("\r\nCookie: own=0; z=3\r\n"))
    }

    @Test func `a POST that becomes GET of the same URL is no loop`() throws {
        try expectEqual(next(303, "/", of: request("POST"))?.method, "GET")
    }

    @Test func `ten redirects are followed`() throws {
        var request = try request()
        var redirects = Redirects(of: request)
        for number in 1...10 {
            guard case .follow(let next) = try redirects.next(after: head(302, "/\(number)"), to: request) else {
                Issue.record("redirect \(number) is not followed")
                return
            }
            request = next
        }
        try expectEqual(
            redirects.next(after: head(302, "/11"), to: request),
            .failed(RedirectFailure(.limit, location: "https://a.example/11", limit: .redirects)))
        expectEqual(redirects.locations.count, 10)
    }

    @Test(arguments: ["ftp://a/", "mailto:a@b", "http://", "http://a:b@c/", "javascript:alert(1)", "http://a..b/"])
    func `a redirect that no probe can request is named`(location: String) throws {
        let request = try request()
        var redirects = Redirects(of: request)
        guard case .failed(let failure) = try redirects.next(after: head(302, location), to: request) else {
            Issue.record("followed")
            return
        }
        #expect(failure.kind == .location && failure.reason != nil)
        expectEqual(failure.location, location.replacing("a:b@", with: "***@"))
        var unfollowed = Redirects(of: request, isFollowing: false)
        try expectEqual(unfollowed.next(after: head(302, location), to: request), .final)
    }

    @Test(arguments: [
        ("http://[fe80::1%25lo]:8080/", "host: a server cannot name a zone of this machine"),
        ("http://[fe80::1%eth0]/", "host: a server cannot name a zone of this machine"),
        ("http://0.0.0.0:8080/", "host: 0.0.0.0 is not the address of a server"),
        ("https://[::]/", "host: :: is not the address of a server"),
        ("//[::ffff:0.0.0.0]/", "host: 0.0.0.0 is not the address of a server"),
    ])
    func `a redirect to an address that only this machine could mean is the server's fault`(location: String, reason: String)
        throws
    {
        for url in ["http://a.example/", "http://[fe80::2%eth0]/"] {
            let request = try request("GET", url)
            var redirects = Redirects(of: request)
            try expectEqual(
                redirects.next(after: head(302, location), to: request),
                .failed(RedirectFailure(.location, location: location, reason: reason)))
        }
        // A path stays on the server, whatever its address is.
        #expect(try next(302, "/b", of: request("GET", "http://[fe80::1%eth0]/")) != nil)
    }

    @Test(arguments: [
        ("http://user:pw@b.example/x?a@b", "http://***@b.example/x?a@b"), ("//u@b.example", "//***@b.example"),
        ("http:/\\u:pw@b.example:1/", "http:/\\***@b.example:1/"), ("HTTP:u:pw@b.example:1/", "HTTP:***@b.example:1/"),
        ("/\\u:pw@b.example/", "/\\***@b.example/"), ("users/me@b", "users/me@b"), ("http:", "http:"),
        ("http://b.example/u:pw@c", "http://b.example/u:pw@c"), ("ftp://u:p@w@b/", "ftp://***@b/"), ("/a//u:p@b", "/a//***@b"),
        // A password with a character that ends the authority, and percent-encoded signs.
        ("http://bob:sec/ret@h.example/x", "http://***@h.example/x"), ("//bob:sec?ret@h.example", "//***@h.example"),
        ("http://bob:sec\\ret@h.example/", "http://***@h.example/"), ("http://u:p%40b.example/", "http://***%40b.example/"),
        ("http://u:p%2540b.example/", "http://***%2540b.example/"), ("/x?t=//bob:sec#ret@h/x", "/x?t=//***@h/x"),
        ("http://b.example:80/u:pw@c", "http://b.example:80/u:pw@c"), ("//[::1]:80/@x", "//[::1]:80/@x"),
    ])
    func `user information of a Location is not shown`(location: String, shown: String) throws {
        expectEqual(String(decoding: UserInformation.hidden(in: Array(location.utf8)[...]), as: UTF8.self), shown)
        var exchange = HTTPExchange(method: "GET")
        exchange.receive(Array("HTTP/1.1 302 Found\r\nLocation: \(location)\r\n\r\n".utf8))
        expectEqual(exchange.facts.location, shown)
        let request = try request()
        var redirects = Redirects(of: request)
        if case .failed(let failure) = try redirects.next(after: head(302, location), to: request) {
            #expect(failure.location == shown && failure.reason?.contains("pw") != true)
        }
    }

    @Test func `a Location longer than its limit is named`() throws {
        let request = try request()
        var redirects = Redirects(of: request)
        guard
            case .failed(let failure) = try redirects.next(
                after: head(302, "/" + String(repeating: "a", count: 8192)), to: request)
        else {
            Issue.record("followed")
            return
        }
        #expect(failure.kind == .limit && failure.limit == .location && failure.location.utf8.count < 300)
    }

    @Test func `a response without Location, with another status, or with a declared status is the last one`() throws {
        let request = try request()
        var redirects = Redirects(of: request)
        try expectEqual(redirects.next(after: head(302, nil), to: request), .final)
        for status in [200, 201, 300, 304, 305, 404, 503] {
            try expectEqual(redirects.next(after: head(status, "/b"), to: request), .final)
        }
        let expectation = HTTPExpectation(statuses: try StatusRanges("302"))
        try expectEqual(redirects.next(after: head(302, "/b"), to: request, expecting: expectation), .final)
    }

    @Test func `redirects that are not followed still name another host`() throws {
        let request = try request()
        var redirects = Redirects(of: request, isFollowing: false)
        try expectEqual(redirects.next(after: head(302, "http://portal.lan/login"), to: request), .final)
        #expect(redirects.otherHost == "portal.lan" && redirects.locations.isEmpty && !redirects.isDowngraded)
    }

    @Test(arguments: [
        ("a.example", "https://www.a.example/", nil), ("www.a.example", "https://a.example/", nil),
        ("A.example", "https://a.EXAMPLE./", nil),
        ("a.example", "https://host.example/", nil), ("a.example", "https://www.host.example:81/", nil),
        ("a.example", "https://b.example/", "b.example"), ("a.example", "https://xa.example/", "xa.example"),
        ("192.0.2.1", "http://192.0.2.1:81/", nil), ("192.0.2.1", "http://192.0.2.2/", "192.0.2.2"),
        ("a.b.example", "https://c.b.example/", "c.b.example"), ("[::1]", "http://[::2]/", "[::2]"),
        ("localhost", "http://a.localhost/", "a.localhost"),
    ])
    func `another host is neither the target nor a domain above or below it`(host: String, location: String, other: String?)
        throws
    {
        let request = try request("GET", "https://\(host)/")
        var redirects = Redirects(of: request)
        _ = try redirects.next(after: head(302, location), to: request)
        expectEqual(redirects.otherHost, other)
    }
}
