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
            if collection.isDone(at: Moment.now) { return .finished }
            if inbox.isFinished { return .monitorEnded }
            writer.draw(collection.statistics, at: Moment.now)
            var place: Int?
            let due = min(collection.deadline.monotonicNanoseconds, writer.drawDue ?? .max)
            let turn = main.wait(until: due) { place = writer.output?.watch(&$0) }
            if let number = turn.signal, !Signals.isEnding(number) {
                writer.continued()
            } else if let number = turn.signal {
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

/// The output of `probe`: a line for each probe, or a table that is redrawn, and the summary, as text; or only one document.
final class ProbeWriter {
    /// The number of bytes that may wait for the reader. Lines beyond it are dropped and counted.
    static let limit = 1 << 20

    /// Standard output; `nil` if nothing is written.
    let output: StandardOutput?
    private let isJSON: Bool
    private var text: ProbeText
    private var dropped = 0
    private var display: Display?

    /// The table on a terminal.
    private struct Display {
        var table: ProbeTable
        let interval: Duration
        let start: Moment
        var block = LiveBlock()
        var isChanged = true
        /// Whether another program may have written to the terminal.
        var isFresh = false
        var drawnAt: Int64?
    }

    /// The minimum time between two frames, and the time after which a frame without a change shows the elapsed time, in nanoseconds.
    private static let frameGap: Int64 = 100_000_000
    private static let idleGap: Int64 = 1_000_000_000

    init(_ options: OutputOptions, targets: [String], count: Int, time: TimeText? = nil, live interval: Duration? = nil)
        throws(Failure)
    {
        output = options.quiet ? nil : try StandardOutput()
        isJSON = options.json
        text = ProbeText(targets: targets, count: count, style: options.style, time: time)
        if let interval {
            display = Display(
                table: ProbeTable(style: options.style, columns: 80, rows: 24), interval: interval, start: Moment.now)
        }
    }

    func append(_ report: ProbeReport, number: Int) {
        guard let output, !isJSON else { return }
        guard display == nil else {
            display?.isChanged = true
            return
        }
        guard output.pendingCount < Self.limit else {
            dropped += 1
            return
        }
        measure(output)
        for line in text.lines(report, number: number) { output.append(line: Array(line.utf8)) }
    }

    /// Reads the terminal's size, which the user may have changed.
    private func measure(_ output: StandardOutput) {
        if isatty(output.descriptor) == 1 { text.columns = TerminalSize.columns(of: output.descriptor) }
    }

    /// The time of the next frame; `nil` without a table.
    var drawDue: Int64? {
        display.map { ($0.drawnAt ?? 0) + ($0.isChanged ? Self.frameGap : Self.idleGap) }
    }

    /// Draws the table if a frame is due. A slow terminal receives fewer frames, and the background of a shell none.
    func draw(_ targets: [ProbeStatistics], at now: Moment) {
        guard let output, display != nil, let drawDue, now.monotonicNanoseconds >= drawDue else { return }
        display?.drawnAt = now.monotonicNanoseconds
        guard output.pendingCount == 0, !Terminal.isInBackground(of: output.descriptor) else { return }
        let size = Terminal.size(of: output.descriptor)
        guard var display else { return }
        (display.table.columns, display.table.rows) = (size.columns, size.rows)
        let lines = display.table.lines(targets, interval: display.interval, elapsed: now.elapsed(since: display.start))
        output.append(display.block.frame(live: lines, columns: size.columns, isFresh: display.isFresh))
        (display.isChanged, display.isFresh) = (false, false)
        self.display = display
    }

    /// Handles SIGCONT: the terminal may show the output of other programs now.
    func continued() {
        display?.isFresh = true
        display?.drawnAt = nil
    }

    /// Writes the summary, and waits for the reader.
    func finish(_ summary: ProbeSummary) throws(Failure) {
        guard let output else { return }
        if isJSON {
            output.append(line: summary.encode())
        } else {
            if var display {
                output.append(display.block.frame(live: [], columns: display.table.columns, isFresh: display.isFresh))
            }
            if dropped > 0 { output.append(line: Array("\(dropped) lines dropped: the reader did not keep up".utf8)) }
            measure(output)
            for line in text.summary(summary.targets) { output.append(line: Array(line.utf8)) }
        }
        try output.flush()
    }
}
