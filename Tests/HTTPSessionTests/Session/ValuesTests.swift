import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import Testing

/// The methods that await the body and the response in one call.
@Suite(.timeLimit(.minutes(20))) struct ValuesTests {
    private let transport = ScriptedTransport()

    private func session() throws -> HTTPSessionManager {
        try HTTPSessionManager(baseURL: "https://api.example.com/v1/", transport: transport)
    }

    @Test func `a path, a URL and a request have a body and a response in one call`() async throws {
        transport.stub("/v1/users/7", with: StubResponse(body: "Ada"))
        let session = try session()
        let url = try #require(URL(string: "https://api.example.com/v1/users/7"))
        let request = TransferRequest(url: url, method: .put, body: .data(Data("Grace".utf8)))
        for response in [
            try await session.get("users/7").response, try await session.dataTask(for: url).response,
            try await session.data(for: request).1,
        ] {
            expectEqual(String(decoding: response.data, as: UTF8.self), "Ada")
            #expect(response.statusCode == 200 && response.url == url)
        }
        expectEqual(transport.requests.map(\.method), ["GET", "GET", "PUT"])
        expectEqual(transport.requests.map(\.text), ["", "", "Grace"])
    }

    @Test func `a response of any status is returned, and a failure is thrown`() async throws {
        transport.stub("/v1/none", with: StubResponse(404, body: "no such user"))
        transport.stub("/v1/refused", with: .failing(.connectionRefused))
        var configuration = SessionConfiguration.default
        configuration.retryPolicy = .never
        let session = try HTTPSessionManager(
            baseURL: "https://api.example.com/v1/", configuration: configuration, transport: transport)
        let (data, response) = try await session.data(for: session.request(.get, "none"))
        #expect(response.statusCode == 404 && String(decoding: data, as: UTF8.self) == "no such user")
        let error = await #expect(throws: HTTPSessionError.self) { try await session.data(for: session.request(.get, "refused")) }
        expectEqual(error?.code, .cannotConnectToHost)
    }

    @Test func `canceling the Swift task cancels the transfer`() async throws {
        transport.stub("/v1/slow", with: StubResponse(body: "late").held(by: try Gate()))
        let session = try session()
        let task = Task { try await session.data(for: session.request(.get, "slow")) }
        await transport.waitUntilIdle()
        while await session.tasks.isEmpty { await Task.yield() }
        task.cancel()
        let error = await #expect(throws: HTTPSessionError.self) { try await task.value }
        expectEqual(error?.code, .cancelled)
        session.cancel(afterTasks: true)
        await session.waitUntilEnded()
    }
}
