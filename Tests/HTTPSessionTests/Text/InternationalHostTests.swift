import Expectations
import Foundation
import HTTPTypes
import InternationalNames
import Testing

@testable import HTTPSession

@Suite struct InternationalHostTests {
    @Test(
        arguments: [
            ("bücher.example", "xn--bcher-kva.example"), ("BÜCHER.example", "xn--bcher-kva.example"),
            ("bu\u{308}cher.example", "xn--bcher-kva.example"), ("faß.de", "xn--fa-hia.de"), ("例え。テスト", "xn--r8jz45g.xn--zckzah"),
            ("ü_a.de", "xn--_a-wka.de"), ("☕.example", "xn--53h.example"), ("１２７.0.0.1", "127.0.0.1"), ("漢．com", "xn--hex.com"),
            ("i❤.ws", "xn--i-7iq.ws"), ("☃.straße.example", "xn--n3h.xn--strae-oqa.example"),
            ("STRAẞE。example.", "xn--strae-oqa.example."),
            ("ü.example.", "xn--tda.example."),
        ])
    func `a non-ASCII host has one form in ASCII`(host: String, expected: String) {
        expectEqual(InternationalHost.ascii(host), expected)
    }

    @Test(
        arguments: [
            "a\u{200D}b.example", "☕ß.example", "☕..example", "\u{300}x.example", "evil.example／.good.example", "a℀b.example",
            "ü@evil.example",
            "ü:80", "ü..de",
            "ü\0.de", "\u{FFFD}.de", String(repeating: "ü", count: 80) + ".de", String(repeating: "ü.", count: 200),
        ])
    func `a host that IDNA does not allow, or that maps to a delimiter, has no ASCII form`(host: String) {
        expectNil(InternationalHost.ascii(host))
    }

    // FoundationEssentials alone writes https://bücher.example as https://b%C3%BCcher.example.

    @Test(
        arguments: [
            ("https://b%C3%BCcher.example/a%20b?c=%C3%BC#d", "https://xn--bcher-kva.example/a%20b?c=%C3%BC#d"),
            ("http://u:p@%E4%BE%8B%E3%81%88.example:8080/", "http://u:p@xn--r8jz45g.example:8080/"),
            ("https://bücher.example/", "https://xn--bcher-kva.example/"),
            ("//b%C3%BCcher.example/x", "https://xn--bcher-kva.example/x"),
            ("https://a%2Fb.example/%C3%BC", nil), ("http://evil.example%EF%BC%8F.good.example/", nil),
            ("http://b%C3.example/", nil), ("http://%FF.example/", nil),
        ] as [(String, String?)])
    func `a percent-encoded non-ASCII host becomes its ASCII form`(text: String, expected: String?) throws {
        let base = try #require(URL(string: "https://base.example/"))
        expectEqual((try? TransferRequest(urlString: text, relativeTo: base))?.url.absoluteString, expected)
    }

    @Test func `a request converts the host of any URL to ASCII`() throws {
        let url = try #require(URL(string: "https://b%C3%BCcher.example/"))
        var request = TransferRequest(url: url)
        expectEqual(request.url.absoluteString, "https://xn--bcher-kva.example/")
        request.url = try #require(URL(string: "https://%C3%BC.example/"))
        expectEqual(request.url.absoluteString, "https://xn--tda.example/")
    }
}
