import EventLoop
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// Downloads that lose their connection, and what the server says then. The file has 1,000,000 bytes; the first response ends after
/// 600,000 of them.
@Suite(.timeLimit(.minutes(20))) struct ContinuedDownloadTests {
    private let folder: ScratchDirectory
    private let log = EventLog()
    private let size: Int64 = 1_000_000
    private let cut: Int64 = 600_000

    init() throws { folder = try ScratchDirectory() }

    private func session(_ retries: Int? = 4) throws -> HTTPSessionManager {
        let policy = RetryPolicy(maximumRetries: retries, baseDelay: .milliseconds(1), maximumDelay: .milliseconds(1))
        return try HTTPSessionManager(configuration: localConfiguration { $0.retryPolicy = policy }, monitors: [log])
    }

    private func download(_ server: MisbehavingServer, _ path: String = "/file", retries: Int? = 4) async throws
        -> TransferResponse
    {
        try await session(retries).download(TransferRequest(url: server.url(path)), to: DownloadDestination(folder.url("file")))
            .value
    }

    /// A server whose first answer is cut off; `next` gives the answers behind it.
    private func server(
        _ fields: KeyValuePairs<String, String> = ["ETag": "\"1\""], next: @escaping @Sendable (ReceivedRequest) -> Reply
    ) throws -> MisbehavingServer {
        let (count, size, cut) = (Counter(), size, cut)
        var first = Reply(fields: fields, body: .pattern(size)).cut(afterBodyBytes: cut, .truncated)
        first.pieceBytes = 50_000
        return try MisbehavingServer { [first] request in count.add() == 1 ? first : next(request) }
    }

    /// The rest that a request asks for, as a good server sends it.
    private static func rest(
        _ request: ReceivedRequest, of size: Int64 = 1_000_000, to end: Int64 = 1_000_000, tag: String = "\"1\""
    ) -> Reply {
        let start = Int64(request["range"]?.dropFirst("bytes=".count).dropLast() ?? "") ?? -1
        return Reply(
            206, fields: ["ETag": tag, "Content-Range": "bytes \(start)-\(end - 1)/\(size)"],
            body: ReplyBody([.pattern(from: start, count: end - start)]))
    }

    private func expectWholeFile(_ count: Int64 = 1_000_000) throws {
        #expect(try Data(contentsOf: folder.url("file")) == pattern(count))
        #expect(folder.names == ["file"])
    }

    @Test func `the rest is asked for, and put behind what is here`() async throws {
        let server = try server { Self.rest($0) }
        let resumptions = Resumptions()
        let response = try await session().download(
            TransferRequest(url: server.url("/file")), to: DownloadDestination(folder.url("file")), handlers: resumptions.handlers
        ).value
        try expectWholeFile()
        #expect(response.metrics.retryCount == 1)
        #expect(response.metrics.bytesResumed == cut)
        #expect(server.requests.map { $0["range"] } == [nil, "bytes=600000-"])
        #expect(server.requests.map { $0["if-range"] } == [nil, "\"1\""])
        #expect(server.requests.allSatisfy { $0["accept-encoding"] == "identity" })
        await log.await("completed")
        #expect(log.names.contains("continued 600000 of 1000000"))
        #expect(resumptions.offsets == [600_000, 1_000_000])
    }

    /// What a task answers that had its bytes from one whole response.
    private func expectWholeResponse(_ response: TransferResponse, length: String?) async throws {
        #expect(response.statusCode == 200)
        #expect(response.head.headerFields[.contentLength] == length)
        #expect(response.file == folder.url("file"))
        // Events come after the value.
        await log.await("completed")
        #expect(log.names.count { $0 == "moved" } == 1)
        try expectWholeFile()
    }

    @Test func `the answer is the response that the bytes began with`() async throws {
        let server = try server { Self.rest($0) }
        let response = try await download(server)
        try await expectWholeResponse(response, length: "1000000")
        #expect(response.metrics.transactions.map(\.statusCode) == [200, 206])
    }

    @Test func `so it is where nothing was missing any more`() async throws {
        // All bytes came, but not the chunk that says so; how many there are, only the range beyond their end tells.
        var whole = Reply(fields: ["ETag": "\"1\""], body: .pattern(size)).chunked().cut(afterBodyBytes: size)
        whole.pieceBytes = 50_000
        let server = try MisbehavingServer { [whole] request in
            request["range"] == nil ? whole : Reply(416, fields: ["ETag": "\"1\"", "Content-Range": "bytes */1000000"])
        }
        let response = try await download(server)
        try await expectWholeResponse(response, length: nil)
        #expect(response.metrics.transactions.map(\.statusCode) == [200, 416])
    }

    @Test func `and where the rest was all, but for its end`() async throws {
        let server = try server { request in
            request["if-none-match"] == nil ? Self.rest(request).chunked().cut(afterBodyBytes: 400_000) : Reply(304)
        }
        let response = try await download(server)
        try await expectWholeResponse(response, length: "1000000")
        #expect(response.metrics.transactions.map(\.statusCode) == [200, 206, 304])
    }

    @Test func `a data task that became a download goes on as one`() async throws {
        let server = try server { Self.rest($0) }
        let place = DownloadDestination(folder.url("file"))
        let policy = RetryPolicy(baseDelay: .milliseconds(1), maximumDelay: .milliseconds(1))
        let session = try HTTPSessionManager(
            configuration: localConfiguration { $0.retryPolicy = policy },
            handlers: TransferHandlers(response: { _ in .becomeDownload(place) }), monitors: [log])
        let response = try await session.data(TransferRequest(url: server.url())).value
        try await expectWholeResponse(response, length: "1000000")
    }

    @Test func `a server that knows no ranges is not asked for ever`() async throws {
        let (count, size) = (Counter(), size)
        let server = try MisbehavingServer { _ in
            // A little more each time, which the next attempt loses again.
            let end = Int64(count.add()) * 50_000
            var reply = Reply(fields: ["ETag": "\"1\""], body: .pattern(size)).cut(afterBodyBytes: end, .truncated)
            reply.pieceBytes = 10_000
            return reply
        }
        let task = try session(2).download(TransferRequest(url: server.url()), to: DownloadDestination(folder.url("file")))
        #expect(await failure(task)?.code == .connectionLost)
        #expect(server.requests.count == 3)
    }

    @Test func `a strong date will do where there is no tag`() async throws {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT"
        let server = try server(["Last-Modified": date, "Date": "Sun, 06 Nov 1994 09:49:37 GMT"]) { request in
            var reply = Self.rest(request)
            reply.fields.removeAll { $0.name == "ETag" }
            return reply.field("Last-Modified", date)
        }
        _ = try await download(server)
        try expectWholeFile()
        #expect(server.requests.last?["if-range"] == date)
    }

    @Test func `another version is taken from its beginning`() async throws {
        let server = try server { _ in Reply(fields: ["ETag": "\"2\""], body: .pattern(700_000)) }
        _ = try await download(server)
        try expectWholeFile(700_000)
        #expect(server.requests.count == 2)
    }

    @Test(arguments: ["\"2\"", "W/\"1\""]) func `a rest of another version is not put behind this one`(_ tag: String) async throws
    {
        let server = try server { request in
            request["range"] == nil
                ? Reply(fields: ["ETag": "\"2\""], body: .pattern(700_000)) : Self.rest(request, tag: tag)
        }
        _ = try await download(server)
        try expectWholeFile(700_000)
        #expect(server.requests.map { $0["range"] } == [nil, "bytes=600000-", nil])
    }

    @Test func `a rest without a tag, or from elsewhere, is not believed`() async throws {
        for fault in [0, 1, 2] {
            let folder = try ScratchDirectory()
            let server = try server { request in
                guard request["range"] != nil else { return Reply(body: .pattern(1_000_000)) }
                var reply = Self.rest(request)
                switch fault {
                case 0: reply.fields.removeAll { $0.name == "ETag" }
                case 1: reply.fields[1].value = "bytes 599999-999998/1000000"
                default: reply.fields.removeAll { $0.name == "Content-Range" }
                }
                return reply
            }
            let place = DownloadDestination(folder.url("file"))
            _ = try await session().download(TransferRequest(url: server.url()), to: place).value
            #expect(try Data(contentsOf: folder.url("file")) == pattern(1_000_000))
            #expect(server.requests.map { $0["range"] } == [nil, "bytes=600000-", nil])
        }
    }

    @Test func `a body without a validator begins anew`() async throws {
        let server = try server([:]) { _ in Reply(body: .pattern(1_000_000)) }
        let response = try await download(server)
        try expectWholeFile()
        #expect(response.metrics.bytesResumed == 0)
        #expect(server.requests.allSatisfy { $0["range"] == nil })
    }

    @Test func `a server that gives little at a time is asked as often as it takes`() async throws {
        let server = try server { request in
            let start = Int64(request["range"]?.dropFirst(6).dropLast() ?? "") ?? 0
            return Self.rest(request, to: min(start + 20_000, 1_000_000))
        }
        let response = try await download(server)
        try expectWholeFile()
        // One failed; that the others were short was the server's wish.
        #expect(response.metrics.retryCount == 1)
        #expect(server.requests.count == 21)
    }

    @Test func `after a part that is hardly one, there is a wait`() async throws {
        let server = try server { request in
            let start = Int64(request["range"]?.dropFirst(6).dropLast() ?? "") ?? 0
            return Self.rest(request, to: start < 900_000 ? 990_000 : min(start + 4_000, 1_000_000))
        }
        let response = try await download(server)
        try expectWholeFile()
        // The lost connection, and two parts that were followed by others.
        #expect(response.metrics.retryCount == 3)
        #expect(server.requests.count == 5)
    }

    @Test func `a server that has another version at every look is not asked for ever`() async throws {
        let count = Counter()
        let server = try MisbehavingServer { request in
            guard request["range"] == nil else { return Self.rest(request, tag: "\"other\"") }
            var reply = Reply(fields: ["ETag": "\"1\""], body: .pattern(1_000_000))
            reply.pieceBytes = 10_000
            return reply.cut(afterBodyBytes: Int64(count.add()) * 50_000, .truncated)
        }
        let task = try session(2).download(TransferRequest(url: server.url()), to: DownloadDestination(folder.url("file")))
        #expect(await failure(task)?.code == .connectionLost)
        #expect(count.count == 3)
    }

    @Test func `every attempt that brings something gives the next ones their number again`() async throws {
        let server = try server { request in Self.rest(request).cut(afterBodyBytes: 20_000, .truncated) }
        let response = try await download(server, retries: 1)
        try expectWholeFile()
        #expect(response.metrics.retryCount == 20)
    }

    @Test func `errors between are waited out, and the bytes kept`() async throws {
        let count = Counter()
        let server = try server { request in count.add() < 4 ? Reply(503) : Self.rest(request) }
        let response = try await download(server)
        try expectWholeFile()
        #expect(response.metrics.bytesResumed == cut)
        #expect(server.requests.dropFirst().allSatisfy { $0["range"] == "bytes=600000-" })
    }

    @Test func `an end without the rest leaves nothing behind`() async throws {
        let server = try server { _ in Reply(404, body: "gone") }
        let error = await failure(
            try session().download(TransferRequest(url: server.url()), to: DownloadDestination(folder.url("file"))))
        #expect(error?.code == .unacceptableStatus)
        #expect(error?.context.statusCode == 404)
        #expect(folder.names == [])
    }

    @Test func `the rest is asked for where the body came from, behind the redirect`() async throws {
        let count = Counter()
        let (size, cut) = (size, cut)
        let server = try MisbehavingServer { request in
            guard request.path != "/start" else { return .redirect(to: "/file?signature=\(count.add())") }
            guard request["range"] == nil else { return Self.rest(request) }
            return Reply(fields: ["ETag": "\"1\""], body: .pattern(size)).cut(afterBodyBytes: cut, .truncated)
        }
        let response = try await download(server, "/start")
        try expectWholeFile()
        #expect(response.metrics.bytesResumed == cut)
    }

    @Test func `what a redirect led to is gone on from by another task that asks for the first address`() async throws {
        let (count, cuts) = (Counter(), Counter())
        let (size, cut) = (size, cut)
        let server = try MisbehavingServer { request in
            guard request.path != "/start" else { return .redirect(to: "/file?signature=\(count.add())") }
            guard request["range"] == nil else { return Self.rest(request) }
            let whole = Reply(fields: ["ETag": "\"1\""], body: .pattern(size))
            return cuts.add() == 1 ? whole.cut(afterBodyBytes: cut, .truncated) : whole
        }
        let place = DownloadDestination(folder.url("file"), unfinished: .kept)
        let first = try session(0).download(TransferRequest(url: server.url("/start")), to: place)
        #expect(await failure(first)?.code == .connectionLost)
        #expect(first.metrics?.transactions.map(\.statusCode) == [302, 200])
        #expect(first.metrics?.redirectCount == 1)
        let second = try await session(0).download(TransferRequest(url: server.url("/start")), to: place).value
        try expectWholeFile()
        #expect(second.metrics.bytesResumed == cut)
        #expect(server.requests.map { $0["range"] } == [nil, nil, nil, "bytes=600000-"])
    }

    @Test func `an address that holds once is asked for anew, and its version goes on`() async throws {
        let (signatures, used) = (Counter(), Locked<Set<String>>([]))
        let (size, cut) = (size, cut)
        let server = try MisbehavingServer { request in
            guard request.path != "/start" else { return .redirect(to: "/file?signature=\(signatures.add())") }
            guard used.withLock({ $0.insert(request.target).inserted }) else { return Reply(403) }
            guard request["range"] == nil else { return Self.rest(request) }
            return Reply(fields: ["ETag": "\"1\""], body: .pattern(size)).cut(afterBodyBytes: cut, .truncated)
        }
        let response = try await download(server, "/start")
        try expectWholeFile()
        #expect(response.metrics.bytesResumed == cut)
        #expect(server.requests.map(\.target).count { $0 == "/start" } == 2)
        // And one that no longer leads anywhere ends it.
        let gone = try MisbehavingServer { request in
            if request.path == "/start" { return .redirect(to: "/file") }
            guard request["range"] == nil else { return Reply(410) }
            return Reply(fields: ["ETag": "\"1\""], body: .pattern(size)).cut(afterBodyBytes: cut, .truncated)
        }
        let place = DownloadDestination(folder.url("gone"))
        let error = await failure(try session().download(TransferRequest(url: gone.url("/start")), to: place))
        #expect(error?.context.statusCode == 410)
    }

    @Test func `a rest that is longer than it says is no file`() async throws {
        let server = try server { request in
            var reply = Self.rest(request)
            reply.body = .pattern(500_000)
            return reply.chunked()
        }
        let error = await failure(
            try session().download(TransferRequest(url: server.url()), to: DownloadDestination(folder.url("file"))))
        #expect(error?.code == .badServerResponse)
        #expect(folder.names == [])
    }

    @Test func `a part that nobody asked for is an error`() async throws {
        let server = try MisbehavingServer { _ in
            Reply(206, fields: ["Content-Range": "bytes 0-9/20"], body: .pattern(10))
        }
        let error = await failure(
            try session().download(TransferRequest(url: server.url()), to: DownloadDestination(folder.url("file"))))
        #expect(error?.code == .badServerResponse)
        #expect(folder.names == [])
    }

    @Test func `whoever asks for a part gets that part`() async throws {
        let server = try MisbehavingServer { request in
            Reply(
                206, fields: ["ETag": "\"1\"", "Content-Range": "bytes 5-9/20"], body: ReplyBody([.pattern(from: 5, count: 5)]))
        }
        let request = TransferRequest(url: server.url(), headerFields: [.range: "bytes=5-9"])
        _ = try await session().download(request, to: DownloadDestination(folder.url("file"))).value
        #expect(try Data(contentsOf: folder.url("file")) == pattern(10).suffix(5))
    }
}
