import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import Testing

/// Decompression of response bodies and its limits.
@Suite(.timeLimit(.minutes(20))) struct DecompressionTests {
    /// A frame of Zstandard (RFC 8878 section 3.1.1) whose window is 128 KiB, without a length and a checksum.
    private func zstd(_ blocks: [[UInt8]]) -> StubBody {
        .bytes([0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x38] + blocks.joined())
    }

    /// A block with its header and payload: raw bytes (type 0), or one repeated byte (type 1).
    private func block(_ type: Int, _ bytes: [UInt8], size: Int, isLast: Bool) -> [UInt8] {
        let header = (isLast ? 1 : 0) | type << 1 | size << 3
        return [UInt8(header & 0xFF), UInt8(header >> 8 & 0xFF), UInt8(header >> 16)] + bytes
    }

    private func raw(_ text: String, isLast: Bool) -> [UInt8] {
        block(0, Array(text.utf8), size: text.utf8.count, isLast: isLast)
    }

    // The libcurl of Debian includes zstd.
    @Test func `zstd is requested in Accept-Encoding and decoded`() async throws {
        let body = zstd([
            raw("what was ", isLast: false), block(1, [UInt8(ascii: "o")], size: 100_000, isLast: false),
            raw("nce short", isLast: true),
        ])
        let server = try TestServer { _ in StubResponse(fields: ["Content-Encoding": "zstd"], body: body) }
        let session = try localSession()
        let response = try await session.dataTask(for: TransferRequest(url: server.url())).response
        let codings = server.requests.first?["accept-encoding"]?.split(separator: ",").map { $0.drop { $0 == " " } }
        #expect(codings?.contains("zstd") == true)
        expectEqual(response.data, Data(("what was " + String(repeating: "o", count: 100_000) + "nce short").utf8))
        expectEqual(response.metrics.transactions.first?.countOfResponseBodyBytesReceived, body.count)
    }

    @Test func `zstd with a reserved block type, and content that is not zstd, fails as cannotDecodeContent`() async throws {
        for body in [zstd([raw("what", isLast: false), block(3, [1], size: 1, isLast: true)]), .text("plain")] {
            let server = try TestServer { _ in StubResponse(fields: ["Content-Encoding": "zstd"], body: body) }
            let error = await failure(try localSession().dataTask(for: TransferRequest(url: server.url())))
            expectEqual(error?.code, .cannotDecodeContent, "\(String(describing: error))")
        }
    }

    @Test func `without decompression no Accept-Encoding is sent and the body stays encoded`() async throws {
        let body = zstd([raw("what", isLast: true)])
        let server = try TestServer { _ in StubResponse(fields: ["Content-Encoding": "zstd"], body: body) }
        let session = try localSession { $0.decompressesResponses = false }
        let response = try await session.dataTask(for: TransferRequest(url: server.url())).response
        #expect(response.data.prefix(4) == Data([0x28, 0xB5, 0x2F, 0xFD]) && response.data.count == body.count)
        expectNil(server.requests.first?["accept-encoding"])
    }

    @Test func `a body that exceeds the maximum decompression ratio fails as responseTooLarge if it is long`() async throws {
        // The decompressed size is 1,030 times the compressed size.
        let server = try TestServer { request in
            .gzipBomb(inflatedBytes: request.path == "/short" ? 8 << 20 : 9 << 20)
        }
        let strict = try localSession()
        let error = await failure(strict.dataTask(for: TransferRequest(url: server.url())))
        expectEqual(error?.code, .responseTooLarge)
        expectEqual(error?.reason, "the response decompresses to more than 250 times its size")
        try await expectEqual(strict.dataTask(for: TransferRequest(url: server.url("/short"))).response.data.count, 8 << 20)
        let trusting = try localSession { $0.maximumDecompressionRatio = 1_100 }
        try await expectEqual(trusting.dataTask(for: TransferRequest(url: server.url())).response.data, Data(count: 9 << 20))
        let refusal = HTTPSessionError.thrown { try localSession { $0.maximumDecompressionRatio = 0 } }
        expectEqual(refusal?.reason, "maximumDecompressionRatio is below 1")
    }

    @Test func `the decompression ratio limits every coding; zstd can compress thirty times more than gzip`() async throws {
        let zeros = (0..<80).map { block(1, [0], size: 128 << 10, isLast: $0 == 79) }
        let body = zstd(zeros)
        let server = try TestServer { _ in StubResponse(fields: ["Content-Encoding": "zstd"], body: body) }
        let session = try localSession { $0.maximumDecompressionRatio = 1_100 }
        await expectEqual(failure(session.dataTask(for: TransferRequest(url: server.url())))?.code, .responseTooLarge)
        let trusting = try localSession { $0.maximumDecompressionRatio = 33_000 }
        try await expectEqual(
            trusting.dataTask(for: TransferRequest(url: server.url())).response.data, Data(count: 80 * 128 << 10))
    }
}
