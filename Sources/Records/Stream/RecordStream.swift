package import Console
package import EventLoop
import Glibc
package import Reachability

/// The main loop of `watch` and `record`: monitor → queue → standard output and hooks.
package final class RecordStream {
    /// The source of the events: a monitor, or a script in tests.
    package struct Source {
        package var identity: MonitorIdentity
        /// Stops the source, and returns when no event follows.
        package var stop: () -> Void

        package init(identity: MonitorIdentity, stop: @escaping () -> Void) {
            (self.identity, self.stop) = (identity, stop)
        }

        /// Starts a monitor, whose events become records. The closures run on its thread: `recordingFailed` receives an errno if the recording at
        /// `path` cannot be written completely, `sink` the records. Results of probes are among them if `includesProbes`.
        package static func monitor(
            _ configuration: MonitorConfiguration, targets: [(Endpoint, ProbeSettings)], includesProbes: Bool,
            recordingTo path: String?,
            recordingFailed: @escaping @Sendable (Int32) -> Void, sink: @escaping @Sendable (Record) -> Void
        ) throws(Failure) -> Source {
            do throws(MonitorError) {
                let session = try MonitorSession(
                    configuration, recordingTo: path, targets: targets, recordingFailed: recordingFailed
                ) { event in
                    if case .probe = event, !includesProbes { return }
                    sink(Record(event: event))
                }
                if session.isPolling { StandardError.reportPolling() }
                return Source(identity: session.identity) { session.stop() }
            } catch {
                throw Failure(error)
            }
        }
    }

    package struct Settings {
        package var targets: [Endpoint]
        package var format: OutputFormat
        /// Whether no records are written. Hooks still run.
        package var isQuiet: Bool
        /// Whether text includes the reasons of changes.
        package var isVerbose: Bool
        /// The times of text; `nil` for the usual ones.
        package var time: TimeText?
        /// The number of records after which the stream stops, not counting the first.
        package var count: Int?
        /// The time after which the stream stops.
        package var duration: Duration?
        package var hookCommand: String?
        /// The time after which a hook is killed.
        package var hookTimeLimit: Duration
        /// Called on SIGHUP, which then does not end the stream; `nil` if SIGHUP ends it.
        package var reload: (() -> Void)?

        package init(
            targets: [Endpoint] = [], format: OutputFormat = .json, isQuiet: Bool = false, isVerbose: Bool = false,
            count: Int? = nil, duration: Duration? = nil, hookCommand: String? = nil, hookTimeLimit: Duration = Hooks.timeLimit,
            reload: (() -> Void)? = nil
        ) {
            (self.targets, self.format, self.isQuiet, self.isVerbose) = (targets, format, isQuiet, isVerbose)
            (self.count, self.duration) = (count, duration)
            (self.hookCommand, self.hookTimeLimit, self.reload) = (hookCommand, hookTimeLimit, reload)
        }
    }

    /// The number of encoded bytes that may wait for the reader if there are hooks: half of the 1 MiB limit. A hook receives a
    /// record when it is numbered, so this lets hooks run while the stream's reader is slow.
    package static let leewayWithHooks = 1 << 19
    package static let leeway = 1 << 16
    /// The time for which a slow reader may delay the end after a signal, in nanoseconds.
    package static let flushLimit: Int64 = 1_000_000_000
    /// The time after the first signal within which a second one does not end the program while the source stops, in milliseconds. A
    /// recording gets its last line then. timeout(1) sends two signals at once, to the program and to its process group.
    package static let stopLimit: Int32 = 1_000
    /// The time for which hooks may run after `--for`, in nanoseconds. After `--count` they have their full time limit.
    package static let hookLimitAfterTime: Int64 = 2_000_000_000

    private let settings: Settings
    private let inbox: Inbox
    private let output: StandardOutput?
    private let signals: Signals?
    private let report: (Failure) -> Void
    private var hooks: Hooks?
    private var printer: RecordPrinter?
    private var nextSeq = 0
    private var ending: StreamEnding?
    private var isStopped = false
    private var flushDeadline: Int64?
    private var hookDeadline: Int64?

    /// Creates a stream. `report` receives the failures to be written to standard error while the stream continues.
    ///
    /// - Throws: ``Failure`` with code 71 if the system has no descriptor left.
    package init(
        _ settings: Settings, output: StandardOutput?, signals: Signals?, report: @escaping (Failure) -> Void
    ) throws(Failure) {
        self.settings = settings
        self.output = settings.isQuiet ? nil : output
        self.signals = signals
        self.report = report
        inbox = try Inbox(limit: 1 << 20 - (settings.hookCommand == nil ? Self.leeway : Self.leewayWithHooks))
    }

    /// Runs the stream until its end. When it returns, the source is stopped and no hook runs.
    package func run(_ start: (@escaping @Sendable (Record) -> Void) throws -> Source) throws -> StreamEnding {
        let inbox = inbox
        let source = try start { inbox.put($0) }
        let header = StreamHeader(version: CommandProgram.version, identity: source.identity, targets: settings.targets)
        let encoder = RecordEncoder(header: header)
        printer = RecordPrinter(format: settings.format, header: header, isVerbose: settings.isVerbose, time: settings.time)
        hooks = settings.hookCommand.map {
            Hooks(command: $0, encoder: encoder, timeLimit: settings.hookTimeLimit, report: report)
        }
        let end = settings.duration.map { Moment.now.advanced(by: $0).monotonicNanoseconds }
        let result = loop(until: end, source)
        hooks?.kill()
        return result
    }

    private func loop(until end: Int64?, _ source: Source) -> StreamEnding {
        let main = MainLoop(inbox.waker, signals: signals)
        while true {
            let now = MonotonicClock.now()
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
            if let number = turn.signal {
                if number == SIGHUP, let reload = settings.reload { reload() } else { interrupt(number, source) }
            }
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
        // The first record (seq 0) is not counted.
        settings.count.map { nextSeq > $0 } ?? false
    }

    /// Whether all records are written and no hook runs.
    private var isDrained: Bool {
        (output?.pendingCount ?? 0) == 0 && (hooks?.isIdle ?? true)
    }

    private func takeRecords() {
        let leeway = settings.hookCommand == nil ? Self.leeway : Self.leewayWithHooks
        while !isCountReached, (output?.pendingCount ?? 0) < leeway, var record = inbox.take() {
            record.seq = nextSeq
            nextSeq += 1
            // The user may have changed the terminal's size.
            if let output, printer?.isLive == true { printer?.columns = TerminalSize.columns(of: output.descriptor) }
            if let output { printer?.lines(record).forEach { output.append(line: $0) } }
            hooks?.receive(record)
        }
    }

    /// Stops the source and writes its last records.
    private func begin(_ ending: StreamEnding, _ source: Source, hooksUntil deadline: Int64?) {
        stop(source)
        self.ending = ending
        hookDeadline = deadline
        takeRecords()
    }

    /// Handles a signal: the first one ends the stream in order, within a time limit. A second one ends the program, as soon as the
    /// source has stopped or ``stopLimit`` has passed, unless it is the same one within 500 ms.
    private func interrupt(_ number: Int32, _ source: Source) {
        let now = MonotonicClock.now()
        if !isStopped { signals?.unblock(after: number, milliseconds: Self.stopLimit) }
        stop(source)
        signals?.unblock(after: number)
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

/// The bounded queue of records from the monitor's thread to the main thread.
package final class Inbox: Sendable {
    private struct State {
        var queue: RecordQueue
        var hasEnded = false
    }

    /// The waker that wakes the main thread when a record may be available.
    package let waker: Waker
    private let state: Locked<State>

    /// Creates an inbox. Above `limit` bytes of records, newer records replace older ones.
    ///
    /// - Throws: ``Failure`` with code 71 if the system has no descriptor left.
    package init(limit: Int = 1 << 20) throws(Failure) {
        waker = try MainLoop.makeWaker()
        state = Locked(State(queue: RecordQueue(limit: limit)))
    }

    /// Adds a record, which has no number yet. It blocks at most for the time of copying one record.
    package func put(_ record: Record) {
        let mustWake = state.withLock { state in
            if case .ended = record.event {
                state.hasEnded = true
                return true
            }
            // The reader takes records until none is left, or until its output is full, which wakes it too.
            let isFirst = state.queue.isEmpty
            state.queue.push(record)
            return isFirst
        }
        if mustWake { waker.wake() }
    }

    package func take() -> Record? { state.withLock { $0.queue.take() } }

    /// Whether the monitor has ended and all records were taken.
    package var isFinished: Bool { state.withLock { $0.hasEnded && $0.queue.isEmpty } }
}
