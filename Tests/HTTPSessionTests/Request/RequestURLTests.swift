import Expectations
import Foundation
import HTTPSession
import HTTPTypes
import Testing

@Suite struct RequestURLTests {
    @Test(
        arguments: [
            "", "/things", "//", "things", "ftp://e.com/", "file:///etc/hosts", "http:///things", "http://",
            "http://exa mple.com/",
            "http://e.com/a\r\nX: y", "http://e.com/\0", "http://e.com:99999/", "http://e.com:80:90/", "http://e.com%0d%0a/",
            "http://e.com%20x/", "http://[::1/", "javascript:alert(1)", "http://e\tcom/",
            "http://b%C3cher.example/", "http://a%2Fb.example/", "http://a%40b.example/", "http://a%25b.example/",
            "http://127.1/", "http://2130706433/", "http://0x7f000001/", "http://0x7F.0.0.1/", "http://0177.0.0.1/",
            "http://127.0.0.1.0/", "http://127.0.0.256/", "http://a.example.1/", "http://127.0.0.1./", "http://1e.0x/",
        ])
    func `a URL that cannot be requested is refused with a reason`(text: String) {
        let error = HTTPSessionError.thrown { try TransferRequest(urlString: text) }
        expectEqual(error?.code, .invalidRequest)
        #expect(error?.reason.isEmpty == false)
    }

    @Test(
        arguments: [
            #"http://good.example\@evil.example/"#, #"http:\\e.com/"#, #"http://e.com\a"#, #"http://e.com/a\b"#,
            #"http://e.com/?a=\"#,
            #"http://e.com/#\"#, #"\\evil.example/"#,
        ])
    func `a URL with a backslash is refused`(text: String) throws {
        let base = try #require(URL(string: "http://base.example/"))
        for base in [nil, base] {
            let error = HTTPSessionError.thrown { try TransferRequest(urlString: text, relativeTo: base) }
            #expect(error?.code == .invalidRequest && error?.reason.contains("backslash") == true)
        }
        try expectEqual(TransferRequest(urlString: "http://e.com/a%5Cb").url.absoluteString, "http://e.com/a%5Cb")
    }

    @Test(
        arguments: [
            "127.0.0.1", "0.0.0.0", "255.255.255.255", "[::1]", "a.example.", "1.example", "0x7f.example", "a_b.example", "3com",
            "xn--bcher-kva.example", "bücher.example", "a%2Eexample",
        ])
    func `a URL with a valid host name or address is accepted`(host: String) throws {
        try expectEqual(TransferRequest(urlString: "http://\(host)/").url.host(percentEncoded: false)?.isEmpty, false)
    }

    @Test(
        arguments: [
            ("https://e.com/v1/", "users/7", "https://e.com/v1/users/7"), ("https://e.com/v1", "users", "https://e.com/v1/users"),
            ("https://e.com/v1/", "/users", "https://e.com/users"), ("https://e.com", "users", "https://e.com/users"),
            ("https://e.com/v1", "?a=b", "https://e.com/v1/?a=b"), ("https://e.com/v1", "", "https://e.com/v1/"),
            ("https://e.com/v1", "http://other.org/x", "http://other.org/x"),
            ("https://e.com/v1/a", "../b", "https://e.com/v1/b"),
            ("https://e.com/", "ü b", "https://e.com/%C3%BC%20b"),
        ])
    func `a relative URL is resolved against the base URL, which counts as a directory`(
        base: String, text: String, expected: String
    )
        throws
    {
        let url = try #require(URL(string: base))
        try expectEqual(TransferRequest(urlString: text, relativeTo: url).url.absoluteString, expected)
    }

    @Test func `the URL in an error has no user, password, query or fragment`() throws {
        let url = try #require(URL(string: "https://ada:secret@[::1]:8443/a%20b?token=secret#secret"))
        expectEqual(url.withoutSecrets, "https://[::1]:8443/a%20b")
        let request = TransferRequest(url: url, method: .post, headerFields: [.contentLength: "1"])
        let error = HTTPSessionError.thrown { try HTTPRequestSerializer(headerFields: [:]).serialize(request) }
        expectEqual(error?.description, "invalid-request: Content-Length is set by the engine (POST https://[::1]:8443/a%20b)")
    }

    @Test func `an error thrown by a request serializer is the underlying error`() {
        struct Failing: RequestSerializer {
            func encode(_ parameters: Parameters?, into request: TransferRequest) throws -> TransferRequest { throw Refusal() }
        }
        let error = HTTPSessionError.thrown { try SerializedRequest(by: Failing()) }
        expectEqual(error?.code, .cannotEncodeRequest)
        #expect(error?.underlying is Refusal)
        expectEqual(error?.context.method, "GET")
    }

    @Test func `a request serializer that returns an invalid URL fails the request`() {
        struct Wrong: RequestSerializer {
            func encode(_ parameters: Parameters?, into request: TransferRequest) throws -> TransferRequest {
                var request = request
                request.url = URL(filePath: "/etc/hosts")
                return request
            }
        }
        expectEqual(HTTPSessionError.thrown { try SerializedRequest(by: Wrong()) }?.code, .invalidRequest)
    }

    @Test(
        arguments: [
            ("cer", "application/x-x509-ca-cert"), ("JSON", "application/json"), ("png", "image/png"),
            ("nosuch", MIMEType.unknown),
            ("", MIMEType.unknown),
        ])
    func `a file's content type follows from its name`(pathExtension: String, type: String) {
        expectEqual(MIMEType.forPathExtension(pathExtension), type)
    }
}
