import Expectations
import Testing
import Wire

@testable import Reachability

@Suite struct HTTPExchangeTests {
    @Test func `a response with Content-Length is complete with its last byte`() {
        var exchange = HTTPExchange(method: "GET")
        exchange.receive(Array("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nServer: a\r\n\r\nhell".utf8))
        expectEqual(exchange.progress, .receivingBody)
        exchange.receive(Array("o and more".utf8))
        expectEqual(exchange.progress, .complete)
        expectEqual(exchange.body, Array("hello".utf8))
        expectEqual(
            exchange.facts,
            HTTPResponseFacts(
                status: 200, version: "1.1", reason: "OK", server: "a", receivedBytes: 54, bodyBytes: 5))
        exchange.endOfInput()
        expectEqual(exchange.progress, .complete)
    }

    @Test func `a response without a length ends with the connection`() {
        let exchange = received("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nhello")
        expectEqual(exchange.progress, .complete)
        #expect(exchange.facts.version == "1.0" && exchange.facts.contentType == "text/plain" && exchange.bodyBytes == 5)
        expectEqual(received("HTTP/1.0 200 OK\r\n\r\nhello", end: false).progress, .receivingBody)
    }

    @Test(arguments: [
        ("HEAD", "200 OK\r\nContent-Length: 5"), ("GET", "204 No Content"), ("GET", "304 Not Modified\r\nContent-Length: 5"),
        ("HEAD", "200 OK\r\nTransfer-Encoding: chunked"), ("GET", "200 OK\r\nContent-Length: 0"),
        ("HEAD", "200 OK\r\nContent-Length: 1, 2"),
    ])
    func `a response without a body is complete with its head`(method: String, head: String) {
        let exchange = received("HTTP/1.1 \(head)\r\n\r\n", to: method, end: false)
        #expect(exchange.progress == .complete && exchange.bodyBytes == 0)
    }

    @Test func `a chunked body is decoded, with its extensions and trailers ignored`() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"
        let exchange = received(
            head + "5;name=\"value\"\r\nhello\r\n01 \r\n,\r\nA\r\n 123456789\r\n0\r\nDigest: a\r\nB: c\r\n\r\n", end: false)
        expectEqual(exchange.progress, .complete)
        expectEqual(String(decoding: exchange.body, as: UTF8.self), "hello, 123456789")
        expectEqual(received(head + "0\r\n\r\n", end: false).progress, .complete)
        expectEqual(received(head + "3\nabc\n0\n\n", end: false).progress, .complete)
        // The trailer section may be cut off: the body is complete.
        expectEqual(received(head + "3\r\nabc\r\n0\r\nA: b\r\n").progress, .complete)
    }

    @Test(arguments: [
        ("gzip, chunked", "3\r\nabc\r\n0\r\n\r\n"), ("chunked", "3\r\nabc\r\n0\r\n\r\n"), ("identity", "abc"), ("gzip", "abc"),
        ("CHUNKED;q=1", "3\r\nabc\r\n0\r\n\r\n"), ("chunked, gzip", "abc"),
    ])
    func `the last transfer coding decides about the end of the body`(coding: String, body: String) {
        for version in ["1.0", "1.1"] {
            let exchange = received("HTTP/\(version) 200 OK\r\nTransfer-Encoding: \(coding)\r\n\r\n\(body)")
            expectEqual(exchange.progress, .complete)
            expectEqual(String(decoding: exchange.body, as: UTF8.self), "abc")
        }
    }

    @Test func `interim responses are skipped up to their limit`() {
        let interim = "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"
        let final = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        let exchange = received(String(repeating: interim, count: 10) + final, end: false)
        #expect(exchange.progress == .complete && exchange.facts.status == 200)
        expectNil(exchange.head?.value(of: "link"))
        let endless = received(String(repeating: interim, count: 11) + final, end: false)
        #expect(endless.progress == .failed(.limit) && endless.limit == .interimResponses)
        expectEqual(received(interim).progress, .failed(.truncatedHead))
        expectEqual(received("HTTP/1.1 101 Switching Protocols\r\n\r\n").progress, .failed(.upgrade))
    }

    @Test(arguments: [
        "HTTP/1.1 200", "HTTP/1.1 200 ", "HTTP/1.1 200 Very  well\t", "HTTP/1.2 200 OK", "HTTP/1.1 200 \u{e9}",
        "HTTP/1.1 999 Odd",
    ])
    func `a status line is accepted as common clients do`(line: String) {
        expectEqual(received("\(line)\r\nContent-Length: 0\r\n\r\n", end: false).progress, .complete)
        expectEqual(received("\(line)\nContent-Length: 0\n\n", end: false).progress, .complete)
    }

    @Test(arguments: [
        ("HTTP/1.1  200 OK", HTTPResponseReader.Failure.statusLine), ("HTTP/1.1 20 OK", .statusLine),
        ("HTTP/1.1 2000 OK", .statusLine),
        ("HTTP/1.1 099 OK", .statusLine), ("HTTP/1.1 -20 OK", .statusLine), ("HTTP/1.1 2\u{0}0 OK", .statusLine),
        ("HTTP/1.1", .statusLine), ("HTTP/ 200", .statusLine), ("HTTP/2 200", .version), ("HTTP/3.0 200 OK", .version),
        ("HTTP/1.10 200 OK", .version), ("HTTP/0.9 200 OK", .version), ("http/1.1 200 OK", .notHTTP), ("HTTP", .notHTTP),
        ("", .notHTTP), ("ICY 200 OK", .notHTTP), ("SSH-2.0-OpenSSH_9.2p1", .notHTTP), ("220 mail ESMTP", .notHTTP),
    ])
    func `an invalid status line is named`(line: String, failure: HTTPResponseReader.Failure) {
        let exchange = received("\(line)\r\n\r\n", end: false)
        expectEqual(exchange.progress, .failed(failure))
        expectEqual(exchange.facts.excerpt, (line.isEmpty ? nil : line.replacing("\0", with: "\\x00")))
    }

    @Test func `field lines are parsed as common clients do`() throws {
        let head = try #require(
            received(
                "HTTP/1.1 204 No Content\r\nA:b\r\nA :  c d \t\r\nEmpty:\r\nFolded: one\r\n two\r\n\t three \r\n  \r\nX: a\u{e9}:b\n\r\n"
            ).head)
        func texts(_ name: String) -> [String] { head.values(of: name).map { String(decoding: $0, as: UTF8.self) } }
        expectEqual(texts("a"), ["b", "c d"])
        expectEqual(texts("empty"), [""])
        expectEqual(texts("folded"), ["one two three"])
        expectEqual(texts("x"), ["a\u{e9}:b"])
        #expect(texts("b") == [] && head.fieldCount == 5)
    }

    @Test(arguments: ["no colon", ": no name", " folded first", "a b: c", "a: b\u{0}c", "a: b\rc", "a\u{e9}: b", "a: b\r"])
    func `an invalid field line is named`(line: String) {
        let exchange = received("HTTP/1.1 200 OK\r\n\(line)\r\n\r\n", end: false)
        expectEqual(exchange.progress, .failed(.field))
        #expect(exchange.head == nil && exchange.facts.status == nil)
    }

    @Test(arguments: [
        ("5", true), ("5, 5", true), ("005", true), ("5\r\nContent-Length: 5", true), ("5\r\nContent-Length: 6", false),
        ("5, 6", false), ("-5", false), ("+5", false), ("", false), ("5,", false), ("5 5", false), ("0x5", false), ("5.0", false),
        ("99999999999999999999", false), ("\u{0665}", false),
    ])
    func `Content-Length has one number`(value: String, isValid: Bool) {
        let exchange = received("HTTP/1.1 200 OK\r\nContent-Length: \(value)\r\n\r\nhello", end: false)
        expectEqual(exchange.progress, (isValid ? .complete : .failed(.length)))
        expectEqual(exchange.facts.status, 200)
    }

    @Test func `two chunked codings are invalid`() {
        let exchange = received("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: Chunked\r\n\r\n")
        #expect(exchange.progress == .failed(.transferEncoding) && exchange.facts.excerpt == "chunked, Chunked")
    }

    @Test(arguments: [
        "\r\n", "g\r\n", "-5\r\n", "5 5\r\n", "0x5\r\n", ";a\r\n", "3\r\nabcd\r\n", "3\r\nabc\r\r\n", "3\r\nabc0\r\n",
        "1000000000000000\r\n", "ffffffffffffffffffffffff\r\n", "3\u{0}\r\n", " 3\r\n",
    ])
    func `an invalid chunk is named`(chunk: String) {
        let exchange = received("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(chunk)", end: false)
        expectEqual(exchange.progress, .failed(.chunk))
    }

    @Test func `a server of HTTP/2, TLS or another protocol is named by its first bytes`() {
        let settings: [UInt8] = [0, 0, 18, 4, 0, 0, 0, 0, 0] + [UInt8](repeating: 3, count: 18)
        expectEqual(received(bytes: settings, end: false).progress, .failed(.http2))
        expectEqual(received(bytes: [0, 0, 8, 7, 0, 0, 0, 0, 0], end: false).progress, .failed(.http2))
        expectEqual(received("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", end: false).progress, .failed(.http2))
        expectEqual(received(bytes: [21, 3, 1, 0, 2, 2, 70], end: false).progress, .failed(.tls))
        expectEqual(received(bytes: [0, 0, 18, 5, 0, 0, 0, 0, 0]).progress, .failed(.notHTTP))
        expectEqual(received(bytes: Array("SSH".utf8), end: false).progress, .awaitingHead)
        expectEqual(received(bytes: Array("SSH".utf8), end: false).facts.failure, .notHTTP)
        expectEqual(received(bytes: Array("SSH".utf8), end: false).facts.excerpt, "SSH")
        // The bytes have the escapes of C, as those of a server without TLS.
        expectEqual(
            received(bytes: Array("é\\\t\u{1B}[31m\u{202E}".utf8) + [0xFF]).facts.excerpt,
            "\\xc3\\xa9\\\\\\t\\x1b[31m\\xe2\\x80\\xae\\xff")
        expectEqual(received(bytes: [UInt8](repeating: 0x80, count: 64), end: false).progress, .failed(.notHTTP))
        expectNil(received(bytes: Array("HTT".utf8), end: false).facts.failure)
    }

    @Test(arguments: [
        ("", HTTPResponseReader.Failure.noResponse), ("HT", .truncatedHead), ("SSH", .notHTTP),
        ("HTTP/1.1 200 OK\r\nA: b\r\n", .truncatedHead),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", .truncatedBody),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", .truncatedBody),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", .truncatedBody),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc", .truncatedBody),
    ])
    func `a connection that ends too early is named`(text: String, failure: HTTPResponseReader.Failure) {
        expectEqual(received(text).progress, .failed(failure))
    }

    private func received(_ text: String, to method: String = "GET", end: Bool = true) -> HTTPExchange {
        received(bytes: Array(text.utf8), to: method, end: end)
    }

    private func received(bytes: [UInt8], to method: String = "GET", end: Bool = true) -> HTTPExchange {
        var exchange = HTTPExchange(method: method)
        exchange.receive(bytes)
        if end { exchange.endOfInput() }
        return exchange
    }
}
