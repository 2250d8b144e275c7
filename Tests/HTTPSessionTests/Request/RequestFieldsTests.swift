import Expectations
import Foundation
import HTTPSession
import HTTPSessionCompatibility
import HTTPTypes
import Testing

@Suite struct RequestFieldsTests {
    @Test(
        arguments: [
            ([], nil), (["de"], "de"), (["en-GB", "de"], "en-GB, de;q=0.9"),
            (["a", "b", "c", "d", "e", "f", "g"], "a, b;q=0.9, c;q=0.8, d;q=0.7, e;q=0.6, f;q=0.5"),
            (["en\r\nX: y", "de, fr", "", "ja"], "ja"),
        ] as [([String], String?)])
    func `Accept-Language weights the languages by their order, down to 0.5`(languages: [String], expected: String?) {
        expectEqual(RequestFields.acceptLanguage(preferring: languages), expected)
    }

    @Test func `User-Agent is written in ASCII`() {
        expectEqual(RequestFields.userAgent(product: "app", version: "1.2", system: "Debian 12"), "app/1.2 (Debian 12)")
        expectEqual(RequestFields.userAgent(product: "Ünï App", version: nil, system: nil), "Uni-App")
        expectEqual(RequestFields.userAgent(product: "e\u{301}\u{6F}ß Æ?", version: nil, system: "naïve?"), "eoss-AE (naive?)")
        expectEqual(RequestFields.userAgent(product: "日本", version: "1\r\nX: y", system: "a)\r\n(b"), "HTTPSession/1X-y (ab)")
        expectEqual(RequestFields.userAgent(product: "", version: "", system: ""), "HTTPSession")
    }

    @Test func `a new request serializer sets Accept-Language and User-Agent`() throws {
        let serializer = HTTPRequestSerializer()
        let agent = try #require(serializer.value(forHTTPHeaderField: "User-Agent"))
        #expect(!agent.isEmpty && agent.allSatisfy(\.isASCII))
        expectEqual(serializer.headerFields.contains(.acceptLanguage), !Locale.preferredLanguages.isEmpty)
    }

    @Test func `Basic authorization is set and cleared`() throws {
        var serializer = HTTPRequestSerializer(headerFields: [:])
        try serializer.setAuthorizationHeaderField(username: "Aladdin", password: "open sesame")
        expectEqual(serializer.value(forHTTPHeaderField: "Authorization"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
        try serializer.setAuthorizationHeaderField(username: "test", password: "123£")
        expectEqual(serializer.value(forHTTPHeaderField: "Authorization"), "Basic dGVzdDoxMjPCow==")
        serializer.clearAuthorizationHeader()
        expectNil(serializer.value(forHTTPHeaderField: "Authorization"))
    }

    @Test(arguments: [("a:b", "c"), ("a\n", "c"), ("a", "\u{0}"), ("a", "\u{7F}")])
    func `a user name or password that Basic cannot represent is refused`(username: String, password: String) {
        let error = HTTPSessionError.thrown { try RequestFields.basicAuthorization(username: username, password: password) }
        expectEqual(error?.code, .invalidRequest)
    }

    @Test(
        arguments: [
            ("X-Field", "a\r\nInjected: b"), ("X-Field", "a\nb"), ("X-Field", "a\rb"), ("X-Field", "a\0b"), ("X-Field", "a\u{1}"),
            ("X-Field\r\nInjected", "a"), ("X-Field:", "a"), ("", "a"), ("X Field", "a"), ("X\0", "a"), ("Ünï", "a"),
            (":path", "a"),
        ])
    func `a field name or value that would end its header line is refused`(name: String, value: String) {
        var serializer = HTTPRequestSerializer(headerFields: [:])
        let single = HTTPSessionError.thrown { try serializer.setValue(value, forHTTPHeaderField: name) }
        expectEqual(single?.code, .invalidRequest)
        #expect(single?.reason.contains("Injected: b") == false)
        expectEqual(HTTPSessionError.thrown { try HTTPFields(checking: [name: value]) }?.code, .invalidRequest)
    }

    @Test func `swift-http-types replaces line breaks in an unchecked field value`() throws {
        let fields: HTTPFields = [.accept: "a\r\nInjected: b\0"]
        expectEqual(fields[.accept], "a  Injected: b")
        expectNil(HTTPField.Name("X\r\n"))
        expectNil(HTTPRequest.Method("GET / HTTP/1.1\r\n"))
    }

    @Test func `more than a thousand header fields are refused`() {
        let fields = Dictionary((0...1000).map { ("f\($0)", "v") }) { _, last in last }
        expectEqual(HTTPSessionError.thrown { try HTTPFields(checking: fields) }?.code, .invalidRequest)
    }

    @Test(arguments: [.contentLength, .transferEncoding, .connection] as [HTTPField.Name])
    func `framing fields in a request are refused`(name: HTTPField.Name) {
        let error = HTTPSessionError.thrown { try SerializedRequest(fields: [name: "1"]) }
        expectEqual(error?.code, .invalidRequest)
        let serializer = HTTPRequestSerializer(headerFields: [name: "1"])
        expectEqual(HTTPSessionError.thrown { try SerializedRequest(by: serializer) }?.code, .invalidRequest)
    }
}
