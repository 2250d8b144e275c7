import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import NetworkLab
import Testing

/// Partial files of queued downloads.
@Suite(.timeLimit(.minutes(10))) struct QueuedDownloadTests {
    /// The number of open descriptors of files below `directory`.
    private func descriptors(below directory: String) throws -> Int {
        let own = "/proc/self/fd"
        return try FileManager.default.contentsOfDirectory(atPath: own).count { name in
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(own)/\(name)"))?.hasPrefix(directory) == true
        }
    }

    private func downloads(
        _ session: HTTPSessionManager, _ server: TestServer, _ scratch: ScratchDirectory
    ) -> [TransferTask] {
        (0..<40).map {
            session.downloadTask(
                for: TransferRequest(url: server.url("/\($0)")), to: DownloadDestination(scratch.url("\($0)"), partialFile: .keep)
            )
        }
    }

    @Test func `queued downloads hold no open descriptors of their partial files`() async throws {
        let scratch = try ScratchDirectory()
        let gate = try Gate()
        // The first 40 downloads leave a partial file each.
        let server = try TestServer { request in
            let reply = StubResponse(body: .pattern(2_000)).field("ETag", "\"x\"")
            return request.arrival <= 40 ? reply.cut(afterBodyBytes: 1_000) : reply.held(by: gate)
        }
        for task in downloads(try localSession(), server, scratch) { await expectEqual(failure(task)?.code, .connectionLost) }
        try expectEqual(descriptors(below: scratch.path), 0)
        let session = try localSession { $0.maximumConnectionsPerHost = 4 }
        let tasks = downloads(session, server, scratch)
        try await server.awaitRequests(44)
        try expectEqual(descriptors(below: scratch.path), 4)
        gate.open()
        for task in tasks { _ = try await task.response }
        try expectEqual(descriptors(below: scratch.path), 0)
    }
}
