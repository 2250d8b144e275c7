import Expectations
import Foundation
import HTTPSession
import Testing

@Suite struct OriginTests {
    private func origin(_ text: String) -> Origin? { URL(string: text).flatMap { Origin($0) } }

    @Test func `an origin ignores case, default ports and users`() {
        expectEqual(origin("HTTP://Example.COM/a"), origin("http://user:word@example.com:80/b?c#d"))
        expectEqual(origin("https://example.com"), origin("https://example.com:443"))
        #expect(origin("http://example.com") != origin("https://example.com"))
        #expect(origin("http://example.com") != origin("http://example.com:8080"))
        #expect(origin("http://example.com") != origin("http://www.example.com"))
        expectEqual(origin("http://[::1]:80/"), origin("http://[::1]/"))
    }

    @Test func `a non-ASCII host is the same host in each of its forms`() {
        let ascii = origin("https://xn--bcher-kva.example")
        expectEqual(origin("https://b%C3%BCcher.example/"), ascii)
        expectEqual(origin("https://bücher.example/"), ascii)
    }

    @Test(arguments: ["ftp://a/", "file:///a", "/a", "http:///a", "http:", "a", "mailto:a@b", "//a/b"])
    func `a URL that is not http has no origin`(_ text: String) { expectNil(origin(text)) }

    @Test func `an origin is written as in a URL`() {
        expectEqual(origin("http://[2001:DB8::1]:81/")?.description, "http://[2001:db8::1]:81")
        expectEqual(origin("https://A.example:443/x")?.description, "https://a.example")
        expectEqual(origin("http://a.example:443/x")?.description, "http://a.example:443")
    }

    @Test func `an address needs no lookup`() {
        for text in ["http://127.0.0.1", "http://[::1]", "http://10.0.0.255:8080"] {
            expectEqual(origin(text)?.isAddress, true, "\(text)")
        }
        for text in ["http://localhost", "http://1.2.3.4.example", "http://a"] {
            expectEqual(origin(text)?.isAddress, false, "\(text)")
        }
    }

    @Test func `loopback names and addresses are this machine`() {
        for text in [
            "http://127.0.0.1", "http://127.9.9.9", "http://[::1]", "http://localhost", "http://LOCALHOST", "http://a.localhost",
        ] {
            expectEqual(origin(text)?.isLoopback, true, "\(text)")
        }
        for text in ["http://127.example", "http://128.0.0.1", "http://localhost.example", "http://127.0.0.1.example"] {
            expectEqual(origin(text)?.isLoopback, false, "\(text)")
        }
    }
}
