import Expectations
import Foundation
import HTTPSession
import HTTPTypes
import Pacing
import Testing

@Suite struct ResponseHeadTests {
    private func parsed(_ text: String) -> ResponseHead? { ResponseHead(bytes: Array(text.utf8)) }

    @Test func `a head has status, reason and fields in order`() throws {
        let head = try #require(parsed("HTTP/1.1 200 All right\r\nA: 1\r\nb:2 \r\nA:\t3\r\nEmpty:\r\n\r\n"))
        expectEqual(head.statusCode, 200)
        expectEqual(head.reasonPhrase, "All right")
        expectEqual(head.values(of: "a"), ["1", "3"])
        expectEqual(head.firstValue(of: "b"), "2")
        expectEqual(head.firstValue(of: "empty"), "")
        expectNil(head.firstValue(of: "c"))
        expectEqual(head.headerFields.map { "\($0.name.rawName)=\($0.value)" }, ["A=1", "b=2", "A=3", "Empty="])
        expectEqual(head.httpResponse.status, .init(code: 200, reasonPhrase: "All right"))
    }

    @Test func `an HTTP/2 head has no reason, and lines may end in LF alone`() throws {
        try expectEqual(#require(parsed("HTTP/2 404 \r\n\r\n")).reasonPhrase, "")
        try expectEqual(#require(parsed("HTTP/2 404\r\n\r\n")).reasonPhrase, "")
        let bare = try #require(parsed("HTTP/1.0 301 Moved\nLocation: /x\n\n"))
        expectEqual(bare.reasonPhrase, "Moved")
        expectEqual(bare.firstValue(of: "location"), "/x")
    }

    @Test(arguments: [
        "", "HTTP/1.1", "HTTP/1.1 ", "HTTP/1.1 20", "HTTP/1.1 2x0 OK", "HTTP/1.1  200", "SSH-2.0-x", "HTTP/1.1 -20 OK",
    ])
    func `a head without a status of three digits is refused`(_ text: String) { expectNil(parsed(text)) }

    @Test func `invalid field lines are left out`() throws {
        let head = try #require(parsed("HTTP/1.1 200 OK\r\nno colon\r\n: no name\r\nbad name: x\r\n folded\r\nGood: y\r\n\r\n"))
        expectEqual(head.headerFields.map(\.name.rawName), ["Good"])
    }

    @Test func `a media type has no parameters`() throws {
        try expectEqual(
            #require(parsed("HTTP/1.1 200 OK\r\nContent-Type: Text/HTML ; charset=x\r\n\r\n")).mediaType?.essence,
            "text/html")
        try expectNil(#require(parsed("HTTP/1.1 200 OK\r\n\r\n")).mediaType)
    }

    @Test func `a head is made of an HTTPResponse and gives it back`() {
        var response = HTTPResponse(status: .init(code: 404, reasonPhrase: "Not Found"))
        response.headerFields[.contentType] = "text/html; charset=utf-8"
        response.headerFields.append(HTTPField(name: .setCookie, value: "a=1"))
        response.headerFields.append(HTTPField(name: .setCookie, value: "b=2"))
        let head = ResponseHead(response)
        expectEqual(head.statusCode, 404)
        expectEqual(head.reasonPhrase, "Not Found")
        expectEqual(head.httpResponse, response)
        expectEqual(head.mediaType?.parameters, ["charset": "utf-8"])
    }

    @Test func `bytes beyond ASCII are read as UTF-8 or repaired`() throws {
        let bytes =
            Array("HTTP/1.1 200 ".utf8) + [0xC3, 0xBC, 0xFF] + Array("\r\nX: ".utf8) + [0xC3, 0xA4] + Array("\r\nY: ".utf8) + [
                0x80, 0x0D, 0x0A,
            ]
        let head = try #require(ResponseHead(bytes: bytes))
        expectEqual(head.reasonPhrase, "ü\u{FFFD}")
        expectEqual(head.firstValue(of: "x"), "ä")
        expectEqual(head.firstValue(of: "y"), "\u{FFFD}")
        _ = head.httpResponse
    }

    @Test(arguments: ["000", "099", "199", "599", "999"]) func `every status of three digits is valid in a response`(
        _ code: String
    )
        throws
    {
        try expectEqual(#require(parsed("HTTP/1.1 \(code) X\r\n\r\n")).httpResponse.status.code, Int(code))
    }

    @Test func `at random, every head can be read`() {
        let seed = UInt64.random(in: 0 ... .max)
        var generator = SplitMix64(seed: seed)
        let fields: [(StaticString, HTTPField.Name)] = [("a", .init("a")!), ("ab", .init("ab")!), ("z9", .init("z9")!)]
        let alphabet = Array("HTP/1.0 29:\r\n\t abZ=;,\"".utf8) + [0, 0x7F, 0x80, 0xC3, 0xFF]
        for _ in 0..<20_000 {
            let tail = (0..<Int.random(in: 0...60, using: &generator)).map { _ in alphabet.randomElement(using: &generator) ?? 0 }
            guard let head = ResponseHead(bytes: Array("HTTP/1.1 200".utf8) + tail) else { continue }
            expectEqual(head.statusCode, 200, "seed \(seed)")
            #expect(head.httpResponse.headerFields.count <= tail.count, "seed \(seed)")
            _ = (head.reasonPhrase, head.mediaType)
            for (name, field) in fields {
                let count = head.headerFields[values: field].count
                #expect(head.values(of: name).count == count && head.has(name) == (count > 0), "seed \(seed)")
            }
        }
    }
}
