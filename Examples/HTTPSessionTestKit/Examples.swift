import Foundation
import HTTPSession
import HTTPSessionTestKit

struct User: Codable, Sendable {
    var name: String
}

/// The examples of HTTPSessionTestKit's documentation.
@main struct Examples {
    static func main() async throws {
        try await scriptTransport()
        try await runServer()
    }

    static func scriptTransport() async throws {
        let transport = ScriptedTransport()
        transport.stub("/v1/users/7", with: StubResponse(503), StubResponse(body: #"{"name": "Ada"}"#))
        let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/", transport: transport)
        let user = try await session.get("users/7").decode(as: User.self)  // 503, a retry, 200
        print(user.name, transport.requests.count)
    }

    static func runServer() async throws {
        let server = try TestServer { request in
            request.arrival == 1 ? StubResponse(503) : StubResponse(body: #"{"name": "Ada"}"#)
        }
        var configuration = SessionConfiguration()
        configuration.insecureHTTP = .allowed
        let session = try HTTPSessionManager(baseURL: server.url().absoluteString, configuration: configuration)
        let user = try await session.get("users/7").decode(as: User.self)  // the session retries after 503
        print(user.name, server.requests.count)
    }
}
