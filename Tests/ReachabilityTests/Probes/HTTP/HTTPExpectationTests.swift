import Expectations
import Expressions
import Testing

@testable import Reachability

@Suite struct HTTPExpectationTests {
    private func exchange(_ text: String, isEnded: Bool = true) -> HTTPExchange {
        var exchange = HTTPExchange(method: "GET")
        exchange.receive(Array(text.utf8))
        if isEnded { exchange.endOfInput() }
        return exchange
    }

    @Test(arguments: [
        ("200-299,401", [200, 250, 299, 401], [199, 300, 400, 402]), (" 200 , 204-204", [200, 204], [201, 203, 205]),
        ("100-599", [100, 599], [600, 99]),
    ])
    func `accepted statuses are codes and ranges`(text: String, accepted: [Int], refused: [Int]) throws {
        let ranges = try StatusRanges(text)
        #expect(accepted.allSatisfy(ranges.contains) && !refused.contains(where: ranges.contains))
    }

    @Test(arguments: [
        "", "abc", "99", "600", "200-", "-200", "299-200", "200-250-299", "200,,201", "2e2", "+200", "٢٠٠", "200;201",
    ])
    func `text that is no list of statuses is refused with its reason`(text: String) {
        let error = #expect(throws: StatusRanges.ParseError.self) { try StatusRanges(text) }
        #expect(error?.description.contains("\n") == false && error?.description.isEmpty == false)
    }

    @Test func `a list of statuses has a limit`() {
        #expect(throws: StatusRanges.ParseError.self) { try StatusRanges(String(repeating: "200,", count: 64) + "200") }
    }

    @Test func `the default accepts 200 to 299 of any version`() {
        let expectation = HTTPExpectation()
        #expect(!expectation.isDeclared)
        expectNil(expectation.mismatch(of: exchange("HTTP/1.0 204 No Content\r\n\r\n")))
        expectEqual(
            expectation.mismatch(of: exchange("HTTP/1.1 503 Busy\r\n\r\n", isEnded: false)),
            HTTPMismatch(.status, expectation: "200-299"))
        expectNil(expectation.mismatch(of: exchange("HTTP/1.1 503 Busy\r\n", isEnded: false)))
    }

    @Test func `the first expectation that is not met is named`() throws {
        var expectation = HTTPExpectation(
            statuses: try StatusRanges("200"), versions: ["1.1"], body: try Expression("fine"),
            excludedBody: try Expression("(?i)error"),
            fields: [
                .init("X-Node", try Expression("^web[0-9]+$")), .init("Server", try Expression("old"), isExcluded: true),
            ])
        #expect(expectation.isDeclared)
        func mismatch(_ head: String, _ body: String) -> HTTPMismatch? {
            expectation.mismatch(of: exchange("HTTP/\(head)\r\n\r\n\(body)"))
        }
        let fields = "\r\nX-Node: db1\r\nx-node: web1"
        expectNil(mismatch("1.1 200 OK\(fields)", "all fine"))
        expectEqual(mismatch("1.1 201 OK\(fields)", "all fine"), HTTPMismatch(.status, expectation: "200"))
        expectEqual(mismatch("1.0 200 OK\(fields)", "all fine"), HTTPMismatch(.version, expectation: "1.1"))
        expectEqual(mismatch("1.1 200 OK", "all fine"), HTTPMismatch(.header, expectation: "^web[0-9]+$", field: "x-node"))
        expectEqual(
            mismatch("1.1 200 OK\(fields)\r\nSERVER: very old", "all fine"),
            HTTPMismatch(.excludedHeader, expectation: "old", field: "server"))
        expectEqual(mismatch("1.1 200 OK\(fields)", "bad"), HTTPMismatch(.body, expectation: "fine"))
        expectEqual(mismatch("1.1 200 OK\(fields)", "fine, no Error"), HTTPMismatch(.excludedBody, expectation: "(?i)error"))
        expectation = HTTPExpectation(body: try Expression(String(repeating: "long", count: 500)))
        expectEqual(mismatch("1.1 200 OK", "")?.expectation.count, ExternalText.valueLength + 1)
    }

    @Test(
        arguments: [
            ("/status", .equals("ok"), nil), ("/status", .differs("ok"), "ok"), ("/n", .equals("3"), nil),
            ("/n", .equals("3.0"), nil),
            ("/n", .above(2.5), nil), ("/n", .above(3), "3"), ("/n", .below(4), nil), ("/status", .above(1), "ok"),
            ("/checks/1/up", .equals("true"), nil), ("/checks/2/up", .equals("true"), "nothing"),
            ("/checks/01", .exists(true), "nothing"),
            ("/checks", .equals("x"), "an object or an array"), ("/checks", .exists(true), nil), ("/none", .exists(false), nil),
            ("/nothing", .equals("null"), nil), ("/nothing/x", .exists(true), "nothing"), ("/a~1b/~0c", .equals("1.5e0"), nil),
            ("/", .equals("empty"), nil), ("", .exists(true), nil), ("/big", .equals("9007199254740993"), nil),
        ] as [(String, JSONExpectation.Comparison, String?)])
    func `a value of a JSON text is compared as it is written`(
        pointer: String, comparison: JSONExpectation.Comparison, found: String?
    )
        throws
    {
        let text = """
            {"status": "ok", "n": 3, "checks": [{"up": false}, {"up": true}], "nothing": null, "a/b": {"~c": 1.5}, "": "empty",
            "big": 9007199254740993, "e\u{301}": "e"}
            """
        let expectation = HTTPExpectation(json: [try #require(JSONExpectation(pointer, comparison))])
        #expect(expectation.isDeclared)
        let mismatch = expectation.mismatch(of: exchange("HTTP/1.1 200 OK\r\n\r\n\(text)"))
        expectEqual(mismatch?.found, found)
        expectEqual(mismatch?.kind, found == nil ? nil : .json)
    }

    @Test(
        arguments: [
            "", "{", "{\"a\": 1} x", "nul", "{\"a\": \"\\ud800\"", String(repeating: "[", count: 60_000), "\u{0}", "{'a': 1}",
        ])
    func `what is no JSON text is said to be none`(text: String) throws {
        let expectation = HTTPExpectation(json: [try #require(JSONExpectation("/a", .exists(true)))])
        expectEqual(expectation.mismatch(of: exchange("HTTP/1.1 200 OK\r\n\r\n\(text)"))?.kind, .notJSON)
    }

    @Test func `a pointer begins with a slash, and has no other escapes than two`() {
        for pointer in ["a", "/~", "/~2", "/a~"] { expectNil(JSONExpectation(pointer, .exists(true))) }
    }

    @Test func `the size of a body is that of the bytes received`() {
        let expectation = HTTPExpectation(sizes: 3...5)
        for (body, limit) in [("ab", "at least 3 bytes"), ("abc", nil), ("abcde", nil), ("abcdef", "at most 5 bytes")] {
            let mismatch = expectation.mismatch(of: exchange("HTTP/1.1 200 OK\r\n\r\n\(body)"))
            expectEqual(mismatch, limit.map { HTTPMismatch(.size, expectation: $0) })
        }
    }

    /// A response with a body of stored blocks (RFC 1951 section 3.2.4) in the zlib format, which is longer than the text.
    private func deflated(_ text: String, isCut: Bool = false) -> HTTPExchange {
        var content: [UInt8] = [0x78, 0x01]
        let bytes = Array(text.utf8)
        for start in stride(from: 0, to: bytes.count, by: 1_000) {
            let block = bytes[start..<min(start + 1_000, bytes.count)]
            let (low, high) = (UInt8(block.count & 0xFF), UInt8(block.count >> 8))
            content += [start + 1_000 < bytes.count ? 0 : 1, low, high, ~low, ~high] + block
        }
        let sums = bytes.reduce((1, 0)) { sums, byte in
            let first = (sums.0 + Int(byte)) % 65_521
            return (first, (sums.1 + first) % 65_521)
        }
        content += [sums.1 >> 8, sums.1, sums.0 >> 8, sums.0].map { UInt8($0 & 0xFF) }
        if isCut { content.removeLast(5) }
        var exchange = exchange("HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n\r\n", isEnded: false)
        exchange.receive(content)
        exchange.endOfInput()
        return exchange
    }

    @Test func `an encoded body is compared in its first 64 KiB after decoding, however long it is`() throws {
        let expectation = HTTPExpectation(body: try Expression("end$"))
        expectNil(expectation.mismatch(of: deflated("the end")))
        expectEqual(
            expectation.mismatch(of: deflated("the end", isCut: true)),
            HTTPMismatch(.truncatedCoding, expectation: "end$", coding: "deflate"))
        let most = String(repeating: "x", count: 65_533) + "end"
        expectNil(expectation.mismatch(of: deflated(most)))
        expectNil(expectation.mismatch(of: deflated(most + String(repeating: "y", count: 300_000))))
        expectEqual(expectation.mismatch(of: deflated("x" + most)), HTTPMismatch(.body, expectation: "end$"))
        expectEqual(deflated(most + most + most).body.count, HTTPExchange.keptEncodedBytes)
        var discarding = HTTPExchange(method: "GET", keepsBody: false)
        discarding.receive(Array("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nabc".utf8))
        expectEqual(discarding.body, [])
    }

    @Test func `a body is compared only if it is complete, in its first 64 KiB`() throws {
        let expectation = HTTPExpectation(body: try Expression("end$"))
        let head = "HTTP/1.1 200 OK\r\n\r\n"
        expectNil(expectation.mismatch(of: exchange(head + "start", isEnded: false)))
        expectNil(expectation.mismatch(of: exchange(head + String(repeating: "x", count: 65_533) + "end")))
        #expect(expectation.mismatch(of: exchange(head + String(repeating: "x", count: 65_534) + "end")) != nil)
    }

    @Test func `a declared default is declared`() throws {
        #expect(HTTPExpectation(statuses: try StatusRanges("200-299")).isDeclared)
    }
}
