import Console
import FoundationEssentials
import Glibc
import Reachability
import Records

/// `netwatch watch --connect`: the stream of a running service, so that many readers share one monitor.
struct ServiceStream {
    /// The socket; `nil` for that of the system or of the user.
    var socket: String?
    /// The texts or the identifiers of the targets whose records are written; empty for all.
    var targets: [String]
    /// Whether records are written as JSON.
    var isJSON: Bool
    /// The number of records after which the stream stops, not counting the first.
    var count: Int?
    /// The time after which the stream stops.
    var duration: Duration?

    /// Writes records until the stream ends.
    ///
    /// - Throws: ``Failure`` with code 69 if the service ends.
    func run(_ output: StandardOutput, _ signals: Signals) throws -> StreamEnding {
        let connection = try ServiceConnection(socket, ProcessInfo.processInfo.environment)
        let only = targets.count == 1 ? "?target=\(PercentEncoding.encode(targets[0]))" : ""
        try connection.request("/api/v1/events\(only)")
        var (response, events) = (ResponseReader(), EventStreamReader())
        let main = MainLoop(try MainLoop.makeWaker(), signals: signals)
        let end = duration.map { Clock.now.advanced(by: $0).monotonicNanoseconds }
        var (written, refusal): (Int, [UInt8]) = (-1, [])
        while true {
            if let end, Clock.nanoseconds >= end { return .finished }
            if let count, written >= count, output.pendingCount == 0 { return .finished }
            var (reading, writing): (Int?, Int?)
            // A slow reader of the output slows the service's stream, which then drops older records.
            var isReady = false
            let turn = main.wait(until: end) { polling in
                writing = output.watch(&polling)
                if output.pendingCount < RecordStream.leeway { reading = polling.add(connection.descriptor, Int32(POLLIN)) }
            }
            isReady = turn.isReady(reading)
            if let number = turn.signal { return .signal(number) }
            switch turn.write(output, at: writing) {
            case nil, .wrote: break
            case .readerGone: return .readerGone
            case .failed(let number): return .outputFailed(errno: number)
            }
            guard isReady else { continue }
            let bytes = try connection.receive()
            let body: [UInt8]
            do throws(ResponseReader.Malformed) { body = try response.append(bytes) } catch { throw connection.malformed }
            if let status = response.status, status != 200 {
                refusal += body
                if response.isComplete || bytes.isEmpty { throw connection.failure(status, refusal) }
                continue
            }
            for event in events.append(body) where count.map({ written < $0 }) ?? true {
                guard let lines = lines(event) else { continue }
                for line in lines { output.append(line: line) }
                written += 1
            }
            if bytes.isEmpty || response.isComplete { throw Failure(ExitCode.unavailable, "the service has ended") }
        }
    }

    /// The keys of a record that text shows.
    private struct Keys: Decodable {
        struct CauseKeys: Decodable {
            var layer: String
            var code: String
            var detail: String
        }
        struct Subject: Decodable {
            var kind: String
            var name: String?
        }

        var ts: String
        var status: String?
        var target: String?
        var id: String?
        var cause: CauseKeys?
        var state: String?
        var subject: Subject?
        var interface: String?
        var reason: String?
    }

    /// Returns the lines of an event; `nil` for a record of another target.
    private func lines(_ event: EventStreamReader.Event) -> [[UInt8]]? {
        guard let keys = try? JSONDecoder().decode(Keys.self, from: Data(event.data)) else { return isJSON ? [event.data] : nil }
        let isOther = keys.target.map { !targets.contains($0) && !targets.contains(keys.id ?? $0) } ?? false
        if targets.count > 1, isOther { return nil }
        if isJSON { return [event.data] }
        var words = [keys.ts, TextStyle.pad(event.type, 6)]
        switch event.type {
        case "target": words += [keys.target ?? "", keys.status ?? ""]
        case "incident": words += [keys.subject.map { "\($0.kind) \($0.name ?? "")" } ?? "", keys.state ?? ""]
        case "gap", "resync": words.append(keys.reason ?? "")
        default: words += [keys.status ?? "", keys.interface.map { "via \($0)" } ?? ""]
        }
        if let cause = keys.cause { words.append("\(cause.layer)/\(cause.code): \(cause.detail)") }
        return [Array(TextStyle.printable(words.filter { !$0.isEmpty }.joined(separator: " ")).utf8)]
    }
}
