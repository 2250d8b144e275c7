import EventLoop
import Foundation
import HTTPSessionTestKit
import Reachability

@testable import HTTPSession

/// A server with one file, whose behavior the test controls.
final class FileSource: Sendable {
    struct Behavior: Sendable {
        var tag = "\"1\""
        /// The number of bytes of the file after which a response stops until ``FileSource/openGate()``.
        var stopsAt: Int64?
        var bytesPerSecond: Int?
        /// The number of requests that are answered with 503.
        var failures = 0
    }

    let server: TestServer
    private let behavior: Locked<Behavior>
    private let size: Int64
    private let gate: Gate

    init(size: Int64, at address: ListeningAddress = .loopback, namespace: NetworkNamespace? = nil) throws {
        let behavior = Locked(Behavior())
        let gate = try Gate()
        self.behavior = behavior
        self.size = size
        self.gate = gate
        var configuration = TestServer.Configuration()
        configuration.namespace = namespace
        server = try TestServer(at: address, configuration: configuration) { request in
            let present = behavior.withLock { behavior in
                defer { behavior.failures = max(0, behavior.failures - 1) }
                return behavior
            }
            if request.path == "/missing" { return StubResponse(404) }
            if present.failures > 0 { return StubResponse(503) }
            if request["if-none-match"] == present.tag { return StubResponse(304, fields: ["ETag": present.tag]) }
            let start = request["range"].flatMap { Int64($0.dropFirst("bytes=".count).dropLast()) } ?? 0
            let isPartialContent = start > 0 && request["if-range"] ?? present.tag == present.tag
            let first = isPartialContent ? start : 0
            var body = StubBody.pattern(size)
            body.segments = [.pattern(from: first, count: size - first)]
            if let stop = present.stopsAt, first < stop {
                body.segments = [
                    .pattern(from: first, count: stop - first), .wait(.gate(gate)), .pattern(from: stop, count: size - stop),
                ]
            }
            var reply = StubResponse(isPartialContent ? 206 : 200, fields: ["ETag": present.tag], body: body)
            if isPartialContent { reply = reply.field("Content-Range", "bytes \(first)-\(size - 1)/\(size)") }
            if let speed = present.bytesPerSecond { reply = reply.slow(bytesPerSecond: speed) }
            return reply
        }
    }

    func change(_ change: (inout Behavior) -> Void) { behavior.withLock { change(&$0) } }

    /// Lets stopped responses continue.
    func openGate() { gate.open() }

    var url: String { server.origin + "/big.bin" }
    var content: Data { Data(StubBody.patternBytes(from: 0, count: Int(size))) }

    var digest: String {
        get throws {
            guard let digest = ContentDigest.sha256(of: content) else { throw CancellationError() }
            return digest.hexadecimal
        }
    }
}

/// A line of `netwatch get --json` and `netwatch put --json`.
struct TransferLine: Decodable {
    struct Cause: Decodable {
        struct Evidence: Decodable { var redirects: [String]? }

        var layer: String
        var code: String
        var detail: String
        var evidence: Evidence
    }

    var seq: Int
    var type: String
    var url: String
    var state: String
    var received: Int64
    var sent: Int64
    var total: Int64?
    var resumed_from: Int64?
    var attempt: Int
    var unchanged: Bool
    var file: String?
    var cause: Cause?

    init(_ line: String) throws { self = try JSONDecoder().decode(TransferLine.self, from: Data(line.utf8)) }
}
