import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// URLs relative to a session's base URL (RFC 3986 section 5.2), as AFNetworking documents them.
@Suite(.timeLimit(.minutes(20))) struct BaseURLTests {
    @Test(arguments: [
        ("", "users", "/users"), ("/", "users", "/users"), ("/v1", "users", "/v1/users"), ("/v1/", "users", "/v1/users"),
        ("/v1/", "users?a=b", "/v1/users?a=b"), ("/v1/", "/users", "/users"), ("/v1/", "users/", "/v1/users/"),
        ("/v1/", "../up", "/up"), ("/v1", "", "/v1/"), ("/v1.json", "x", "/v1.json/x"), ("/a%20b", "x", "/a%20b/x"),
        ("/v1?key=1", "users", "/v1/users"), ("/v1?key=1", "", "/v1/?key=1"), ("/v1#part", "users", "/v1/users"),
    ])
    func `a URL is resolved against the base URL as if the base path ended in a slash`(
        base: String, address: String, target: String
    )
        async throws
    {
        let server = try TestServer { _ in StubResponse(body: "{}") }
        let session = try HTTPSessionManager(baseURL: server.origin + base, configuration: localConfiguration())
        _ = try await session.get(address).response
        expectEqual(server.requests.map(\.target), [target])
    }

    @Test func `an absolute URL ignores the base URL, and without a base URL a relative one is invalid`() async throws {
        let server = try TestServer { _ in StubResponse(body: "{}") }
        let session = try HTTPSessionManager(baseURL: "http://127.0.0.1:1/v1", configuration: localConfiguration())
        _ = try await session.get(server.url("/x").absoluteString).response
        expectEqual(server.requests.map(\.target), ["/x"])
        await expectEqual(failure(try localSession().get("users"))?.code, .invalidRequest)
    }

    @Test(arguments: ["", "relative", "ftp://host/", "http://", "http://host\n/"])
    func `an invalid base URL is an error when the session is created`(_ base: String) {
        #expect(throws: HTTPSessionError.self) {
            try HTTPSessionManager(baseURL: base, configuration: localConfiguration())
        }
    }

    @Test func `a session and its tasks accept a URL instead of a string or a request`() async throws {
        let server = try TestServer { _ in StubResponse(body: "{}") }
        let session = try HTTPSessionManager(baseURL: server.url("/v1"), configuration: localConfiguration())
        _ = try await session.get("users").response
        _ = try await session.dataTask(for: server.url("/data")).response
        for try await _ in session.streamTask(for: server.url("/stream")).chunks {}
        let file = FileManager.default.temporaryDirectory.appending(path: "netwatch-url-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        try await session.downloadTask(for: server.url("/new"), to: file).file()
        try await session.downloadTask(for: server.url("/again"), to: DownloadDestination(file, existingFile: .replace)).file()
        expectEqual(server.requests.map(\.target), ["/v1/users", "/data", "/stream", "/new", "/again"])
    }

    @Test func `get, head, delete, post, put and patch send their HTTP method`() async throws {
        let server = try TestServer { _ in StubResponse(body: "{}") }
        let session = try HTTPSessionManager(baseURL: server.origin, configuration: localConfiguration())
        let parameters: Parameters = ["a": 1]
        let tasks = [
            session.get("g", parameters: parameters), session.head("h", parameters: parameters),
            session.delete("d", parameters: parameters), session.post("p", parameters: parameters),
            session.put("u", parameters: parameters), session.patch("c", parameters: parameters),
        ]
        for task in tasks { _ = try await task.response }
        let seen = server.requests.map { "\($0.method) \($0.target) \($0.text)" }.sorted()
        expectEqual(seen, ["DELETE /d?a=1 ", "GET /g?a=1 ", "HEAD /h?a=1 ", "PATCH /c a=1", "POST /p a=1", "PUT /u a=1"])
    }
}
