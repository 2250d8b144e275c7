import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing
import TestServers

@testable import HTTPSessionJournal

@Suite(.timeLimit(.minutes(20))) struct DurableUploadTests {
    private let folder: ScratchDirectory
    private let recorder = EventRecorder()
    private let content = pattern(2_000_000)
    private var file: URL { folder.url("film") }

    init() throws {
        folder = try ScratchDirectory()
        try content.write(to: file)
    }

    private func session() async throws -> DurableSession {
        try await DurableSession.open(
            identifier: "test", directory: folder.url("state"), configuration: localConfiguration(),
            handlers: recorder.handlers("one"), environment: .init())
    }

    @Test(arguments: [UploadServer.Dialect.tus, .draft])
    func `an upload continues in the next session at the offset that its server reports`(
        _ dialect: UploadServer.Dialect
    ) async throws {
        let gate = try Gate()
        let server = try UploadServer(dialect) { turn in
            let isFirst = turn.request.method == (dialect == .tus ? "PATCH" : "POST")
            return isFirst && turn.number <= 2 ? .hold(afterBodyBytes: 700_000, .gate(gate)) : nil
        }
        let first = try await session()
        let request = TransferRequest(url: server.url, method: .post)
        try await first.uploadTask(
            for: request, from: .file(file), resumableUsing: dialect == .tus ? .tus : .draft, handler: "one",
            context: Data("x".utf8))
        try await server.awaitBodyBytes(700_000)
        // The location is written after the response that announces it.
        while try await first.coordinator.uploadLocations().isEmpty { await Task.yield() }
        await first.close()
        gate.open()
        let second = try await session()
        try await recorder.await(events: 1)
        expectEqual(recorder.events.map(\.outcome.summary), ["finished"])
        expectEqual(server.uploads.map { Data($0.bytes) }, [content])
        expectEqual(server.requests.filter { $0.method == "POST" }.count, 1)
        #expect(server.requests.contains { $0.method == "HEAD" })
        await second.close()
    }

    @Test func `an upload location at another origin receives bytes but no credentials, also in the next session`() async throws {
        let gate = try Gate()
        let other = try TestServer { [count = content.count] request in
            if request.method == "HEAD" {
                return StubResponse(200, fields: ["Upload-Offset": "0", "Upload-Length": "\(count)"])
            }
            let reply = StubResponse(204, fields: ["Upload-Offset": "\(request.bodyLength)"])
            return request.connection == 1 ? reply.held(by: gate) : reply
        }
        var configuration = UploadServer.Configuration()
        configuration.locationPrefix = other.origin
        let server = try UploadServer(.tus, configuration: configuration)
        let first = try await session()
        let request = TransferRequest(
            url: server.url, method: .post, headerFields: [.authorization: "Bearer secret"])
        try await first.uploadTask(
            for: request, from: .file(file), resumableUsing: .tus, handler: "one", writesSecrets: true)
        try await other.awaitRequests(1)
        while try await first.coordinator.uploadLocations().isEmpty { await Task.yield() }
        await first.close()
        gate.open()
        let second = try await session()
        try await recorder.await(events: 1)
        expectEqual(recorder.events.map(\.outcome.summary), ["finished"])
        expectEqual(other.requests.map(\.method), ["PATCH", "HEAD", "PATCH"])
        #expect(other.requests.allSatisfy { $0["authorization"] == nil })
        expectEqual(server.requests.map { $0["authorization"] }, ["Bearer secret"])
        await second.close()
    }

    @Test func `an upload whose file has changed between two sessions fails`() async throws {
        let gate = try Gate()
        let server = try UploadServer(.tus) { turn in turn.request.method == "PATCH" ? .hold(afterBodyBytes: 1, .gate(gate)) : nil
        }
        let first = try await session()
        let request = TransferRequest(url: server.url, method: .post)
        try await first.uploadTask(for: request, from: .file(file), resumableUsing: .tus, handler: "one")
        try await server.awaitBodyBytes(1)
        await first.close()
        try Data("another".utf8).write(to: file)
        let second = try await session()
        try await recorder.await(events: 1)
        expectEqual(recorder.events.map(\.outcome.summary), ["failed file-changed"])
        await second.close()
    }

    @Test func `a POST that may have been carried out is interrupted in the next session, and a PUT is repeated`() async throws {
        let gate = try Gate()
        let server = try TestServer { request in
            let reply = StubResponse(body: "said")
            return request.numberOnConnection == 1 && request.arrival <= 2 ? reply.held(by: gate) : reply
        }
        let first = try await session()
        for method in [HTTPRequest.Method.post, .put] {
            let request = TransferRequest(url: server.url("/\(method)"), method: method)
            try await first.uploadTask(
                for: request, from: .file(file), handler: "one", context: Data(method.rawValue.utf8))
        }
        try await server.awaitRequests(2)
        await first.close()
        gate.open()
        let second = try await session()
        try await recorder.await(events: 2)
        let outcomes = Dictionary(
            uniqueKeysWithValues: recorder.events.map { (String(decoding: $0.task.context, as: UTF8.self), $0.outcome.summary) })
        expectEqual(outcomes, ["POST": "interrupted", "PUT": "finished"])
        expectEqual(server.requests.map(\.method).sorted(), ["POST", "PUT", "PUT"])
        let put = try #require(recorder.events.first { $0.task.context == Data("PUT".utf8) })
        if case .finished(let response) = put.outcome { expectEqual(response?.body, Data("said".utf8)) }
        await second.close()
    }

    @Test func `a POST that was not sent is sent by the next session once`() async throws {
        let folder = folder
        let socket = folder.file("socket")
        var configuration = localConfiguration()
        configuration.unixSocketPath = socket
        let log = RetryLog()
        let handlers = recorder.handlers("one")
        func open() async throws -> DurableSession {
            try await DurableSession.open(
                identifier: "later", directory: folder.url("state"), configuration: configuration, handlers: handlers,
                eventMonitors: [log])
        }
        let first = try await open()
        let url = try #require(URL(string: "http://server.example/"))
        var request = TransferRequest(url: url, method: .post)
        request.options.retryPolicy = RetryPolicy(
            maximumRetries: nil, baseDelay: .milliseconds(1), maximumDelay: .milliseconds(1))
        try await first.uploadTask(for: request, from: .file(file), handler: "one")
        // There is no server yet.
        await log.awaitRetry()
        await log.awaitRetry()
        await first.close()
        let server = try TestServer(at: .unix(socket)) { _ in StubResponse(201) }
        let second = try await open()
        try await recorder.await(events: 1)
        expectEqual(recorder.events.map(\.outcome.summary), ["finished"])
        expectEqual(server.requests.map(\.method), ["POST"])
        await second.close()
    }

    @Test func `no byte of an upload is sent before its location is in the journal`() async throws {
        let server = try UploadServer(.tus)
        // The session writes the task and starts its transfer, and stops before it writes the location.
        let limit = StepLimit(2)
        let first = try await DurableSession.open(
            identifier: "test", directory: folder.url("state"), configuration: localConfiguration(),
            handlers: recorder.handlers("one"), environment: limit.environment)
        let request = TransferRequest(url: server.url, method: .post)
        try await first.uploadTask(for: request, from: .file(file), resumableUsing: .tus, handler: "one")
        for await _ in limit.reached.stream { break }
        await first.close()
        expectEqual(server.requests.map(\.method), ["POST"])
        let second = try await session()
        try await recorder.await(events: 1)
        expectEqual(recorder.events.map(\.outcome.summary), ["finished"])
        expectEqual(server.requests.map(\.method), ["POST", "POST", "PATCH"])
        await second.close()
    }

    @Test func `an upload without a body of data or of a readable file is refused`() async throws {
        let session = try await session()
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let bodies: [RequestBody] = [
            .none, .multipart(MultipartForm()), .stream(length: nil) { AsyncThrowingStream { nil } },
            .file(folder.url("missing")), .file(URL(fileURLWithPath: folder.path)),
        ]
        for body in bodies {
            let error = await #expect(throws: DurableSessionError.self) {
                try await session.uploadTask(for: TransferRequest(url: url, method: .put), from: body, handler: "one")
            }
            expectEqual(error?.code, .invalidTask)
        }
        try await expectEmpty(session.tasks)
        await session.close()
    }

    @Test func `an upload with status 403 fails`() async throws {
        let server = try TestServer { _ in StubResponse(403) }
        let session = try await session()
        try await session.uploadTask(
            for: TransferRequest(url: server.url("/"), method: .put), from: .data(Data("x".utf8)), handler: "one")
        try await recorder.await(events: 1)
        expectEqual(recorder.events.map(\.outcome.summary), ["failed unacceptable-status"])
        await session.close()
    }
}

/// Lets a test wait until a session announces a retry.
private final class RetryLog: EventMonitor {
    private let retries = AsyncStream<Void>.makeStream()

    func handle(_ event: SessionEvent) {
        if case .willRetry = event { retries.continuation.yield() }
    }

    func awaitRetry() async {
        for await _ in retries.stream { break }
    }
}
