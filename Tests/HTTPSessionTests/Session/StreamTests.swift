import Expectations
import Foundation
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

@testable import HTTPSession

/// Reads all chunks of a stream. - Returns: the joined chunks, and the error that ended the stream.
private func drain(_ task: TransferTask) async -> (Data, HTTPSessionError?) {
    var data = Data()
    do throws(HTTPSessionError) {
        for try await chunk in task.chunks { data.append(chunk) }
        return (data, nil)
    } catch {
        return (data, error)
    }
}

@Suite(.timeLimit(.minutes(20))) struct StreamTests {
    @Test func `a stream task delivers a body in chunks, in order`() async throws {
        let server = try TestServer { _ in StubResponse(body: .pattern(2_000_000)) }
        let task = try localSession().streamTask(for: TransferRequest(url: server.url()))
        let (data, error) = await drain(task)
        expectNil(error)
        expectEqual(data, pattern(2_000_000))
        try await expectEqual(task.response.statusCode, 200)
    }

    @Test(arguments: [1_000, 2_000_000]) func `the values of a stream are a misuse at once, whatever its size`(size: Int64)
        async throws
    {
        let server = try TestServer { _ in StubResponse(body: .pattern(size)) }
        let session = try localSession()
        let task = session.streamTask(for: TransferRequest(url: server.url()))
        await expectEqual(errorCode { try await task.data() }, .misuse)
        await expectEqual(errorCode { try await task.string() }, .misuse)
        await expectEqual(errorCode { try await task.json() }, .misuse)
        await expectEqual(errorCode { try await task.decode(as: [Int].self) }, .misuse)
        // The chunks are still there.
        let (data, error) = await drain(task)
        expectNil(error)
        expectEqual(data, pattern(size))
    }

    @Test(.timeLimit(.minutes(20)), arguments: [0, 64 << 20])
    func `the response of an unread stream has the head while the body is endless, or fills the buffer`(size: Int64) async throws
    {
        let server = try TestServer { _ in
            StubResponse(body: StubBody([.repeating(0, count: size), .wait(.forever), .bytes([1])])).field("X-Kind", "log")
                .chunked()
        }
        let task = try localSession().streamTask(for: TransferRequest(url: server.url()))
        let response = try await task.response
        expectEqual(response.statusCode, 200)
        expectEqual(response.head.firstValue(of: "x-kind"), "log")
        expectEmpty(response.data)
        expectNil(task.result)
        // Again, and by several at a time.
        async let other = task.response
        try await expectEqual(task.response.statusCode, 200)
        try await expectEqual(other.statusCode, 200)
        // A stream that is being canceled has no response any more.
        task.cancel()
        await expectEqual(failure(task)?.code, .cancelled)
    }

    @Test(.timeLimit(.minutes(20))) func `chunks that are read after the response begin with the first byte`() async throws {
        let server = try TestServer { request in
            request.path == "/cut"
                ? StubResponse(body: .pattern(2_000_000)).cut(afterBodyBytes: 1_000_000) : StubResponse(body: .pattern(2_000_000))
        }
        let session = try localSession()
        let task = session.streamTask(for: TransferRequest(url: server.url()))
        try await expectEqual(task.response.statusCode, 200)
        let (data, error) = await drain(task)
        expectNil(error)
        expectEqual(data, pattern(2_000_000))
        // After the end, the response has the metrics of the complete exchange.
        try await expectEqual(task.response.metrics.transactions.first?.countOfResponseBodyBytesReceived, 2_000_000)

        let cut = session.streamTask(for: TransferRequest(url: server.url("/cut")))
        try await expectEqual(cut.response.statusCode, 200)
        await expectEqual(drain(cut).1?.code, .connectionLost)
        await expectEqual(failure(cut)?.code, .connectionLost)
    }

    @Test(.timeLimit(.minutes(20))) func `canceling one of those who await a stream's response leaves it to the others`()
        async throws
    {
        let gate = try Gate()
        let server = try TestServer { _ in
            StubResponse(body: .texts(["one", "two"], between: .gate(gate))).chunked().held(by: gate)
        }
        let task = try localSession().streamTask(for: TransferRequest(url: server.url()))
        let cancelled = Task { await failure(task)?.code }
        async let status = task.response.statusCode
        while task.awaiterCount < 2 { await Task.yield() }
        cancelled.cancel()
        await expectEqual(cancelled.value, .cancelled)
        gate.open()
        try await expectEqual(status, 200)
        await expectEqual(drain(task).0, Data("onetwo".utf8))
    }

    @Test(.timeLimit(.minutes(20))) func `a callback of a stream's value fails as misuse at once`() async throws {
        let server = try TestServer { _ in StubResponse(body: StubBody([.bytes([1]), .wait(.forever)])).chunked() }
        let task = try localSession().streamTask(for: TransferRequest(url: server.url()))
        let code: HTTPSessionError.Code? = await withCheckedContinuation { continuation in
            task.respond(
                with: HTTPResponseSerializer(), on: .global(), success: { _, _ in continuation.resume(returning: nil) },
                failure: { _, error in continuation.resume(returning: error.code) })
        }
        expectEqual(code, .misuse)
        expectNil(task.result)
        task.cancel()
    }

    @Test func `a stream sends Accept-Encoding identity, and decompresses a compressed response anyway`() async throws {
        let server = try TestServer { _ in .gzip(.gzip(pattern(100_000))) }
        let (data, error) = await drain(try localSession().streamTask(for: TransferRequest(url: server.url())))
        expectNil(error)
        expectEqual(data, pattern(100_000))
        expectEqual(server.requests.first?.values("accept-encoding"), ["identity"])
    }

    @Test func `a stream delivers a chunk before the server sends the next one`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(body: .texts(["one", "two"], between: .gate(gate))).chunked() }
        var chunks = try localSession().streamTask(for: TransferRequest(url: server.url())).chunks.makeAsyncIterator()
        try await expectEqual(chunks.next(), Data("one".utf8))
        gate.open()
        try await expectEqual(chunks.next(), Data("two".utf8))
        try await expectNil(chunks.next())
        try await expectNil(chunks.next())
    }

    @Test func `a slow reader of a stream applies back-pressure and does not trigger the request timeout`() async throws {
        let server = try TestServer { request in
            request.path == "/other" ? StubResponse() : StubResponse(body: .zeros(64 << 20))
        }
        let clock = ManualClock()
        let session = try localSession { $0.transport = clock }
        let task = session.streamTask(for: TransferRequest(url: server.url()))
        var chunks = task.chunks.makeAsyncIterator()
        var count = Int64(try await chunks.next()?.count ?? 0)
        // The reader's buffer is full, and more bytes are in the client's socket.
        let full = count + Int64(ChunkSink.capacity)
        await task.awaitProgress { $0.bytesReceived >= full }
        try await server.awaitSeen { $0.sentBodyBytes >= full + (128 << 10) }
        let other = TransferRequest(url: server.url("/other"))
        _ = try await session.dataTask(for: other).response
        // Ten times the request timeout.
        clock.advance(by: .seconds(6_000))
        _ = try await session.dataTask(for: other).response
        _ = try await server.awaitSeen { $0.answered == 2 }
        #expect(task.currentProgress.bytesReceived < 1 << 20)
        while let chunk = try await chunks.next() {
            #expect(chunk.count <= 512 << 10)
            count += Int64(chunk.count)
        }
        expectEqual(count, 64 << 20)
        try await server.awaitSeen { $0.answered == 3 }
    }

    @Test func `canceling a stream's reader cancels the transfer`() async throws {
        let server = try TestServer { _ in StubResponse(body: StubBody([.bytes([1]), .wait(.forever)])).chunked() }
        let task = try localSession().streamTask(for: TransferRequest(url: server.url()))
        let hasStarted = Signal()
        let reader = Task { () -> HTTPSessionError? in
            do throws(HTTPSessionError) {
                for try await _ in task.chunks { hasStarted.fire() }
                return nil
            } catch {
                return error
            }
        }
        await hasStarted.wait()
        reader.cancel()
        await expectEqual(reader.value?.code, .cancelled)
        await expectEqual(failure(task)?.code, .cancelled)
        try await server.awaitOpenConnections(0)
    }

    @Test func `a stream task canceled after its reader stops closes the connection`() async throws {
        let server = try TestServer { _ in StubResponse(body: .zeros(64 << 20)) }
        let task = try localSession().streamTask(for: TransferRequest(url: server.url()))
        for try await _ in task.chunks { break }
        task.cancel()
        await expectEqual(failure(task)?.code, .cancelled)
        try await server.awaitOpenConnections(0)
    }

    @Test func `six streams whose readers stopped with break are canceled and do not block the next request`() async throws {
        let server = try TestServer { $0.path == "/next" ? StubResponse(body: "x") : StubResponse(body: .zeros(64 << 20)) }
        let session = try localSession()
        let tasks = (0..<6).map { _ in session.streamTask(for: TransferRequest(url: server.url())) }
        for task in tasks { for try await _ in task.chunks { break } }
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url("/next"))).response.statusCode, 200)
        for task in tasks { await expectEqual(failure(task)?.code, .cancelled) }
        try await server.awaitOpenConnections(1)
    }

    @Test func `a stream continues while one of its iterators is released and another reads`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(body: .texts(["one", "two"], between: .gate(gate))).chunked() }
        let task = try localSession().streamTask(for: TransferRequest(url: server.url()))
        var chunks = task.chunks.makeAsyncIterator()
        for try await chunk in task.chunks {
            expectEqual(chunk, Data("one".utf8))
            break
        }
        gate.open()
        try await expectEqual(chunks.next(), Data("two".utf8))
        try await expectNil(chunks.next())
        try await expectEqual(task.response.statusCode, 200)
    }

    @Test func `a stream task without references is canceled, before it is read and while it is suspended`() async throws {
        let server = try TestServer { _ in StubResponse(body: .zeros(64 << 20)) }
        let log = EventLog()
        let session = try HTTPSessionManager(configuration: localConfiguration(), eventMonitors: [log])
        _ = session.streamTask(for: TransferRequest(url: server.url()))
        session.streamTask(for: TransferRequest(url: server.url())).suspend()
        await log.await("failed cancelled", times: 2)
        try await server.awaitOpenConnections(0)
    }

    @Test func `a stream task whose response is awaited is not canceled`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x").delayed(.milliseconds(2_200)) }
        try await expectEqual(localSession().streamTask(for: TransferRequest(url: server.url())).response.statusCode, 200)
    }

    @Test func `chunks received before an error are delivered before the error`() async throws {
        let server = try TestServer { _ in StubResponse(body: .pattern(100_000)).cut(afterBodyBytes: 50_000) }
        let (data, error) = await drain(try localSession().streamTask(for: TransferRequest(url: server.url())))
        expectEqual(data, pattern(50_000))
        expectEqual(error?.code, .connectionLost)
    }

    @Test func `a 503 fails a stream with the response body in its error and no chunks`() async throws {
        let server = try TestServer { _ in StubResponse(503, body: "busy") }
        let (data, error) = await drain(try localSession().streamTask(for: TransferRequest(url: server.url())))
        expectEmpty(data)
        expectEqual(error?.code, .unacceptableStatus)
        expectEqual(error?.context.responseBody, Data("busy".utf8))
    }

    @Test func `a stream that fails, is canceled or is refused before it starts ends its reader with the error`() async throws {
        let session = try localSession()
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        await expectEqual(drain(session.streamTask(for: TransferRequest(url: url))).1?.code, .cannotConnectToHost)
        let cancelled = session.streamTask(for: TransferRequest(url: url), startsImmediately: false)
        cancelled.cancel()
        await expectEqual(drain(cancelled).1?.code, .cancelled)
        let refused = try #require(URL(string: "ftp://a/"))
        await expectEqual(drain(session.streamTask(for: TransferRequest(url: refused))).1?.code, .invalidRequest)
        let late = session.streamTask(for: TransferRequest(url: url), startsImmediately: false)
        session.cancel(afterTasks: true)
        await expectEqual(drain(session.streamTask(for: TransferRequest(url: url))).1?.code, .sessionInvalidated)
        late.resume()
        await expectEqual(drain(late).1?.code, .sessionInvalidated)
    }

    @Test func `chunks of a data task fail as misuse`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let task = try localSession().dataTask(for: TransferRequest(url: server.url()))
        await expectEqual(drain(task).1?.code, .misuse)
        _ = try await task.response
    }

    @Test func `a stream task that becomes a download ends without chunks`() async throws {
        let folder = try ScratchDirectory()
        let server = try TestServer { _ in StubResponse(body: .pattern(1_000)) }
        let file = folder.url("file")
        let session = try localSession(handlers: TransferHandlers(response: { _ in .becomeDownload(.init(file)) }))
        let task = session.streamTask(for: TransferRequest(url: server.url()))
        for try await piece in task.chunks { Issue.record("\(piece.count) bytes") }
        try await expectEqual(task.response.file, file)
        try expectEqual(Data(contentsOf: file), pattern(1_000))
    }
}
