import EventLoop
import Foundation
import HTTPSessionTestKit
import Pacing
import Reachability
import TestServers

/// A tus server that cuts connections, refuses, stays silent and restarts, by seeded random draws. Only its uploads on the disk
/// survive a restart.
final class FaultyUploads: Sendable {
    /// The result of one upload, over all of the server's resources for it.
    struct Outcome: Sendable {
        /// The number of complete copies, and whether all of them have the right bytes.
        var copies = 0
        var isRight = true
        /// The bytes of bodies that were read.
        var bytes: Int64 = 0
    }

    struct Restarts: Sendable {
        var count = 0
        /// The restarts while an upload was incomplete.
        var duringUploads = 0
    }

    private struct State: Sendable {
        var server: UploadServer?
        var random: SplitMix64
        /// The bytes of bodies that earlier servers have read, by the path of the upload.
        var bytes: [String: Int64] = [:]
        var restarts = Restarts()
    }

    private let state: Locked<State>
    private let configuration: UploadServer.Configuration
    let url: String

    init(in directory: String, seed: UInt64, bytesPerSecond: Int, namespace: String) throws {
        var configuration = UploadServer.Configuration()
        configuration.address = .ip("203.0.113.9", port: 0)
        configuration.namespace = NetworkNamespace(namespace)
        configuration.directory = directory
        configuration.bytesPerSecond = bytesPerSecond
        state = Locked(State(random: SplitMix64(seed: seed)))
        let server = try FaultyUploads.start(configuration, state)
        configuration.address = .ip("203.0.113.9", port: server.port)
        self.configuration = configuration
        url = server.url.absoluteString
        state.withLock { $0.server = server }
    }

    private static func start(_ configuration: UploadServer.Configuration, _ state: Locked<State>) throws -> UploadServer {
        // The closure must not retain the server that owns it.
        let draws = Locked(state.withLock { SplitMix64(seed: $0.random.next()) })
        return try UploadServer(.tus, configuration: configuration) { _ in
            let (draw, size) = draws.withLock { ($0.next() % 100, Int64($0.next() % 1_000_000)) }
            return switch draw {
            case 0..<10: .cut(afterBodyBytes: size, losing: size / 10)
            case 10..<14: .refuse(StubResponse(503).field("Retry-After", "0"))
            case 14..<17: .silence()
            default: nil
            }
        }
    }

    /// Ends all connections, and starts a new server with the same directory after a pause.
    func restart(after pause: Duration) async throws {
        let isDuringUpload = stop()
        try? await Task.sleep(for: pause)
        let next = try FaultyUploads.start(configuration, state)
        state.withLock { state in
            state.server = next
            state.restarts.count += 1
            if isDuringUpload { state.restarts.duringUploads += 1 }
        }
    }

    var restarts: Restarts { state.withLock { $0.restarts } }

    /// - Returns: Whether an upload was incomplete.
    @discardableResult
    func stop() -> Bool {
        guard let server = state.withLock({ $0.server.take() }) else { return false }
        server.stop()
        let requests = server.requests
        state.withLock { state in
            for request in requests { state.bytes[request.path, default: 0] += request.bodyLength }
        }
        return server.uploads.contains { $0.count > 0 && $0.count < $0.length ?? 0 }
    }

    /// Returns the results of the manifest's uploads by their numbers, read from the disk by a new server.
    func result(_ uploads: [Manifest.Upload]) throws -> [Int: Outcome] {
        stop()
        let expected = Dictionary(uniqueKeysWithValues: uploads.map { ($0.number, $0) })
        let bytes = state.withLock { $0.bytes }
        var configuration = configuration
        configuration.address = .loopback
        configuration.namespace = nil
        var result: [Int: Outcome] = [:]
        for (index, upload) in try UploadServer(.tus, configuration: configuration).uploads.enumerated() {
            let field = upload.fields.first { $0.name.lowercased() == "upload-metadata" }?.value.split(separator: " ").last
            guard let data = field.flatMap({ Data(base64Encoded: String($0)) }),
                let number = Int(String(decoding: data, as: UTF8.self)),
                let upload = expected[number].map({ (wanted: $0, found: upload) })
            else { continue }
            var outcome = result[number] ?? Outcome()
            outcome.bytes += bytes["/uploads/\(index + 1)"] ?? 0
            if upload.found.count == upload.found.length {
                outcome.copies += 1
                outcome.isRight = outcome.isRight && Data(upload.found.bytes) == Manifest.bytes(upload: upload.wanted)
            }
            result[number] = outcome
        }
        return result
    }
}
