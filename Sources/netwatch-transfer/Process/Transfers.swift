import Console
import EventLoop
import FoundationEssentials
import Glibc
import HTTPSession
import Pacing
import Reachability

/// The main loop of `get` and `put`: it starts transfers, samples them, receives their events and reports them until all have
/// ended.
final class Transfers {
    struct Settings {
        /// The maximum number of transfers at a time.
        var parallel: Int
        var deadline: Moment?
        /// The value of `--timeout` as the user wrote it.
        var timeoutText = ""
        /// The handlers that answer challenges; `nil` for none.
        var handlers: TransferHandlers?
        /// The trust of the probes that find the cause of a failure.
        var tls = TLSProbeSettings()
    }

    /// The reason why the loop ended.
    enum Ending: Hashable {
        case finished(code: Int32)
        case signal(Int32)
        /// The reader of the records is gone.
        case readerGone
        case outputFailed(errno: Int32)
    }

    struct Running {
        var task: TransferTask?
        /// The last response to the task.
        var answer: TransferAnswer?
        /// The time of the next attempt after an error that the library does not retry.
        var restartsAt: Int64?
        var backoff = Backoff(baseNanoseconds: 500_000_000, capNanoseconds: 60_000_000_000)
        var bytes: Int64 = 0
        /// The URL of the current request, after redirects.
        var address: URL?
        /// The events from a failure on that wait for the first result of a probe.
        var held: [EventInbox.Entry] = []
        var heldUntil: Int64?
        /// The cause with which silence was reported, LAYER/CODE; empty if it was not known, `nil` if no silence was reported.
        var reportedSilence: String?
    }

    /// The timeout of transfers without a limit: the longest that a session accepts.
    static let forever = TransferProblem.forever
    /// The time limit for writing standard output and error after a signal, and for the session's end after the last transfer, in
    /// nanoseconds.
    private static let endLimit: Int64 = 1_000_000_000

    private var work: any TransferWork
    private let items: [TransferItem]
    private let settings: Settings
    private let report: Report
    private let inbox: EventInbox
    private let signals: Signals
    private var running: [Running]
    private var statuses: [TransferStatus]
    private var places: [UInt64: Int] = [:]
    private var codes: [Int32] = []
    private var ending: Ending?
    private var diagnoses: Diagnoses?
    private var session: HTTPSessionManager?

    init(_ work: any TransferWork, _ settings: Settings, _ report: Report) throws(Failure) {
        self.work = work
        items = work.items
        self.settings = settings
        self.report = report
        signals = try Signals(and: [SIGWINCH, SIGCONT])
        inbox = try EventInbox()
        let now = Moment.now
        running = items.map { _ in Running() }
        statuses = items.map { TransferStatus(work.direction, url: $0.address, name: $0.name, at: now) }
    }

    func run(_ configuration: SessionConfiguration, _ monitoring: MonitorConfiguration) throws(Failure) -> Ending {
        // This must happen before threads that resolve names exist.
        if let name = monitoring.namespace?.name { NamespaceFiles.arrange(forNamespace: name) }
        let monitor: PathMonitor
        do { monitor = try PathMonitor(monitoring) } catch { throw Failure(error) }
        let session: HTTPSessionManager
        do {
            session = try HTTPSessionManager(
                configuration: configuration, handlers: settings.handlers ?? TransferHandlers(), monitor: monitor,
                eventMonitors: [inbox])
        } catch {
            let code =
                error.underlying is MissingAuthoritiesError
                ? ExitCode.noInput : error.code == .invalidConfiguration ? ExitCode.usage : ExitCode.system
            throw Failure(code, "\(work.command): \(error.reason)")
        }
        self.session = session
        let interface = configuration.interface
        var probes = ProbeSettings(failAfter: 1, families: monitoring.families, interface: interface)
        probes.tls = settings.tls
        diagnoses = Diagnoses(monitor, probes, inbox)
        defer {
            diagnoses = nil
            self.session = nil
        }
        report.begin(statuses, at: Moment.now)
        while true {
            let now = Moment.now
            for entry in inbox.takeAll() { receive(entry) }
            for result in inbox.takeProbeResults() where diagnoses?.isCurrent(result) == true { receive(result) }
            sample(now)
            if ending == nil { startMore(session, now) }
            diagnose(now)
            report.refresh(statuses, at: now)
            if isFinished { break }
            wait(until: deadline(now))
        }
        return finish(session)
    }

    private var isFinished: Bool {
        zip(running, statuses).allSatisfy { $1.phase.isFinal || (ending != nil && $0.task == nil) }
    }

    private func deadline(_ now: Moment) -> Int64? {
        let restarts = running.compactMap(\.restartsAt)
        return
            ([report.deadline(statuses, at: now)] + restarts + statuses.indices.map { diagnosisDeadline($0, now) }
            + [restarts.isEmpty ? nil : settings.deadline?.monotonicNanoseconds])
            .compactMap { $0 }.min()
    }

    private func wait(until deadline: Int64?) {
        var outputs = Report.Places()
        let turn = MainLoop(inbox.waker, signals: signals).wait(until: deadline) { outputs = report.watch(&$0) }
        if let number = turn.signal { handleSignal(number) }
        switch report.write(turn, outputs) {
        case nil, .wrote?: break
        case .readerGone?: stop(.readerGone)
        case .failed(let number)?: stop(.outputFailed(errno: number))
        }
    }

    private func handleSignal(_ number: Int32) {
        switch number {
        case SIGWINCH: report.resized()
        case SIGCONT: report.continued()
        default:
            // A second signal ends the program at once.
            signals.unblock(after: number)
            stop(.signal(number))
        }
    }

    /// Cancels the running transfers in order, so that their bytes are synced.
    private func stop(_ ending: Ending) {
        guard self.ending == nil else { return }
        self.ending = ending
        for index in running.indices {
            running[index].restartsAt = nil
            running[index].task?.cancel()
        }
    }

    // MARK: Transfers

    private func startMore(_ session: HTTPSessionManager, _ now: Moment) {
        // Each transfer opens its file at its start, even while it waits for a connection.
        let parallel = min(settings.parallel, session.connectionLimit)
        var count = zip(running, statuses).count { ($0.task != nil || $0.restartsAt != nil) && !$1.phase.isFinal }
        for index in running.indices where !statuses[index].phase.isFinal && running[index].task == nil {
            if let due = running[index].restartsAt {
                guard due <= now.monotonicNanoseconds || isLate(now) else { continue }
                running[index].restartsAt = nil
            } else {
                guard count < parallel else { continue }
                count += 1
                publish(.started, index, now)
            }
            start(index, session, now)
        }
    }

    /// Whether no time is left for an attempt. A session accepts no timeout below a millisecond.
    private func isLate(_ now: Moment) -> Bool { remaining(now).map { $0 < .milliseconds(1) } ?? false }

    private func start(_ index: Int, _ session: HTTPSessionManager, _ now: Moment) {
        if let size = work.presentSize(index) {
            publish(.unchanged(size: size), index, now)
            if let file = items[index].file { publish(.saved(file: file), index, now) }
            return publish(.finished, index, now)
        }
        if isLate(now) { return fail(index, nil, now) }
        var options = TransferRequest.Options()
        options.resourceTimeout = remaining(now) ?? Self.forever
        let task = work.task(index, options, attempts: statuses[index].attempt, session)
        (running[index].task, running[index].answer) = (task, nil)
        places[task.id] = index
        connect(index, to: items[index].url)
    }

    private func sample(_ now: Moment) {
        for index in running.indices { sample(index, now) }
    }

    private func sample(_ index: Int, _ now: Moment) {
        if let due = running[index].restartsAt {
            let status = statuses[index]
            let wait = Duration.nanoseconds(max(0, due - now.monotonicNanoseconds))
            statuses[index].sample(bytes: status.bytes, total: status.total, wait: wait, at: now)
        }
        guard let task = running[index].task else { return }
        let progress = task.currentProgress
        let isUpload = work.direction == .upload
        statuses[index].sample(
            bytes: isUpload ? progress.bytesSent : progress.bytesReceived,
            total: isUpload ? progress.expectedToSend : progress.expectedToReceive, wait: task.timeToNextAttempt, at: now)
    }

    private func receive(_ entry: EventInbox.Entry) {
        guard let index = places[entry.task], running[index].task?.id == entry.task else { return }
        if running[index].heldUntil != nil { return running[index].held.append(entry) }
        if isUnexplained(entry.event, index) {
            let limit = remaining(entry.moment).map { max(0, $0.saturatingNanoseconds) } ?? .max
            (running[index].held, running[index].heldUntil) = (
                [entry], entry.moment.monotonicNanoseconds + min(Diagnoses.grace, max(limit, 100_000_000))
            )
            return probe(index, entry.moment)
        }
        act(on: entry, index)
    }

    private func act(on entry: EventInbox.Entry, _ index: Int) {
        sample(index, entry.moment)
        if let answer = entry.answer { running[index].answer = answer }
        switch entry.event {
        case .redirected(let text):
            if let url = RequestURL.reference(text, relativeTo: running[index].address) {
                connect(index, to: url)
                statuses[index].redirect(to: url)
            }
            publish(entry.event, index, entry.moment)
        case .failed(let problem): failed(index, problem, entry.moment)
        case .finished: finished(index, entry.moment)
        case .stopped:
            running[index].task = nil
            publish(entry.event, index, entry.moment)
        default: publish(entry.event, index, entry.moment)
        }
    }

    private func finished(_ index: Int, _ now: Moment) {
        running[index].task = nil
        let answer = running[index].answer
        if let answer, work.needsAnotherTask(index, after: answer) {
            if ending == nil { running[index].restartsAt = now.monotonicNanoseconds } else { publish(.stopped, index, now) }
        } else if let answer, work.direction == .upload, !(200...299).contains(answer.status) {
            failed(index, TransferProblem(answer), now)
        } else {
            work.discardResumeState(index)
            publish(.finished, index, now)
        }
    }

    private func failed(_ index: Int, _ problem: TransferProblem, _ now: Moment) {
        running[index].task = nil
        if case .unretried = problem.kind, ending == nil, !isLate(now) {
            restart(index, after: problem, now)
        } else {
            fail(index, problem, now)
        }
    }

    /// Schedules another attempt after an error that the library does not retry.
    private func restart(_ index: Int, after problem: TransferProblem, _ now: Moment) {
        if statuses[index].bytes > running[index].bytes { running[index].backoff.reset() }
        running[index].bytes = statuses[index].bytes
        let wait = running[index].backoff.next(draw: .random(in: 0 ... .max))
        running[index].restartsAt = now.monotonicNanoseconds + wait
        publish(.failedForNow(problem), index, now)
    }

    /// Ends a transfer with an error. `nil`: its time ran out before it could be retried.
    private func fail(_ index: Int, _ problem: TransferProblem?, _ now: Moment) {
        let last = statuses[index].problem
        let explained = problem.map { statuses[index].explained($0) }
        var end = explained ?? last ?? TransferProblem(HTTPSessionError(.timedOut, "it was never started"))
        if settings.deadline != nil, end.isRetriable {
            let isLate = isLate(now)
            let timeLimit =
                isLate ? "timed out after \(settings.timeoutText)" : "no time for another attempt within \(settings.timeoutText)"
            // The problem before the timeout is more informative than the timeout.
            if isLate, let last { end = last }
            let isPlain = isLate && last == nil && problem != nil && statuses[index].stage == .requested
            if isPlain { end.cause = Cause(.http, .timeout, detail: timeLimit) }
            end.message = isPlain ? timeLimit : "\(timeLimit): \(end.message)"
        }
        if end.kind == .permanent, [.invalidResponse, .unexpectedBody].contains(end.cause.code) {
            work.discardResumeState(index)
        }
        publish(.failed(end), index, now)
        var code = ExitCode.doesNotHold
        if case .file(let own) = end.kind { code = own }
        codes.append(code)
        let isFile = code != ExitCode.doesNotHold
        report.show(
            Failure(
                code,
                "\(isFile ? work.command : ShortURL.text(items[index].url.withoutSecrets)): \(end.message)\(hint(index, end))"
            ),
            statuses, at: now)
    }

    /// Returns the hint that the transferred bytes are kept.
    private func hint(_ index: Int, _ end: TransferProblem) -> String {
        guard end.kind != .permanent, statuses[index].bytes > 0, work.canContinue(index) else { return "" }
        // Only the server knows how many of the sent bytes have arrived.
        let keptBytes = work.direction == .upload ? "the bytes on the server are" : "\(ByteCount.text(statuses[index].bytes)) are"
        return "; \(keptBytes) kept; run the same command again to continue"
    }

    private func publish(_ event: TransferEvent, _ index: Int, _ now: Moment) {
        let isOther = statuses[index].apply(event, at: now)
        // The waiting time belongs to the new state.
        sample(index, now)
        report.publish(event, statuses, index, isOther: isOther, at: now)
    }

    // MARK: The end

    private func finish(_ session: HTTPSessionManager) -> Ending {
        let now = Moment.now
        let limit = now.monotonicNanoseconds + Self.endLimit
        if case .signal? = ending { reportKeptBytes(now) }
        work.close()
        report.refresh(statuses, at: now)
        report.erase(statuses, at: now)
        session.cancel()
        while MonotonicClock.now() < limit || ending == nil {
            _ = inbox.takeAll()
            report.refresh(statuses, at: Moment.now)
            let isEnded = inbox.hasEnded || MonotonicClock.now() >= limit
            // If the reader is gone, the remaining records cannot be written.
            if report.isDrained || isOutputGone, isEnded { break }
            wait(until: isEnded ? nil : limit)
        }
        if let ending { return ending }
        // With one URL, the exit code is that of its failure; with several, it is 1.
        let code = codes.isEmpty ? ExitCode.holds : items.count == 1 ? codes[0] : ExitCode.doesNotHold
        return .finished(code: code)
    }

    private var isOutputGone: Bool {
        switch ending {
        case .readerGone?, .outputFailed?: true
        case .finished?, .signal?, nil: false
        }
    }

    /// Reports in one line which bytes are kept after a signal.
    private func reportKeptBytes(_ now: Moment) {
        let open = statuses.indices.filter { statuses[$0].phase != .finished }
        let kept = open.filter { work.canContinue($0) }
        let message: String
        if kept.isEmpty {
            message = "stopped: nothing can be continued"
        } else if work.direction == .upload {
            message = "stopped: the bytes on the server are kept; run the same command again to continue"
        } else if kept.count == 1, let only = kept.first {
            let status = statuses[only]
            let share = status.percent.map { "\($0) % (\(ByteCount.text(status.bytes)))" } ?? ByteCount.text(status.bytes)
            message = "stopped: \(share) of \(status.name) is kept; run the same command again to continue"
        } else {
            message = "stopped: the received bytes of \(kept.count) files are kept; run the same command again to continue"
        }
        report.show(Failure(ExitCode.doesNotHold, "\(work.command): \(message)"), statuses, at: now)
    }

    // MARK: - The diagnosis of missing connections: it starts probes and applies their results

    private func connect(_ index: Int, to url: URL) {
        running[index].address = url
        statuses[index].usesTLS = url.scheme?.lowercased() == "https"
        statuses[index].proxy = session?.firstEndpoint(for: url).flatMap { $0.isProxy ? $0.endpoint.text : nil }
    }

    private func remaining(_ now: Moment) -> Duration? { settings.deadline.map { $0.elapsed(since: now) } }

    private func probe(_ index: Int, _ now: Moment) {
        guard let url = running[index].address, let first = session?.firstEndpoint(for: url) else { return }
        diagnoses?.begin(index, first.endpoint, remaining: remaining(now))
    }

    /// Starts and ends probes, reports silence, and reports held failures that have waited long enough for a probe's result.
    private func diagnose(_ now: Moment) {
        for index in statuses.indices {
            if let limit = running[index].heldUntil, now.monotonicNanoseconds >= limit || ending != nil { reportHeld(index) }
            if running[index].heldUntil == nil {
                let isDue = statuses[index].probesAt.map { $0 <= now.monotonicNanoseconds } ?? false
                if isDue, ending == nil { probe(index, now) } else { diagnoses?.end(index) }
            }
            let cause = statuses[index].cause?.name ?? ""
            if statuses[index].unansweredTime(at: now) == nil {
                if statuses[index].phase == .moving { running[index].reportedSilence = nil }
            } else if running[index].reportedSilence != cause {
                running[index].reportedSilence = cause
                publish(.silent, index, now)
            }
        }
    }

    private func diagnosisDeadline(_ index: Int, _ now: Moment) -> Int64? {
        if let limit = running[index].heldUntil { return limit }
        guard statuses[index].phase == .connecting else { return nil }
        let silence = statuses[index].since.advanced(by: TransferStatus.silenceLimit).monotonicNanoseconds
        return [statuses[index].probesAt, silence].compactMap { $0 }.filter { $0 > now.monotonicNanoseconds }.min()
    }

    private func receive(_ result: EventInbox.ProbeResult) {
        // A failure that waits for this result is reported with it, so the result needs no record of its own.
        guard running[result.place].heldUntil == nil else {
            _ = statuses[result.place].apply(.diagnosed(result.diagnosis), at: result.moment)
            return reportHeld(result.place)
        }
        publish(.diagnosed(result.diagnosis), result.place, result.moment)
    }

    private func reportHeld(_ index: Int) {
        let held = running[index].held
        (running[index].held, running[index].heldUntil) = ([], nil)
        let now = Moment.now
        for var entry in held {
            entry.moment = now
            act(on: entry, index)
        }
    }

    /// Returns whether the event is a failure without a connection whose cause no probe has found yet.
    private func isUnexplained(_ event: TransferEvent, _ index: Int) -> Bool {
        switch event {
        case .failedForNow(let problem), .networkGone(let problem), .failed(let problem):
            problem.connectionFailure != nil && !problem.hasFoundCause && statuses[index].stage < .connected
                && statuses[index].diagnosis == nil && ending == nil
        default: false
        }
    }
}
