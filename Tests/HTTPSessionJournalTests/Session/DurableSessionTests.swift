import EventLoop
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

@testable import HTTPSessionJournal

@Suite(.timeLimit(.minutes(20))) struct DurableSessionTests {
    private let folder: ScratchDirectory
    private let listener = Listener()
    private let size = 1_000_000

    init() throws { folder = try ScratchDirectory() }

    private func session(
        _ handlers: DurableHandlers, limits: DurableLimits = DurableLimits(), transferHandlers: TransferHandlers = .init(),
        surroundings: Keeper.Surroundings = .init()
    ) throws -> DurableSession {
        try DurableSession(
            identifier: "test", directory: folder.url("state"), configuration: localConfiguration(), limits: limits,
            handlers: handlers, transferHandlers: transferHandlers, surroundings: surroundings)
    }

    private func names(in directory: String = "") throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.file(directory)).filter { $0 != "state" }.sorted()
    }

    /// A file with a strong tag; its first answer breaks off after `cut` bytes and waits.
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

    @Test func `a download is placed, its handler hears of it, and nothing is left of it`() async throws {
        let server = try server()
        let session = try session(listener.handlers("one"))
        let destination = DownloadDestination(folder.url("new/file"), createsDirectories: true)
        let task = try await session.download(
            TransferRequest(url: server.url("/a?b=c")), to: destination, handler: "one", context: Data("7".utf8))
        try await listener.await(2)
        #expect(listener.order == ["former", "7"])
        let event = try #require(listener.events.first)
        #expect(event.id == task.id && event.task.file == destination.file && event.task.hasEnded)
        guard case .finished(let response?) = event.outcome else { throw DurableSessionError(.invalidTask, "\(event)") }
        #expect(response.statusCode == 200 && response.url.path == "/a")
        #expect(!"\(event.task)".contains("b=c"))
        #expect(try Data(contentsOf: destination.file) == pattern(size))
        #expect(try names(in: "new") == ["file"])
        #expect(try await session.tasks.isEmpty)
        await session.close()
        let again = Listener()
        await (try self.session(again.handlers("one"))).close()
        #expect(again.events.isEmpty)
    }

    @Test func `what one process has begun, another finishes from where it was`() async throws {
        let gate = try Gate()
        let server = try server(cut: 600_000, gate)
        let destination = DownloadDestination(folder.url("file"))
        let first = try session(listener.handlers("one"))
        let made = try await first.download(TransferRequest(url: server.url("/")), to: destination, handler: "one")
        let transfer = try #require(made.transfer)
        for await progress in transfer.progress where progress.received >= 500_000 { break }
        await first.close()
        #expect(listener.events.isEmpty)
        // The part, its sidecar, and nothing under the name itself.
        #expect(try names().count == 2 && names().allSatisfy { $0.hasPrefix(".file.") })
        let second = try session(listener.handlers("one"))
        #expect(try await second.tasks.map(\.id).allSatisfy { $0 == made.id })
        try await listener.await(events: 1)
        #expect(listener.events.map(\.id) == [made.id])
        #expect(try Data(contentsOf: destination.file) == pattern(size))
        #expect(try names() == ["file"])
        #expect(server.requests.count == 2)
        #expect(server.requests.last?["range"]?.hasPrefix("bytes=") == true)
        await second.close()
    }

    @Test func `an event comes again at every start until it is acknowledged, under the same identifier`() async throws {
        let server = try server()
        let deaf = Listener(acknowledges: false)
        let first = try session(deaf.handlers("one"))
        try await first.download(TransferRequest(url: server.url("/")), to: .init(folder.url("file")), handler: "one")
        try await deaf.await(2)
        await first.close()
        for round in 2...3 {
            let next = try session(deaf.handlers("one"))
            try await deaf.await(round * 2)
            #expect(Set(deaf.events.map(\.id)).count == 1 && deaf.events.count == round)
            await next.close()
        }
        // Before the word that all of earlier processes have been told.
        #expect(deaf.order == ["former", "", "", "former", "", "former"])
        let last = try session(listener.handlers("one"))
        try await listener.await(2)
        #expect(try await last.tasks.isEmpty)
        let error = await #expect(throws: DurableSessionError.self) { try await listener.events[0].acknowledge() }
        #expect(error?.code == .unknownTask)
        await last.close()
        #expect(server.requests.count == 1)
    }

    @Test func `an event without a handler stays in the journal, and the session says so`() async throws {
        let server = try server()
        let deaf = Listener(acknowledges: false)
        let first = try session(deaf.handlers("one"))
        let error = await #expect(throws: DurableSessionError.self) {
            try await first.download(TransferRequest(url: server.url("/")), to: .init(folder.url("x")), handler: "two")
        }
        #expect(error?.code == .unknownHandler)
        try await first.download(TransferRequest(url: server.url("/")), to: .init(folder.url("file")), handler: "one")
        try await deaf.await(2)
        await first.close()
        let second = try session(listener.handlers("two"))
        try await listener.await(1)
        #expect(listener.order == ["former"] && second.unknownHandlers == ["one"])
        #expect(try await second.events.map(\.task.handler) == ["one"])
        await second.close()
        let third = try session(listener.handlers("one"))
        try await listener.await(3)
        #expect(third.unknownHandlers.isEmpty && listener.events.count == 1)
        await third.close()
    }

    @Test func `a second session of one identifier is told who has it`() async throws {
        let first = try session(listener.handlers("one"))
        let error = #expect(throws: DurableSessionError.self) { try session(listener.handlers("one")) }
        #expect(error?.code == .inUse && error?.reason.contains("process \(getpid())") == true)
        let other = try DurableSession(
            identifier: "other", directory: folder.url("state"), configuration: localConfiguration(),
            handlers: DurableHandlers())
        await other.close()
        await first.close()
        await (try session(listener.handlers("one"))).close()
        for name in ["", ".x", "a/b", "é", String(repeating: "a", count: 101)] {
            let error = #expect(throws: DurableSessionError.self) {
                try DurableSession(identifier: name, directory: folder.url("state"), handlers: DurableHandlers())
            }
            #expect(error?.code == .invalidIdentifier)
        }
    }

    @Test func `a session that is let go of lets go of its journal`() async throws {
        var first: DurableSession? = try session(listener.handlers("one"))
        #expect(first != nil)
        first = nil
        var second: DurableSession?
        while second == nil {
            do { second = try session(listener.handlers("one")) } catch { await Task.yield() }
        }
        await second?.close()
        let closed = await #expect(throws: DurableSessionError.self) { try await second?.tasks }
        #expect(closed?.code == .closed)
    }

    @Test func `events that their handler keeps do not keep the session, and are acknowledged at the next start`() async throws {
        final class Farewell: Sendable {
            let hearer: AsyncStream<Never>.Continuation
            init(_ hearer: AsyncStream<Never>.Continuation) { self.hearer = hearer }
            deinit { hearer.finish() }
        }
        let server = try server()
        let (end, hearer) = AsyncStream<Never>.makeStream()
        func oneProcess() async throws -> DurableEvent {
            let farewell = Farewell(hearer)
            let keeping = Listener(acknowledges: false) { _ in withExtendedLifetime(farewell) {} }
            let session = try session(keeping.handlers("one"))
            try await session.download(TransferRequest(url: server.url("/")), to: .init(folder.url("file")), handler: "one")
            try await keeping.await(2)
            await session.close()
            return keeping.events[0]
        }
        let event = try await oneProcess()
        for await _ in end {}
        let error = await #expect(throws: DurableSessionError.self) { try await event.acknowledge() }
        #expect(error?.code == .closed)
        let next = try session(listener.handlers("one"))
        try await listener.await(2)
        #expect(listener.events.map(\.id) == [event.id])
        await next.close()
    }

    @Test func `secrets are not written down unless asked, and interceptors add them anew`() async throws {
        struct Token: RequestInterceptor {
            func adapt(_ request: TransferRequest) async throws -> TransferRequest {
                var request = request
                request.headerFields[.authorization] = "Bearer secret"
                return request
            }
        }
        let server = try server()
        let session = try session(listener.handlers("one"), transferHandlers: .init(interceptors: [Token()]))
        let place = DownloadDestination(folder.url("file"))
        let url = server.url("/")
        for field in [HTTPField.Name.authorization, .cookie, .proxyAuthorization] {
            let error = await #expect(throws: DurableSessionError.self) {
                try await session.download(
                    TransferRequest(url: url, headerFields: [field: "very secret"]), to: place, handler: "one")
            }
            #expect(error?.code == .invalidTask && "\(error.map { "\($0)" } ?? "")".contains("very") == false)
        }
        let named = try #require(URL(string: "http://me:word@127.0.0.1:\(server.port)/"))
        await #expect(throws: DurableSessionError.self) {
            try await session.download(TransferRequest(url: named), to: place, handler: "one")
        }
        try await session.download(TransferRequest(url: url), to: place, handler: "one")
        try await session.download(
            TransferRequest(url: url, headerFields: [.cookie: "written=1"]), to: .init(folder.url("other")), handler: "one",
            writesSecrets: true)
        try await listener.await(3)
        #expect(server.requests.allSatisfy { $0["authorization"] == "Bearer secret" })
        #expect(server.requests.contains { $0["cookie"] == "written=1" })
        await session.close()
    }

    @Test func `the journal has its bounds`() async throws {
        let gate = try Gate()
        let server = try server(cut: 10, gate)
        var limits = DurableLimits()
        (limits.tasks, limits.contextBytes, limits.requestBytes) = (1, 10, 2_000)
        let session = try session(listener.handlers("one"), limits: limits)
        func make(_ context: Int = 0, field: Int = 0) async throws {
            var request = TransferRequest(url: server.url("/"))
            request.headerFields[.accept] = String(repeating: "a", count: field)
            try await session.download(
                request, to: .init(folder.url("file")), handler: "one", context: Data(count: context))
        }
        for (context, field) in [(11, 0), (0, 2_000)] {
            let error = await #expect(throws: DurableSessionError.self) { try await make(context, field: field) }
            #expect(error?.code == .limitReached)
        }
        try await make(10, field: 100)
        let error = await #expect(throws: DurableSessionError.self) { try await make() }
        #expect(error?.code == .limitReached)
        let id = try #require(try await session.tasks.first?.id)
        try await session.cancel(id)
        try await listener.await(2)
        #expect(listener.events.first?.outcome.word == "cancelled")
        // One that has been acknowledged counts no longer.
        gate.open()
        try await make()
        try await listener.await(3)
        #expect(try names() == ["file"])
        await session.close()
    }

    @Test func `what has waited too long ends as expired`() async throws {
        let gate = try Gate()
        let server = try server(cut: 10, gate)
        let first = try session(listener.handlers("one"))
        try await first.download(TransferRequest(url: server.url("/")), to: .init(folder.url("file")), handler: "one")
        try await server.awaitRequests(1)
        await first.close()
        var later = Keeper.Surroundings()
        later.clock = { Int64(Date().timeIntervalSince1970) + 7 * 24 * 3600 + 1 }
        let second = try session(listener.handlers("one"), surroundings: later)
        try await listener.await(events: 1)
        #expect(listener.events.map(\.outcome.word) == ["expired"])
        #expect(try names() == [])
        await second.close()
    }

    @Test func `a task's own resource timeout is its time, whatever it waits for`() async throws {
        let gate = try Gate()
        let server = try server(cut: 10, gate)
        let session = try session(listener.handlers("one"))
        var request = TransferRequest(url: server.url("/"))
        request.options.resourceTimeout = .seconds(1)
        try await session.download(request, to: .init(folder.url("file")), handler: "one")
        try await listener.await(2)
        #expect(listener.events.map(\.outcome.word) == ["expired"])
        await session.close()
    }

    @Test func `a failure is told with what the server said, and leaves nothing`() async throws {
        let server = try TestServer { _ in StubResponse(404) }
        let session = try session(listener.handlers("one"))
        try await session.download(TransferRequest(url: server.url("/a?b=c")), to: .init(folder.url("file")), handler: "one")
        try await listener.await(2)
        guard case .failed(let error)? = listener.events.first?.outcome else { throw DurableSessionError(.invalidTask, "?") }
        #expect(error.code == .unacceptableStatus && error.context.statusCode == 404)
        #expect(error.context.url?.contains("b=c") == false)
        #expect(try names() == [])
        await session.close()
    }

    @Test func `a destination that is taken is told before the server is asked`() async throws {
        let server = try server()
        try Data("old".utf8).write(to: folder.url("file"))
        let session = try session(listener.handlers("one"))
        try await session.download(TransferRequest(url: server.url("/")), to: .init(folder.url("file")), handler: "one")
        try await listener.await(2)
        #expect(listener.events.first?.outcome.word == "failed cannot-write-file")
        #expect(server.requests.isEmpty)
        try await session.download(
            TransferRequest(url: server.url("/")), to: .init(folder.url("file"), existingFile: .replace), handler: "one")
        try await listener.await(3)
        #expect(try Data(contentsOf: folder.url("file")) == pattern(size))
        await session.close()
    }

    @Test func `a file with another digest gets no name`() async throws {
        let server = try server()
        let session = try session(listener.handlers("one"))
        let place = DownloadDestination(
            folder.url("file"), expectedDigest: ContentDigest(.sha256, Data(repeating: 0, count: 32)))
        try await session.download(TransferRequest(url: server.url("/")), to: place, handler: "one")
        try await listener.await(2)
        #expect(listener.events.first?.outcome.word == "failed digest-mismatch")
        #expect(try names() == [])
        await session.close()
    }
}
