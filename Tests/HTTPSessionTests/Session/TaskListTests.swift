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
        #expect(await session.dataTasks.map(\.id) == data.map(\.id))
        #expect(await session.uploadTasks.map(\.id) == [upload.id])
        #expect(await session.downloadTasks.map(\.id) == [download.id])
        #expect(await session.streamTasks.map(\.id) == [stream.id])
        #expect(await session.tasks.map(\.id) == (data + [upload, download, stream]).map(\.id))
        unstarted.resume()
        #expect(await session.dataTasks.map(\.id) == [unstarted.id] + data.map(\.id))
        upload.suspend()
        #expect(await session.uploadTasks.map(\.id) == [upload.id])
        upload.resume()
        gate.open()
        for task in data + [unstarted, upload, download] { _ = try await task.response }
        for try await _ in stream.chunks {}
        _ = try await stream.response
        #expect(await session.tasks.isEmpty)
    }

    @Test func `a data task that became a download moves to the list of download tasks`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in
            StubResponse(body: StubBody([.pattern(from: 0, count: 100_000), .wait(.gate(gate)), .bytes([1])]))
        }
        let destination = DownloadDestination(folder.url("file"))
        let session = try localSession(handlers: TransferHandlers(response: { _ in .becomeDownload(destination) }))
        let task = session.dataTask(for: TransferRequest(url: server.url()))
        #expect(await session.dataTasks.map(\.id) == [task.id])
        await task.awaitProgress { $0.bytesReceived > 0 }
        #expect(await session.dataTasks.isEmpty)
        #expect(await session.downloadTasks.map(\.id) == [task.id])
        gate.open()
        _ = try await task.response
        #expect(await session.downloadTasks.isEmpty && folder.names == ["file"])
    }

    @Test func `each session lists its own tasks only`() async throws {
        let server = try TestServer { _ in .never }
        let (one, other) = (try localSession(), try localSession())
        let task = one.dataTask(for: TransferRequest(url: server.url()))
        #expect(await one.dataTasks.map(\.id) == [task.id])
        #expect(await other.tasks.isEmpty)
        task.cancel()
        #expect(await failure(task)?.code == .cancelled)
        #expect(await one.tasks.isEmpty)
    }
}
