import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing
import TestServers

/// Uploads to tuspyserver, an independent tus server.
@Suite(.requires(TusServer.program), .timeLimit(.minutes(20))) struct TusServerTests {
    private static let size: Int64 = 8 << 20
    private let folder: ScratchDirectory
    private let files: ScratchDirectory

    init() throws {
        (folder, files) = (try ScratchDirectory(), try ScratchDirectory())
        try pattern(Self.size).write(to: folder.url("body"))
    }

    private func upload(_ session: HTTPSessionManager, to server: TusServer, _ body: RequestBody? = nil) throws -> TransferTask {
        // The server requires both for every upload.
        let kind = UploadProtocol.tus(metadata: ["filename": "body", "filetype": "application/octet-stream"])
        let request = TransferRequest(url: try server.url(), method: .post, body: body ?? .file(folder.url("body")))
        return session.uploadTask(for: request, resumableUsing: kind)
    }

    @Test func `an upload arrives completely`() async throws {
        let server = try TusServer(in: files)
        let response = try await upload(try localSession(), to: server).response
        expectEqual(response.statusCode, 204)
        try expectEqual(server.contents(of: response.url.lastPathComponent), pattern(Self.size))
    }

    @Test func `an upload cut five times arrives completely`() async throws {
        let server = try TusServer(in: files)
        let first = try ProxyServer()
        let (proxy, port, log) = (Locked<ProxyServer?>(first), first.port, EventLog())
        let direct = try localSession()
        let session = try HTTPSessionManager(
            configuration: localConfiguration {
                $0.proxy = .explicit("socks5://127.0.0.1:\(port)", except: [])
                $0.retryPolicy = RetryPolicy(maximumRetries: nil, baseDelay: .milliseconds(20), maximumDelay: .milliseconds(50))
            }, eventMonitors: [log])
        // The body cuts its own connection: the first time at one seventh, then at two, and so on. It makes another one once the
        // server has noticed: asked before, the server blocks on a lock of its own.
        let (bytes, times, step) = (pattern(Self.size), Counter(), 1 << 16)
        let body = RequestBody.stream(length: Self.size) {
            let (time, position) = (times.add(), Counter())
            return AsyncThrowingStream {
                let start = (position.add() - 1) * step
                guard start < bytes.count else { return nil }
                if time <= 5, start / step == bytes.count / step * time / 7 {
                    // This runs in a task of its own: the body's task is canceled when the attempt has lost its connection.
                    try await Task {
                        let there = try await server.offset(through: direct)
                        proxy.withLock { $0 }?.stop()
                        // The offset does not change if the server had counted all bytes; its loop has noticed the loss after so
                        // many requests.
                        for _ in 0..<200 where try await server.offset(through: direct) != there { break }
                        let next = try ProxyServer(at: .ip("127.0.0.1", port: port))
                        proxy.withLock { $0 = next }
                    }.value
                }
                return bytes[start..<min(bytes.count, start + step)]
            }
        }
        let response = try await upload(session, to: server, body).response
        try expectEqual(server.contents(of: response.url.lastPathComponent), pattern(Self.size))
        await log.await("completed")
        #expect(log.names.contains { $0.hasPrefix("continued ") })
        #expect(response.metrics.retryCount >= 5)
    }
}
