import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

@Suite(.timeLimit(.minutes(20))) struct ResponseHandlerTests {
    private func task(
        _ server: TestServer, timeout: Duration = .seconds(60),
        _ handler: @escaping @Sendable (ResponseHead) async -> TransferHandlers.ResponseDisposition
    ) throws -> TransferTask {
        try localSession({ $0.handlerTimeout = timeout }, handlers: TransferHandlers(response: handler)).dataTask(
            for: TransferRequest(url: server.url()))
    }

    @Test func `a response that the response handler allows late is read completely`() async throws {
        let server = try TestServer { _ in StubResponse(body: .pattern(500_000)).field("X-Kind", "big") }
        let other = try TestServer { _ in StubResponse().delayed(.milliseconds(50)) }
        let session = try localSession()
        let allowed = try task(server) { head in
            _ = try? await session.dataTask(for: TransferRequest(url: other.url())).response
            return head.firstValue(of: "x-kind") == "big" ? .allow : .cancel
        }
        try await expectEqual(allowed.response.data, pattern(500_000))
    }

    @Test func `a short response that is complete before the response handler allows it is read too`() async throws {
        let server = try TestServer { _ in StubResponse(body: "short").closing() }
        let allowed = try task(server) { _ in
            try? await server.awaitOpenConnections(0)
            return .allow
        }
        try await expectEqual(allowed.response.data, Data("short".utf8))
        let empty = try TestServer { _ in StubResponse(204) }
        try await expectEqual(task(empty) { _ in .allow }.response.statusCode, 204)
    }

    @Test func `a response that the response handler cancels is not read`() async throws {
        let server = try TestServer { _ in StubResponse(body: .zeros(64 << 20)) }
        await expectEqual(failure(try task(server) { _ in .cancel })?.code, .cancelled)
        try await server.awaitOpenConnections(0)
    }

    @Test func `a response handler turns a data task into a download`() async throws {
        let folder = try ScratchDirectory()
        let place = DownloadDestination(folder.url("file"))
        let server = try TestServer { _ in StubResponse(body: .pattern(700_000)) }
        let download = try task(server) { _ in .becomeDownload(place) }
        let response = try await download.response
        expectEqual(response.file, place.file)
        expectEmpty(response.data)
        try expectEqual(Data(contentsOf: place.file), pattern(700_000))
        expectEqual(download.kind, .download)
        #expect(
            await failure(try task(server) { _ in .becomeDownload(place) })?.code == .cannotWriteFile || folder.names == ["file"])
        expectEqual(folder.names, ["file"])
    }

    @Test func `an event reports that a task becomes a download, before its file is moved`() async throws {
        let folder = try ScratchDirectory()
        let place = DownloadDestination(folder.url("file"))
        let server = try TestServer { _ in StubResponse(body: "x") }
        let log = EventLog()
        let session = try HTTPSessionManager(
            configuration: localConfiguration(), handlers: TransferHandlers(response: { _ in .becomeDownload(place) }),
            eventMonitors: [log])
        _ = try await session.dataTask(for: TransferRequest(url: server.url())).response
        session.cancel(afterTasks: true)
        await expectEqual(
            log.awaitInvalidation().filter { !$0.hasPrefix("transaction") },
            [
                "created", "resumed", "started 1", "response 200", "became download file", "moved", "completed", "invalidated",
            ])
    }

    @Test func `a response handler that never returns fails the task after the handler timeout`() async throws {
        let server = try TestServer { _ in StubResponse(body: .zeros(1 << 20)) }
        let task = try task(server, timeout: .milliseconds(100)) { _ in
            try? await Task.sleep(for: .seconds(3600))
            return .allow
        }
        await expectEqual(failure(task)?.code, .handlerTimedOut)
        try await server.awaitOpenConnections(0)
    }

    @Test func `a response larger than the maximum size fails although the response handler allows it`() async throws {
        let server = try TestServer { _ in
            StubResponse(body: StubBody([.pattern(from: 0, count: 50_000), .wait(.forever), .bytes([1])]))
        }
        let session = try localSession({ $0.maximumResponseSize = 1_000 }, handlers: TransferHandlers(response: { _ in .allow }))
        await expectEqual(failure(session.dataTask(for: TransferRequest(url: server.url())))?.code, .responseTooLarge)
    }

    @Test func `a response handler of a task replaces that of its session`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let session = try localSession(handlers: TransferHandlers(response: { _ in .cancel }))
        let own = TransferHandlers(response: { _ in .allow })
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url()), handlers: own).response.statusCode, 200)
        await expectEqual(failure(session.dataTask(for: TransferRequest(url: server.url())))?.code, .cancelled)
    }

    @Test func `the response handler is called for a redirect or challenge that is not followed`() async throws {
        let server = try TestServer { request in
            request.path == "/redirect"
                ? StubResponse(302, fields: ["Location": "/x"], body: "moved")
                : StubResponse(401, fields: ["WWW-Authenticate": "Basic realm=r"], body: "denied")
        }
        let folder = try ScratchDirectory()
        let file = folder.url("file")
        let session = try localSession(
            handlers: TransferHandlers(
                response: { $0.statusCode == 302 ? .becomeDownload(.init(file)) : .cancel }, redirect: { _ in .refuse },
                challenge: { _ in .performDefaultHandling }))
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url("/redirect"))).response.file, file)
        try expectEqual(Data(contentsOf: file), Data("moved".utf8))
        await expectEqual(failure(session.dataTask(for: TransferRequest(url: server.url("/challenge"))))?.code, .cancelled)
    }
}
