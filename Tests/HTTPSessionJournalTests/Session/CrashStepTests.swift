import Dispatch
import EventLoop
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

@testable import HTTPSessionJournal

/// Real sessions with real files, of which every one ends before its n-th step, until one has nothing left to do.
@Suite(.timeLimit(.minutes(20))) struct CrashStepTests {
    private let folder: ScratchDirectory
    private let content = pattern(100_000)

    init() throws { folder = try ScratchDirectory() }

    /// What a program would keep: the events whose work it has done.
    private final class Done: Sendable {
        let ids = Locked<[String: [String]]>([:])
    }

    /// Lives until there is nothing left, or the fuse has burnt. - Returns: whether it has not.
    private func live(_ steps: Int, _ done: Done, _ make: (DurableSession, Set<String>) async throws -> Void) async throws -> Bool
    {
        let fuse = Fuse(steps)
        let acknowledged = AsyncStream<Void>.makeStream()
        var handlers = DurableHandlers()
        handlers.register("one") { event in
            let context = String(decoding: event.task.context, as: UTF8.self)
            done.ids.withLock { $0[context, default: []].append(event.id + " " + event.outcome.word) }
            try? await event.acknowledge()
            acknowledged.continuation.yield()
        }
        let session = try DurableSession(
            identifier: "test", directory: folder.url("state"), configuration: localConfiguration(), handlers: handlers,
            surroundings: fuse.surroundings)
        let work = Task { [done] in
            let made = Set(try await session.tasks.map { String(decoding: $0.context, as: UTF8.self) })
            return made.union(done.ids.withLock { Set($0.keys) })
        }
        var hasBurnt = false
        do {
            try await make(session, try await work.value)
            let burnt = Task { for await _ in fuse.burnt.stream { break } }
            try await withThrowingTaskGroup(of: Bool.self) { group in
                group.addTask {
                    await burnt.value
                    return true
                }
                group.addTask {
                    while try await !session.tasks.isEmpty { for await _ in acknowledged.stream { break } }
                    return false
                }
                hasBurnt = try await group.next() ?? true
                burnt.cancel()
                acknowledged.continuation.finish()
                group.cancelAll()
            }
        } catch let error as DurableSessionError where error.code == .closed {
            hasBurnt = true
        }
        await session.close()
        return !hasBurnt
    }

    @Test func `whatever step is the last, no download and no event is lost, and an event keeps its identifier`() async throws {
        let server = try TestServer { [content] _ in StubResponse(body: .bytes(content)).field("ETag", "\"1\"") }
        for steps in 0..<40 {
            let done = Done()
            let destination = folder.url("file-\(steps)")
            var (lives, isOver) = (0, false)
            while !isOver {
                // Later ones live a step longer, so that there is an end.
                isOver = try await live(lives == 0 ? steps : lives, done) { session, known in
                    guard !known.contains("7") else { return }
                    try await session.download(
                        TransferRequest(url: server.url("/")), to: .init(destination), handler: "one",
                        context: Data("7".utf8))
                }
                lives += 1
                try #require(lives < 50)
            }
            let heard = done.ids.withLock { $0["7"] ?? [] }
            #expect(Set(heard).count == 1 && heard.first?.hasSuffix("finished") == true, "\(steps) steps: \(heard)")
            #expect(try Data(contentsOf: destination) == content)
            if lives == 1 { break }
            #expect(steps < 39)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).allSatisfy { !$0.hasPrefix(".") })
    }

    @Test func `whatever step is the last, a cancelled download leaves nothing but its event`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(body: "x").held(by: gate) }
        for steps in 0..<12 {
            let done = Done()
            var (lives, isOver) = (0, false)
            while !isOver {
                isOver = try await live(lives == 0 ? steps : lives, done) { session, known in
                    if !known.contains("7") {
                        try await session.download(
                            TransferRequest(url: server.url("/")), to: .init(folder.url("file")), handler: "one",
                            context: Data("7".utf8))
                    }
                    for task in try await session.tasks {
                        do throws(DurableSessionError) { try await session.cancel(task.id) } catch {
                            // Its event has been heard meanwhile.
                            guard error.code == .unknownTask else { throw error }
                        }
                    }
                }
                lives += 1
                try #require(lives < 50)
            }
            let heard = done.ids.withLock { $0["7"] ?? [] }
            #expect(Set(heard).count == 1 && heard.first?.hasSuffix("cancelled") == true, "\(steps) steps: \(heard)")
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["state"])
        gate.open()
    }

    @Test func `a file with two names, between link and unlink, is a file that is there`() async throws {
        let server = try TestServer { [content] _ in StubResponse(body: .bytes(content)) }
        let done = Done()
        // Insert, transfer, and the write of the arrival: not its placing.
        _ = try await live(3, done) { session, _ in
            try await session.download(
                TransferRequest(url: server.url("/")), to: .init(folder.url("file")), handler: "one", context: Data("7".utf8))
        }
        let hidden = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasPrefix(".file.") }
        try #require(hidden.count == 1)
        #expect(link(folder.file(hidden[0]), folder.file("file")) == 0)
        #expect(try await live(100, done) { _, _ in })
        #expect(done.ids.withLock { $0["7"]?.count } == 1)
        #expect(try Data(contentsOf: folder.url("file")) == content)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["file", "state"])
        #expect(server.requests.count == 1)
    }

    @Test func `a step that the disk refuses is done later`() async throws {
        let gate = try Gate()
        let server = try TestServer { [content] _ in StubResponse(body: .bytes(content)).held(by: gate) }
        let listener = Listener()
        let session = try session(listener)
        let journal = session.keeper.journal
        try journal.refuseWrites(true)
        await #expect(throws: DurableSessionError.self) {
            try await session.download(TransferRequest(url: server.url("/")), to: .init(folder.url("a")), handler: "one")
        }
        try journal.refuseWrites(false)
        try await session.download(
            TransferRequest(url: server.url("/")), to: .init(folder.url("file")), handler: "one")
        try journal.refuseWrites(true)
        gate.open()
        while try await session.tasks.contains(where: { $0.transfer != nil }) { await Task.yield() }
        #expect(listener.events.isEmpty)
        try journal.refuseWrites(false)
        try await listener.await(2)
        #expect(listener.events.map(\.outcome.word) == ["finished"])
        #expect(try Data(contentsOf: folder.url("file")) == content)
        await session.close()
    }

    @Test func `what an upload was answered is not asked for again because the disk is full`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(201, body: "said").held(by: gate) }
        let listener = Listener()
        let session = try session(listener)
        let journal = session.keeper.journal
        for method in [HTTPRequest.Method.post, .put] {
            let request = TransferRequest(url: server.url("/"), method: method, body: .data(Data("x".utf8)))
            try await session.upload(request, handler: "one")
        }
        try await server.awaitRequests(2)
        try journal.refuseWrites(true)
        gate.open()
        while try await session.tasks.contains(where: { $0.transfer != nil }) { await Task.yield() }
        #expect(listener.events.isEmpty)
        try journal.refuseWrites(false)
        try await listener.await(events: 2)
        #expect(listener.events.map(\.outcome.word) == ["finished", "finished"])
        for event in listener.events {
            if case .finished(let answer) = event.outcome { #expect(answer?.body == Data("said".utf8)) }
        }
        #expect(server.requests.count == 2)
        await session.close()
    }

    @Test func `what an upload was answered comes before its cancellation`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(201).held(by: gate) }
        let listener = Listener()
        let session = try session(listener, delay: .seconds(3_600))
        let journal = session.keeper.journal
        let request = TransferRequest(url: server.url("/"), method: .post, body: .data(Data("x".utf8)))
        let task = try await session.upload(request, handler: "one")
        try await server.awaitRequests(1)
        try journal.refuseWrites(true)
        gate.open()
        while try await session.tasks.contains(where: { $0.transfer != nil }) { await Task.yield() }
        await #expect(throws: DurableSessionError.self) { try await session.cancel(task.id) }
        try journal.refuseWrites(false)
        try await session.cancel(task.id)
        try await listener.await(events: 1)
        #expect(listener.events.map(\.outcome.word) == ["finished"])
        await session.close()
    }

    @Test func `what is suspended before it leaves has stayed here`() async throws {
        let server = try TestServer { _ in StubResponse(201) }
        let (listener, door) = (Listener(), Door())
        let session = try session(listener, interceptors: [door])
        let request = TransferRequest(url: server.url("/"), method: .post, body: .data(Data("x".utf8)))
        try await session.upload(request, handler: "one")
        for await _ in door.came.stream { break }
        let transfer = try #require(try await session.tasks.first?.transfer)
        transfer.suspend()
        while transfer.state != .suspended { await Task.yield() }
        door.opened.continuation.yield()
        await session.close()
        let next = try self.session(listener)
        try await listener.await(events: 1)
        #expect(listener.events.map(\.outcome.word) == ["finished"])
        #expect(server.requests.count == 1)
        await next.close()
    }

    @Test func `what the disk does not let be noted does not leave`() async throws {
        let server = try TestServer { _ in StubResponse(201) }
        let (listener, disk) = (Listener(), FillingDisk())
        let session = try session(listener, interceptors: [disk])
        disk.journal.withLock { $0 = session.keeper.journal }
        let request = TransferRequest(url: server.url("/"), method: .post, body: .data(Data("x".utf8)))
        try await session.upload(request, handler: "one")
        try await listener.await(events: 1)
        #expect(listener.events.map(\.outcome.word) == ["finished"])
        #expect(disk.attempts.withLock { $0 } == 3)
        #expect(server.requests.count == 1)
        await session.close()
    }

    private func session(
        _ listener: Listener, interceptors: [any RequestInterceptor] = [], delay: DispatchTimeInterval = .milliseconds(20)
    ) throws -> DurableSession {
        var surroundings = Keeper.Surroundings()
        surroundings.delayAfterFailure = delay
        return try DurableSession(
            identifier: "test", directory: folder.url("state"), configuration: localConfiguration(),
            handlers: listener.handlers("one"), transferHandlers: TransferHandlers(interceptors: interceptors),
            surroundings: surroundings)
    }
}

/// Takes nothing more when the first attempt and the second are about to be made.
private final class FillingDisk: RequestInterceptor {
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

/// Lets nobody through before it is opened.
private final class Door: RequestInterceptor {
    let came = AsyncStream<Void>.makeStream()
    let opened = AsyncStream<Void>.makeStream()

    func adapt(_ request: TransferRequest) async throws -> TransferRequest {
        came.continuation.yield()
        for await _ in opened.stream { break }
        return request
    }
}
