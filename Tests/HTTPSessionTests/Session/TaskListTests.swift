import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// Lists of a session's tasks, by kind.
@Suite(.timeLimit(.minutes(20))) struct TaskListTests {
    private let folder: ScratchDirectory

    init() throws { folder = try ScratchDirectory() }

    @Test func `the task lists contain the started, unfinished tasks of their kind, oldest first`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(body: "x").held(by: gate) }
        let session = try localSession { $0.maximumConnectionsPerHost = 2 }
        let body = TransferRequest(url: server.url(), method: .put, body: .data(Data("y".utf8)))
        let request = TransferRequest(url: server.url())
        let unstarted = session.dataTask(for: request, startsImmediately: false)
        // Tasks after the second wait for a connection, and are in the lists nevertheless.
        let data = [session.dataTask(for: request), session.dataTask(for: request)]
        let upload = session.dataTask(for: body)
        let download = session.downloadTask(for: request, to: .init(folder.url("file")))
        let stream = session.streamTask(for: request)
        await expectEqual(session.dataTasks.map(\.id), data.map(\.id))
        await expectEqual(session.uploadTasks.map(\.id), [upload.id])
        await expectEqual(session.downloadTasks.map(\.id), [download.id])
        await expectEqual(session.streamTasks.map(\.id), [stream.id])
        await expectEqual(session.tasks.map(\.id), (data + [upload, download, stream]).map(\.id))
        unstarted.resume()
        await expectEqual(session.dataTasks.map(\.id), [unstarted.id] + data.map(\.id))
        upload.suspend()
        await expectEqual(session.uploadTasks.map(\.id), [upload.id])
        upload.resume()
        gate.open()
        for task in data + [unstarted, upload, download] { _ = try await task.response }
        for try await _ in stream.chunks {}
        _ = try await stream.response
        await expectEmpty(session.tasks)
    }

    @Test func `a data task that became a download moves to the list of download tasks`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in
            StubResponse(body: StubBody([.pattern(from: 0, count: 100_000), .wait(.gate(gate)), .bytes([1])]))
        }
        let destination = DownloadDestination(folder.url("file"))
        let session = try localSession(handlers: TransferHandlers(response: { _ in .becomeDownload(destination) }))
        let task = session.dataTask(for: TransferRequest(url: server.url()))
        await expectEqual(session.dataTasks.map(\.id), [task.id])
        await task.awaitProgress { $0.bytesReceived > 0 }
        await expectEmpty(session.dataTasks)
        await expectEqual(session.downloadTasks.map(\.id), [task.id])
        gate.open()
        _ = try await task.response
        #expect(await session.downloadTasks.isEmpty && folder.names == ["file"])
    }

    @Test func `each session lists its own tasks only`() async throws {
        let server = try TestServer { _ in .never }
        let (one, other) = (try localSession(), try localSession())
        let task = one.dataTask(for: TransferRequest(url: server.url()))
        await expectEqual(one.dataTasks.map(\.id), [task.id])
        await expectEmpty(other.tasks)
        task.cancel()
        await expectEqual(failure(task)?.code, .cancelled)
        await expectEmpty(one.tasks)
    }
}
