import EventLoop
import Expectations
import Foundation
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

@testable import HTTPSession

/// A suite of downloads that a later task continues: a file of 1,000,000 bytes, of which the first task receives 600,000.
protocol PartialFileSuite {
    /// The directory of the files.
    var folder: ScratchDirectory { get }
    /// The events of the sessions.
    var log: EventLog { get }
}

extension PartialFileSuite {
    var size: Int64 { 1_000_000 }
    var cut: Int64 { 600_000 }

    func session(_ change: (inout SessionConfiguration) -> Void = { _ in }) throws -> HTTPSessionManager {
        try HTTPSessionManager(configuration: localConfiguration(change), eventMonitors: [log])
    }

    func resumingSession() throws -> HTTPSessionManager {
        try session { $0.resumeDirectory = folder.url("resume") }
    }

    func place(
        _ name: String = "file", _ partialFile: DownloadDestination.PartialFilePolicy = .keep, _ digest: ContentDigest? = nil
    ) -> DownloadDestination {
        DownloadDestination(folder.url(name), partialFile: partialFile, expectedDigest: digest)
    }

    var digest: ContentDigest {
        get throws {
            try #require(ContentDigest.sha256(of: Data(pattern(size))))
        }
    }

    /// A download that is cut off in the middle.
    func fail(_ source: CutFileServer, to place: DownloadDestination, path: String = "/file") async throws {
        let error = await failure(try session().downloadTask(for: TransferRequest(url: source.server.url(path)), to: place))
        expectEqual(error?.code, .connectionLost)
        expectNil(error?.resumeData)
    }

    func download(
        _ source: CutFileServer, to place: DownloadDestination, path: String = "/file"
    ) async throws -> TransferResponse {
        try await session().downloadTask(for: TransferRequest(url: source.server.url(path)), to: place).response
    }

    func expectCompleteFile(_ name: String = "file", besides others: [String] = []) throws {
        try expectEqual(Data(contentsOf: folder.url(name)), pattern(size))
        expectEqual(folder.names.sorted(), ([name] + others).sorted())
    }
}

/// A server with one version of the file, and its settings. It truncates complete responses after `cut` bytes unless `cut` is
/// nil.
final class CutFileServer: Sendable {
    let log = Log()
    let server: TestServer

    final class Log: Sendable {
        let state = Locked((tag: "\"1\"", cut: Int64?.some(600_000), digest: String?.none))
    }

    init(size: Int64 = 1_000_000) throws {
        server = try TestServer { [log] request in
            let (tag, cut, digest) = log.state.withLock { $0 }
            var fields = [("ETag", tag)]
            if let digest { fields.append(("Repr-Digest", digest)) }
            var reply: StubResponse
            let start = request["range"].flatMap { Int64($0.dropFirst("bytes=".count).dropLast()) }
            if request["if-none-match"] == tag {
                reply = StubResponse(304)
            } else if let start, request["if-range"] ?? tag == tag {
                reply = StubResponse(206, body: StubBody([.pattern(from: start, count: size - start)]))
                fields.append(("Content-Range", "bytes \(start)-\(size - 1)/\(size)"))
            } else {
                reply = StubResponse(body: .pattern(size))
                if let cut { reply = reply.cut(afterBodyBytes: cut, .truncated) }
            }
            for (name, value) in fields { reply = reply.field(name, value) }
            reply.pieceBytes = 50_000
            return reply
        }
    }

    /// Sends complete responses from now on.
    func sendCompleteResponses(tag: String = "\"1\"") { log.state.withLock { ($0.tag, $0.cut) = (tag, nil) } }
    func setDigest(_ digest: String) { log.state.withLock { $0.digest = digest } }
    var ranges: [String?] { server.requests.map { $0["range"] } }
}
