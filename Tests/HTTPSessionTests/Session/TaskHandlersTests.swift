import EventLoop
import Expectations
import Foundation
import HTTPSessionTestKit
import HTTPTypes
import Testing

@testable import HTTPSession

/// A task's own handlers in a session that has handlers too.
@Suite(.timeLimit(.minutes(20))) struct TaskHandlersTests {
    /// Handlers that write their name into a list.
    private static func named(_ name: String, in calls: Locked<[String]>) -> TransferHandlers {
        @Sendable func answer<Answer>(_ handler: String, _ answer: Answer) -> Answer {
            calls.withLock { $0.append("\(name) \(handler)") }
            return answer
        }
        return TransferHandlers(
            response: { _ in answer("response", .allow) }, redirect: { _ in answer("redirect", .follow) },
            challenge: { _ in answer("challenge", .performDefaultHandling) },
            serverTrust: { _ in answer("serverTrust", .performDefaultHandling) },
            clientCertificate: { _ in answer("clientCertificate", .performDefaultHandling) },
            didContinue: { _, _ in answer("didContinue", ()) })
    }

    /// An interceptor that writes its name into a field and into a list.
    private struct Named: RequestInterceptor {
        let name: String
        let calls: Locked<[String]>
        var decision = InterceptorDecision.proceed

        func adapt(_ request: TransferRequest) async throws -> TransferRequest {
            var request = request
            request.headerFields[.userAgent] = (request.headerFields[.userAgent] ?? "") + name
            return request
        }

        func retry(after attempt: FailedAttempt) async -> InterceptorDecision {
            calls.withLock { $0.append(name) }
            return decision
        }
    }

    @Test(arguments: ["response", "redirect", "challenge", "serverTrust", "clientCertificate", "didContinue"])
    func `a task's handler replaces the session's of the same name, and no other`(name: String) async throws {
        let calls = Locked<[String]>([])
        let (session, all) = (Self.named("session", in: calls), Self.named("task", in: calls))
        var own = TransferHandlers()
        switch name {
        case "response": own.response = all.response
        case "redirect": own.redirect = all.redirect
        case "challenge": own.challenge = all.challenge
        case "serverTrust": own.serverTrust = all.serverTrust
        case "clientCertificate": own.clientCertificate = all.clientCertificate
        default: own.didContinue = all.didContinue
        }
        let merged = own.added(to: session)
        let head = ResponseHead(HTTPResponse(status: .ok))
        let url = try #require(URL(string: "https://a.example/"))
        _ = await merged.response?(head)
        _ = await merged.redirect?(.init(response: head, proposed: TransferRequest(url: url)))
        merged.didContinue?(1, nil)
        #expect(merged.challenge != nil && merged.serverTrust != nil && merged.clientCertificate != nil)
        let seen = calls.withLock { $0 }
        expectEqual(seen, ["response", "redirect", "didContinue"].map { "\($0 == name ? "task" : "session") \($0)" })
    }

    @Test func `a session's refusal of a certificate remains if the task has another handler`() async throws {
        let certificate = try SelfSignedCertificate(names: ["127.0.0.1"])
        let server = try TestServer(tls: certificate.serverTLS) { _ in StubResponse(body: "secret") }
        let policy = try SecurityPolicy.trusting(certificate)
        let asked = Counter()
        let session = try localSession(
            { $0.securityPolicy = policy },
            handlers: TransferHandlers(serverTrust: { _ in
                asked.add()
                return .reject
            }))
        for own in [nil, TransferHandlers(), TransferHandlers(redirect: { _ in .follow })] {
            let task = session.dataTask(for: TransferRequest(url: server.url()), handlers: own)
            await expectEqual(failure(task)?.code, .certificateUntrusted)
        }
        expectEmpty(server.requests)
        // The session's decision is stored for all of them.
        expectEqual(asked.count, 1)
        let own = TransferHandlers(serverTrust: { _ in .performDefaultHandling })
        let task = session.dataTask(for: TransferRequest(url: server.url()), handlers: own)
        try await expectEqual(task.string(), "secret")
        // The task's decision is its own.
        await expectEqual(failure(session.dataTask(for: TransferRequest(url: server.url())))?.code, .certificateUntrusted)
    }

    @Test func `a task's interceptors adapt after the session's, and decide before them`() async throws {
        let calls = Locked<[String]>([])
        let server = try TestServer { _ in StubResponse(404) }
        let session = try localSession(
            handlers: TransferHandlers(interceptors: [Named(name: "a", calls: calls), Named(name: "b", calls: calls)]))
        let own = TransferHandlers(interceptors: [Named(name: "c", calls: calls), Named(name: "d", calls: calls)])
        _ = try await session.dataTask(for: TransferRequest(url: server.url()), handlers: own).response
        expectEqual(server.requests.map { $0["user-agent"] }, ["abcd"])
        expectEqual(calls.withLock { $0 }, ["c", "d", "a", "b"])

        calls.withLock { $0 = [] }
        let only = TransferHandlers(redirect: { _ in .follow })
        _ = try await session.dataTask(for: TransferRequest(url: server.url()), handlers: only).response
        expectEqual(server.requests.last?["user-agent"], "ab")
        expectEqual(calls.withLock { $0 }, ["a", "b"])
    }

    @Test func `a task's interceptor that decides ends the question`() async throws {
        let calls = Locked<[String]>([])
        let server = try TestServer { _ in StubResponse(404) }
        let session = try localSession(handlers: TransferHandlers(interceptors: [Named(name: "a", calls: calls)]))
        let refusal = HTTPSessionError(.invalidRequest, "no")
        let own = TransferHandlers(interceptors: [Named(name: "b", calls: calls, decision: .fail(refusal))])
        let task = session.dataTask(for: TransferRequest(url: server.url()), handlers: own)
        await expectEqual(failure(task)?.code, .invalidRequest)
        expectEqual(calls.withLock { $0 }, ["b"])
    }
}
