import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// Downloads that lose their connection, and the server's next responses. The file has 1,000,000 bytes; the first response ends
/// after 600,000 of them.
@Suite(.timeLimit(.minutes(20))) struct ContinuedDownloadTests {
    private let folder: ScratchDirectory
    private let log = EventLog()
    private let size: Int64 = 1_000_000
    private let cut: Int64 = 600_000

    init() throws { folder = try ScratchDirectory() }

    private func session(_ retries: Int? = 4) throws -> HTTPSessionManager {
        let policy = RetryPolicy(maximumRetries: retries, baseDelay: .milliseconds(1), maximumDelay: .milliseconds(1))
        return try HTTPSessionManager(configuration: localConfiguration { $0.retryPolicy = policy }, eventMonitors: [log])
    }

    private func download(_ server: TestServer, _ path: String = "/file", retries: Int? = 4) async throws
        -> TransferResponse
    {
        try await session(retries).downloadTask(
            for: TransferRequest(url: server.url(path)), to: DownloadDestination(folder.url("file"))
        )
        .response
    }

    /// A server that truncates its first response; `next` makes the following ones.
    private func server(
        _ fields: KeyValuePairs<String, String> = ["ETag": "\"1\""], next: @escaping @Sendable (ReceivedRequest) -> StubResponse
    ) throws -> TestServer {
        let (count, size, cut) = (Counter(), size, cut)
        var first = StubResponse(fields: fields, body: .pattern(size)).cut(afterBodyBytes: cut, .truncated)
        first.pieceBytes = 50_000
        return try TestServer { [first] request in count.add() == 1 ? first : next(request) }
    }

    /// The remaining range that a request asks for, as a correct server sends it.
    private static func remainingRange(
        _ request: ReceivedRequest, of size: Int64 = 1_000_000, to end: Int64 = 1_000_000, tag: String = "\"1\""
    ) -> StubResponse {
        let start = Int64(request["range"]?.dropFirst("bytes=".count).dropLast() ?? "") ?? -1
        return StubResponse(
            206, fields: ["ETag": tag, "Content-Range": "bytes \(start)-\(end - 1)/\(size)"],
            body: StubBody([.pattern(from: start, count: end - start)]))
    }

    private func expectCompleteFile(_ count: Int64 = 1_000_000) throws {
        try expectEqual(Data(contentsOf: folder.url("file")), pattern(count))
        expectEqual(folder.names, ["file"])
    }

    @Test func `after a lost connection the remaining range is requested and appended to the partial file`() async throws {
        let server = try server { Self.remainingRange($0) }
        let resumptions = Resumptions()
        let response = try await session().downloadTask(
            for: TransferRequest(url: server.url("/file")), to: DownloadDestination(folder.url("file")),
            handlers: resumptions.handlers
        ).response
        try expectCompleteFile()
        expectEqual(response.metrics.retryCount, 1)
        expectEqual(response.metrics.bytesContinued, cut)
        expectEqual(server.requests.map { $0["range"] }, [nil, "bytes=600000-"])
        expectEqual(server.requests.map { $0["if-range"] }, [nil, "\"1\""])
        #expect(server.requests.allSatisfy { $0["accept-encoding"] == "identity" })
        await log.await("completed")
        #expect(log.names.contains("continued 600000 of 1000000"))
        expectEqual(resumptions.offsets, [600_000, 1_000_000])
    }

    /// Expects a response as if all bytes came from one complete response.
    private func expectCompleteResponse(_ response: TransferResponse, length: String?) async throws {
        expectEqual(response.statusCode, 200)
        expectEqual(response.head.headerFields[.contentLength], length)
        expectEqual(response.file, folder.url("file"))
        // Events are delivered after the task's response.
        await log.await("completed")
        expectEqual(log.names.count { $0 == "moved" }, 1)
        try expectCompleteFile()
    }

    @Test func `a continued download returns the head of its first response`() async throws {
        let server = try server { Self.remainingRange($0) }
        let response = try await download(server)
        try await expectCompleteResponse(response, length: "1000000")
        expectEqual(response.metrics.transactions.map(\.statusCode), [200, 206])
    }

    @Test func `a continued download with no remaining bytes returns the head of its first response`() async throws {
        // All bytes arrived, but not the last chunk; only the 416 to a range beyond the end gives the complete length.
        var complete = StubResponse(fields: ["ETag": "\"1\""], body: .pattern(size)).chunked().cut(afterBodyBytes: size)
        complete.pieceBytes = 50_000
        let server = try TestServer { [complete] request in
            request["range"] == nil ? complete : StubResponse(416, fields: ["ETag": "\"1\"", "Content-Range": "bytes */1000000"])
        }
        let response = try await download(server)
        try await expectCompleteResponse(response, length: nil)
        expectEqual(response.metrics.transactions.map(\.statusCode), [200, 416])
    }

    @Test func `a continued download whose 206 lost only its end returns the head of its first response`() async throws {
        let server = try server { request in
            request["if-none-match"] == nil
                ? Self.remainingRange(request).chunked().cut(afterBodyBytes: 400_000) : StubResponse(304)
        }
        let response = try await download(server)
        try await expectCompleteResponse(response, length: "1000000")
        expectEqual(response.metrics.transactions.map(\.statusCode), [200, 206, 304])
    }

    @Test func `a data task that became a download continues as a download`() async throws {
        let server = try server { Self.remainingRange($0) }
        let place = DownloadDestination(folder.url("file"))
        let policy = RetryPolicy(baseDelay: .milliseconds(1), maximumDelay: .milliseconds(1))
        let session = try HTTPSessionManager(
            configuration: localConfiguration { $0.retryPolicy = policy },
            handlers: TransferHandlers(response: { _ in .becomeDownload(place) }), eventMonitors: [log])
        let response = try await session.dataTask(for: TransferRequest(url: server.url())).response
        try await expectCompleteResponse(response, length: "1000000")
    }

    @Test func `a server without range support gets a limited number of retries`() async throws {
        let (count, size) = (Counter(), size)
        let server = try TestServer { _ in
            // Each response is a little longer, and the next attempt discards it again.
            let end = Int64(count.add()) * 50_000
            var reply = StubResponse(fields: ["ETag": "\"1\""], body: .pattern(size)).cut(afterBodyBytes: end, .truncated)
            reply.pieceBytes = 10_000
            return reply
        }
        let task = try session(2).downloadTask(
            for: TransferRequest(url: server.url()), to: DownloadDestination(folder.url("file")))
        await expectEqual(failure(task)?.code, .connectionLost)
        expectEqual(server.requests.count, 3)
    }

    @Test func `a strong Last-Modified serves as If-Range if there is no ETag`() async throws {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT"
        let server = try server(["Last-Modified": date, "Date": "Sun, 06 Nov 1994 09:49:37 GMT"]) { request in
            var reply = Self.remainingRange(request)
            reply.fields.removeAll { $0.name == "ETag" }
            return reply.field("Last-Modified", date)
        }
        _ = try await download(server)
        try expectCompleteFile()
        expectEqual(server.requests.last?["if-range"], date)
    }

    @Test func `a 200 with another version replaces the partial file from its beginning`() async throws {
        let server = try server { _ in StubResponse(fields: ["ETag": "\"2\""], body: .pattern(700_000)) }
        _ = try await download(server)
        try expectCompleteFile(700_000)
        expectEqual(server.requests.count, 2)
    }

    @Test(arguments: ["\"2\"", "W/\"1\""]) func `a 206 of another version is not appended to the partial file`(_ tag: String)
        async throws
    {
        let server = try server { request in
            request["range"] == nil
                ? StubResponse(fields: ["ETag": "\"2\""], body: .pattern(700_000)) : Self.remainingRange(request, tag: tag)
        }
        _ = try await download(server)
        try expectCompleteFile(700_000)
        expectEqual(server.requests.map { $0["range"] }, [nil, "bytes=600000-", nil])
    }

    @Test func `a 206 without ETag or Content-Range, or with another range, is not appended`() async throws {
        for fault in [0, 1, 2] {
            let folder = try ScratchDirectory()
            let server = try server { request in
                guard request["range"] != nil else { return StubResponse(body: .pattern(1_000_000)) }
                var reply = Self.remainingRange(request)
                switch fault {
                case 0: reply.fields.removeAll { $0.name == "ETag" }
                case 1: reply.fields[1].value = "bytes 599999-999998/1000000"
                default: reply.fields.removeAll { $0.name == "Content-Range" }
                }
                return reply
            }
            let place = DownloadDestination(folder.url("file"))
            _ = try await session().downloadTask(for: TransferRequest(url: server.url()), to: place).response
            try expectEqual(Data(contentsOf: folder.url("file")), pattern(1_000_000))
            expectEqual(server.requests.map { $0["range"] }, [nil, "bytes=600000-", nil])
        }
    }

    @Test func `a download without a validator restarts from the beginning`() async throws {
        let server = try server([:]) { _ in StubResponse(body: .pattern(1_000_000)) }
        let response = try await download(server)
        try expectCompleteFile()
        expectEqual(response.metrics.bytesContinued, 0)
        #expect(server.requests.allSatisfy { $0["range"] == nil })
    }

    @Test func `a download from a server that sends short ranges continues until the file is complete`() async throws {
        let server = try server { request in
            let start = Int64(request["range"]?.dropFirst(6).dropLast() ?? "") ?? 0
            return Self.remainingRange(request, to: min(start + 20_000, 1_000_000))
        }
        let response = try await download(server)
        try expectCompleteFile()
        // One attempt failed; the short ranges are not failures.
        expectEqual(response.metrics.retryCount, 1)
        expectEqual(server.requests.count, 21)
    }

    @Test func `a very short range is followed by a wait before the next request`() async throws {
        let server = try server { request in
            let start = Int64(request["range"]?.dropFirst(6).dropLast() ?? "") ?? 0
            return Self.remainingRange(request, to: start < 900_000 ? 990_000 : min(start + 4_000, 1_000_000))
        }
        let response = try await download(server)
        try expectCompleteFile()
        // One retry for the lost connection, and one for each of the two short ranges.
        expectEqual(response.metrics.retryCount, 3)
        expectEqual(server.requests.count, 5)
    }

    @Test func `a server that has another version for each request gets a limited number of retries`() async throws {
        let count = Counter()
        let server = try TestServer { request in
            guard request["range"] == nil else { return Self.remainingRange(request, tag: "\"other\"") }
            var reply = StubResponse(fields: ["ETag": "\"1\""], body: .pattern(1_000_000))
            reply.pieceBytes = 10_000
            return reply.cut(afterBodyBytes: Int64(count.add()) * 50_000, .truncated)
        }
        let task = try session(2).downloadTask(
            for: TransferRequest(url: server.url()), to: DownloadDestination(folder.url("file")))
        await expectEqual(failure(task)?.code, .connectionLost)
        expectEqual(count.count, 3)
    }

    @Test func `an attempt that receives bytes resets the number of retries`() async throws {
        let server = try server { request in Self.remainingRange(request).cut(afterBodyBytes: 20_000, .truncated) }
        let response = try await download(server, retries: 1)
        try expectCompleteFile()
        expectEqual(response.metrics.retryCount, 20)
    }

    @Test func `a 503 between attempts is retried, and the partial file is kept`() async throws {
        let count = Counter()
        let server = try server { request in count.add() < 4 ? StubResponse(503) : Self.remainingRange(request) }
        let response = try await download(server)
        try expectCompleteFile()
        expectEqual(response.metrics.bytesContinued, cut)
        #expect(server.requests.dropFirst().allSatisfy { $0["range"] == "bytes=600000-" })
    }

    @Test func `a download that ends without its remaining range removes its partial file`() async throws {
        let server = try server { _ in StubResponse(404, body: "gone") }
        let error = await failure(
            try session().downloadTask(for: TransferRequest(url: server.url()), to: DownloadDestination(folder.url("file"))))
        expectEqual(error?.code, .unacceptableStatus)
        expectEqual(error?.context.statusCode, 404)
        expectEqual(folder.names, [])
    }

    @Test func `the remaining range is requested from the redirect's target`() async throws {
        let count = Counter()
        let (size, cut) = (size, cut)
        let server = try TestServer { request in
            guard request.path != "/start" else { return .redirect(to: "/file?signature=\(count.add())") }
            guard request["range"] == nil else { return Self.remainingRange(request) }
            return StubResponse(fields: ["ETag": "\"1\""], body: .pattern(size)).cut(afterBodyBytes: cut, .truncated)
        }
        let response = try await download(server, "/start")
        try expectCompleteFile()
        expectEqual(response.metrics.bytesContinued, cut)
    }

    @Test func `another task for the original URL continues the partial file of a redirect's target`() async throws {
        let (count, cuts) = (Counter(), Counter())
        let (size, cut) = (size, cut)
        let server = try TestServer { request in
            guard request.path != "/start" else { return .redirect(to: "/file?signature=\(count.add())") }
            guard request["range"] == nil else { return Self.remainingRange(request) }
            let complete = StubResponse(fields: ["ETag": "\"1\""], body: .pattern(size))
            return cuts.add() == 1 ? complete.cut(afterBodyBytes: cut, .truncated) : complete
        }
        let place = DownloadDestination(folder.url("file"), partialFile: .keep)
        let first = try session(0).downloadTask(for: TransferRequest(url: server.url("/start")), to: place)
        await expectEqual(failure(first)?.code, .connectionLost)
        expectEqual(first.metrics?.transactions.map(\.statusCode), [302, 200])
        expectEqual(first.metrics?.redirectCount, 1)
        let second = try await session(0).downloadTask(for: TransferRequest(url: server.url("/start")), to: place).response
        try expectCompleteFile()
        expectEqual(second.metrics.bytesContinued, cut)
        expectEqual(server.requests.map { $0["range"] }, [nil, nil, nil, "bytes=600000-"])
    }

    @Test
    func `if a redirect's target works once only, the original URL is requested again and the download continues`()
        async throws
    {
        let (signatures, used) = (Counter(), Locked<Set<String>>([]))
        let (size, cut) = (size, cut)
        let server = try TestServer { request in
            guard request.path != "/start" else { return .redirect(to: "/file?signature=\(signatures.add())") }
            guard used.withLock({ $0.insert(request.target).inserted }) else { return StubResponse(403) }
            guard request["range"] == nil else { return Self.remainingRange(request) }
            return StubResponse(fields: ["ETag": "\"1\""], body: .pattern(size)).cut(afterBodyBytes: cut, .truncated)
        }
        let response = try await download(server, "/start")
        try expectCompleteFile()
        expectEqual(response.metrics.bytesContinued, cut)
        expectEqual(server.requests.map(\.target).count { $0 == "/start" }, 2)
        // If the redirect's new target fails, the download fails.
        let gone = try TestServer { request in
            if request.path == "/start" { return .redirect(to: "/file") }
            guard request["range"] == nil else { return StubResponse(410) }
            return StubResponse(fields: ["ETag": "\"1\""], body: .pattern(size)).cut(afterBodyBytes: cut, .truncated)
        }
        let place = DownloadDestination(folder.url("gone"))
        let error = await failure(try session().downloadTask(for: TransferRequest(url: gone.url("/start")), to: place))
        expectEqual(error?.context.statusCode, 410)
    }

    @Test func `a 206 longer than its Content-Range is an error and leaves no file`() async throws {
        let server = try server { request in
            var reply = Self.remainingRange(request)
            reply.body = .pattern(500_000)
            return reply.chunked()
        }
        let error = await failure(
            try session().downloadTask(for: TransferRequest(url: server.url()), to: DownloadDestination(folder.url("file"))))
        expectEqual(error?.code, .badServerResponse)
        expectEqual(folder.names, [])
    }

    @Test func `an unrequested 206 is an error`() async throws {
        let server = try TestServer { _ in
            StubResponse(206, fields: ["Content-Range": "bytes 0-9/20"], body: .pattern(10))
        }
        let error = await failure(
            try session().downloadTask(for: TransferRequest(url: server.url()), to: DownloadDestination(folder.url("file"))))
        expectEqual(error?.code, .badServerResponse)
        expectEqual(folder.names, [])
    }

    @Test func `a request with its own Range field receives that range`() async throws {
        let server = try TestServer { request in
            StubResponse(
                206, fields: ["ETag": "\"1\"", "Content-Range": "bytes 5-9/20"], body: StubBody([.pattern(from: 5, count: 5)]))
        }
        let request = TransferRequest(url: server.url(), headerFields: [.range: "bytes=5-9"])
        _ = try await session().downloadTask(for: request, to: DownloadDestination(folder.url("file"))).response
        try expectEqual(Data(contentsOf: folder.url("file")), pattern(10).suffix(5))
    }
}
