import EventLoop
import Expectations
import Foundation
import Glibc
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// Surplus responses that arrive after the next request was sent.
@Suite(.timeLimit(.minutes(10))) struct SurplusResponseTests {
    /// The second request of the first connection gets `surplus`, followed by its own response; all other requests get correct
    /// responses.
    private static func reply(to request: ReceivedRequest, surplus: [StubBody.Segment]) -> StubResponse {
        guard request.connection == 1, request.numberOnConnection == 2 else { return StubResponse(body: "right") }
        var reply = StubResponse.raw(StubBody(surplus))
        reply.connectionUse = .keepAlive
        return reply
    }

    private static let right = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nright"
    /// libcurl reads no more of the second piece than the body of the first response: the next response stays in the socket.
    private static let separate: [StubBody.Segment] = [
        .bytes(Array("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n".utf8)), .wait(.delay(.milliseconds(20))),
        .bytes(Array("EVIL\(right)".utf8)),
    ]
    /// libcurl reads both responses at once, and closes the connection.
    private static let joined: [StubBody.Segment] = [
        .bytes(Array("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL\(right)".utf8))
    ]
    /// libcurl reads both responses at once, and drops the second one.
    private static let empty: [StubBody.Segment] = [
        .bytes(Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n\(right)".utf8))
    ]
    private static let redirect: [StubBody.Segment] = [
        .bytes(Array("HTTP/1.1 302 Found\r\nLocation: /evil\r\nContent-Length: 0\r\n\r\n\(right)".utf8))
    ]

    private static func server(_ surplus: [StubBody.Segment]) throws -> TestServer {
        try TestServer { Self.reply(to: $0, surplus: surplus) }
    }

    @Test(arguments: [separate, joined, empty, redirect])
    func `a surplus response before the response repeats an idempotent request`(_ surplus: [StubBody.Segment]) async throws {
        let server = try Self.server(surplus)
        let session = try localSession()
        for _ in 0..<4 {
            let response = try await session.dataTask(for: TransferRequest(url: server.url("/asked"))).response
            expectEqual(response.data, Data("right".utf8))
        }
        #expect(server.requests.map(\.path).allSatisfy { $0 == "/asked" })
        // The second request is sent twice. ConnectionUse each request to this server has its own connection.
        expectEqual(server.requests.map(\.connection), [1, 1, 2, 3, 4])
    }

    @Test func `a surplus response before the response fails a request that is not idempotent`() async throws {
        let server = try Self.server(Self.separate)
        let session = try localSession()
        _ = try await session.dataTask(for: TransferRequest(url: server.url())).response
        let error = await failure(
            session.dataTask(for: TransferRequest(url: server.url(), method: .post, body: .data(Data("body".utf8)))))
        expectEqual(error?.code, .connectionLost)
        expectEqual(server.requests.count, 2)
    }

    @Test func `a response that follows while the first one waits for its handler repeats the request`() async throws {
        let gate = try Gate()
        let evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL"
        let server = try Self.server([.bytes(Array(evil.utf8)), .wait(.gate(gate)), .bytes(Array(Self.right.utf8))])
        let session = try localSession()
        let request = TransferRequest(url: server.url())
        try await expectEqual(session.dataTask(for: request).response.data, Data("right".utf8))
        var handlers = TransferHandlers()
        handlers.response = { _ in
            gate.open()
            _ = try? await server.awaitSeen { $0.sentBodyBytes >= 5 + evil.utf8.count + Self.right.utf8.count }
            return .allow
        }
        let response = try await session.dataTask(for: request, handlers: handlers).response
        #expect(response.data == Data("right".utf8) && response.metrics.retryCount == 1)
    }

    @Test func `a surplus response through a proxy repeats the request`() async throws {
        let server = try Self.server(Self.separate)
        let session = try localSession { $0.proxy = .explicit("http://127.0.0.1:\(server.port)") }
        let url = try #require(URL(string: "http://example.test/asked"))
        for _ in 0..<3 {
            try await expectEqual(session.dataTask(for: TransferRequest(url: url)).response.data, Data("right".utf8))
        }
        expectEqual(server.requests.map(\.connection), [1, 1, 2, 3])
    }

    @Test func `a surplus response leaves no byte in a downloaded file`() async throws {
        let scratch = try ScratchDirectory()
        let server = try Self.server(Self.separate)
        let session = try localSession()
        for number in 0..<3 {
            let file = scratch.url("\(number)")
            _ = try await session.downloadTask(for: TransferRequest(url: server.url()), to: DownloadDestination(file)).response
            try expectEqual(Data(contentsOf: file), Data("right".utf8))
        }
        #expect(server.requests.allSatisfy { request in !request.fields.contains { $0.name.lowercased() == "range" } })
    }

    @Test(arguments: [HTTPRequest.Method.put, .post])
    func `a response sent before its request has reached the server is a surplus response`(_ method: HTTPRequest.Method)
        async throws
    {
        let server = try DeafServer()
        let url = try server.url()
        let session = try localSession()
        try await expectEqual(session.dataTask(for: TransferRequest(url: url)).response.data, Data("first".utf8))
        let task = session.dataTask(for: TransferRequest(url: url, method: method, body: .data(Data("body".utf8))))
        await task.awaitProgress { $0.bytesSent == 4 }
        server.talk()
        if method == .put {
            let response = try await task.response
            expectEqual(response.data, Data("right".utf8))
            expectEqual(response.metrics.retryCount, 1)
        } else {
            await expectEqual(failure(task)?.code, .connectionLost)
        }
    }

    @Test func `correct responses of every framing keep their connection open`() async throws {
        let replies: [StubResponse] = [
            StubResponse(body: "x"), StubResponse(body: "").interim(103, fields: ["Link": "</a>"]), StubResponse(204),
            StubResponse(304),
            StubResponse(body: "chunks").chunked(trailers: ["Digest": "x"]), .gzipBomb(inflatedBytes: 1_000),
            StubResponse(404, body: "none"),
            StubResponse(body: .text(String(repeating: "long", count: 100_000))), .redirect(to: "/next"),
            StubResponse(body: "end"),
        ]
        let server = try TestServer { replies[($0.arrival - 1) % replies.count] }
        let session = try localSession()
        for round in 0..<2 {
            for method in [HTTPRequest.Method.get, .head, .put] {
                for _ in replies.indices {
                    let body: RequestBody = method == .put ? .data(Data("body".utf8)) : .none
                    let request = TransferRequest(url: server.url("/\(round)"), method: method, body: body)
                    _ = try await session.dataTask(for: request).response
                }
            }
        }
        expectEqual(server.seen.connections, 1)
    }

    @Test func `a 408 that closes an idle connection does not close any other connection`() async throws {
        let gate = try Gate()
        let notice = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        let server = try TestServer { request in
            guard request.arrival == 1 else { return StubResponse(body: "right") }
            return .raw(
                StubBody([.bytes(Array(Self.right.utf8)), .wait(.gate(gate)), .bytes(Array(notice.utf8)), .wait(.forever)]))
        }
        let session = try localSession()
        _ = try await session.dataTask(for: TransferRequest(url: server.url())).response
        gate.open()
        try await server.awaitSeen { $0.sentBodyBytes >= Self.right.utf8.count + notice.utf8.count }
        for _ in 0..<3 { _ = try await session.dataTask(for: TransferRequest(url: server.url())).response }
        expectEqual(server.requests.map(\.connection), [1, 2, 2, 2])
    }

    @Test func `a reused file descriptor of a closed connection does not mark a response as surplus`() async throws {
        let server = try TestServer { request in
            request.numberOnConnection == 2 ? StubResponse(body: "right").closing() : StubResponse(body: "right")
        }
        let session = try localSession()
        // The server does not read this request, and its duplicated sockets take every descriptor that another socket frees.
        let isOver = Locked(false)
        let (loaded, isLoaded) = AsyncStream.makeStream(of: Void.self)
        let unread = try LoopbackListener { client, _ in
            var byte: UInt8 = 0
            recv(client, &byte, 1, Int32(MSG_PEEK))
            isLoaded.finish()
            // The loop works in bursts, because other tests need the processor too.
            while !isOver.withLock({ $0 }) {
                for _ in 0..<200 { close(dup(client)) }
                poll(nil, 0, 1)
            }
        }
        let waiting = session.dataTask(
            for: TransferRequest(url: try unread.url(), method: .put, body: .data(Data(count: 50_000))))
        defer { isOver.withLock { $0 = true } }
        for await _ in loaded {}
        for _ in 0..<200 { _ = try await session.dataTask(for: TransferRequest(url: server.url())).response }
        expectEqual(server.requests.count, 200)
        expectEqual(server.seen.connections, 100)
        isOver.withLock { $0 = true }
        _ = await failure(waiting)
    }
}
