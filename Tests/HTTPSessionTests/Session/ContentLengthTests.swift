import Expectations
import Foundation
import HTTPSessionTestKit
import HTTPTypes
import Testing

@testable import HTTPSession

/// Content-Length and the other ways to frame a response (RFC 9112 section 6.3).
@Suite(.timeLimit(.minutes(20))) struct ContentLengthTests {
    private func framing(_ fields: String, status: Int = 200, version: String = "HTTP/1.1", method: String = "GET") throws
        -> ResponseFraming
    {
        let head = try #require(ResponseHead(bytes: Array("\(version) \(status) X\r\n\(fields)\r\n\r\n".utf8)))
        return try ResponseFraming(head, method: method)
    }

    @Test func `Content-Length and Transfer-Encoding decide where a response ends`() throws {
        try expectEqual(framing("Content-Length: 5"), .length(5))
        try expectEqual(framing("Content-Length: 5\r\nTransfer-Encoding: gzip, chunked"), .chunked)
        try expectEqual(framing("Transfer-Encoding: gzip"), .untilClose)
        try expectEqual(framing("Content-Length: 5\r\nTransfer-Encoding: identity"), .untilClose)
        try expectEqual(framing("X: y"), .untilClose)
        try expectEqual(framing("X: y", version: "HTTP/2"), .stream)
        for (status, method) in [(204, "GET"), (304, "GET"), (200, "HEAD")] {
            try expectEqual(framing("Content-Length: x", status: status, method: method), .noBody)
        }
        let malformed = [
            "Content-Length : 5", "Content-Length\t: 5", "Transfer-Encoding : chunked", "Content-Length: 5\r\n 6",
            "A: b\r\ncontent-length:\r\n\t5", "CONTENT-LENGTH \t: 5", "content-length\u{1}: 5", "Transfer-Encoding x: chunked",
        ]
        for fields in malformed { #expect(throws: HTTPSessionError.self, "\(fields)") { try framing(fields) } }
        try expectEqual(framing("A: b\r\n Content-Length : 5\r\nContent-Length: 5"), .length(5))
        // Other fields, and lines without a colon.
        for line in [
            "Content-Length-X : 1", "Content-Type : x", "Content-Lengt", "Content-Length", "Content-Length 5", "Trailer : x",
        ] {
            try expectEqual(framing("\(line)\r\nContent-Length: 5"), .length(5), "\(line)")
        }
    }

    @Test func `a connection is kept after HTTP/1.1 unless the response has the option close`() throws {
        func isKept(_ fields: String, version: String = "HTTP/1.1") throws -> Bool {
            try #require(ResponseHead(bytes: Array("\(version) 200 OK\r\n\(fields)\r\n\r\n".utf8))).keepsConnection
        }
        let kept = [
            "X: close", "Connection: keep-alive", "Connection:", "Connection: closed, x-close", "Connection: clo se",
            "Connection: ,,",
        ]
        for fields in kept { #expect(try isKept(fields), "\(fields)") }
        let closed = [
            "Connection: close", "connection:Close", "CONNECTION: keep-alive , CLOSE\t", "Connection: x\r\nConnection: close",
            "Proxy-Connection: close", "Connection: ,close,", "Connection: close\r", "Connection: x,\u{0}close\u{0}",
        ]
        for fields in closed { #expect(try !isKept(fields), "\(fields)") }
        for version in ["HTTP/1.0", "HTTP/2"] { #expect(try !isKept("X: y", version: version)) }
    }

    @Test(arguments: [
        "Content-Length: x", "Content-Length: 5x", "Content-Length: 5 5", "Content-Length: +5", "Content-Length: -1",
        "Content-Length:", "Content-Length: 9223372036854775808", "Content-Length: 99999999999999999999999",
        "Content-Length: 5\r\nContent-Length: 6", "Content-Length: 6\r\nContent-Length: 5", "Content-Length: 5, 6",
        "Content-Length: 5,", "Content-Length : 5",
    ])
    func `a Content-Length that is unreadable, too large or repeated with another value fails as badServerResponse`(
        _ fields: String
    ) async throws {
        for status in ["200 OK", "404 Not Found", "401 Unauthorized"] {
            for close in ["", "Connection: close\r\n"] {
                let server = try TestServer { _ in
                    .raw(.text("HTTP/1.1 \(status)\r\n\(fields)\r\n\(close)\r\nhello"), .orderly)
                }
                let error = await failure(try localSession().dataTask(for: TransferRequest(url: server.url())))
                expectEqual(error?.code, .badServerResponse, "\(status) \(String(describing: error))")
            }
        }
    }

    @Test func `a Content-Length that is repeated with one value counts once`() async throws {
        let server = try TestServer { request in
            let fields = request.path == "/list" ? "Content-Length: 5, 5" : "Content-Length: 5\r\nContent-Length: 5"
            return .raw(.text("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\nhello"), .orderly)
        }
        for path in ["/list", "/lines"] {
            let response = try await localSession().dataTask(for: TransferRequest(url: server.url(path))).response
            expectEqual(response.data, Data("hello".utf8))
            expectEqual(response.head.bodyLength, 5)
        }
    }

    @Test func `an unreadable Content-Length with HEAD, 204 or 304 is ignored`() async throws {
        for (method, status) in [(HTTPRequest.Method.head, 200), (.get, 204), (.get, 304)] {
            let server = try TestServer { _ in
                .raw(.text("HTTP/1.1 \(status) X\r\nContent-Length: +5\r\nContent-Length: 7\r\n\r\n"), .orderly)
            }
            let response = try await localSession().dataTask(for: TransferRequest(url: server.url(), method: method)).response
            expectEqual(response.statusCode, status)
            expectEmpty(response.data)
        }
    }

    @Test(arguments: [0, 1]) func `a connection whose response had Content-Length and Transfer-Encoding is not reused`(
        _ order: Int
    ) async throws {
        let certificate = try SelfSignedCertificate(names: ["localhost"])
        for tls in [nil, certificate.serverTLS] {
            let server = try TestServer(tls: tls) { request in
                guard request.path == "/both" else { return StubResponse(body: "next") }
                var reply = StubResponse(body: .text("5\r\nhello\r\n0\r\n\r\n"))
                let fields = [("Content-Length", "5"), ("Transfer-Encoding", "chunked")]
                for (name, value) in order == 0 ? fields : fields.reversed() { reply = reply.field(name, value) }
                reply.framing = .asGiven
                return reply
            }
            let policy = try SecurityPolicy.trusting(certificate)
            let session = try localSession { $0.securityPolicy = policy }
            let base = try #require(URL(string: "\(tls == nil ? "http" : "https")://localhost:\(server.port)/"))
            for _ in 0..<2 {
                let both = try await session.dataTask(for: TransferRequest(url: base.appending(path: "both"))).response
                expectEqual(both.data, Data("hello".utf8))
                expectNil(both.head.bodyLength)
                // The handle that refused reuse allows it again: these two requests share one connection.
                for _ in 0..<2 { _ = try await session.dataTask(for: TransferRequest(url: base)).response }
            }
            expectEqual(server.requests.map(\.connection), [1, 2, 2, 2, 3, 3])
        }
    }
}
