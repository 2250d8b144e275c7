import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

@Suite(.timeLimit(.minutes(20))) struct InterceptorTests {
    private let log = EventLog()

    private func session(_ interceptors: any RequestInterceptor...) throws -> HTTPSessionManager {
        try HTTPSessionManager(
            configuration: localConfiguration(), handlers: TransferHandlers(interceptors: interceptors), eventMonitors: [log])
    }

    /// An interceptor made of closures.
    private struct Interceptor: RequestInterceptor {
        var adapting: @Sendable (TransferRequest) async throws -> TransferRequest = { $0 }
        var retrying: @Sendable (FailedAttempt) async -> InterceptorDecision = { _ in .proceed }

        func adapt(_ request: TransferRequest) async throws -> TransferRequest { try await adapting(request) }
        func retry(after attempt: FailedAttempt) async -> InterceptorDecision { await retrying(attempt) }
    }

    private static func adding(_ value: String) -> Interceptor {
        Interceptor(adapting: { request in
            var request = request
            let field = HTTPField.Name("X-Seen")
            if let field { request.headerFields[field] = (request.headerFields[field].map { $0 + "," } ?? "") + value }
            return request
        })
    }

    // MARK: Adapting

    @Test func `each interceptor adapts the result of the previous one, before every attempt`() async throws {
        let count = Counter()
        let server = try TestServer { _ in
            count.add() == 1 ? StubResponse(503).field("Retry-After", "0") : StubResponse(body: "done")
        }
        let manager = try HTTPSessionManager(
            configuration: localConfiguration { $0.retryPolicy = RetryPolicy(baseDelay: .milliseconds(1)) },
            handlers: TransferHandlers(interceptors: [Self.adding("a"), Self.adding("b")]))
        try await expectEqual(manager.dataTask(for: TransferRequest(url: server.url())).string(), "done")
        expectEqual(server.requests.map { $0["x-seen"] }, ["a,b", "a,b"])
    }

    @Test func `a field that an interceptor adds is not sent to another origin after a redirect`() async throws {
        let other = try TestServer { _ in StubResponse(body: "there") }
        let address = other.url("/there").absoluteString
        let server = try TestServer { request in
            switch request.path {
            case "/first": StubResponse(302).field("Location", "/second")
            case "/second": StubResponse(302).field("Location", address)
            default: StubResponse(404)
            }
        }
        _ = try await session(Self.adding("a")).dataTask(for: TransferRequest(url: server.url("/first"))).response
        expectEqual(server.requests.map { $0["x-seen"] }, ["a", "a"])
        expectEqual(other.requests.map { $0["x-seen"] }, [nil])
    }

    @Test func `an error thrown by an interceptor's adapt ends the task before anything is sent`() async throws {
        struct AdapterError: Error {}
        let server = try TestServer { _ in StubResponse() }
        let throwing = try session(Interceptor(adapting: { _ in throw AdapterError() }))
        let error = await failure(throwing.dataTask(for: TransferRequest(url: server.url())))
        expectEqual(error?.code, .interceptorFailed)
        #expect(error?.underlying is AdapterError)
        let elsewhere = try #require(URL(string: "http://127.0.0.1:1/"))
        let leading = try session(Interceptor(adapting: { _ in TransferRequest(url: elsewhere) }))
        await expectEqual(failure(leading.dataTask(for: TransferRequest(url: server.url())))?.code, .interceptorFailed)
        expectEmpty(server.requests)
    }

    @Test func `an interceptor that never returns fails the task after the handler timeout, or on cancellation`()
        async throws
    {
        let server = try TestServer { _ in StubResponse() }
        let hanging = Interceptor(adapting: { request in
            try await Task.sleep(for: .seconds(3_600))
            return request
        })
        let manager = try HTTPSessionManager(
            configuration: localConfiguration { $0.handlerTimeout = .milliseconds(50) },
            handlers: TransferHandlers(interceptors: [hanging]))
        await expectEqual(failure(manager.dataTask(for: TransferRequest(url: server.url())))?.code, .handlerTimedOut)
        let patient = try session(hanging).dataTask(for: TransferRequest(url: server.url()))
        patient.suspend()
        patient.resume()
        patient.cancel()
        await expectEqual(failure(patient)?.code, .cancelled)
    }

    // MARK: Retrying

    @Test func `an interceptor can request a retry, up to ten times`() async throws {
        let server = try TestServer { _ in StubResponse(418, body: "no") }
        let stubborn = Interceptor(retrying: { attempt in
            attempt.response?.statusCode == 418 ? .retry(after: .milliseconds(1)) : .proceed
        })
        let response = try await session(stubborn).dataTask(for: TransferRequest(url: server.url(), method: .post)).response
        expectEqual(response.statusCode, 418)
        expectEqual(String(decoding: response.data, as: UTF8.self), "no")
        expectEqual(server.requests.count, 11)
        expectEqual(response.metrics.retryCount, 10)
        await log.await("completed")
        expectEqual(log.names.count { $0 == "retry unacceptable-status" }, 10)
    }

    @Test func `an interceptor is called after connection errors too`() async throws {
        let count = Counter()
        let server = try TestServer { _ in
            count.add() == 1 ? StubResponse(body: .pattern(1_000)).cut(afterBodyBytes: 10, .reset) : StubResponse(body: "done")
        }
        let codes = Locked<[HTTPSessionError.Code?]>([])
        let interceptor = Interceptor(retrying: { attempt in
            codes.withLock { $0.append(attempt.error?.code) }
            return .retry()
        })
        try await expectEqual(session(interceptor).dataTask(for: TransferRequest(url: server.url())).string(), "done")
        expectEqual(codes.withLock { $0 }, [.connectionLost])
    }

    @Test func `a download whose URL has expired continues at the URL that an interceptor returns`() async throws {
        let folder = try ScratchDirectory()
        let count = Counter()
        let server = try TestServer { request in
            switch (request.target, count.add()) {
            case (_, 1): StubResponse(body: .pattern(1_000_000)).field("ETag", "\"1\"").cut(afterBodyBytes: 600_000, .truncated)
            case ("/file?signature=1", _): StubResponse(403, body: "expired")
            case (_, _) where request["if-range"] == "\"1\"":
                StubResponse(206, body: StubBody([.pattern(from: 600_000, count: 400_000)])).field("ETag", "\"1\"")
                    .field("Content-Range", "bytes 600000-999999/1000000")
            default: StubResponse(500)
            }
        }
        let fresh = server.url("/file?signature=2")
        let signing = Interceptor(retrying: { attempt in
            attempt.error != nil
                ? .retry() : attempt.response?.statusCode == 403 ? .retryWith(TransferRequest(url: fresh)) : .proceed
        })
        let response = try await session(signing).downloadTask(
            for: TransferRequest(url: server.url("/file?signature=1")), to: DownloadDestination(folder.url("file"))
        ).response
        try expectEqual(Data(contentsOf: folder.url("file")), pattern(1_000_000))
        expectEqual(response.metrics.bytesContinued, 600_000)
        expectEqual(server.requests.map(\.target), ["/file?signature=1", "/file?signature=1", "/file?signature=2"])
    }

    @Test func `an interceptor can fail a task with its own error, and later interceptors are not called`() async throws {
        struct Enough: Error {}
        let server = try TestServer { _ in StubResponse(409, body: "no") }
        let asked = Counter()
        let later = Interceptor(retrying: { _ in
            asked.add()
            return .proceed
        })
        let error = await failure(
            try session(Interceptor(retrying: { _ in .fail(Enough()) }), later).dataTask(for: TransferRequest(url: server.url())))
        expectEqual(error?.code, .interceptorFailed)
        #expect(error?.underlying is Enough)
        expectEqual(error?.context.statusCode, 409)
        let named = HTTPSessionError(.authenticationFailed, "logged out")
        let second = await failure(
            try session(Interceptor(retrying: { _ in .fail(named) }), later).dataTask(for: TransferRequest(url: server.url())))
        expectEqual(second?.code, .authenticationFailed)
        expectEqual(asked.count, 0)
        expectEqual(server.requests.count, 2)
    }
}
