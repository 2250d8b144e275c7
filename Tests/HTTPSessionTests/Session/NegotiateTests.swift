import Expectations
import Foundation
import HTTPSessionTestKit
import HTTPTypes
import Testing

@testable import HTTPSession

/// Connections that a server may authenticate as a whole for one user (RFC 4559 section 6).
@Suite(.timeLimit(.minutes(20))) struct NegotiateTests {
    @Test func `a connection authenticated by Negotiate carries no other request, before or after it`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let session = try localSession()
        for user in [nil, "one", "one", "two", nil, nil] as [String?] {
            var request = TransferRequest(url: server.url())
            request.headerFields[.authorization] = user.map { "Negotiate \($0)" }
            _ = try await session.dataTask(for: request).response
        }
        let byConnection = Dictionary(grouping: server.requests, by: \.connection).mapValues { $0.map { $0["authorization"] } }
        #expect(byConnection.values.allSatisfy { $0.count == 1 || $0.allSatisfy { $0 == nil } }, "\(byConnection)")
        expectEqual(server.requests.map(\.connection), [1, 2, 3, 4, 1, 1])
    }

    @Test func `a Negotiate credential is sent on a fresh connection, which is not reused`() async throws {
        let server = try TestServer { request in
            request.path == "/locked" ? .unauthorized("Negotiate") : StubResponse(body: "x")
        }
        let session = try localSession(
            handlers: TransferHandlers(challenge: { challenge in
                challenge.previousFailureCount == 0
                    ? .useCredential(Credential(user: "user", password: "word")) : .performDefaultHandling
            }))
        _ = try await session.dataTask(for: TransferRequest(url: server.url())).response
        // This machine has no Kerberos ticket: libcurl asks without one, and the server sends the challenge again.
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url("/locked"))).response.statusCode, 401)
        _ = try await session.dataTask(for: TransferRequest(url: server.url())).response
        let requests = server.requests
        let own = try #require(requests.dropFirst(2).first?.connection)
        expectEqual(requests.map(\.path), ["/", "/locked", "/locked", "/"])
        #expect(own != requests[0].connection && own != requests[1].connection && own != requests[3].connection)
    }

    @Test func `the plan of a Negotiate login isolates its connection, that of another scheme does not`() throws {
        for (scheme, isIsolated) in [(AuthenticationScheme.negotiate, true), (.digest, false), (.basic, false)] {
            for isProxy in [false, true] {
                let url = try #require(URL(string: "https://a.test/"))
                let origin = try #require(Origin(url))
                var logins = TaskLogins()
                logins.use(
                    Credential(user: "u", password: "p"),
                    for: AuthenticationChallenge(
                        scheme: scheme, protectionSpace: .init(origin: origin, realm: "", isProxy: isProxy), parameters: [:],
                        previousFailureCount: 0))
                let settings = try SessionSettings(localConfiguration(), credentials: CredentialStore(), path: nil)
                let plan = TransferPlan(
                    TransferRequest(url: url), logins: logins, settings: settings, segments: [], change: nil)
                // An HTTP/2 connection would carry other streams too.
                #expect(plan.isolatesConnection == isIsolated && plan.avoidsHTTP2 == isIsolated)
            }
        }
    }
}
