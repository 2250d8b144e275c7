import CCurl
import ContentCodings
import EventLoop
import Expectations
import Glibc
import Testing

@testable import HTTPSession

@Suite(.timeLimit(.minutes(5))) struct ContentCodingsTests {
    @Test func `the line for the loaded libcurl is the one that it writes itself`() throws {
        let head = Locked("")
        let server = try LoopbackListener { client, _ in
            var buffer = [UInt8](repeating: 0, count: 4_096)
            let count = recv(client, &buffer, buffer.count, 0)
            head.withLock { $0 = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self) }
            LoopbackListener.respond("", to: client)
        }
        let handle = try EasyHandle()
        defer { handle.cleanUp() }
        try handle.set(CURLOPT_PROXY, "")
        try handle.set(CURLOPT_ACCEPT_ENCODING, "")
        try handle.set(url: "http://127.0.0.1:\(server.port)/")
        expectEqual(curl_easy_perform(handle.raw), CURLE_OK)
        let line = "Accept-Encoding: \(ContentDecoder.supported.joined(separator: ", "))"
        #expect(head.withLock { $0.split(separator: "\r\n").contains { $0 == line } })
    }

    @Test func `lines of another list follow a list's own lines, and outlive it`() throws {
        func texts(_ list: borrowing LineList) -> [String] {
            Array(sequence(first: list.raw) { $0?.pointee.next }.prefix { $0 != nil }).compactMap {
                $0?.pointee.data.map { String(cString: $0) }
            }
        }
        let shared = try LineList(["s", "t"])
        for own in [[], ["1"], ["1", "2"]] { expectEqual(texts(try LineList(own, followedBy: shared.raw)), own + ["s", "t"]) }
        expectEqual(texts(shared), ["s", "t"])
        expectEqual(texts(try LineList(["1", "2"])), ["1", "2"])
        try expectNil(LineList([]).raw)
    }
}
