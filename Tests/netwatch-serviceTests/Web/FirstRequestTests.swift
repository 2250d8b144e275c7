import Expectations
import Testing

@testable import netwatch_service

/// When the first bytes of a connection reach the parser.
@Suite struct FirstRequestTests {
    @Test(arguments: [
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET / HTTP/1.0\n\n", "\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        "POST /-/reload HTTP/1.1\r\nHost: localhost\r\n\r\nbody", "GET / HTTP/1.1\r\n\r\nGET /",
    ])
    func `a complete head is due, and no part of it is`(text: String) {
        let bytes = Array(text.utf8)
        #expect(FirstRequest.isDue(bytes))
        let end = bytes.indices.first { FirstRequest.isDue(bytes[..<($0 + 1)]) }.map { $0 + 1 } ?? 0
        // The last byte ends an empty line.
        expectEqual(bytes[..<end].filter { $0 != UInt8(ascii: "\r") }.suffix(2), Array("\n\n".utf8)[...], "\(bytes[..<end])")
    }

    @Test(arguments: ["\u{16}\u{3}\u{1}", "get / HTTP/1.1", "GET /\r\n", "GET / HTPP/1.1\r\n", " GET / HTTP/1.1\r\n"])
    func `what is no request line is due at once`(text: String) { #expect(FirstRequest.isDue(Array(text.utf8))) }

    @Test(arguments: ["", "\r\n\r\n", "G", "GET / HT", "GET / HTTP/1.1\r\nHost: localhost\r\n"])
    func `an unfinished head is not due`(text: String) { #expect(!FirstRequest.isDue(Array(text.utf8))) }

    @Test func `a long head is due before its end`() {
        let head = Array("GET / HTTP/1.1\r\nX: ".utf8) + [UInt8](repeating: UInt8(ascii: "x"), count: FirstRequest.limit)
        #expect(!FirstRequest.isDue(head.prefix(FirstRequest.limit - 1)))
        #expect(FirstRequest.isDue(head.prefix(FirstRequest.limit)))
    }
}
