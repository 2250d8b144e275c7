import Foundation
import HTTPSession
import HTTPSessionTestKit

struct User: Codable, Sendable {
    var name: String
}

/// The examples of HTTPSessionTestKit's documentation.
@main struct Examples {
    static func main() async throws {
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
