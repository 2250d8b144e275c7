import Expectations
import Testing

@testable import netwatch_service

/// The pieces in which a client's bytes reach the parser.
@Suite struct RequestPieceTests {
    private func pieces(_ text: String) -> [String] {
        var bytes = Array(text.utf8)[...]
        var pieces: [String] = []
        while !bytes.isEmpty {
            let length = RequestPiece.length(of: bytes)
            pieces.append(String(decoding: bytes.prefix(length), as: UTF8.self))
            bytes = bytes.dropFirst(length)
        }
        return pieces
    }

    @Test(arguments: [
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET / HTTP/1.0\n\n", "HEAD /a HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\n\r\n",
    ])
    func `each pipelined request is a piece`(request: String) {
        expectEqual(pieces(String(repeating: request, count: 5)), Array(repeating: request, count: 5))
    }

    @Test func `empty lines before a request belong to its piece`() {
        expectEqual(pieces("\r\n\r\nGET / HTTP/1.1\r\n\r\nGET /b"), ["\r\n\r\nGET / HTTP/1.1\r\n\r\n", "GET /b"])
        // Many of them are few pieces.
        #expect(pieces(String(repeating: "\n", count: 1_600)).count <= 100)
    }

    @Test func `long content is divided`() {
        let content = String(repeating: "x", count: 10_000)
        expectEqual(pieces(content).map(\.utf8.count), [4_096, 4_096, 1_808])
    }
}
