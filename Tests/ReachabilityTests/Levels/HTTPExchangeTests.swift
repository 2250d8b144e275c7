import Pacing
import Testing

@testable import Reachability

/// The parser of responses, by RFC 9112.
@Suite struct HTTPExchangeTests {
    /// Returns the facts of a response that arrives in pieces of this size, and then ends.
    private func facts(_ text: String, method: String = "GET", piece: Int = .max, isClosed: Bool = true) -> HTTPResponseFacts {
        facts(Array(text.utf8), method: method, pieces: { _ in piece }, isClosed: isClosed)
    }

    private func facts(
        _ bytes: [UInt8], method: String = "GET", pieces: (Int) -> Int, isClosed: Bool = true
    ) -> HTTPResponseFacts {
        var exchange = HTTPExchange(method: method)
        var rest = bytes[...]
        while !rest.isEmpty, !exchange.hasEnded {
            let piece = rest.prefix(max(1, min(pieces(rest.count), rest.count)))
            piece.withUnsafeBytes { exchange.receive($0) }
            rest = rest.dropFirst(piece.count)
        }
        if isClosed { exchange.endOfInput() }
        return exchange.facts
    }

    private static let responses = [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.0 200\r\n\r\nuntil the end",
        "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: 1\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 301 Moved\r\nLocation: /new\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nContent-Length: 4, 4\r\nContent-Length: 4\r\n\r\nfour",
    ]

    @Test(arguments: responses) func `a response is the same in pieces of any size`(text: String) {
        let complete = facts(text)
        #expect(complete.isComplete && complete.violation == nil, "\(complete)")
        for size in [1, 2, 3, 7] { #expect(facts(text, piece: size) == complete) }
        let seed = UInt64.random(in: 0...UInt64.max)
        var random = SplitMix64(seed: seed)
        for _ in 0..<50 {
            let split = facts(Array(text.utf8), pieces: { Int.random(in: 1...max($0, 1), using: &random) })
            #expect(split == complete, "seed \(seed)")
        }
    }

    @Test(arguments: responses) func `a response that ends at any byte is incomplete, or complete by its end`(text: String) {
        let bytes = Array(text.utf8)
        for count in bytes.indices {
            let cut = facts(Array(bytes[..<count]), pieces: { _ in 3 })
            // A body without a length ends with the connection.
            #expect(cut.isComplete ? cut.status == 200 && text.hasPrefix("HTTP/1.0") : cut.violation != nil, "\(count) bytes")
        }
    }

    @Test func `the status, the version, the location and the body are read`() {
        let moved = facts(Self.responses[4])
        #expect((moved.status, moved.version, moved.location) == (301, "1.1", "/new"))
        #expect(facts(Self.responses[3]).bodyBytes == 11)
        #expect(facts("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", method: "HEAD").isComplete)
        #expect(facts("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n").violation?.detail == "closes the connection before the end of its response")
    }

    @Test(arguments: [
        ("", "closes the connection without an answer"), ("SSH-2.0-OpenSSH_9.2\r\n", "does not speak HTTP: 'S'"),
        ("HTT", "closes the connection before the end of its response"), ("220 mail ESMTP\r\n", "does not speak HTTP: '2'"),
        ("\u{0}\u{0}\u{12}\u{4}\u{0}", "does not speak HTTP: '.'"), ("HTTP/2 200\r\n\r\n", "sends a status line that is not HTTP/1.1: 'HTTP/2 200'"),
        ("HTTP/1.1 20 OK\r\n\r\n", "sends a status line that is not HTTP/1.1: 'HTTP/1.1 20 OK'"),
        ("HTTP/1.1 099 OK\r\n\r\n", "sends a status line"), ("HTTP/1.1\r\n\r\n", "sends a status line"),
        ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "sends a header field that is not valid: 'no colon'"),
        ("HTTP/1.1 200 OK\r\nna me: x\r\n\r\n", "sends a header field that is not valid"),
        ("HTTP/1.1 200 OK\r\n: x\r\n\r\n", "sends a header field that is not valid"),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "sends a Content-Length that is not valid: '-1'"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", "sends a Content-Length that is not valid"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "sends a Content-Length that is not valid"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", "sends a chunk size that is not valid"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n", "sends a chunk size that is not valid"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", "sends a chunk that is longer than its size"),
    ])
    func `a response that violates HTTP is named`(text: String, detail: String) {
        let violation = facts(text, piece: 1).violation
        #expect(violation?.detail.hasPrefix(detail) == true, "\(String(describing: violation))")
    }

    @Test func `a server that speaks HTTP/2 only is named`() {
        // The first bytes of a SETTINGS frame.
        let frame: [UInt8] = [0, 0, 18, 4, 0, 0, 0, 0, 0]
        #expect(facts(frame, pieces: { $0 }).violation?.detail == "speaks HTTP/2 only, and the probe speaks HTTP/1.1")
    }

    @Test func `endless fields, interim responses and bodies end at a limit, which is named`() {
        let block = [UInt8](repeating: UInt8(ascii: "x"), count: 65_536)
        func limit(_ start: String, _ block: [UInt8]) -> String? {
            var exchange = HTTPExchange(method: "GET")
            Array(start.utf8).withUnsafeBytes { exchange.receive($0) }
            for _ in 0..<16_384 where !exchange.hasEnded { block.withUnsafeBytes { exchange.receive($0) } }
            #expect(exchange.body.count <= HTTPExchange.keptBody)
            return exchange.facts.violation?.limit
        }
        #expect(limit("HTTP/1.1 200 OK\r\nX: ", block) == "65536 bytes of header")
        #expect(limit("HTTP/1.1 200 OK\r\n", Array("X: y\r\n".utf8)) == "65536 bytes of header")
        #expect(limit("", Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) == "10 responses")
        #expect(limit("HTTP/1.1 200 OK\r\n\r\n", block) == "10485760 bytes of body")
        let chunk = Array("10000\r\n".utf8) + block + Array("\r\n".utf8)
        #expect(limit("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunk) == "10485760 bytes of body")
    }

    @Test func `of a long body with a length, the first part is enough`() {
        var exchange = HTTPExchange(method: "GET")
        Array("HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n".utf8).withUnsafeBytes { exchange.receive($0) }
        let block = [UInt8](repeating: 0, count: 1 << 20)
        for _ in 0..<100 where !exchange.hasEnded { block.withUnsafeBytes { exchange.receive($0) } }
        #expect(exchange.facts.isComplete && exchange.facts.bodyBytes == 10 << 20)
    }

    @Test func `random bytes never trap, and end with a violation or wait`() {
        let seed = UInt64.random(in: 0...UInt64.max)
        var random = SplitMix64(seed: seed)
        let alphabet = Array("HTTP/1.1 200 OK\r\n: ;0aA\u{0}Transfer-Encoding: chunked\r\nContent-Length".utf8)
        for _ in 0..<2_000 {
            let start = Bool.random(using: &random) ? "HTTP/1.1 200 OK\r\n" : ""
            let bytes = Array(start.utf8) + (0..<Int.random(in: 0...200, using: &random)).map { _ in
                alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
            }
            let facts = facts(bytes, pieces: { Int.random(in: 1...max($0, 1), using: &random) })
            #expect(facts.isComplete || facts.violation != nil, "seed \(seed): \(bytes)")
        }
    }
}
