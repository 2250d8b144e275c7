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
        try localSession({ $0.handlerTimeout = timeout }, handlers: TransferHandlers(response: handler)).data(
            TransferRequest(url: server.url()))
    }

    @Test func `an allowed response is read, however late the word`() async throws {
        let server = try TestServer { _ in StubResponse(body: .pattern(500_000)).field("X-Kind", "big") }
        let other = try TestServer { _ in StubResponse().delayed(.milliseconds(50)) }
        let session = try localSession()
        let allowed = try task(server) { head in
            _ = try? await session.data(TransferRequest(url: other.url())).value
            return head.firstValue(of: "x-kind") == "big" ? .allow : .cancel
        }
        #expect(try await allowed.value.data == pattern(500_000))
    }

    @Test func `a short response that has ended meanwhile is read too`() async throws {
        let server = try TestServer { _ in StubResponse(body: "short").closing() }
        let allowed = try task(server) { _ in
            try? await server.awaitOpenConnections(0)
            return .allow
        }
        #expect(try await allowed.value.data == Data("short".utf8))
        let empty = try TestServer { _ in StubResponse(204) }
        #expect(try await task(empty) { _ in .allow }.value.statusCode == 204)
    }

    @Test func `a refused response is not read`() async throws {
        let server = try TestServer { _ in StubResponse(body: .zeros(64 << 20)) }
        #expect(await failure(try task(server) { _ in .cancel })?.code == .cancelled)
        try await server.awaitOpenConnections(0)
    }

    @Test func `a data task becomes a download`() async throws {
        let folder = try ScratchDirectory()
        let place = DownloadDestination(folder.url("file"))
        let server = try TestServer { _ in StubResponse(body: .pattern(700_000)) }
        let download = try task(server) { _ in .becomeDownload(place) }
        let response = try await download.value
        #expect(response.file == place.file)
        #expect(response.data.isEmpty)
        #expect(try Data(contentsOf: place.file) == pattern(700_000))
        #expect(download.kind == .download)
        #expect(
            await failure(try task(server) { _ in .becomeDownload(place) })?.code == .cannotWriteFile || folder.names == ["file"])
        #expect(folder.names == ["file"])
    }

    @Test func `a task that becomes a download is told of, before its file and its end`() async throws {
        let folder = try ScratchDirectory()
        let place = DownloadDestination(folder.url("file"))
        let server = try TestServer { _ in StubResponse(body: "x") }
        let log = EventLog()
        let session = try HTTPSessionManager(
            configuration: localConfiguration(), handlers: TransferHandlers(response: { _ in .becomeDownload(place) }),
            monitors: [log])
        _ = try await session.data(TransferRequest(url: server.url())).value
        session.invalidate(cancelsTasks: false)
        #expect(
            await log.awaitInvalidation().filter { !$0.hasPrefix("transaction") } == [
                "created", "resumed", "started 1", "response 200", "became download file", "moved", "completed", "invalidated",
            ])
    }

    @Test func `a handler that never answers has its time`() async throws {
        let server = try TestServer { _ in StubResponse(body: .zeros(1 << 20)) }
        let task = try task(server, timeout: .milliseconds(100)) { _ in
            try? await Task.sleep(for: .seconds(3600))
            return .allow
        }
        #expect(await failure(task)?.code == .handlerTimedOut)
        try await server.awaitOpenConnections(0)
    }

    @Test func `a response too long for memory is refused behind the handler's back`() async throws {
        let server = try TestServer { _ in
            StubResponse(body: StubBody([.pattern(from: 0, count: 50_000), .wait(.forever), .bytes([1])]))
        }
        let session = try localSession({ $0.maximumResponseSize = 1_000 }, handlers: TransferHandlers(response: { _ in .allow }))
        #expect(await failure(session.data(TransferRequest(url: server.url())))?.code == .responseTooLarge)
    }

    @Test func `handlers of a task stand before those of its session`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let session = try localSession(handlers: TransferHandlers(response: { _ in .cancel }))
        #expect(try await session.data(TransferRequest(url: server.url()), handlers: TransferHandlers()).value.statusCode == 200)
        #expect(await failure(session.data(TransferRequest(url: server.url())))?.code == .cancelled)
    }

    @Test func `the response of a redirect or a challenge that is left is asked about`() async throws {
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
        #expect(try await session.data(TransferRequest(url: server.url("/redirect"))).value.file == file)
        #expect(try Data(contentsOf: file) == Data("moved".utf8))
        #expect(await failure(session.data(TransferRequest(url: server.url("/challenge"))))?.code == .cancelled)
    }
}
