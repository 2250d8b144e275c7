import Expectations
import Foundation
import HTTPSession
import HTTPTypes
import Testing

private func head(_ status: Int, location: String?) throws -> ResponseHead {
    let field = location.map { "Location: \($0)\r\n" } ?? ""
    return try #require(ResponseHead(bytes: Array("HTTP/1.1 \(status) Moved\r\n\(field)\r\n".utf8)))
}

private func request(_ url: String, _ method: HTTPRequest.Method = .get) throws -> TransferRequest {
    TransferRequest(url: try #require(URL(string: url)), method: method)
}

/// The request that follows a redirect, `nil` if it is not followed, or the error if it is refused.
private func follow(
    _ request: TransferRequest, _ status: Int = 302, to location: String?, allowsInsecure: Bool = false
) throws -> TransferRequest? {
    switch RedirectRules.decide(try head(status, location: location), for: request, allowsInsecure: allowsInsecure) {
    case .none: return nil
    case .follow(let next): return next
    case .refuse(let error): throw error
    }
}

@Suite struct RedirectRulesTests {
    @Test(arguments: ["https://bücher.example/x", "//b%C3%BCcher.example/x"])
    func `a redirect to an international host name uses its ASCII form`(location: String) throws {
        let next = try follow(request("https://a.example/"), to: location)
        expectEqual(next?.url.absoluteString, "https://xn--bcher-kva.example/x")
    }

    /// RFC 3986 section 5.4, whose base URL is http too. References that keep only `http:` and a path name no server and are left
    /// out.
    static let references: [(String, String)] = [
        ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"), ("//g", "http://g"),
        ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q#s"), ("g#s", "http://a/b/c/g#s"),
        ("g?y#s", "http://a/b/c/g?y#s"), (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"),
        ("g;x?y#s", "http://a/b/c/g;x?y#s"),
        (".", "http://a/b/c/"), ("./", "http://a/b/c/"), ("..", "http://a/b/"), ("../", "http://a/b/"), ("../g", "http://a/b/g"),
        ("../..", "http://a/"), ("../../", "http://a/"), ("../../g", "http://a/g"), ("../../../g", "http://a/g"),
        ("../../../../g", "http://a/g"), ("/./g", "http://a/g"), ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."),
        (".g", "http://a/b/c/.g"), ("g..", "http://a/b/c/g.."), ("..g", "http://a/b/c/..g"), ("./../g", "http://a/b/g"),
        ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"), ("g/../h", "http://a/b/c/h"),
        ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
        ("g;x=1/../y", "http://a/b/c/y"), ("g?y/./x", "http://a/b/c/g?y/./x"), ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("g#s/./x", "http://a/b/c/g#s/./x"), ("g#s/../x", "http://a/b/c/g#s/../x"),
    ]

    @Test(arguments: references) func `a redirect's relative reference is resolved as in RFC 3986 section 5.4`(
        _ reference: String, _ target: String
    ) throws {
        try expectEqual(follow(request("http://a/b/c/d;p?q"), to: reference)?.url.absoluteString, target)
    }

    @Test(arguments: [#"/a\b"#, #"\\evil.example/"#, #"http://a\@evil.example/"#, #"?\"#])
    func `a redirect to a URL with a backslash is refused`(_ location: String) throws {
        let error = #expect(throws: HTTPSessionError.self) { try follow(request("http://a/b"), to: location) }
        #expect(error?.code == .redirectRefused && error?.reason.contains("backslash") == true)
    }

    @Test(arguments: ["g:h", "http:", "mailto:a@b", "ftp://a/b", "file:///etc/passwd", "javascript:alert(1)", "http:///nothing"])
    func `a redirect to a URL without an http scheme and a host is refused`(_ location: String) throws {
        let error = #expect(throws: HTTPSessionError.self) { try follow(request("http://a/b"), to: location) }
        expectEqual(error?.code, .redirectRefused)
        expectEqual(error?.context.statusCode, 302)
    }

    @Test(arguments: [200, 201, 300, 304, 305, 306, 309, 404]) func `other statuses with Location are not redirects`(
        _ status: Int
    ) throws {
        try expectNil(follow(request("http://a/b"), status, to: "/c"))
    }

    @Test func `a redirect without Location is the response`() throws {
        try expectNil(follow(request("http://a/b"), to: nil))
        try expectNil(follow(request("http://a/b"), to: ""))
    }

    @Test func `a redirect keeps the URL's fragment if its reference has none`() throws {
        try expectEqual(follow(request("http://a/b#here"), to: "/c")?.url.absoluteString, "http://a/c#here")
        try expectEqual(follow(request("http://a/b#here"), to: "/c#there")?.url.absoluteString, "http://a/c#there")
        try expectEqual(follow(request("http://a/b#a%20b%25"), to: "/c")?.url.absoluteString, "http://a/c#a%20b%25")
        try expectEqual(follow(request("http://a/b#"), to: "/c")?.url.path, "/c")
    }

    @Test func `spaces and non-ASCII characters in a redirect's URL are escaped`() throws {
        try expectEqual(follow(request("http://a/"), to: "/a b/ü")?.url.absoluteString, "http://a/a%20b/%C3%BC")
        try expectEqual(follow(request("http://a/"), to: "/a%20b")?.url.absoluteString, "http://a/a%20b")
    }

    @Test func `methods and bodies after a redirect follow from status and method`() throws {
        let expected: [(Int, HTTPRequest.Method, HTTPRequest.Method)] = [
            (301, .get, .get), (301, .head, .head), (301, .post, .get), (301, .put, .put), (301, .delete, .delete),
            (302, .post, .get), (302, .patch, .patch), (303, .get, .get), (303, .head, .head), (303, .post, .get),
            (303, .put, .get),
            (303, .delete, .get), (307, .post, .post), (307, .put, .put), (308, .post, .post), (308, .delete, .delete),
        ]
        for (status, method, next) in expected {
            var before = try request("http://a/b", method)
            before.body = .data(Data("x".utf8))
            before.headerFields[.contentType] = "text/plain"
            before.headerFields[.contentEncoding] = "br"
            before.headerFields[.accept] = "text/html"
            for name in ["Content-Digest", "Repr-Digest", "Digest", "Last-Modified", "Content-MD5", "Expect", "Trailer"] {
                before.headerFields[try #require(HTTPField.Name(name))] = "x"
            }
            let after = try #require(try follow(before, status, to: "/c"))
            expectEqual(after.method, next, "\(status) \(method)")
            let keepsBody = method == next
            expectEqual((after.headerFields[.contentType] != nil), keepsBody, "\(status) \(method)")
            expectEqual((after.headerFields[.contentEncoding] != nil), keepsBody, "\(status) \(method)")
            expectEqual(after.headerFields[.accept], "text/html")
            expectEqual(after.headerFields.count, keepsBody ? 10 : 1, "\(status) \(method)")
            if case .none = after.body {
                #expect(!keepsBody, "\(status) \(method)")
            } else {
                #expect(keepsBody, "\(status) \(method)")
            }
        }
    }

    @Test(arguments: [
        ("http://a/b", "/c", true), ("http://a/b", "http://A:80/c", true), ("https://a/b", "https://a:443/c", true),
        ("http://a/b", "http://b/c", false), ("http://a/b", "http://a:81/c", false), ("http://a/b", "https://a/c", false),
        ("http://a/b", "//b/c", false), ("http://a.b/", "http://x.a.b/", false),
    ]) func `secret fields of the request are not sent to another origin after a redirect`(
        _ from: String, _ location: String, _ isKept: Bool
    ) throws {
        var before = try request(from)
        for name in [HTTPField.Name.authorization, .cookie, .proxyAuthorization, .referer, .origin] {
            before.headerFields[name] = "secret"
        }
        before.headerFields[.accept] = "x"
        let after = try #require(try follow(before, to: location))
        expectEqual(after.headerFields.contains { $0.value == "secret" }, isKept)
        expectEqual(after.headerFields.count, (isKept ? 6 : 1))
    }

    @Test(arguments: [
        ("https://a/", "https://b/", [], ["Accept-Language", "If-None-Match", "Range", "User-Agent"]),
        ("https://a/", "https://a:8443/", [], ["Accept-Language", "If-None-Match", "Range", "User-Agent"]),
        ("https://a/", "https://b/", ["x-trace"], ["Accept-Language", "If-None-Match", "Range", "User-Agent", "X-Trace"]),
        ("https://a/", "http://a/", ["x-trace"], ["Accept-Language", "If-None-Match", "Range", "User-Agent"]),
        ("http://a/", "https://a/", ["X-Trace"], ["Accept-Language", "If-None-Match", "Range", "User-Agent", "X-Trace"]),
        ("https://a/", "https://b/", ["Authorization"], ["Accept-Language", "If-None-Match", "Range", "User-Agent"]),
    ])
    func `another origin receives fields that are no secret by their meaning, and those that the session names`(
        _ from: String, _ to: String, _ further: [String], _ kept: [String]
    ) throws {
        var before = try request(from)
        for name in [
            "User-Agent", "Range", "X-Api-Key", "X-Trace", "Api-Key", "Authorization", "Accept-Language", "If-None-Match",
        ] {
            before.headerFields[try #require(HTTPField.Name(name))] = "v"
        }
        guard
            case .follow(let after) = RedirectRules.decide(
                try head(302, location: to), for: before, allowsInsecure: true,
                forwarding: Set(further.compactMap { HTTPField.Name($0) }))
        else {
            Issue.record("not followed")
            return
        }
        expectEqual(after.headerFields.map(\.name.rawName).sorted(), kept)
    }

    @Test func `a redirect from https to http is refused unless it is allowed`() throws {
        let error = #expect(throws: HTTPSessionError.self) { try follow(request("https://a/b"), to: "http://a/b") }
        expectEqual(error?.code, .redirectRefused)
        try expectEqual(follow(request("https://a/b"), to: "http://a/b", allowsInsecure: true)?.url.scheme, "http")
        try expectEqual(follow(request("http://a/b"), to: "http://c/b")?.url.scheme, "http")
        try expectEqual(follow(request("http://a/b"), to: "https://a/b")?.url.scheme, "https")
        try expectEqual(follow(request("https://a/b"), to: "//c/b")?.url.absoluteString, "https://c/b")
    }

    @Test func `the first of several Location fields is used`() throws {
        let bytes = Array("HTTP/1.1 302 Found\r\nLOCATION:  /first \r\nLocation: /second\r\n\r\n".utf8)
        guard
            case .follow(let next) = RedirectRules.decide(
                try #require(ResponseHead(bytes: bytes)), for: try request("http://a/"), allowsInsecure: false)
        else { return #expect(Bool(false)) }
        expectEqual(next.url.path, "/first")
    }
}
