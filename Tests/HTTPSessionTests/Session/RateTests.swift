import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import Testing

/// Upper and lower limits of a transfer's rate. A rate gives a lower bound of the time, which holds on a busy machine too: libcurl sends or
/// receives one buffer at most before it compares the average since the start of the transfer with the limit.
@Suite(.timeLimit(.minutes(20))) struct RateTests {
    private func upload(_ body: RequestBody, to server: TestServer, _ session: HTTPSessionManager) async throws
        -> Duration
    {
        let start = ContinuousClock.now
        let response = try await session.dataTask(for: TransferRequest(url: server.url(), method: .post, body: body)).response
        expectEqual(response.statusCode, 200)
        return ContinuousClock.now - start
    }

    private func form(_ size: Int, packetSize: Int, delay: Duration) throws -> RequestBody {
        var form = MultipartForm()
        try form.appendPart(data: Data(count: size), name: "file", fileName: "zeros")
        form.throttleBandwidth(packetSize: packetSize, delay: delay)
        return .multipart(form)
    }

    @Test func `a multipart form's throttle slows only the upload of that form`() async throws {
        let server = try TestServer { _ in StubResponse() }
        let session = try localSession()
        let slow = try form(60_000, packetSize: 5_000, delay: .milliseconds(25))
        #expect(try await upload(slow, to: server, session) >= .milliseconds(225))
        // The same handle sends the next body without the throttle, which would need 80 s.
        #expect(try await upload(.data(Data(count: 16 << 20)), to: server, session) < .seconds(60))
        #expect(try await upload(try form(16 << 20, packetSize: 10, delay: .zero), to: server, session) < .seconds(60))
        expectEqual(server.requests.map { $0.bodyLength >= 60_000 }, [true, true, true])
    }

    @Test func `a multipart form's throttle does not exceed the session's maximum send rate`() async throws {
        let server = try TestServer { _ in StubResponse() }
        let session = try localSession { $0.maximumSendRate = 200_000 }
        let quick = try form(60_000, packetSize: 5_000, delay: .milliseconds(1))
        #expect(try await upload(quick, to: server, session) >= .milliseconds(225))
    }

    @Test func `maximumSendRate limits an upload`() async throws {
        let server = try TestServer { _ in StubResponse() }
        let session = try localSession { $0.maximumSendRate = 1_000_000 }
        #expect(try await upload(.data(Data(count: 500_000)), to: server, session) >= .milliseconds(300))
    }

    @Test func `maximumReceiveRate limits a download`() async throws {
        // libcurl checks the rate after at most 100 reads of 16 KiB. Data in the socket buffer is therefore read at full speed;
        // the average is kept afterwards.
        let server = try TestServer { _ in StubResponse(body: .pattern(8_000_000)) }
        let session = try localSession { $0.maximumReceiveRate = 2_500_000 }
        let start = ContinuousClock.now
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).response.data, pattern(8_000_000))
        #expect(ContinuousClock.now - start >= .milliseconds(800))
    }

    @Test func `a transfer below the low speed limit for its duration fails as timedOut, a faster one completes`() async throws {
        let fast = try TestServer { _ in StubResponse(body: .pattern(1_000_000)) }
        let slow = try TestServer { _ in StubResponse(body: .pattern(1_000_000)).slow(bytesPerSecond: 500) }
        // On a busy machine, a second may pass without a byte.
        let patient = try localSession { $0.lowSpeedLimit = .init(bytesPerSecond: 10_000, duration: .seconds(60)) }
        try await expectEqual(patient.dataTask(for: TransferRequest(url: fast.url())).response.data.count, 1_000_000)
        let session = try localSession { $0.lowSpeedLimit = .init(bytesPerSecond: 10_000, duration: .seconds(1)) }
        let error = await failure(session.dataTask(for: TransferRequest(url: slow.url())))
        expectEqual(error?.code, .timedOut)
        expectEqual(error?.context.statusCode, 200)
        try await slow.awaitOpenConnections(0)
    }
}
