import Expectations
import Testing
import Wire

@testable import Reachability

/// Servers that send without an end.
@Suite struct HTTPLimitTests {
    private static let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    /// Feeds a head, then one block up to `bytes` bytes, and returns the exchange.
    private func fed(_ head: String, block: String, bytes: Int) -> HTTPExchange {
        var exchange = HTTPExchange(method: "GET")
        exchange.receive(Array(head.utf8))
        let block = Array(block.utf8)
        for _ in 0..<bytes / block.count { exchange.receive(block) }
        return exchange
    }

    @Test(
        .skippedByThreadSanitizer,
        arguments: [
            ("HTTP/1.1 200 OK\r\n", "A: b\r\n", HTTPLimit.fields),
            ("HTTP/1.1 200 OK\r\n", String(repeating: "a", count: 1 << 16), .head),
            ("HTTP/1.1 200 OK\r\nA: b", String(repeating: " c\r\n", count: 1 << 14), .head),
            ("HTTP/1.1 200 ", String(repeating: "OK", count: 1 << 15), .head),
            ("", "HTTP/1.1 100 Continue\r\n\r\n", .interimResponses),
            ("", "HTTP/1.1 100 C\r\nA: \(String(repeating: "a", count: 8000))\r\n\r\n", .head),
            ("HTTP/1.1 200 OK\r\n\r\n", String(repeating: "body", count: 1 << 14), .body),
            (chunked, "1000\r\n" + String(repeating: "b", count: 4096) + "\r\n", .body),
            (chunked + "7FFFFFFFFFFFFFF\r\n", String(repeating: "body", count: 1 << 14), .body),
            (chunked, "1;" + String(repeating: "e", count: 2000) + "\r\nb\r\n", .chunkFraming),
            (chunked, "1\r\nb\r\n", .chunkFraming),
            (chunked + "1;", String(repeating: "e", count: 8000), .chunkLine),
            (chunked, String(repeating: "0", count: 8000), .chunkLine),
            (chunked + "0\r\n", "A: b\r\n", .trailers), (chunked + "0\r\n", String(repeating: "a", count: 8000), .trailers),
        ])
    func `a gigabyte ends at the limit that it exceeds`(head: String, block: String, limit: HTTPLimit) {
        // The exchange ignores what follows its end, so a gigabyte costs no more than its first bytes.
        let exchange = fed(head, block: block, bytes: 1 << 30 / (block.utf8.count < 100 ? 512 : 1))
        expectEqual(exchange.progress, .failed(.limit))
        #expect(exchange.limit == limit && exchange.facts.limit == limit && exchange.facts.failure == .limit)
        #expect(exchange.body.count <= HTTPExchange.keptBytes)
        #expect(exchange.receivedBytes <= HTTPLimit.body.value + HTTPLimit.chunkFraming.value + HTTPLimit.head.value)
    }

    @Test func `a head of exactly the limit is accepted`() {
        let end = "\r\nContent-Length: 0\r\n\r\n"
        let line = "HTTP/1.1 200 OK\r\nA: "
        for excess in 0...1 {
            let count = HTTPLimit.head.value - line.utf8.count - end.utf8.count + excess
            let exchange = fed(line + String(repeating: "a", count: count) + end, block: "x", bytes: 0)
            expectEqual(exchange.progress, (excess == 0 ? .complete : .failed(.limit)))
        }
    }

    @Test func `as many fields as the limit are accepted`() {
        let fields = String(repeating: "A: b\r\n", count: HTTPLimit.fields.value - 1)
        expectEqual(fed("HTTP/1.1 200 OK\r\n\(fields)Content-Length: 0\r\n\r\n", block: "x", bytes: 0).progress, .complete)
        expectEqual(fed("HTTP/1.1 200 OK\r\n\(fields)A: b\r\nContent-Length: 0\r\n\r\n", block: "x", bytes: 0).limit, .fields)
    }

    @Test func `a body of exactly the limit is complete`() {
        var exchange = fed("HTTP/1.1 200 OK\r\n\r\n", block: String(repeating: "b", count: 1 << 16), bytes: HTTPLimit.body.value)
        expectEqual(exchange.progress, .receivingBody)
        exchange.endOfInput()
        #expect(exchange.progress == .complete && exchange.bodyBytes == HTTPLimit.body.value)
        expectEqual(exchange.body.count, HTTPExchange.keptBytes)
    }

    @Test func `a long body of known length is read up to its limit, without a failure`() {
        let block = String(repeating: "b", count: 1 << 16)
        let exchange = fed("HTTP/1.1 200 OK\r\nContent-Length: 9000000000\r\n\r\n", block: block, bytes: 1 << 30)
        #expect(exchange.progress == .complete && exchange.bodyBytes == HTTPLimit.knownBody.value)
        #expect(exchange.facts.limit == .knownBody && exchange.facts.failure == nil)
        let short = fed("HTTP/1.1 200 OK\r\nContent-Length: 65536\r\n\r\n", block: block, bytes: 1 << 30)
        #expect(short.progress == .complete && short.facts.limit == nil)
    }

    @Test func `texts of the facts are short and have no control characters`() {
        let long = String(repeating: "ä", count: 5000)
        let facts = fed(
            "HTTP/1.1 302 \u{1B}[31m\r\nLocation: /\(long)\r\nServer: \u{9B}\u{202E}\r\nContent-Type: \(long)\r\n\r\n",
            block: "x",
            bytes: 0
        ).facts
        #expect(facts.reason == "\u{FFFD}[31m" && facts.server == "\u{FFFD}\u{FFFD}")
        #expect(facts.location?.count == ExternalText.valueLength + 1 && facts.location?.last == "…")
        #expect(facts.contentType?.unicodeScalars.contains("\u{FFFD}") == false)
    }
}
