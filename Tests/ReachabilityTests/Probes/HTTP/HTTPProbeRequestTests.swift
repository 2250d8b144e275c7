import Expectations
import Testing

@testable import Reachability

@Suite struct HTTPProbeRequestTests {
    private let url: HTTPURL

    init() throws { url = try HTTPURL("http://example.com:8080/health?full") }

    private func text(_ request: HTTPProbeRequest) -> String { String(decoding: request.bytes(), as: UTF8.self) }

    @Test func `a request without options is GET`() throws {
        try expectEqual(
            text(HTTPProbeRequest(url: url)),
            "GET /health?full HTTP/1.1\r\nHost: example.com:8080\r\nConnection: close\r\n"
                + "User-Agent: netwatch/\(PackageVersion.text)\r\nAccept: */*\r\nAccept-Encoding: identity\r\n\r\n")
    }

    @Test func `options of a request are sent`() throws {
        let request = try HTTPProbeRequest(
            method: "PATCH", url: url, host: "other.example",
            fields: [.init("user-agent", "probe"), .init("X-A", " b\tä "), .init("X-A", "c")], body: Array("{}".utf8),
            authorization: .basic(user: "Aladdin", password: "open sesame"))
        expectEqual(
            text(request),
            "PATCH /health?full HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\nAccept: */*\r\nAccept-Encoding: identity\r\n"
                + "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\nuser-agent: probe\r\nX-A:  b\tä \r\nX-A: c\r\n"
                + "Content-Length: 2\r\n\r\n{}")
        let compressing = try HTTPProbeRequest(url: url, fields: [.init("accept-encoding", "gzip")])
        #expect(text(compressing).hasSuffix("\r\nAccept: */*\r\naccept-encoding: gzip\r\n\r\n"))
        let bearer = try HTTPProbeRequest(method: "POST", url: url, authorization: .bearer("abc.def"))
        #expect(text(bearer).contains("\r\nAuthorization: Bearer abc.def\r\nContent-Length: 0\r\n\r\n"))
    }

    @Test(arguments: ["GET /x HTTP/1.1\r\nA: b\r\n\r\nGET", "", "G T", "GET\r", "CONNECT", "GÉT"])
    func `an invalid method is refused`(method: String) {
        #expect(throws: HTTPProbeRequest.ParseError.self) { try HTTPProbeRequest(method: method, url: url) }
    }

    @Test(arguments: ["a\r\nB: c", "", "a b", "a/b", "a@b", "ä.example", "a\0"])
    func `an invalid Host is refused`(host: String) {
        #expect(throws: HTTPProbeRequest.ParseError.self) { try HTTPProbeRequest(url: url, host: host) }
    }

    @Test(arguments: [
        ("A", "b\r\nC: d"), ("A", "b\nc"), ("A", "b\0"), ("A", "b\u{7F}"), ("", "b"), ("A b", "c"), ("A:", "b"), ("A\r\nB", "c"),
        ("Host", "a"), ("content-length", "5"), ("Transfer-Encoding", "chunked"), ("Connection", "keep-alive"),
        ("Expect", "100-continue"),
    ])
    func `a field that changes the framing of the request is refused`(name: String, value: String) {
        #expect(throws: HTTPProbeRequest.ParseError.self) { try HTTPProbeRequest(url: url, fields: [.init(name, value)]) }
    }

    @Test(arguments: [
        HTTPProbeRequest.Authorization.basic(user: "a:b", password: "hunter2"), .basic(user: "a", password: "hunter2\r"),
        .bearer(""), .bearer("hunter2 "), .bearer("hunter2\r\nA: b"),
    ])
    func `invalid credentials are refused and not shown`(authorization: HTTPProbeRequest.Authorization) {
        let error = #expect(throws: HTTPProbeRequest.ParseError.self) {
            try HTTPProbeRequest(url: url, authorization: authorization)
        }
        #expect(error?.description.contains("hunter2") == false)
        #expect(!"\(authorization)".contains("hunter2") && !String(reflecting: authorization).contains("hunter2"))
        var dumped = ""
        dump(authorization, to: &dumped)
        #expect(!dumped.contains("hunter2"))
    }

    @Test func `a second Authorization is refused`() {
        #expect(throws: HTTPProbeRequest.ParseError.self) {
            try HTTPProbeRequest(url: url, fields: [.init("authorization", "x")], authorization: .bearer("a"))
        }
    }

    // RFC 4648 section 10.
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ])
    func `base64 is that of RFC 4648`(text: String, encoded: String) {
        expectEqual(Base64.text(Array(text.utf8)), encoded)
    }
}
