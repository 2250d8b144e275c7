import Foundation
import HTTPSessionTestKit
import Synchronization

/// One file of a server that is as good as nginx, but for one fault.
final class FaultyFile: Sendable {
    static let size: Int64 = 1_000_000
    /// So much comes before the fault.
    static let begun: Int64 = 400_000

    private struct State {
        var requests = 0
        var version = 0
    }

    let server: MisbehavingServer

    init(_ fault: Fault) throws {
        let state = Shared(State())
        server = try MisbehavingServer { request in
            state.withLock { FaultyFile.reply(to: request, fault, &$0) }
        }
    }

    var url: String { server.origin + "/file.bin" }
    /// How often the file's size was sent.
    var sentShare: Double { Double(sentBytes) / Double(FaultyFile.size) }
    var sentBytes: Int64 { server.seen.sentBodyBytes }

    static func content(ofVersion version: Int) -> Data {
        Data(ReplyBody.patternBytes(from: start(ofVersion: version), count: Int(size)))
    }

    private static func start(ofVersion version: Int) -> Int64 { Int64(version) * 5_000_001 }

    private static func reply(to request: ReceivedRequest, _ fault: Fault, _ state: inout State) -> Reply {
        state.requests += 1
        let isFirst = state.requests == 1
        if fault == .unwell, state.requests <= 2 { return Reply(503).field("Retry-After", "1") }
        if !isFirst, fault.changesFile { state.version = 1 }
        var reply = answer(request, fault, version: state.version)
        switch fault {
        case .cutOnce, .ignoresRange, .liesAboutRange, .cutAndChanged, .cutAndChangedNameless:
            if isFirst { reply = reply.cut(afterBodyBytes: begun, .reset) }
        case .cutAgainAndAgain:
            if reply.body.count > begun / 2 { reply = reply.cut(afterBodyBytes: begun / 2, .reset) }
        case .killed, .killedAndChanged, .killedAndChangedNameless, .killedAndIgnoresRange:
            if isFirst, case .pattern(let from, let count)? = reply.body.segments.first {
                reply.body.segments = [
                    .pattern(from: from, count: begun), .wait(.forever), .pattern(from: from + begun, count: count - begun),
                ]
            }
        case .unwell: break
        }
        return reply
    }

    /// What a good server answers (RFC 9110 sections 13 and 14), and where it does not.
    private static func answer(_ request: ReceivedRequest, _ fault: Fault, version: Int) -> Reply {
        let tag = "\"version-\(version)\""
        let date = version == 0 ? "Sun, 06 Nov 1994 08:49:37 GMT" : "Mon, 07 Nov 1994 08:49:37 GMT"
        var fields = fault.isNameless ? [] : [("ETag", tag), ("Last-Modified", date)]
        func reply(_ status: Int, from first: Int64) -> Reply {
            let body = ReplyBody([.pattern(from: start(ofVersion: version) + first, count: size - first)])
            return fields.reduce(Reply(status, body: body)) { $0.field($1.0, $1.1) }
        }
        if let condition = request["if-match"] ?? request["if-unmodified-since"], condition != tag, condition != date {
            return Reply(412)
        }
        guard let range = request["range"], range.hasPrefix("bytes="), !fault.ignoresRange,
            let first = range.dropFirst("bytes=".count).split(separator: "-").first.flatMap({ Int64($0) }), first > 0
        else { return reply(200, from: 0) }
        if let condition = request["if-range"], condition != tag, condition != date { return reply(200, from: 0) }
        guard first < size else { return Reply(416).field("Content-Range", "bytes */\(size)") }
        let said = fault == .liesAboutRange ? max(0, first - 100_000) : first
        fields.append(("Content-Range", "bytes \(said)-\(size - 1)/\(size)"))
        return reply(206, from: said)
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
