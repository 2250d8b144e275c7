import Expectations
import Testing
import Wire

@testable import Records

@Suite struct ServiceResponseTests {
    @Test(arguments: 1...40) func `a chunked response is read in pieces of any size`(size: Int) throws {
        let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n7;x=1\r\n, world\r\n0\r\n\r\n"
        var reader = ServiceResponse()
        var body: [UInt8] = []
        for piece in Array(text.utf8).pieces(of: size) { body += try reader.append(Array(piece)) }
        expectEqual(reader.status, 200)
        expectEqual(String(decoding: body, as: UTF8.self), "hello, world")
        #expect(reader.isComplete)
    }

    @Test func `a length ends the response`() throws {
        var reader = ServiceResponse()
        let body = try reader.append(Array("HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nhi, and more".utf8))
        expectEqual(body, Array("hi".utf8))
        #expect(reader.status == 404 && reader.isComplete)
    }

    @Test(arguments: [
        "SSH-2.0-x\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 200 OK\r\nnocolon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ])
    func `other bytes are refused`(text: String) {
        var reader = ServiceResponse()
        #expect(throws: HTTPResponseReader.Failure.self) { try reader.append(Array(text.utf8)) }
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\n\r\nall of it", true), ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", false), ("HTTP/1.1 200", false),
        ("HTTP/1.1 204 No Content\r\n\r\n", true),
    ])
    func `only a body without a length ends with the connection`(text: String, isComplete: Bool) throws {
        var reader = ServiceResponse()
        _ = try reader.append(Array(text.utf8))
        expectEqual(reader.isCompleteAtEnd(), isComplete)
    }
}

@Suite struct EventStreamReaderTests {
    @Test(arguments: 1...20) func `events are read in pieces of any size`(size: Int) {
        let text = ": comment\n\nevent: path\nid: 7\ndata: {\"a\":1}\n\ndata: x\r\ndata: y\r\n\r\ndata: incomplete"
        var reader = EventStreamReader()
        var events: [EventStreamReader.Event] = []
        for piece in Array(text.utf8).pieces(of: size) { events += reader.append(piece) }
        expectEqual(
            events,
            [
                .init(type: "path", data: Array("{\"a\":1}".utf8)), .init(type: "message", data: Array("x\ny".utf8)),
            ])
        expectEqual(reader.lastID, "7")
    }
}

extension Array {
    fileprivate func pieces(of size: Int) -> [ArraySlice<Element>] {
        stride(from: 0, to: count, by: size).map { self[$0..<Swift.min($0 + size, count)] }
    }
}
