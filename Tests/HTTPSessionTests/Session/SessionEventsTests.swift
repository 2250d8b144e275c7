import Expectations
import Foundation
import HTTPSessionTestKit
import HTTPTypes
import Testing

@testable import HTTPSession

/// The events of a session as an asynchronous sequence.
@Suite(.timeLimit(.minutes(20))) struct SessionEventsTests {
    private func name(_ event: SessionEvent) -> String {
        switch event {
        case .taskCreated: "created"
        case .taskResumed: "resumed"
        case .taskSuspended: "suspended"
        case .requestStarted(_, let attempt): "started \(attempt)"
        case .receivedResponse(_, let head): "response \(head.statusCode)"
        case .transactionFinished: "transaction"
        case .taskCompleted(_, .success): "completed"
        case .taskCompleted(_, .failure(let error)): "failed \(error.code.rawValue)"
        case .sessionInvalidated: "invalidated"
        case .eventsDropped(let count): "dropped \(count)"
        default: "other"
        }
    }

    private func names(_ events: SessionEvents) async -> [String] {
        var names: [String] = []
        for await event in events { names.append(name(event)) }
        return names
    }

    @Test func `a sequence receives the events from its creation to the session's end`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let session = try localSession()
        let earlier = session.events
        _ = try await session.dataTask(for: TransferRequest(url: server.url())).response
        // The awaiters of a response are resumed before its last event is delivered.
        for await event in earlier where name(event) == "completed" { break }
        let events = session.events
        _ = try await session.dataTask(for: TransferRequest(url: server.url())).response
        session.cancel()
        await session.waitUntilEnded()
        await expectEqual(
            names(events),
            [
                "created", "resumed", "started 1", "response 200", "transaction", "completed", "invalidated",
            ])
    }

    @Test func `each sequence receives all events`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let session = try localSession()
        let (one, other) = (session.events, session.events)
        _ = try await session.dataTask(for: TransferRequest(url: server.url())).response
        session.cancel()
        await session.waitUntilEnded()
        let first = await names(one)
        expectEqual(first.count, 7)
        await expectEqual(names(other), first)
    }

    @Test func `a sequence ends with a session that was released`() async throws {
        var session: HTTPSessionManager? = try localSession()
        let events = try #require(session).events
        session = nil
        await expectEqual(names(events), ["invalidated"])
    }

    @Test func `a sequence that is made after the session's end is empty`() async throws {
        let session = try localSession()
        session.cancel()
        await session.waitUntilEnded()
        await expectEqual(names(session.events), [])
    }

    @Test func `canceling the reading task ends its iteration`() async throws {
        let session = try localSession()
        let events = session.events
        let reader = Task { await names(events) }
        reader.cancel()
        await expectEqual(reader.value, [])
        session.cancel()
        await session.waitUntilEnded()
        await expectEqual(names(events), ["invalidated"])
    }

    @Test func `a reader that is too slow receives the newest 1,000 events and the number of the dropped`() async throws {
        let session = try localSession()
        let events = session.events
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let tasks = (0..<1_500).map { _ in session.dataTask(for: TransferRequest(url: url), startsImmediately: false) }
        // Each of the 1,500 tasks is created, and then fails with its session: that it never started.
        session.cancel()
        await session.waitUntilEnded()
        let received = await names(events)
        expectEqual(received.first, "dropped \(2 * tasks.count + 1 - 1_000)")
        expectEqual(received.count, 1_001)
        expectEqual(received.last, "invalidated")
    }

    @Test func `two readers of a sequence share its events, and each receives the end`() async throws {
        let session = try localSession()
        let events = session.events
        let (one, other) = (Task { await names(events).count }, Task { await names(events).count })
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let tasks = (0..<100).map { _ in session.dataTask(for: TransferRequest(url: url), startsImmediately: false) }
        session.cancel()
        await session.waitUntilEnded()
        // A task is created and fails with its session.
        await expectEqual(one.value + other.value, 2 * tasks.count + 1)
    }

    @Test func `a sequence that is released receives nothing more, and details are no longer made`() async throws {
        let session = try localSession()
        var events: SessionEvents? = session.events
        #expect(session.core.outbox.reportsDetails)
        withExtendedLifetime(events) {}
        events = nil
        #expect(!session.core.outbox.reportsDetails)
        session.cancel()
        await session.waitUntilEnded()
    }
}
