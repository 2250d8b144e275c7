import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionJournal
import HTTPSessionTestKit
import NetworkLab
import Testing

/// Durable sessions on a scripted transport, and events that a test makes: the public interface only.
@Suite(.timeLimit(.minutes(5))) struct ScriptedSessionTests {
    private let folder: ScratchDirectory
    private let url: URL

    init() throws {
        folder = try ScratchDirectory()
        url = try #require(URL(string: "https://api.example.com/big.bin"))
    }

    private func open(_ transport: ScriptedTransport) async throws -> DurableSession {
        var configuration = SessionConfiguration.default
        configuration.scriptedTransport = transport
        return try await DurableSession.open(identifier: "test", directory: folder.url("state"), configuration: configuration)
    }

    @Test func `a download that the server cuts is completed by a second session on the same transport`() async throws {
        let transport = ScriptedTransport(time: .manual)
        let response = StubResponse(body: .pattern(300_000)).servingRanges(entityTag: "\"v1\"")
        transport.stub("/big.bin", with: response.cut(afterBodyBytes: 100_000, .reset), response)

        let first = try await open(transport)
        let made = try await first.downloadTask(for: TransferRequest(url: url), to: .init(folder.url("big.bin")))
        await transport.waitUntilIdle()
        try await expectEmpty(first.pendingEvents)
        await first.close()
        expectEqual(transport.requests.count, 1)

        let second = try await open(transport)
        let event = try #require(await second.events.first { _ in true })
        #expect(event.id == made.id && event.outcome.summary == "finished")
        try await event.acknowledge()
        try await expectEmpty(second.tasks)
        await second.close()
        expectEqual(transport.requests.map { $0["range"] }, [nil, "bytes=100000-"])
        try expectEqual(Data(contentsOf: folder.url("big.bin")), pattern(300_000))
    }

    @Test func `the dates of a task are those of the transport, and the task expires in its time`() async throws {
        let transport = ScriptedTransport(startingAt: Date(timeIntervalSince1970: 1_000_000_000))
        transport.stub("/big.bin", with: .never)
        let session = try await open(transport)
        var request = TransferRequest(url: url)
        request.options.resourceTimeout = .seconds(3_600)
        let task = try await session.downloadTask(for: request, to: .init(folder.url("big.bin")))
        expectEqual(task.created, Date(timeIntervalSince1970: 1_000_000_000))
        expectEqual(task.expires, Date(timeIntervalSince1970: 1_000_003_600))
        await expectEqual(session.events.first { _ in true }?.outcome.summary, "expired")
        #expect(transport.elapsedTime >= .seconds(3_600))
        await session.close()
    }

    @Test func `a handler receives an event that a test has made, and the test sees the acknowledgement`() async throws {
        let acknowledged = Locked(0)
        let task = DurableTaskInfo(kind: .upload, url: url, handler: "photos", context: Data("7".utf8), hasEnded: true)
        let response = DurableEvent.Response(statusCode: 201, url: url, body: Data("created".utf8))
        let event = DurableEvent(task: task, outcome: .finished(response)) { () throws(DurableSessionError) in
            acknowledged.withLock { $0 += 1 }
        }
        let recorder = EventRecorder()
        await recorder.record(event)
        #expect(recorder.order == ["7"] && acknowledged.withLock { $0 } == 1)
        #expect(event.id == task.id && task.expires == task.created.addingTimeInterval(7 * 24 * 3_600))
        guard case .finished(let final?) = recorder.events.first?.outcome else { return #expect(Bool(false)) }
        expectEqual(final, response)

        let refused = DurableEvent(task: task, outcome: .cancelled) { () throws(DurableSessionError) in
            throw DurableSessionError(.journalFailed, "the disk is full")
        }
        let error = await #expect(throws: DurableSessionError.self) { try await refused.acknowledge() }
        expectEqual(error?.code, .journalFailed)
    }
}
