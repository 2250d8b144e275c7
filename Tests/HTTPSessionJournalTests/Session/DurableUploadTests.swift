import EventLoop
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

@testable import HTTPSessionJournal

@Suite(.timeLimit(.minutes(20))) struct DurableUploadTests {
    private let folder: ScratchDirectory
    private let listener = Listener()
    private let content = pattern(2_000_000)
    private var file: URL { folder.url("film") }

    init() throws {
        folder = try ScratchDirectory()
        try content.write(to: file)
    }

    private func session() throws -> DurableSession {
        try DurableSession(
            identifier: "test", directory: folder.url("state"), configuration: localConfiguration(),
            handlers: listener.handlers("one"))
    }

    @Test(arguments: [UploadServer.Dialect.tus, .draft])
    func `an upload goes on in another process where its server is`(_ dialect: UploadServer.Dialect) async throws {
        let gate = try Gate()
        let server = try UploadServer(dialect) { turn in
            let isFirst = turn.request.method == (dialect == .tus ? "PATCH" : "POST")
            return isFirst && turn.number <= 2 ? .hold(afterBodyBytes: 700_000, .gate(gate)) : nil
        }
        let first = try session()
        let request = TransferRequest(url: server.url, method: .post, body: .file(file))
        try await first.upload(request, resumably: dialect == .tus ? .tus : .draft, handler: "one", context: Data("x".utf8))
        try await server.awaitBodyBytes(700_000)
        // The place is written behind the answer that told it.
        while try await first.keeper.places().isEmpty { await Task.yield() }
        await first.close()
        gate.open()
        let second = try session()
        try await listener.await(events: 1)
        #expect(listener.events.map(\.outcome.word) == ["finished"])
        #expect(server.uploads.map { Data($0.bytes) } == [content])
        #expect(server.requests.filter { $0.method == "POST" }.count == 1)
        #expect(server.requests.contains { $0.method == "HEAD" })
        await second.close()
    }

    @Test func `a place at another origin gets the bytes and no credentials, in another process too`() async throws {
        let gate = try Gate()
        let other = try TestServer { [count = content.count] request in
            if request.method == "HEAD" {
                return StubResponse(200, fields: ["Upload-Offset": "0", "Upload-Length": "\(count)"])
            }
            let reply = StubResponse(204, fields: ["Upload-Offset": "\(request.bodyLength)"])
            return request.connection == 1 ? reply.held(by: gate) : reply
        }
        var options = UploadServer.Options()
        options.locationPrefix = other.origin
        let server = try UploadServer(.tus, options: options)
        let first = try session()
        let request = TransferRequest(
            url: server.url, method: .post, headerFields: [.authorization: "Bearer secret"], body: .file(file))
        try await first.upload(request, resumably: .tus, handler: "one", writesSecrets: true)
        try await other.awaitRequests(1)
        while try await first.keeper.places().isEmpty { await Task.yield() }
        await first.close()
        gate.open()
        let second = try session()
        try await listener.await(events: 1)
        #expect(listener.events.map(\.outcome.word) == ["finished"])
        #expect(other.requests.map(\.method) == ["PATCH", "HEAD", "PATCH"])
        #expect(other.requests.allSatisfy { $0["authorization"] == nil })
        #expect(server.requests.map { $0["authorization"] } == ["Bearer secret"])
        await second.close()
    }

    @Test func `a file that has changed between two processes is not uploaded`() async throws {
        let gate = try Gate()
        let server = try UploadServer(.tus) { turn in turn.request.method == "PATCH" ? .hold(afterBodyBytes: 1, .gate(gate)) : nil
        }
        let first = try session()
        let request = TransferRequest(url: server.url, method: .post, body: .file(file))
        try await first.upload(request, resumably: .tus, handler: "one")
        try await server.awaitBodyBytes(1)
        await first.close()
        try Data("another".utf8).write(to: file)
        let second = try session()
        try await listener.await(events: 1)
        #expect(listener.events.map(\.outcome.word) == ["failed file-changed"])
        await second.close()
    }

    @Test func `a POST that may have been carried out is not sent by another process, a PUT is`() async throws {
        let gate = try Gate()
        let server = try TestServer { request in
            let reply = StubResponse(body: "said")
            return request.numberOnConnection == 1 && request.arrival <= 2 ? reply.held(by: gate) : reply
        }
        let first = try session()
        for method in [HTTPRequest.Method.post, .put] {
            let request = TransferRequest(url: server.url("/\(method)"), method: method, body: .file(file))
            try await first.upload(request, handler: "one", context: Data(method.rawValue.utf8))
        }
        try await server.awaitRequests(2)
        await first.close()
        gate.open()
        let second = try session()
        try await listener.await(events: 2)
        let outcomes = Dictionary(
            uniqueKeysWithValues: listener.events.map { (String(decoding: $0.task.context, as: UTF8.self), $0.outcome.word) })
        #expect(outcomes == ["POST": "interrupted", "PUT": "finished"])
        #expect(server.requests.map(\.method).sorted() == ["POST", "PUT", "PUT"])
        let put = try #require(listener.events.first { $0.task.context == Data("PUT".utf8) })
        if case .finished(let response) = put.outcome { #expect(response?.body == Data("said".utf8)) }
        await second.close()
    }

    @Test func `a POST that has not left is sent by another process, once`() async throws {
        let folder = folder
        let socket = folder.file("socket")
        var configuration = localConfiguration()
        configuration.unixSocketPath = socket
        let log = RetryLog()
        let handlers = listener.handlers("one")
        func open() throws -> DurableSession {
            try DurableSession(
                identifier: "later", directory: folder.url("state"), configuration: configuration, handlers: handlers,
                monitors: [log])
        }
        let first = try open()
        let url = try #require(URL(string: "http://server.example/"))
        var request = TransferRequest(url: url, method: .post, body: .file(file))
        request.options.retryPolicy = RetryPolicy(
            maximumRetries: nil, baseDelay: .milliseconds(1), maximumDelay: .milliseconds(1))
        try await first.upload(request, handler: "one")
        // There is no server yet.
        await log.awaitRetry()
        await log.awaitRetry()
        await first.close()
        let server = try TestServer(at: .unix(socket)) { _ in StubResponse(201) }
        let second = try open()
        try await listener.await(events: 1)
        #expect(listener.events.map(\.outcome.word) == ["finished"])
        #expect(server.requests.map(\.method) == ["POST"])
        await second.close()
    }

    @Test func `nothing of an upload is sent before its place is written down`() async throws {
        let server = try UploadServer(.tus)
        // The task and its transfer, but not its place: as if the process were killed there.
        let fuse = Fuse(2)
        let first = try DurableSession(
            identifier: "test", directory: folder.url("state"), configuration: localConfiguration(),
            handlers: listener.handlers("one"), surroundings: fuse.surroundings)
        let request = TransferRequest(url: server.url, method: .post, body: .file(file))
        try await first.upload(request, resumably: .tus, handler: "one")
        for await _ in fuse.burnt.stream { break }
        await first.close()
        #expect(server.requests.map(\.method) == ["POST"])
        let second = try session()
        try await listener.await(events: 1)
        #expect(listener.events.map(\.outcome.word) == ["finished"])
        #expect(server.requests.map(\.method) == ["POST", "POST", "PATCH"])
        await second.close()
    }

    @Test func `only what can be written down is taken`() async throws {
        let session = try session()
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let bodies: [RequestBody] = [
            .none, .multipart(MultipartForm()), .stream(length: nil) { AsyncThrowingStream { nil } },
            .file(folder.url("missing")), .file(URL(fileURLWithPath: folder.path)),
        ]
        for body in bodies {
            let error = await #expect(throws: DurableSessionError.self) {
                try await session.upload(TransferRequest(url: url, method: .put, body: body), handler: "one")
            }
            #expect(error?.code == .invalidTask)
        }
        #expect(try await session.tasks.isEmpty)
        await session.close()
    }

    @Test func `an answer that is no success is a failure`() async throws {
        let server = try TestServer { _ in StubResponse(403) }
        let session = try session()
        try await session.upload(
            TransferRequest(url: server.url("/"), method: .put, body: .data(Data("x".utf8))), handler: "one")
        try await listener.await(events: 1)
        #expect(listener.events.map(\.outcome.word) == ["failed unacceptable-status"])
        await session.close()
    }
}

/// Waits for a session's word that it will try again.
private final class RetryLog: EventMonitor {
    private let news = AsyncStream<Void>.makeStream()

    func handle(_ event: SessionEvent) {
        if case .willRetry = event { news.continuation.yield() }
    }

    func awaitRetry() async {
        for await _ in news.stream { break }
    }
}
