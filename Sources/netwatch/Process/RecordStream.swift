import Console
import Glibc
import Reachability

/// The main loop of `watch` and `record`: monitor → queue → standard output and hooks, until something ends it.
final class RecordStream {
    /// Where the events come from: a monitor, or a script in tests.
    struct Source {
        var identity: MonitorIdentity
        /// Returns when no event follows.
        var stop: () -> Void
    }

    struct Settings {
        var targets: [String] = []
        var format: OutputFormat = .json
        /// Writes no records; hooks run all the same.
        var isQuiet = false
        /// Text with the reasons of changes.
        var isVerbose = false
        /// Stop after so many records, the first not counted.
        var count: Int?
        /// Stop after so long.
        var duration: Duration?
        var hookCommand: String?
        var hookTimeLimit = Hooks.timeLimit
    }

    /// Why the stream is over.
    enum Ending: Hashable {
        /// What was asked for is done: `--count` or `--for`.
        case finished
        /// The monitor sees nothing any more: its namespace is gone.
        case monitorEnded
        case signal(Int32)
        /// Nobody reads standard output any more.
        case readerGone
        case outputFailed(errno: Int32)
    }

    /// How far encoding may run ahead of the reader. Hooks see a record when it is numbered, so that they get it although the
    /// stream's reader is slow: half of the 1 MiB that may be held.
    static let leewayWithHooks = 1 << 19
    static let leeway = 1 << 16
    /// How long a reader that does not read is waited for after a signal.
    static let flushLimit: Int64 = 1_000_000_000
    /// How much longer than `--for` hooks may take; after `--count` they have their whole time.
    static let hookLimitAfterTime: Int64 = 2_000_000_000

    private let settings: Settings
    private let inbox: Inbox
    private let output: StandardOutput?
    private let signals: Signals?
    private let report: (Failure) -> Void
    private var hooks: Hooks?
    private var printer: RecordPrinter?
    private var nextSeq = 0
    private var ending: Ending?
    private var isStopped = false
    private var flushDeadline: Int64?
    private var hookDeadline: Int64?

    /// A stream; `report` is called with what is to be said on standard error while it goes on.
    ///
    /// - Throws: ``Failure`` with code 71 where the system gives no descriptor.
    init(
        _ settings: Settings, output: StandardOutput?, signals: Signals?, report: @escaping (Failure) -> Void
    ) throws(Failure) {
        self.settings = settings
        self.output = settings.isQuiet ? nil : output
        self.signals = signals
        self.report = report
        inbox = try Inbox(limit: 1 << 20 - (settings.hookCommand == nil ? Self.leeway : Self.leewayWithHooks))
    }

    /// Runs until the end; the source is stopped and no hook runs when it returns.
    func run(_ start: (@escaping @Sendable (MonitorEvent) -> Void) throws -> Source) throws -> Ending {
        let inbox = inbox
        let source = try start { inbox.put($0) }
        let header = StreamHeader(version: CommandProgram.version, identity: source.identity, targets: settings.targets)
        let encoder = RecordEncoder(header: header)
        printer = RecordPrinter(format: settings.format, header: header, isVerbose: settings.isVerbose)
        hooks = settings.hookCommand.map {
            Hooks(command: $0, encoder: encoder, timeLimit: settings.hookTimeLimit, report: report)
        }
        let end = settings.duration.map { Clock.now.advanced(by: $0).monotonicNanoseconds }
        let result = loop(until: end, source)
        hooks?.kill()
        return result
    }

    private func loop(until end: Int64?, _ source: Source) -> Ending {
        let main = MainLoop(inbox.waker, signals: signals)
        while true {
            let now = Clock.nanoseconds
            if ending == nil, let end, now >= end { begin(.finished, source, hooksUntil: now + Self.hookLimitAfterTime) }
            takeRecords()
            if ending == nil, isCountReached { begin(.finished, source, hooksUntil: nil) }
            if ending == nil, inbox.isFinished { begin(.monitorEnded, source, hooksUntil: nil) }
            if let hookDeadline, now >= hookDeadline { hooks?.end(now: now) }
            hooks?.advance(now: now)
            if let ending, isDrained || flushDeadline.map({ now >= $0 }) ?? false { return ending }

            let deadlines = [
                ending == nil ? end : nil, flushDeadline, hookDeadline.flatMap { $0 > now ? $0 : nil }, hooks?.deadline,
            ]
            var writing: Int?
            let turn = main.wait(until: deadlines.compactMap { $0 }.min()) { polling in
                writing = output?.watch(&polling)
                hooks?.watch(&polling)
            }
            if let number = turn.signal { interrupt(number, source) }
            switch turn.write(output, at: writing) {
            case nil, .wrote: break
            case .readerGone:
                stop(source)
                return .readerGone
            case .failed(let number):
                stop(source)
                return .outputFailed(errno: number)
            }
        }
    }

    private var isCountReached: Bool {
        // The first record, seq 0, is not counted.
        settings.count.map { nextSeq > $0 } ?? false
    }

    /// Whether all that belongs to the stream is written and no hook runs.
    private var isDrained: Bool {
        (output?.pendingCount ?? 0) == 0 && (hooks?.isIdle ?? true)
    }

    private func takeRecords() {
        let leeway = settings.hookCommand == nil ? Self.leeway : Self.leewayWithHooks
        while !isCountReached, (output?.pendingCount ?? 0) < leeway, var record = inbox.take() {
            record.seq = nextSeq
            nextSeq += 1
            // The user may have changed its size since.
            if let output, printer?.isLive == true { printer?.columns = TerminalSize.columns(of: output.descriptor) }
            if let output { printer?.lines(record).forEach(output.append) }
            hooks?.see(record)
        }
    }

    /// Stops the source and writes what it said before.
    private func begin(_ ending: Ending, _ source: Source, hooksUntil deadline: Int64?) {
        stop(source)
        self.ending = ending
        hookDeadline = deadline
        takeRecords()
    }

    /// A first signal ends the stream in order, within a bound; a second one, at its default again, at once.
    private func interrupt(_ number: Int32, _ source: Source) {
        signals?.release()
        let now = Clock.nanoseconds
        stop(source)
        ending = .signal(number)
        flushDeadline = now + Self.flushLimit
        hooks?.end(now: now)
        takeRecords()
    }

    private func stop(_ source: Source) {
        if !isStopped { source.stop() }
        isStopped = true
    }
}
