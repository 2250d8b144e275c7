import Console
import Glibc
import Reachability
import Records

/// The main loop of `probe`: monitor → collection → lines.
final class ProbeRun {
    private(set) var collection: ProbeCollection
    private let session: MonitorSession
    private let inbox: Inbox
    private let writer: ProbeWriter
    private let signals: Signals

    /// Starts the monitor, whose first probes follow at once.
    init(
        _ configuration: MonitorConfiguration, _ targets: [(Endpoint, ProbeSettings)], _ collection: ProbeCollection,
        _ writer: ProbeWriter, _ signals: Signals
    ) throws(Failure) {
        // Every report counts, so none may be replaced. The main thread takes them at once, even if nobody reads its output.
        let inbox = try Inbox(limit: .max)
        self.inbox = inbox
        self.collection = collection
        self.writer = writer
        self.signals = signals
        do {
            session = try MonitorSession(configuration, targets: targets) { inbox.put(Record(event: $0)) }
            if session.isPolling { StandardError.reportPolling() }
        } catch {
            throw Failure(error)
        }
    }

    /// Runs until the collection is done. When it returns, the monitor is stopped.
    func run() -> StreamEnding {
        defer { session.stop() }
        let main = MainLoop(inbox.waker, signals: signals)
        while true {
            takeEvents()
            if collection.isDone(at: Clock.now) { return .finished }
            if inbox.isFinished { return .monitorEnded }
            var place: Int?
            let turn = main.wait(until: collection.deadline.monotonicNanoseconds) { place = writer.output?.watch(&$0) }
            if let number = turn.signal {
                // A second signal ends the program at once, even if nobody reads the summary.
                signals.unblock(after: number)
                takeEvents()
                return .signal(number)
            }
            switch turn.write(writer.output, at: place) {
            case nil, .wrote: break
            case .readerGone: return .readerGone
            case .failed(let number): return .outputFailed(errno: number)
            }
        }
    }

    private func takeEvents() {
        while let record = inbox.take() {
            guard case .probe(let report, let number, let isLast) = collection.receive(record.event) else { continue }
            writer.append(report, number: number)
            if isLast, case .probe(let id, _) = record.event { session.remove(id) }
        }
    }
}

/// The output of `probe`: a line for each probe, and the summary, as text; or only one document.
final class ProbeWriter {
    /// The number of bytes that may wait for the reader. Lines beyond it are dropped and counted.
    static let limit = 1 << 20

    /// Standard output; `nil` if nothing is written.
    let output: StandardOutput?
    private let isJSON: Bool
    private var text: ProbeText
    private var dropped = 0

    init(_ options: OutputOptions, targets: [String], count: Int, time: TimeText? = nil) throws(Failure) {
        output = options.quiet ? nil : try StandardOutput()
        isJSON = options.json
        text = ProbeText(targets: targets, count: count, style: options.style, time: time)
    }

    func append(_ report: ProbeReport, number: Int) {
        guard let output, !isJSON else { return }
        guard output.pendingCount < Self.limit else {
            dropped += 1
            return
        }
        // The user may have changed the terminal's size.
        if isatty(output.descriptor) == 1 { text.columns = TerminalSize.columns(of: output.descriptor) }
        for line in text.lines(report, number: number) { output.append(line: Array(line.utf8)) }
    }

    /// Writes the summary, and waits for the reader.
    func finish(_ summary: ProbeSummary) throws(Failure) {
        guard let output else { return }
        if isJSON {
            output.append(line: summary.encode())
        } else {
            if dropped > 0 { output.append(line: Array("\(dropped) lines dropped: the reader did not keep up".utf8)) }
            for line in text.summary(summary.targets) { output.append(line: Array(line.utf8)) }
        }
        try output.flush()
    }
}
