import Dispatch
import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import NetworkLab
import Testing

@testable import HTTPSessionJournal

/// The sequence `session.events`.
@Suite(.timeLimit(.minutes(20))) struct EventSequenceTests {
    private let folder: ScratchDirectory
    private let server: TestServer
    /// An element for each step of the sessions.
    private let steps = AsyncStream<Void>.makeStream()

    init() throws {
        folder = try ScratchDirectory()
        server = try TestServer { _ in StubResponse(body: "x") }
    }

    private func session(
        _ handlers: DurableHandlers = DurableHandlers(), limits: DurableLimits = DurableLimits(),
        environment: TaskCoordinator.Environment = .init()
    ) async throws -> DurableSession {
        var environment = environment
        environment.mayStep = { [steps] in
            steps.continuation.yield()
            return true
        }
        return try await DurableSession.open(
            identifier: "test", directory: folder.url("state"), configuration: localConfiguration(), limits: limits,
            handlers: handlers, environment: environment)
    }

    @discardableResult
    private func download(
        _ name: String, _ session: DurableSession, handler: String? = nil
    ) async throws -> DurableTaskInfo {
        try await session.downloadTask(
            for: TransferRequest(url: server.url("/\(name)")), to: .init(folder.url(name)), handler: handler,
            context: Data(name.utf8))
    }

    /// Waits until `count` tasks have ended. A step is announced before it happens; the session then finishes it before it reads
    /// its events.
    private func awaitEnds(_ count: Int, _ session: DurableSession) async throws {
        while try await session.pendingEvents.count < count { for await _ in steps.stream { break } }
    }

    private func context(_ event: DurableEvent?) -> String? {
        event.map { String(decoding: $0.task.context, as: UTF8.self) }
    }

    @Test func `each event is delivered once per session until it is acknowledged`() async throws {
        let first = try await session()
        var made: Set<String> = []
        for name in ["a", "b", "c"] { made.insert(try await download(name, first).id) }
        var iterator = first.events.makeAsyncIterator()
        var delivered: [String] = []
        for _ in 0..<3 { delivered.append(try #require(await iterator.next()).id) }
        expectEqual(Set(delivered), made)
        // The events have been delivered, although none is acknowledged: another iterator begins with the next one.
        try await download("d", first)
        let event = try #require(await first.events.first { _ in true })
        #expect(context(event) == "d" && event.task.handler == nil)
        try await event.acknowledge()
        try await expectEqual(first.pendingEvents.count, 3)
        await first.close()

        let second = try await session()
        iterator = second.events.makeAsyncIterator()
        // Events come in the order in which the tasks ended, which is the order of their first delivery.
        for id in delivered {
            let event = try #require(await iterator.next())
            #expect(event.id == id && event.outcome.summary == "finished")
            try await event.acknowledge()
        }
        try await expectEmpty(second.tasks)
        await second.close()
        await expectNil(second.events.first { _ in true })

        let third = try await session()
        try await download("e", third)
        expectEqual(context(await third.events.first { _ in true }), "e")
        await third.close()
    }

    @Test func `an event that is acknowledged by its identifier before it is read is not delivered`() async throws {
        let session = try await session()
        let task = try await download("a", session)
        try await awaitEnds(1, session)
        try await session.acknowledge(task.id)
        try await download("b", session)
        expectEqual(context(await session.events.first { _ in true }), "b")
        await session.close()
    }

    @Test func `unread events stay in the journal and count toward the limit of tasks`() async throws {
        var limits = DurableLimits()
        limits.tasks = 2
        let session = try await session(limits: limits)
        try await download("a", session)
        try await download("b", session)
        try await awaitEnds(2, session)
        let error = await #expect(throws: DurableSessionError.self) { try await download("c", session) }
        expectEqual(error?.code, .limitReached)
        try await #require(await session.events.first { _ in true }).acknowledge()
        try await download("c", session)
        await session.close()
    }

    @Test func `canceling the iterating task ends the iteration and loses no event`() async throws {
        let session = try await session()
        let waiting = Task { await session.events.first { _ in true } }
        while await session.coordinator.readerCount == 0 { await Task.yield() }
        waiting.cancel()
        await expectNil(waiting.value)
        await expectEqual(session.coordinator.readerCount, 0)
        try await download("a", session)
        try await awaitEnds(1, session)
        // A task that is canceled before it calls next() receives no event.
        let cancelled = Task { () -> DurableEvent? in
            withUnsafeCurrentTask { $0?.cancel() }
            return await session.events.first { _ in true }
        }
        await expectNil(cancelled.value)
        expectEqual(context(await session.events.first { _ in true }), "a")
        await session.close()
    }

    @Test func `cancellations at random moments lose no event and deliver none twice`() async throws {
        let session = try await session()
        let delivered = Locked<[String]>([])
        let deliveries = AsyncStream<Void>.makeStream()
        let count = 60
        let readers = Task {
            while !Task.isCancelled {
                let reader = Task {
                    for await event in session.events {
                        delivered.withLock { $0.append(event.id) }
                        deliveries.continuation.yield()
                        try await event.acknowledge()
                    }
                }
                try? await Task.sleep(for: .microseconds(Int.random(in: 0...3_000)))
                reader.cancel()
                try? await reader.value
            }
        }
        var made: Set<String> = []
        for number in 0..<count { made.insert(try await download("\(number)", session).id) }
        for await _ in deliveries.stream.prefix(count) {}
        readers.cancel()
        await readers.value
        #expect(Set(delivered.withLock { $0 }) == made && delivered.withLock { $0.count } == count)
        await session.close()
    }

    @Test func `two iterators share the events`() async throws {
        let session = try await session()
        let delivered = Locked<[[String]]>([[], []])
        let count = 20
        let readers = (0..<2).map { number in
            Task {
                for await event in session.events {
                    delivered.withLock { $0[number].append(event.id) }
                    try await event.acknowledge()
                }
            }
        }
        // Both iterators wait: each receives one of the first two events.
        while await session.coordinator.readerCount < 2 { await Task.yield() }
        var made: Set<String> = []
        for number in 0..<count { made.insert(try await download("\(number)", session).id) }
        while try await !session.tasks.isEmpty { for await _ in steps.stream { break } }
        await session.close()
        for reader in readers { try await reader.value }
        let (one, two) = delivered.withLock { ($0[0], $0[1]) }
        #expect(one.count + two.count == count && Set(one + two) == made)
        #expect(!one.isEmpty && !two.isEmpty)
    }

    @Test func `a registered handler receives its events, and the sequence all others`() async throws {
        let recorder = EventRecorder()
        let first = try await session(recorder.handlers("named"))
        for name in ["a", "b"] { try await download(name, first, handler: "named") }
        for name in ["c", "d"] { try await download(name, first) }
        var iterator = first.events.makeAsyncIterator()
        var delivered: [String?] = []
        for _ in 0..<2 {
            let event = await iterator.next()
            delivered.append(context(event))
            try await event?.acknowledge()
        }
        try await recorder.await(events: 2)
        expectEqual(Set(delivered), ["c", "d"])
        expectEqual(recorder.order.sorted(), ["a", "b", "finished earlier"])
        try await expectEmpty(first.tasks)
        let error = await #expect(throws: DurableSessionError.self) { try await download("e", first, handler: "") }
        expectEqual(error?.code, .unknownHandler)
        await first.close()
    }

    @Test func `the sequence delivers the events of a handler that is no longer registered`() async throws {
        let passive = EventRecorder(acknowledges: false)
        let first = try await session(passive.handlers("former", "present"))
        for name in ["former", "present"] { try await download(name, first, handler: name) }
        try await passive.await(events: 2)
        await first.close()
        let recorder = EventRecorder()
        let second = try await session(recorder.handlers("present"))
        let event = try #require(await second.events.first { _ in true })
        #expect(context(event) == "former" && event.task.handler == "former" && second.unknownHandlers == ["former"])
        try await event.acknowledge()
        try await recorder.await(events: 1)
        try await expectEmpty(second.tasks)
        await second.close()
    }

    @Test func `closing the session ends every iteration, and the next session delivers the events`() async throws {
        let gate = try Gate()
        let slow = try TestServer { _ in StubResponse(body: "x").held(by: gate) }
        let first = try await session()
        let readers = (0..<2).map { _ in Task { await first.events.reduce(into: 0) { count, _ in count += 1 } } }
        while await first.coordinator.readerCount < 2 { await Task.yield() }
        let task = try await first.downloadTask(for: TransferRequest(url: slow.url("/")), to: .init(folder.url("file")))
        try await slow.awaitRequests(1)
        await first.close()
        for reader in readers { await expectEqual(reader.value, 0) }
        gate.open()
        let second = try await session()
        await expectEqual(second.events.first { _ in true }?.id, task.id)
        await second.close()
    }

    @Test func `an iterating task keeps the session open`() async throws {
        func startIterating() async throws -> Task<String?, Never> {
            let session = try await session()
            let events = session.events
            let reader = Task { context(await events.first { _ in true }) }
            while await session.coordinator.readerCount == 0 { await Task.yield() }
            try await download("a", session)
            return reader
        }
        try await expectEqual(startIterating().value, "a")
        // The iterator was the last owner of the session, which closes soon.
        var next: DurableSession?
        while next == nil {
            do { next = try await session() } catch { await Task.yield() }
        }
        await next?.close()
    }

    @Test func `an event whose acknowledgement the disk refuses is delivered again`() async throws {
        var environment = TaskCoordinator.Environment()
        environment.delayAfterFailure = .milliseconds(20)
        let session = try await session(environment: environment)
        try await download("a", session)
        var iterator = session.events.makeAsyncIterator()
        let event = try #require(await iterator.next())
        try session.coordinator.journal.refuseWrites(true)
        let error = await #expect(throws: DurableSessionError.self) { try await event.acknowledge() }
        expectEqual(error?.code, .journalFailed)
        try session.coordinator.journal.refuseWrites(false)
        let again = try #require(await iterator.next())
        expectEqual(again.id, event.id)
        try await again.acknowledge()
        try await expectEmpty(session.tasks)
        await session.close()
    }
}

extension TaskCoordinator {
    /// The number of suspended calls of `next()`.
    fileprivate var readerCount: Int {
        get async {
            (try? await onQueue { coordinator throws(DurableSessionError) in coordinator.eventQueue.readers.count }) ?? 0
        }
    }
}
