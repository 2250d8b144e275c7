import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import Testing

/// Servers that send more than the responses to their requests.
@Suite(.timeLimit(.minutes(10))) struct SurplusTests {
    private static let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK"
    private static let surplus = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL"

    /// Responds to the first request and, when the gate opens, sends a surplus response; all other requests get correct
    /// responses.
    private static func reply(to request: ReceivedRequest, _ gate: Gate) -> StubResponse {
        guard request.arrival == 1 else { return StubResponse(body: "right") }
        return .raw(StubBody([.bytes(Array(answer.utf8)), .wait(.gate(gate)), .bytes(Array(surplus.utf8)), .wait(.forever)]))
    }

    @Test(arguments: [false, true])
    func `a surplus response on an idle connection is not used for the next request`(isSecure: Bool) async throws {
        let gate = try Gate()
        let certificate = try SelfSignedCertificate(names: ["127.0.0.1"])
        let server = try TestServer(tls: isSecure ? certificate.serverTLS : nil) { Self.reply(to: $0, gate) }
        let policy = try SecurityPolicy.trusting(certificate)
        let session = try localSession { $0.securityPolicy = policy }
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).response.data, Data("OK".utf8))
        gate.open()
        try await server.awaitSeen { $0.sentBodyBytes >= Self.answer.utf8.count + Self.surplus.utf8.count }
        // A POST works too: nothing of it was sent on the abandoned connection.
        let response = try await session.dataTask(for: TransferRequest(url: server.url(), method: .post)).response
        expectEqual(response.data, Data("right".utf8))
        expectEqual(response.metrics.retryCount, 0)
        expectEqual(server.requests.map(\.connection), [1, 2])
    }

    @Test func `a surplus response in the same TLS record as a response is not used for the next request`() async throws {
        let certificate = try SelfSignedCertificate(names: ["127.0.0.1"])
        let server = try TestServer(tls: certificate.serverTLS) { request in
            guard request.arrival == 1 else { return StubResponse(body: "right") }
            return StubResponse(body: .text("OK\(Self.surplus)")).declaredLength(2)
        }
        let policy = try SecurityPolicy.trusting(certificate)
        let session = try localSession { $0.securityPolicy = policy }
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).response.data, Data("OK".utf8))
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).response.data, Data("right".utf8))
        expectEqual(server.requests.map(\.connection), [1, 2])
    }

    @Test func `endless chunked trailers are an error`() async throws {
        let server = try TestServer { _ in
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
            let field = Array("Field: \(String(repeating: "v", count: 1_000))\r\n".utf8)
            return .raw(StubBody([.bytes(Array(head.utf8))] + (0..<1_000).map { _ in .bytes(field) } + [.wait(.forever)]))
        }
        let error = await failure(try localSession().dataTask(for: TransferRequest(url: server.url())))
        expectEqual(error?.code, .badServerResponse)
        #expect(error?.reason.contains("trailers") == true)
    }
}
