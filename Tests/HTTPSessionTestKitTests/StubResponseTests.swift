import Expectations
import HTTPSessionTestKit
import Testing

@Suite(.timeLimit(.minutes(20)))
struct StubResponseTests {
    @Test func `a response without faults is plain HTTP`() throws {
        let (text, end) = try RawClient.exchange(
            StubResponse(404, fields: ["ETag": "\"a\"", "X-A": "1", "X-A": "2"], body: "gone"))
        expectEqual(
            text,
            "HTTP/1.1 404 Not Found\r\nETag: \"a\"\r\nX-A: 1\r\nX-A: 2\r\nContent-Length: 4\r\n"
                + "Connection: close\r\n\r\ngone")
        expectEqual(end, .closed)
    }

    @Test func `a response to HEAD has the length and no body`() throws {
        let (text, _) = try RawClient.exchange(StubResponse(body: "hello"), method: "HEAD")
        #expect(text.hasSuffix("Content-Length: 5\r\nConnection: close\r\n\r\n"))
    }

    @Test func `204 and 304 have no body`() throws {
        for status in [204, 304] {
            let (text, _) = try RawClient.exchange(StubResponse(status, body: "hello"))
            #expect(!text.contains("Content-Length") && text.hasSuffix("\r\n\r\n"))
        }
    }

    @Test(arguments: [(StubResponse.Ending.truncated, RawClient.End.closed), (.reset, .reset), (.orderly, .closed)])
    func `a cut body ends at the given byte`(_ ending: StubResponse.Ending, _ end: RawClient.End) throws {
        let server = try TestServer { _ in StubResponse(body: .pattern(100_000)).cut(afterBodyBytes: 50_000, ending) }
        let client = try RawClient(server)
        try client.get("/")
        #expect(client.read(until: "\r\n\r\n").contains("Content-Length: 100000\r\n"))
        let (bytes, seen) = client.readToEnd()
        #expect(bytes == (0..<50_000).map { StubBody.patternByte(at: $0) } || end == .reset)
        expectEqual(seen, end)
    }

    @Test func `a cut head ends within a field`() throws {
        let (text, end) = try RawClient.exchange(StubResponse(body: "hello").cut(afterHeadBytes: 25))
        expectEqual(text, "HTTP/1.1 200 OK\r\nContent-")
        expectEqual(end, .closed)
    }

    @Test func `a declared length that is too large ends the connection after the body`() throws {
        let long = try RawClient.exchange(StubResponse(body: "hello").declaredLength(100))
        #expect(long.text.contains("Content-Length: 100\r\n") && long.text.hasSuffix("\r\n\r\nhello") && long.end == .closed)
        let short = try RawClient.exchange(StubResponse(body: "hello").declaredLength(2))
        #expect(short.text.contains("Content-Length: 2\r\n") && short.text.hasSuffix("\r\n\r\nhello"))
    }

    @Test func `a chunked body has its chunks and trailers`() throws {
        var reply = StubResponse(body: "hello world").chunked(trailers: ["X-Sum": "7"])
        reply.pieceBytes = 6
        let (text, _) = try RawClient.exchange(reply)
        #expect(text.contains("Transfer-Encoding: chunked\r\n"))
        #expect(text.hasSuffix("\r\n\r\n6\r\nhello \r\n5\r\nworld\r\n0\r\nX-Sum: 7\r\n\r\n"))
    }

    @Test(arguments: [
        (StubResponse.ChunkFault.sizeIsNoNumber, "zz\r\nabc\r\n0\r\n\r\n"),
        (.sizeOverflows, "FFFFFFFFFFFFFFFFF\r\nabc\r\n0\r\n\r\n"),
        (.endIsMissing, "3\r\nabcdef\r\n0\r\n\r\n"), (.cutInChunk, "10\r\nabc"), (.lastChunkIsMissing, "3\r\nabc\r\n"),
    ])
    func `chunks break after the first half`(_ fault: StubResponse.ChunkFault, _ wrong: String) throws {
        let (text, end) = try RawClient.exchange(StubResponse(body: "goodlost").brokenChunks(fault))
        #expect(text.hasSuffix("\r\n\r\n4\r\ngood\r\n\(wrong)"))
        expectEqual(end, .closed)
    }

    @Test func `a body until the end of the connection has no length`() throws {
        let (text, end) = try RawClient.exchange(StubResponse(body: "hello").untilClose())
        expectEqual(text, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello")
        expectEqual(end, .closed)
    }

    @Test func `interim responses come before the final one`() throws {
        let (text, _) = try RawClient.exchange(StubResponse(body: "x").interim(103, fields: ["Link": "</a>"]).interim(100))
        #expect(
            text.hasPrefix("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"))
    }

    @Test func `a header flood has the given number of fields`() throws {
        let (text, _) = try RawClient.exchange(StubResponse().headerFlood(10_000, valueBytes: 100))
        #expect(text.utf8.count > 1_000_000)
        #expect(text.contains("\r\nX-Flood-9999: fff"))
    }

    @Test func `raw bytes are sent as they are`() throws {
        let banner = try RawClient.exchange(.raw("SSH-2.0-OpenSSH_9.2\r\n"))
        #expect(banner.text == "SSH-2.0-OpenSSH_9.2\r\n" && banner.end == .closed)
        let nothing = try RawClient.exchange(.none())
        #expect(nothing.text == "" && nothing.end == .closed)
        let reset = try RawClient.exchange(.none(.reset))
        #expect(reset.text == "" && reset.end == .reset)
    }

    @Test func `a response that never comes leaves the connection open`() throws {
        let (text, end) = try RawClient.exchange(.never, patience: .milliseconds(200))
        #expect(text == "" && end == .open)
    }

    @Test func `a slow body is sent at its rate`() throws {
        let start = ContinuousClock.now
        let (text, _) = try RawClient.exchange(StubResponse(body: .zeros(1000)).slow(bytesPerSecond: 2000))
        #expect(text.utf8.suffix(1000).allSatisfy { $0 == 0 })
        // The last piece is due 20 ms before the half second is over.
        #expect(start.duration(to: .now) > .milliseconds(400))
    }

    @Test func `pieces of a body are sent with waits between them`() throws {
        let start = ContinuousClock.now
        let (text, _) = try RawClient.exchange(StubResponse(body: "abcd").pieces(of: 1, after: .delay(.milliseconds(50))))
        #expect(text.hasSuffix("abcd"))
        #expect(start.duration(to: .now) > .milliseconds(190))
    }

    @Test func `challenges and redirects have their fields`() throws {
        let challenge = try RawClient.exchange(.unauthorized("Basic realm=\"a\"", "Bearer"))
        #expect(challenge.text.contains("WWW-Authenticate: Basic realm=\"a\"\r\nWWW-Authenticate: Bearer\r\n"))
        #expect(try RawClient.exchange(.proxyAuthenticationRequired("Basic realm=\"p\"")).text.hasPrefix("HTTP/1.1 407 Proxy"))
        let redirect = try RawClient.exchange(.redirect(308, to: "/again"))
        #expect(redirect.text.contains("308 Permanent Redirect\r\nLocation: /again\r\n"))
    }
}
