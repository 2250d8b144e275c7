import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// A server that sends HTTP/2 frames without content as fast as they are read.
@Suite(.skippedUnderSanitizers, .timeLimit(.minutes(20))) struct EmptyFrameFloodTests {
    /// An HTTP/2 frame (RFC 9113 section 4.1) with a payload of at most 255 bytes.
    private static func frame(_ type: UInt8, flags: UInt8 = 0, stream: UInt8 = 0, _ payload: [UInt8] = []) -> [UInt8] {
        [0, 0, UInt8(payload.count), type, flags, 0, 0, 0, stream] + payload
    }

    @Test func `a flood of empty HTTP/2 DATA frames fails its own task and does not block the session`() async throws {
        // `:status 200` of HPACK's static table.
        let beginning = Self.frame(4) + Self.frame(4, flags: 1) + Self.frame(1, flags: 4, stream: 1, [0x88])
        let empty = [[UInt8]](repeating: Self.frame(0, stream: 1), count: 10_000).flatMap(\.self)
        let flood = StubBody([.bytes(beginning)] + [StubBody.Segment](repeating: .bytes(empty), count: 100_000))
        let certificate = try SelfSignedCertificate()
        var tls = certificate.serverTLS
        tls.applicationProtocol = "h2"
        let flooding = try TestServer(tls: tls) { _ in .raw(flood) }
        let calm = try TestServer { _ in StubResponse(body: "calm") }
        let policy = try SecurityPolicy.trusting(certificate)
        let session = try localSession {
            $0.securityPolicy = policy
            $0.retryPolicy = .never
            $0.requestTimeout = .seconds(5)
        }
        let task = session.dataTask(for: TransferRequest(url: flooding.url()))
        try await flooding.awaitRequests(1)
        var request = TransferRequest(url: calm.url())
        request.options.requestTimeout = .seconds(600)
        try await expectEqual(session.dataTask(for: request).response.data, Data("calm".utf8))
        // If the client reads faster than the server writes, the task ends at its request timeout.
        let code = await failure(task)?.code
        #expect(code == .connectionLost || code == .timedOut, "\(String(describing: code))")
    }
}
