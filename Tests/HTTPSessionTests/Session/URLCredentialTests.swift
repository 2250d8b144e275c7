import Expectations
import Foundation
import HTTPSessionTestKit
import HTTPTypes
import Testing

@testable import HTTPSession

/// The user and password of a URL.
@Suite(.timeLimit(.minutes(20))) struct URLCredentialTests {
    private let certificate: SelfSignedCertificate
    private let basic = "Basic " + Data("us er:w:o/rd".utf8).base64EncodedString()

    init() throws { certificate = try SelfSignedCertificate(names: ["localhost"]) }

    private func session(_ handlers: TransferHandlers = .init()) throws -> HTTPSessionManager {
        let policy = try SecurityPolicy.trusting(certificate)
        return try localSession({ $0.securityPolicy = policy }, handlers: handlers)
    }

    private func server(secure: Bool, _ reply: @escaping @Sendable (ReceivedRequest) -> StubResponse = { _ in StubResponse() })
        throws
        -> TestServer
    {
        try TestServer(tls: secure ? certificate.serverTLS : nil, reply: reply)
    }

    private func request(_ server: TestServer, secure: Bool, _ path: String = "/") throws -> TransferRequest {
        let scheme = secure ? "https" : "http"
        return TransferRequest(
            url: try #require(URL(string: "\(scheme)://us%20er:w%3Ao%2Frd@localhost:\(server.port)\(path)")))
    }

    @Test func `URL credentials are sent without a challenge over TLS`() async throws {
        let server = try server(secure: true)
        try await expectEqual(session().dataTask(for: request(server, secure: true)).response.statusCode, 200)
        expectEqual(server.requests.map { $0["authorization"] }, [basic])
    }

    @Test func `URL credentials over http are sent after a challenge only, unless the request sends them preemptively`()
        async throws
    {
        let basic = basic
        let server = try server(secure: false) { $0["authorization"] == basic ? StubResponse() : .unauthorized("Basic realm=r") }
        try await expectEqual(session().dataTask(for: request(server, secure: false)).response.statusCode, 200)
        expectEqual(server.requests.map { $0["authorization"] }, [nil, basic])
        var unasked = try request(server, secure: false)
        unasked.options.sendsCredentialsPreemptively = true
        try await expectEqual(session().dataTask(for: unasked).response.statusCode, 200)
        expectEqual(server.requests.map { $0["authorization"] }, [nil, basic, basic])
        let open = try self.server(secure: false)
        try await expectEqual(session().dataTask(for: request(open, secure: false)).response.statusCode, 200)
        expectEqual(open.requests.map { $0["authorization"] }, [nil])
    }

    @Test func `an Authorization field of the request overrides the URL credentials`() async throws {
        let server = try server(secure: true)
        var request = try request(server, secure: true)
        request.headerFields[.authorization] = "Bearer own"
        try await expectEqual(session().dataTask(for: request).response.statusCode, 200)
        expectEqual(server.requests.map { $0["authorization"] }, ["Bearer own"])
    }

    @Test func `URL credentials that are refused are not sent a second time, and count as a failure in the challenge`()
        async throws
    {
        let server = try server(secure: true) { _ in .unauthorized("Basic realm=r") }
        try await expectEqual(session().dataTask(for: request(server, secure: true)).response.statusCode, 401)
        expectEqual(server.requests.count, 1)
        let (counts, basic) = (Counter(), "Basic " + Data("user:word".utf8).base64EncodedString())
        let other = try self.server(secure: true) {
            $0["authorization"] == basic ? StubResponse() : .unauthorized("Basic realm=r")
        }
        let asking = try session(
            TransferHandlers(challenge: { challenge in
                counts.add()
                return challenge.previousFailureCount == 1 ? .useCredential(Credential(user: "user", password: "word")) : .cancel
            }))
        try await expectEqual(asking.dataTask(for: request(other, secure: true)).response.statusCode, 200)
        expectEqual(counts.count, 1)
    }

    @Test func `URL credentials are used for a Digest challenge over TLS too`() async throws {
        let server = try server(secure: true) { request in
            request["authorization"]?.hasPrefix("Digest ") == true
                ? StubResponse() : .unauthorized("Digest realm=\"d\", qop=\"auth\", nonce=\"n\", algorithm=MD5")
        }
        try await expectEqual(session().dataTask(for: request(server, secure: true)).response.statusCode, 200)
        expectEqual(server.requests.first?["authorization"], basic)
    }

    @Test(arguments: [false, true]) func `URL credentials are not sent to another origin after a redirect`(_ secure: Bool)
        async throws
    {
        let basic = basic
        let other = try server(secure: secure) { _ in .unauthorized("Basic realm=r") }
        for location in ["localhost", "us%20er:w%3Ao%2Frd@localhost", "other:secret@localhost"] {
            let address = "\(secure ? "https" : "http")://\(location):\(other.port)/"
            let server = try server(secure: secure) { request in
                request["authorization"] == basic ? .redirect(to: address) : .unauthorized("Basic realm=r")
            }
            let response = try await session().dataTask(for: request(server, secure: secure)).response
            expectEqual(response.statusCode, 401)
            expectNil(response.url.user)
        }
        expectEqual(other.requests.map { $0["authorization"] }, [nil, nil, nil])
    }

    @Test func `URL credentials are sent after a redirect within the origin, credentials of the redirect's URL never`()
        async throws
    {
        for location in ["/b", "https://localhost:PORT/b", "https://other:secret@localhost:PORT/b"] {
            let server = try server(secure: true) { request in
                let port = request["host"]?.split(separator: ":").last.map(String.init) ?? ""
                return request.path == "/b"
                    ? StubResponse() : .redirect(to: location.replacingOccurrences(of: "PORT", with: port))
            }
            try await expectEqual(session().dataTask(for: request(server, secure: true, "/a")).response.statusCode, 200)
            expectEqual(server.requests.map(\.path), ["/a", "/b"])
            expectEqual(server.requests.map { $0["authorization"] }, [basic, basic])
        }
    }
}
