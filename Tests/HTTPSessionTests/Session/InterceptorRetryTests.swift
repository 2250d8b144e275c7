import Dispatch
import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// Interceptors also decide about a retry after an adapter's failure and after a failed serializer or validation.
@Suite(.timeLimit(.minutes(20))) struct InterceptorRetryTests {
    private struct AdapterError: Error {}
    private struct User: Codable, Equatable, Sendable { var name: String }

    private struct Interceptor: RequestInterceptor {
        var adapting: @Sendable (TransferRequest) async throws -> TransferRequest = { $0 }
        var retrying: @Sendable (FailedAttempt) async -> InterceptorDecision

        func adapt(_ request: TransferRequest) async throws -> TransferRequest { try await adapting(request) }
        func retry(after attempt: FailedAttempt) async -> InterceptorDecision { await retrying(attempt) }
    }

    private let seen = Locked<[FailedAttempt]>([])

    /// Records the attempts and retries while they are fewer than `limit`.
    private func retrying(
        upTo limit: Int = .max, adapting: @escaping @Sendable (TransferRequest) async throws -> TransferRequest = { $0 }
    ) -> Interceptor {
        Interceptor(adapting: adapting) { [seen] attempt in
            seen.withLock { $0.append(attempt) }
            return attempt.retryCount < limit ? .retry() : .proceed
        }
    }

    private func session(
        _ interceptor: any RequestInterceptor, validation: ResponseValidation = ResponseValidation(),
        _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> HTTPSessionManager {
        try HTTPSessionManager(
            configuration: localConfiguration(change), handlers: TransferHandlers(interceptors: [interceptor]),
            validation: validation)
    }

    /// Sends the bodies in turn, and the last one from then on.
    private func server(_ bodies: String...) throws -> TestServer {
        let count = Counter()
        return try TestServer { _ in
            let body = bodies[min(count.add(), bodies.count) - 1]
            return StubResponse(body: .init(stringLiteral: body)).field("Content-Type", "application/json")
        }
    }

    // MARK: Failures of adapters

    @Test func `an adapter that fails is retried if an interceptor decides so`() async throws {
        let server = try server("done")
        let count = Counter()
        let manager = try session(
            retrying { request in
                if count.add() < 3 { throw AdapterError() }
                return request
            })
        let task = manager.dataTask(for: TransferRequest(url: server.url()))
        try await expectEqual(task.string(), "done")
        expectEqual(server.requests.count, 1)
        expectEqual(task.metrics?.retryCount, 2)
        let attempts = seen.withLock { $0 }
        expectEqual(attempts.map(\.error?.code), [.interceptorFailed, .interceptorFailed])
        #expect(attempts.allSatisfy { $0.error?.underlying is AdapterError && $0.response == nil })
        expectEqual(attempts.map(\.retryCount), [0, 1])
    }

    @Test func `an adapter that always fails ends the task after ten retries with its error`() async throws {
        let server = try server("done")
        let manager = try session(retrying { _ in throw HTTPSessionError(.authenticationFailed, "logged out") })
        await expectEqual(failure(manager.dataTask(for: TransferRequest(url: server.url())))?.code, .authenticationFailed)
        expectEqual(seen.withLock { $0.count }, 10)
        expectEmpty(server.requests)
    }

    @Test func `an adapter that fails is replaced by the request of a retry`() async throws {
        let server = try server("done")
        let fresh = server.url("/fresh")
        let manager = try session(
            Interceptor(
                adapting: { request in
                    guard request.url == fresh else { throw AdapterError() }
                    return request
                }, retrying: { _ in .retryWith(TransferRequest(url: fresh)) }))
        try await expectEqual(manager.dataTask(for: TransferRequest(url: server.url("/stale"))).string(), "done")
        expectEqual(server.requests.map(\.target), ["/fresh"])
    }

    // MARK: Serializer and validation

    @Test func `a body that its serializer refuses is requested again if an interceptor decides so`() async throws {
        let server = try server("no JSON", #"{"name": 1}"#, #"{"name": "Ada"}"#)
        let task = try session(retrying()).dataTask(
            for: TransferRequest(url: server.url(), method: .post, body: .data(Data("x".utf8))))
        try await expectEqual(task.decode(as: User.self), User(name: "Ada"))
        expectEqual(server.requests.map(\.method), ["POST", "POST", "POST"])
        expectEqual(server.requests.map { String(decoding: $0.body, as: UTF8.self) }, ["x", "x", "x"])
        let attempts = seen.withLock { $0 }
        expectEqual(attempts.map(\.error?.code), [.cannotDecodeContent, .cannotDecodeContent])
        expectEqual(attempts.map(\.response?.statusCode), [200, 200])
        expectEqual(attempts.map(\.retryCount), [0, 1])
        try await expectEqual(String(decoding: task.response.data, as: UTF8.self), "no JSON", "the first task keeps its response")
    }

    @Test func `a response that fails its validation is requested again if an interceptor decides so`() async throws {
        let count = Counter()
        let server = try TestServer { _ in
            StubResponse(body: count.add() == 1 ? "portal" : "done").field(
                "Content-Type", count.count == 1 ? "text/html" : "text/plain")
        }
        let validation = ResponseValidation(acceptableContentTypes: ["text/plain"])
        let data = try await session(retrying(), validation: validation).dataTask(for: TransferRequest(url: server.url())).data()
        expectEqual(String(decoding: data, as: UTF8.self), "done")
        expectEqual(seen.withLock { $0.map(\.error?.code) }, [.unacceptableContentType])
    }

    @Test func `a serializer that always fails throws its error after ten retries`() async throws {
        let server = try server("no JSON")
        let manager = try session(retrying())
        await #expect { _ = try await manager.get(server.url().absoluteString).json() } throws: { error in
            (error as? HTTPSessionError)?.code == .cannotDecodeContent
        }
        expectEqual(server.requests.count, 11)
        expectEqual(seen.withLock { $0.map(\.retryCount) }, Array(0..<10))
    }

    @Test func `a serializer that fails throws its error when no interceptor wants a retry`() async throws {
        let server = try server("no JSON")
        let manager = try session(retrying(upTo: 0))
        await #expect(throws: HTTPSessionError.self) { _ = try await manager.get(server.url().absoluteString).json() }
        expectEqual(server.requests.count, 1)
        expectEqual(seen.withLock { $0.count }, 1)
    }

    @Test func `interceptors are called once for a status of 400 or above`() async throws {
        let server = try TestServer { _ in StubResponse(418) }
        let manager = try session(retrying(upTo: 0))
        await #expect(throws: HTTPSessionError.self) { _ = try await manager.get(server.url().absoluteString).data() }
        expectEqual(seen.withLock { $0.count }, 1)
    }

    @Test func `callbacks get the value of the retry after a failed serializer`() async throws {
        let server = try server("no JSON", #"{"name": "Ada"}"#)
        let manager = try session(retrying())
        let name: String? = await withCheckedContinuation { continuation in
            manager.get(
                server.url().absoluteString,
                success: { _, json in continuation.resume(returning: json?["name"]?.string) },
                failure: { _, _ in continuation.resume(returning: nil) })
        }
        expectEqual(name, "Ada")
    }

    @Test func `canceling the first task cancels the retry after a failed serializer`() async throws {
        let gate = try Gate()
        let count = Counter()
        let server = try TestServer { _ in
            count.add() == 1 ? StubResponse(body: "no JSON") : StubResponse(body: "{}").held(by: gate)
        }
        let task = try session(retrying()).dataTask(for: TransferRequest(url: server.url()))
        async let value = task.json()
        try await server.awaitRequests(2)
        task.cancel()
        do {
            _ = try await value
            Issue.record("the retry was not canceled")
        } catch {
            expectEqual((error as? HTTPSessionError)?.code, .cancelled)
        }
        gate.open()
    }

    @Test func `an interceptor that never returns after a failed serializer fails as handlerTimedOut`() async throws {
        let server = try server("no JSON")
        let hanging = Interceptor { _ in
            await withTaskCancellationHandler {
                await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                    DispatchQueue.global().asyncAfter(deadline: .now() + 5) { continuation.resume() }
                }
            } onCancel: {
            }
            return .retry()
        }
        let manager = try session(hanging) { $0.handlerTimeout = .milliseconds(50) }
        await #expect { _ = try await manager.get(server.url().absoluteString).json() } throws: { error in
            (error as? HTTPSessionError)?.code == .handlerTimedOut
        }
    }
}
