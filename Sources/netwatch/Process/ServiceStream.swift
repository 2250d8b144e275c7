import Console
import EventLoop
import FoundationEssentials
import Glibc
import Reachability
import Records
import Wire

/// `netwatch watch --connect`: the stream of a running service, so that many readers share one monitor.
struct ServiceStream {
    /// The socket; `nil` for that of the system or of the user.
    var socket: String?
    /// The identifiers, the names or the texts of the targets whose records are written; empty for all.
    var targets: [String]
    var format: OutputFormat
    /// Whether no records are written.
    var isQuiet: Bool
    /// The number of records after which the stream stops, not counting the first.
    var count: Int?
    /// The time after which the stream stops.
    var duration: Duration?
    /// The times of text; `nil` for the usual ones.
    var time: TimeText?

    /// Writes records until the stream ends.
    ///
    /// - Throws: ``Failure`` with code 69 if the service ends, with 66 if it has no such target.
    func run(_ output: StandardOutput, _ signals: Signals) throws -> StreamEnding {
        let environment = ProcessInfo.processInfo.environment
        let end = duration.map { Moment.now.advanced(by: $0).monotonicNanoseconds }
        let connection = try ServiceConnection(socket, environment)
        try connection.request(address)
        var (response, events) = (ServiceResponse(), EventStreamReader())
        let main = MainLoop(try MainLoop.makeWaker(), signals: signals)
        var lines = RecordLines(format: format, time: time)
        var (written, refusal): (Int, [UInt8]) = (-1, [])
        while true {
            if let end, MonotonicClock.now() >= end { return .finished }
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
            do throws(HTTPResponseReader.Failure) { body = try response.append(bytes) } catch { throw connection.malformed }
            if let status = response.status, status != 200 {
                refusal += body
                if response.isComplete || bytes.isEmpty { throw connection.failure(status, refusal) }
                continue
            }
            lines.columns = TerminalSize.columns(of: output.descriptor)
            for event in events.append(body) where count.map({ written < $0 }) ?? true {
                guard let texts = lines.lines(event) else { continue }
                if !isQuiet { for text in texts { output.append(line: text) } }
                written += 1
            }
            if bytes.isEmpty || response.isComplete { throw Failure(ExitCode.unavailable, "the service has ended") }
        }
    }

    private var address: String {
        let query = targets.map { "target=\(PercentEncoding.encode($0))" }.joined(separator: "&")
        return "/api/v1/events\(query.isEmpty ? "" : "?\(query)")"
    }
}

/// The lines of the service's records: those that a monitor of this program would write.
private struct RecordLines {
    let format: OutputFormat
    let time: TimeText?
    /// The terminal's columns.
    var columns: Int?
    private var reader = RecordReader()
    private var printer: RecordPrinter?

    init(format: OutputFormat, time: TimeText?) { (self.format, self.time) = (format, time) }

    /// Returns the lines of an event; `nil` for one that is no record.
    mutating func lines(_ event: EventStreamReader.Event) -> [[UInt8]]? {
        if case .json = format { return [event.data] }
        guard let record = reader.record(event.data), let header = reader.header else { return nil }
        if record.kind == .hello { printer = RecordPrinter(format: format, header: header, time: time) }
        if printer?.isLive == true { printer?.columns = columns }
        return printer?.lines(record)
    }
}
