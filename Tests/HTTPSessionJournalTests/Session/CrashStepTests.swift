import Dispatch
import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

@testable import HTTPSessionJournal

/// Sessions with real files. Each session ends before its n-th step, until one session has no work left.
@Suite(.timeLimit(.minutes(20))) struct CrashStepTests {
    private let folder: ScratchDirectory
    private let content = pattern(100_000)

    init() throws { folder = try ScratchDirectory() }

    /// The record that a program would keep: the events that it has processed.
    private final class Processed: Sendable {
        let events = Locked<[String: [String]]>([:])
    }

    /// Runs a session until it has no tasks, or until it has done `steps` steps.
    ///
    /// - Returns: whether the session has no tasks left.
    private func run(
        _ steps: Int, _ processed: Processed, _ make: (DurableSession, Set<String>) async throws -> Void
    ) async throws -> Bool {
        let limit = StepLimit(steps)
        let acknowledged = AsyncStream<Void>.makeStream()
        var handlers = DurableHandlers()
        handlers.register("one") { event in
            let context = String(decoding: event.task.context, as: UTF8.self)
            processed.events.withLock { $0[context, default: []].append(event.id + " " + event.outcome.summary) }
            try? await event.acknowledge()
            acknowledged.continuation.yield()
        }
        let session = try await DurableSession.open(
            identifier: "test", directory: folder.url("state"), configuration: localConfiguration(), handlers: handlers,
            environment: limit.environment)
        var hasReachedLimit = false
        do {
            let made = Set(try await session.tasks.map { String(decoding: $0.context, as: UTF8.self) })
            try await make(session, made.union(processed.events.withLock { Set($0.keys) }))
            let end = Task { for await _ in limit.reached.stream { break } }
            try await withThrowingTaskGroup(of: Bool.self) { group in
                group.addTask {
                    await end.value
                    return true
                }
                group.addTask {
                    while try await !session.tasks.isEmpty { for await _ in acknowledged.stream { break } }
                    return false
                }
                hasReachedLimit = try await group.next() ?? true
                end.cancel()
                acknowledged.continuation.finish()
                group.cancelAll()
            }
        } catch let error as DurableSessionError where error.code == .closed {
            hasReachedLimit = true
        }
        await session.close()
        return !hasReachedLimit
    }

    @Test func `a session that ends before any step loses no download and no event, and events keep identifiers`() async throws {
        let server = try TestServer { [content] _ in StubResponse(body: .bytes(content)).field("ETag", "\"1\"") }
        for steps in 0..<40 {
            let processed = Processed()
            let destination = folder.url("file-\(steps)")
            var (runs, isDone) = (0, false)
            while !isDone {
                // Each later session does one step more, so that one of them completes.
                isDone = try await run(runs == 0 ? steps : runs, processed) { session, known in
                    guard !known.contains("7") else { return }
                    try await session.downloadTask(
                        for: TransferRequest(url: server.url("/")), to: .init(destination), handler: "one",
                        context: Data("7".utf8))
                }
                runs += 1
                try #require(runs < 50)
            }
            let outcomes = processed.events.withLock { $0["7"] ?? [] }
            #expect(Set(outcomes).count == 1 && outcomes.first?.hasSuffix("finished") == true, "\(steps) steps: \(outcomes)")
            try expectEqual(Data(contentsOf: destination), content)
            if runs == 1 { break }
            #expect(steps < 39)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).allSatisfy { !$0.hasPrefix(".") })
    }

    @Test func `a session that ends before any step of a canceled download leaves only its event`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(body: "x").held(by: gate) }
        for steps in 0..<12 {
            let processed = Processed()
            var (runs, isDone) = (0, false)
            while !isDone {
                isDone = try await run(runs == 0 ? steps : runs, processed) { session, known in
                    if !known.contains("7") {
                        try await session.downloadTask(
                            for: TransferRequest(url: server.url("/")), to: .init(folder.url("file")), handler: "one",
                            context: Data("7".utf8))
                    }
                    for task in try await session.tasks {
                        do throws(DurableSessionError) { try await session.cancel(task.id) } catch {
                            // The handler has acknowledged its event meanwhile.
                            guard error.code == .unknownTask else { throw error }
                        }
                    }
                }
                runs += 1
                try #require(runs < 50)
            }
            let outcomes = processed.events.withLock { $0["7"] ?? [] }
            #expect(Set(outcomes).count == 1 && outcomes.first?.hasSuffix("cancelled") == true, "\(steps) steps: \(outcomes)")
        }
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: folder.path), ["state"])
        gate.open()
    }

    @Test func `a file with two names, after link(2) and before unlink(2), is not downloaded again`() async throws {
        let server = try TestServer { [content] _ in StubResponse(body: .bytes(content)) }
        let processed = Processed()
        // The insertion, the transfer and the write of the arrival, without the placement.
        _ = try await run(3, processed) { session, _ in
            try await session.downloadTask(
                for: TransferRequest(url: server.url("/")), to: .init(folder.url("file")), handler: "one",
                context: Data("7".utf8))
        }
        let hidden = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasPrefix(".file.") }
        try #require(hidden.count == 1)
        expectEqual(link(folder.file(hidden[0]), folder.file("file")), 0)
        #expect(try await run(100, processed) { _, _ in })
        expectEqual(processed.events.withLock { $0["7"]?.count }, 1)
        try expectEqual(Data(contentsOf: folder.url("file")), content)
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: folder.path).sorted(), ["file", "state"])
        expectEqual(server.requests.count, 1)
    }

    @Test func `a step that the disk refuses is retried`() async throws {
        let gate = try Gate()
        let server = try TestServer { [content] _ in StubResponse(body: .bytes(content)).held(by: gate) }
        let recorder = EventRecorder()
        let session = try await session(recorder)
        let journal = session.coordinator.journal
        try journal.refuseWrites(true)
        await #expect(throws: DurableSessionError.self) {
            try await session.downloadTask(for: TransferRequest(url: server.url("/")), to: .init(folder.url("a")), handler: "one")
        }
        try journal.refuseWrites(false)
        try await session.downloadTask(
            for: TransferRequest(url: server.url("/")), to: .init(folder.url("file")), handler: "one")
        try journal.refuseWrites(true)
        gate.open()
        while try await session.tasks.contains(where: { $0.transferTask != nil }) { await Task.yield() }
        expectEmpty(recorder.events)
        try journal.refuseWrites(false)
        try await recorder.await(2)
        expectEqual(recorder.events.map(\.outcome.summary), ["finished"])
        try expectEqual(Data(contentsOf: folder.url("file")), content)
        await session.close()
    }

    @Test func `a response to an upload on a full disk is kept, and the upload is not repeated`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(201, body: "said").held(by: gate) }
        let recorder = EventRecorder()
        let session = try await session(recorder)
        let journal = session.coordinator.journal
        for method in [HTTPRequest.Method.post, .put] {
            let request = TransferRequest(url: server.url("/"), method: method)
            try await session.uploadTask(for: request, from: .data(Data("x".utf8)), handler: "one")
        }
        try await server.awaitRequests(2)
        try journal.refuseWrites(true)
        gate.open()
        while try await session.tasks.contains(where: { $0.transferTask != nil }) { await Task.yield() }
        expectEmpty(recorder.events)
        try journal.refuseWrites(false)
        try await recorder.await(events: 2)
        expectEqual(recorder.events.map(\.outcome.summary), ["finished", "finished"])
        for event in recorder.events {
            if case .finished(let answer) = event.outcome { expectEqual(answer?.body, Data("said".utf8)) }
        }
        expectEqual(server.requests.count, 2)
        await session.close()
    }

    @Test func `a completed upload on a full disk ends as finished although it is canceled`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(201).held(by: gate) }
        let recorder = EventRecorder()
        let session = try await session(recorder, delay: .seconds(3_600))
        let journal = session.coordinator.journal
        let request = TransferRequest(url: server.url("/"), method: .post)
        let task = try await session.uploadTask(for: request, from: .data(Data("x".utf8)), handler: "one")
        try await server.awaitRequests(1)
        try journal.refuseWrites(true)
        gate.open()
        while try await session.tasks.contains(where: { $0.transferTask != nil }) { await Task.yield() }
        await #expect(throws: DurableSessionError.self) { try await session.cancel(task.id) }
        try journal.refuseWrites(false)
        try await session.cancel(task.id)
        try await recorder.await(events: 1)
        expectEqual(recorder.events.map(\.outcome.summary), ["finished"])
        await session.close()
    }

    @Test func `suspending before the request is sent leaves it unsent, and the next session sends it`() async throws {
        let server = try TestServer { _ in StubResponse(201) }
        let (recorder, interceptor) = (EventRecorder(), BlockingInterceptor())
        let session = try await session(recorder, interceptors: [interceptor])
        let request = TransferRequest(url: server.url("/"), method: .post)
        try await session.uploadTask(for: request, from: .data(Data("x".utf8)), handler: "one")
        for await _ in interceptor.called.stream { break }
        let transfer = try #require(try await session.tasks.first?.transferTask)
        transfer.suspend()
        while transfer.state != .suspended { await Task.yield() }
        interceptor.opened.continuation.yield()
        await session.close()
        let next = try await self.session(recorder)
        try await recorder.await(events: 1)
        expectEqual(recorder.events.map(\.outcome.summary), ["finished"])
        expectEqual(server.requests.count, 1)
        await next.close()
    }

    @Test func `a request is not sent while the disk refuses to record it`() async throws {
        let server = try TestServer { _ in StubResponse(201) }
        let (recorder, disk) = (EventRecorder(), FullDiskInterceptor())
        let session = try await session(recorder, interceptors: [disk])
        disk.journal.withLock { $0 = session.coordinator.journal }
        let request = TransferRequest(url: server.url("/"), method: .post)
        try await session.uploadTask(for: request, from: .data(Data("x".utf8)), handler: "one")
        try await recorder.await(events: 1)
        expectEqual(recorder.events.map(\.outcome.summary), ["finished"])
        expectEqual(disk.attempts.withLock { $0 }, 3)
        expectEqual(server.requests.count, 1)
        await session.close()
    }

    private func session(
        _ recorder: EventRecorder, interceptors: [any RequestInterceptor] = [], delay: DispatchTimeInterval = .milliseconds(20)
    ) async throws -> DurableSession {
        var environment = TaskCoordinator.Environment()
        environment.delayAfterFailure = delay
        return try await DurableSession.open(
            identifier: "test", directory: folder.url("state"), configuration: localConfiguration(),
            handlers: recorder.handlers("one"), transferHandlers: TransferHandlers(interceptors: interceptors),
            environment: environment)
    }
}

/// Makes the disk refuse writes before the first attempt and the second.
private final class FullDiskInterceptor: RequestInterceptor {
    let journal = Locked<Journal?>(nil)
    let attempts = Locked(0)

    func adapt(_ request: TransferRequest) async throws -> TransferRequest {
        let attempt = attempts.withLock { attempts in
            attempts += 1
            return attempts
        }
        try journal.withLock { $0 }?.refuseWrites(attempt <= 2)
        return request
    }
}

/// Suspends requests until a test opens it.
private final class BlockingInterceptor: RequestInterceptor {
    let called = AsyncStream<Void>.makeStream()
    let opened = AsyncStream<Void>.makeStream()

    func adapt(_ request: TransferRequest) async throws -> TransferRequest {
        called.continuation.yield()
        for await _ in opened.stream { break }
        return request
    }
}
