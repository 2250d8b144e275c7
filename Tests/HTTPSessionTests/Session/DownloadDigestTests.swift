import Expectations
import Foundation
@testable import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// `Repr-Digest` fields in responses other than the first response to a GET.
@Suite(.timeLimit(.minutes(20))) struct DownloadDigestTests {
    private let folder: ScratchDirectory
    private let size: Int64 = 1_000_000

    init() throws { folder = try ScratchDirectory() }

    private static let ofNothing = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"

    private func digest(of data: Data) throws -> String {
        "sha-256=:\(try #require(ContentDigest.sha256(of: data)).bytes.base64EncodedString()):"
    }

    /// A server that truncates its first response, and sends `digest` with the remaining range and with the complete
    /// representation.
    private func source(_ digest: String) throws -> TestServer {
        let count = Counter()
        return try TestServer { [size] request in
            if count.add() == 1 {
                return StubResponse(body: .pattern(size)).field("ETag", "\"1\"").cut(afterBodyBytes: 600_000, .truncated)
            }
            guard request["if-range"] == "\"1\"" else {
                return StubResponse(body: .pattern(size)).field("ETag", "\"1\"").field("Repr-Digest", digest)
            }
            return StubResponse(206, body: StubBody([.pattern(from: 600_000, count: size - 600_000)])).field("ETag", "\"1\"")
                .field("Content-Range", "bytes 600000-\(size - 1)/\(size)").field("Repr-Digest", digest)
        }
    }

    private func session() throws -> HTTPSessionManager {
        try HTTPSessionManager(
            configuration: localConfiguration { $0.retryPolicy = RetryPolicy(baseDelay: .milliseconds(1)) })
    }

    private func download(_ request: TransferRequest) throws -> TransferTask {
        try session().downloadTask(for: request, to: DownloadDestination(folder.url("file")))
    }

    @Test func `a Repr-Digest received with the remaining range is checked against the complete file`() async throws {
        let server = try source(digest(of: pattern(size)))
        let response = try await download(TransferRequest(url: server.url())).response
        expectEqual(response.metrics.bytesContinued, 600_000)
        try expectEqual(Data(contentsOf: folder.url("file")), pattern(size))
        expectEqual(server.requests.count, 2)
    }

    @Test func `after a digest mismatch of a continued download the complete file is requested once more, then refused`()
        async throws
    {
        let server = try source(Self.ofNothing)
        let error = await failure(try download(TransferRequest(url: server.url())))
        expectEqual(error?.code, .digestMismatch)
        expectEqual(server.requests.map { $0["range"] }, [nil, "bytes=600000-", nil])
        expectEmpty(folder.names)
    }

    @Test(arguments: [true, false])
    func `the Repr-Digest of a response to POST is checked`(isRight: Bool) async throws {
        let field = isRight ? try digest(of: pattern(size)) : Self.ofNothing
        let server = try TestServer { [size] _ in StubResponse(body: .pattern(size)).field("Repr-Digest", field) }
        let task = try download(TransferRequest(url: server.url(), method: .post, body: .data(Data("x".utf8))))
        guard isRight else {
            await expectEqual(failure(task)?.code, .digestMismatch)
            expectEmpty(folder.names)
            return
        }
        _ = try await task.response
        expectEqual(folder.names, ["file"])
    }

    @Test func `a Repr-Digest is ignored if the response has a Content-Encoding`() async throws {
        let server = try TestServer { _ in
            StubResponse.gzip(.gzip(pattern(10_000))).field("Repr-Digest", Self.ofNothing)
        }
        var request = TransferRequest(url: server.url())
        request.headerFields[.acceptEncoding] = "gzip"
        _ = try await download(request).response
        expectEqual(folder.names, ["file"])
    }
}
