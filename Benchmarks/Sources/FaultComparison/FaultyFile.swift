import Foundation
import HTTPSessionTestKit
import Hosts
import Reachability
import Synchronization

/// A file of a server that behaves like nginx, except for one fault.
final class FaultyFile: Sendable {
    static let size: Int64 = 1_000_000
    /// The number of bytes before the fault.
    static let begun: Int64 = 400_000

    private struct State {
        var requests = 0
        var version = 0
    }

    let server: TestServer
    private let fault: Fault
    private let gate: Gate

    init(_ fault: Fault, at site: Site) throws {
        let state = Shared(State())
        let gate = try Gate()
        (self.fault, self.gate) = (fault, gate)
        var configuration = TestServer.Configuration()
        configuration.namespace = NetworkNamespace(site.host.path)
        server = try TestServer(at: .ip(Site.server, port: 0), configuration: configuration) { request in
            state.withLock { FaultyFile.reply(to: request, fault, gate, &$0) }
        }
    }

    var url: String { server.origin + "/file.bin" }
    /// The sent bytes as a multiple of the size of the last version.
    var sentShare: Double { Double(sentBytes) / Double(fault.changesTo ?? FaultyFile.size) }
    var sentBytes: Int64 { server.seen.sentBodyBytes }

    /// Opens the gate for the responses that wait for the network.
    func openGate() { gate.open() }

    /// True if the content is that of one of the file's versions.
    func hasVersion(_ content: Data?) -> Bool {
        let versions = [(0, FaultyFile.size), (1, fault.changesTo ?? FaultyFile.size)]
        return versions.contains { content == Data(StubBody.patternBytes(from: FaultyFile.start($0), count: Int($1))) }
    }

    private static func start(_ version: Int) -> Int64 { Int64(version) * 5_000_001 }

    private static func reply(
        to request: ReceivedRequest, _ fault: Fault, _ gate: Gate, _ state: inout State
    ) -> StubResponse {
        state.requests += 1
        let isFirst = state.requests == 1
        if !isFirst, fault.changesTo != nil { state.version = 1 }
        var reply = answer(request, fault, version: state.version)
        switch fault.event {
        case .unwell: return state.requests <= 2 ? StubResponse(503).field("Retry-After", "1") : reply
        case .resetAgainAndAgain: return reply.body.count > begun / 2 ? reply.cut(afterBodyBytes: begun / 2, .reset) : reply
        case _ where !isFirst: return reply
        case .reset: return reply.cut(afterBodyBytes: begun, .reset)
        case .kill, .silence, .cable, .uplink: break
        }
        if case .pattern(let from, let count)? = reply.body.segments.first {
            let isOfNetwork = [.cable, .uplink].contains(fault.event)
            reply.body.segments = [
                .pattern(from: from, count: begun), .wait(isOfNetwork ? .gate(gate) : .forever),
                .pattern(from: from + begun, count: count - begun),
            ]
        }
        return reply
    }

    /// The response of a good server (RFC 9110 sections 13 and 14), except for the fault of its ranges.
    private static func answer(_ request: ReceivedRequest, _ fault: Fault, version: Int) -> StubResponse {
        let size = version == 0 ? FaultyFile.size : fault.changesTo ?? FaultyFile.size
        let tag = "\"version-\(version)\""
        let date = version == 0 ? "Sun, 06 Nov 1994 08:49:37 GMT" : "Mon, 07 Nov 1994 08:49:37 GMT"
        var fields = fault.isNameless ? [] : [("ETag", tag), ("Last-Modified", date)]
        func reply(_ status: Int, from first: Int64) -> StubResponse {
            let body = StubBody([.pattern(from: start(version) + first, count: size - first)])
            return fields.reduce(StubResponse(status, body: body)) { $0.field($1.0, $1.1) }
        }
        if let condition = request["if-match"] ?? request["if-unmodified-since"], condition != tag, condition != date {
            return StubResponse(412)
        }
        guard let range = request["range"], range.hasPrefix("bytes="), fault.server != .knowsNoRanges,
            let first = range.dropFirst("bytes=".count).split(separator: "-").first.flatMap({ Int64($0) }), first > 0
        else { return reply(200, from: 0) }
        if let condition = request["if-range"], condition != tag, condition != date { return reply(200, from: 0) }
        guard first < size else { return StubResponse(416).field("Content-Range", "bytes */\(size)") }
        let offset = fault.server == .sendsAnotherPart ? max(0, first - 100_000) : first
        fields.append(("Content-Range", "bytes \(offset)-\(size - 1)/\(size)"))
        return reply(206, from: offset)
    }
}

/// A value and its lock.
final class Shared<Value>: Sendable {
    private let mutex: Mutex<Value>

    init(_ value: sending Value) { mutex = Mutex(value) }

    func withLock<Result>(_ body: (inout Value) -> Result) -> Result where Result: Sendable {
        mutex.withLock { body(&$0) }
    }
}
