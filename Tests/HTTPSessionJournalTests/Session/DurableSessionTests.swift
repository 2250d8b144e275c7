import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

@testable import HTTPSessionJournal

@Suite(.timeLimit(.minutes(20))) struct DurableSessionTests {
    private let folder: ScratchDirectory
    private let recorder = EventRecorder()
    private let size = 1_000_000

    init() throws { folder = try ScratchDirectory() }

    private func session(
        _ handlers: DurableHandlers, limits: DurableLimits = DurableLimits(), transferHandlers: TransferHandlers = .init(),
        environment: TaskCoordinator.Environment = .init()
    ) async throws -> DurableSession {
        try await DurableSession.open(
            identifier: "test", directory: folder.url("state"), configuration: localConfiguration(), limits: limits,
            handlers: handlers, transferHandlers: transferHandlers, environment: environment)
    }

    private func names(in directory: String = "") throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.file(directory)).filter { $0 != "state" }.sorted()
    }

    /// A server of one file with a strong entity tag. Its first response stops after `cut` bytes until the gate opens.
    private func server(cut: Int? = nil, _ gate: Gate? = nil) throws -> TestServer {
        let isFirst = Locked(true)
        return try TestServer { [size] request in
            let start = request["range"].flatMap { Int64($0.dropFirst("bytes=".count).dropLast()) } ?? 0
            let count = Int64(size) - start
            var body = StubBody([.pattern(from: start, count: count)])
            let wasFirst = isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst
            }
            if let cut, let gate, wasFirst {
                body = StubBody([
                    .pattern(from: 0, count: Int64(cut)), .wait(.gate(gate)),
                    .pattern(from: Int64(cut), count: count - Int64(cut)),
                ])
            }
            let reply = StubResponse(start > 0 ? 206 : 200, body: body).field("ETag", "\"1\"")
            return start > 0 ? reply.field("Content-Range", "bytes \(start)-\(size - 1)/\(size)") : reply
        }
    }

    @Test func `a finished download is at its destination, its handler receives one event, no other file remains`() async throws {
        let server = try server()
        let session = try await session(recorder.handlers("one"))
        let destination = DownloadDestination(folder.url("new/file"), createsDirectories: true)
        let task = try await session.downloadTask(
            for: TransferRequest(url: server.url("/a?b=c")), to: destination, handler: "one", context: Data("7".utf8))
        try await recorder.await(2)
        expectEqual(recorder.order, ["finished earlier", "7"])
        let event = try #require(recorder.events.first)
        #expect(event.id == task.id && event.task.file == destination.file && event.task.hasEnded)
        guard case .finished(let response?) = event.outcome else { throw DurableSessionError(.invalidTask, "\(event)") }
        #expect(response.statusCode == 200 && response.url.path == "/a")
        #expect(!"\(event.task)".contains("b=c"))
        try expectEqual(Data(contentsOf: destination.file), pattern(size))
        try expectEqual(names(in: "new"), ["file"])
        try await expectEmpty(session.tasks)
        await session.close()
        let next = EventRecorder()
        await (try await self.session(next.handlers("one"))).close()
        expectEmpty(next.events)
    }

    @Test func `a download that one session has begun continues in the next session at its last byte`() async throws {
        let gate = try Gate()
        let server = try server(cut: 600_000, gate)
        let destination = DownloadDestination(folder.url("file"))
        let first = try await session(recorder.handlers("one"))
        let made = try await first.downloadTask(for: TransferRequest(url: server.url("/")), to: destination, handler: "one")
        let transfer = try #require(made.transferTask)
        for await progress in transfer.progress where progress.bytesReceived >= 500_000 { break }
        await first.close()
        expectEmpty(recorder.events)
        // The partial file and its sidecar, and no file at the destination.
        #expect(try names().count == 2 && names().allSatisfy { $0.hasPrefix(".file.") })
        let second = try await session(recorder.handlers("one"))
        #expect(try await second.tasks.map(\.id).allSatisfy { $0 == made.id })
        try await recorder.await(events: 1)
        expectEqual(recorder.events.map(\.id), [made.id])
        try expectEqual(Data(contentsOf: destination.file), pattern(size))
        try expectEqual(names(), ["file"])
        expectEqual(server.requests.count, 2)
        #expect(server.requests.last?["range"]?.hasPrefix("bytes=") == true)
        await second.close()
    }

    @Test func `an event is delivered after every start under the same identifier until it is acknowledged`() async throws {
        let server = try server()
        let passive = EventRecorder(acknowledges: false)
        let first = try await session(passive.handlers("one"))
        try await first.downloadTask(for: TransferRequest(url: server.url("/")), to: .init(folder.url("file")), handler: "one")
        try await passive.await(2)
        await first.close()
        for round in 2...3 {
            let next = try await session(passive.handlers("one"))
            try await passive.await(round * 2)
            #expect(Set(passive.events.map(\.id)).count == 1 && passive.events.count == round)
            await next.close()
        }
        // Events of earlier processes precede the call of didFinishEvents.
        expectEqual(passive.order, ["finished earlier", "", "", "finished earlier", "", "finished earlier"])
        let last = try await session(recorder.handlers("one"))
        try await recorder.await(2)
        try await expectEmpty(last.tasks)
        let error = await #expect(throws: DurableSessionError.self) { try await recorder.events[0].acknowledge() }
        expectEqual(error?.code, .unknownTask)
        await last.close()
        expectEqual(server.requests.count, 1)
    }

    @Test func `an event without its handler stays in the journal, and unknownHandlers names the handler`() async throws {
        let server = try server()
        let passive = EventRecorder(acknowledges: false)
        let first = try await session(passive.handlers("one"))
        let error = await #expect(throws: DurableSessionError.self) {
            try await first.downloadTask(for: TransferRequest(url: server.url("/")), to: .init(folder.url("x")), handler: "two")
        }
        expectEqual(error?.code, .unknownHandler)
        try await first.downloadTask(for: TransferRequest(url: server.url("/")), to: .init(folder.url("file")), handler: "one")
        try await passive.await(2)
        await first.close()
        let second = try await session(recorder.handlers("two"))
        try await recorder.await(1)
        #expect(recorder.order == ["finished earlier"] && second.unknownHandlers == ["one"])
        try await expectEqual(second.pendingEvents.map(\.task.handler), ["one"])
        await second.close()
        let third = try await session(recorder.handlers("one"))
        try await recorder.await(3)
        #expect(third.unknownHandlers.isEmpty && recorder.events.count == 1)
        await third.close()
    }

    @Test func `a second session of one identifier fails with the process that has it open`() async throws {
        let first = try await session(recorder.handlers("one"))
        let error = await #expect(throws: DurableSessionError.self) { try await session(recorder.handlers("one")) }
        #expect(error?.code == .inUse && error?.reason.contains("process \(getpid())") == true)
        let other = try await DurableSession.open(
            identifier: "other", directory: folder.url("state"), configuration: localConfiguration())
        await other.close()
        await first.close()
        await (try await session(recorder.handlers("one"))).close()
        for name in ["", ".x", "a/b", "é", String(repeating: "a", count: 101)] {
            let error = await #expect(throws: DurableSessionError.self) {
                try await DurableSession.open(identifier: name, directory: folder.url("state"))
            }
            expectEqual(error?.code, .invalidIdentifier)
        }
    }

    @Test func `a session without owner releases its journal`() async throws {
        var first: DurableSession? = try await session(recorder.handlers("one"))
        #expect(first != nil)
        first = nil
        var second: DurableSession?
        while second == nil {
            do { second = try await session(recorder.handlers("one")) } catch { await Task.yield() }
        }
        await second?.close()
        let closed = await #expect(throws: DurableSessionError.self) { try await second?.tasks }
        expectEqual(closed?.code, .closed)
    }

    @Test func `an event that its handler keeps does not keep the session open and is delivered again`() async throws {
        final class DeinitSignal: Sendable {
            let stream: AsyncStream<Never>.Continuation
            init(_ stream: AsyncStream<Never>.Continuation) { self.stream = stream }
            deinit { stream.finish() }
        }
        let server = try server()
        let (end, signalStream) = AsyncStream<Never>.makeStream()
        func runSession() async throws -> DurableEvent {
            let signal = DeinitSignal(signalStream)
            let keeping = EventRecorder(acknowledges: false) { _ in withExtendedLifetime(signal) {} }
            let session = try await session(keeping.handlers("one"))
            try await session.downloadTask(
                for: TransferRequest(url: server.url("/")), to: .init(folder.url("file")), handler: "one")
            try await keeping.await(2)
            await session.close()
            return keeping.events[0]
        }
        let event = try await runSession()
        for await _ in end {}
        let error = await #expect(throws: DurableSessionError.self) { try await event.acknowledge() }
        expectEqual(error?.code, .closed)
        let next = try await session(recorder.handlers("one"))
        try await recorder.await(2)
        expectEqual(recorder.events.map(\.id), [event.id])
        await next.close()
    }

    @Test func `secrets are refused unless writesSecrets allows them, and interceptors can add them`() async throws {
        struct Token: RequestInterceptor {
            func adapt(_ request: TransferRequest) async throws -> TransferRequest {
                var request = request
                request.headerFields[.authorization] = "Bearer secret"
                return request
            }
        }
        let server = try server()
        let session = try await session(recorder.handlers("one"), transferHandlers: .init(interceptors: [Token()]))
        let place = DownloadDestination(folder.url("file"))
        let url = server.url("/")
        for field in [HTTPField.Name.authorization, .cookie, .proxyAuthorization] {
            let error = await #expect(throws: DurableSessionError.self) {
                try await session.downloadTask(
                    for: TransferRequest(url: url, headerFields: [field: "very secret"]), to: place, handler: "one")
            }
            #expect(error?.code == .invalidTask && "\(error.map { "\($0)" } ?? "")".contains("very") == false)
        }
        let named = try #require(URL(string: "http://me:word@127.0.0.1:\(server.port)/"))
        await #expect(throws: DurableSessionError.self) {
            try await session.downloadTask(for: TransferRequest(url: named), to: place, handler: "one")
        }
        try await session.downloadTask(for: TransferRequest(url: url), to: place, handler: "one")
        try await session.downloadTask(
            for: TransferRequest(url: url, headerFields: [.cookie: "written=1"]), to: .init(folder.url("other")),
            handler: "one", writesSecrets: true)
        try await recorder.await(3)
        #expect(server.requests.allSatisfy { $0["authorization"] == "Bearer secret" })
        #expect(server.requests.contains { $0["cookie"] == "written=1" })
        await session.close()
    }

    @Test func `a task beyond a limit of the journal is refused`() async throws {
        let gate = try Gate()
        let server = try server(cut: 10, gate)
        var limits = DurableLimits()
        (limits.tasks, limits.contextBytes, limits.requestBytes) = (1, 10, 2_000)
        let session = try await session(recorder.handlers("one"), limits: limits)
        func make(_ context: Int = 0, field: Int = 0) async throws {
            var request = TransferRequest(url: server.url("/"))
            request.headerFields[.accept] = String(repeating: "a", count: field)
            try await session.downloadTask(
                for: request, to: .init(folder.url("file")), handler: "one", context: Data(count: context))
        }
        for (context, field) in [(11, 0), (0, 2_000)] {
            let error = await #expect(throws: DurableSessionError.self) { try await make(context, field: field) }
            expectEqual(error?.code, .limitReached)
        }
        try await make(10, field: 100)
        let error = await #expect(throws: DurableSessionError.self) { try await make() }
        expectEqual(error?.code, .limitReached)
        let id = try #require(try await session.tasks.first?.id)
        try await session.cancel(id)
        try await recorder.await(2)
        expectEqual(recorder.events.first?.outcome.summary, "cancelled")
        // An acknowledged task no longer counts.
        gate.open()
        try await make()
        try await recorder.await(3)
        try expectEqual(names(), ["file"])
        await session.close()
    }

    @Test func `a task that a later session finds after its expiry ends as expired`() async throws {
        let gate = try Gate()
        let server = try server(cut: 10, gate)
        let first = try await session(recorder.handlers("one"))
        try await first.downloadTask(for: TransferRequest(url: server.url("/")), to: .init(folder.url("file")), handler: "one")
        try await server.awaitRequests(1)
        await first.close()
        var later = TaskCoordinator.Environment()
        later.clock = { Int64(Date().timeIntervalSince1970) + 7 * 24 * 3600 + 1 }
        let second = try await session(recorder.handlers("one"), environment: later)
        try await recorder.await(events: 1)
        expectEqual(recorder.events.map(\.outcome.summary), ["expired"])
        try expectEqual(names(), [])
        await second.close()
    }

    @Test func `a task ends as expired after its own resource timeout`() async throws {
        let gate = try Gate()
        let server = try server(cut: 10, gate)
        let session = try await session(recorder.handlers("one"))
        var request = TransferRequest(url: server.url("/"))
        request.options.resourceTimeout = .seconds(1)
        try await session.downloadTask(for: request, to: .init(folder.url("file")), handler: "one")
        try await recorder.await(2)
        expectEqual(recorder.events.map(\.outcome.summary), ["expired"])
        await session.close()
    }

    @Test func `a failed download has the status code of the response and leaves no file`() async throws {
        let server = try TestServer { _ in StubResponse(404) }
        let session = try await session(recorder.handlers("one"))
        try await session.downloadTask(
            for: TransferRequest(url: server.url("/a?b=c")), to: .init(folder.url("file")), handler: "one")
        try await recorder.await(2)
        guard case .failed(let error)? = recorder.events.first?.outcome else { throw DurableSessionError(.invalidTask, "?") }
        #expect(error.code == .unacceptableStatus && error.context.statusCode == 404)
        #expect(error.context.url?.contains("b=c") == false)
        try expectEqual(names(), [])
        await session.close()
    }

    @Test func `a download to an existing file fails before a request is sent`() async throws {
        let server = try server()
        try Data("old".utf8).write(to: folder.url("file"))
        let session = try await session(recorder.handlers("one"))
        try await session.downloadTask(for: TransferRequest(url: server.url("/")), to: .init(folder.url("file")), handler: "one")
        try await recorder.await(2)
        expectEqual(recorder.events.first?.outcome.summary, "failed cannot-write-file")
        expectEmpty(server.requests)
        try await session.downloadTask(
            for: TransferRequest(url: server.url("/")), to: .init(folder.url("file"), existingFile: .replace), handler: "one")
        try await recorder.await(3)
        try expectEqual(Data(contentsOf: folder.url("file")), pattern(size))
        await session.close()
    }

    @Test func `a download with another digest than expected fails and leaves no file`() async throws {
        let server = try server()
        let session = try await session(recorder.handlers("one"))
        let place = DownloadDestination(
            folder.url("file"), expectedDigest: ContentDigest(.sha256, Data(repeating: 0, count: 32)))
        try await session.downloadTask(for: TransferRequest(url: server.url("/")), to: place, handler: "one")
        try await recorder.await(2)
        expectEqual(recorder.events.first?.outcome.summary, "failed digest-mismatch")
        try expectEqual(names(), [])
        await session.close()
    }
}
