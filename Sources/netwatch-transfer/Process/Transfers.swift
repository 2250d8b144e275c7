import Console
import FoundationEssentials
import Glibc
import HTTPSession
import Pacing
import Reachability

/// The main loop of `get` and `put`: it starts transfers, samples them, hears what happens to them and tells it, until all are over.
final class Transfers {
    struct Settings {
        /// At a time.
        var parallel: Int
        var deadline: Moment?
        /// As the user wrote it.
        var timeoutText = ""
    }

    /// Why it is over.
    enum Ending: Hashable {
        case finished(code: Int32)
        case signal(Int32)
        /// Nobody reads the records any more.
        case readerGone
        case outputFailed(errno: Int32)
    }

    struct Running {
        var task: TransferTask?
        /// The last one of the task's.
        var answer: TransferAnswer?
        /// When it begins again after an end that the library does not try to mend.
        var restartsAt: Int64?
        var backoff = Backoff(baseNanoseconds: 500_000_000, capNanoseconds: 60_000_000_000)
        var bytes: Int64 = 0
        /// The address of the present request, after redirects.
        var address: URL?
        /// Events that wait for the first result of a probe, from a failure on.
        var held: [EventInbox.Entry] = []
        var heldUntil: Int64?
        /// The cause with which a silence has been reported, LAYER/CODE, or empty if it was not known; `nil`: none has been.
        var toldSilence: String?
    }

    /// Of transfers that go on for weeks: the longest timeout that a session takes.
    static let forever = Duration.seconds(3_650 * 86_400)
    /// How long standard output and error are waited for after a signal, and the session's end after all transfers'.
    private static let endLimit: Int64 = 1_000_000_000

    private var work: any TransferWork
    private let items: [TransferItem]
    let settings: Settings
    private let report: Report
    let inbox: EventInbox
    private let signals: Signals
    var running: [Running]
    var statuses: [TransferStatus]
    private var places: [UInt64: Int] = [:]
    private var codes: [Int32] = []
    var ending: Ending?
    var diagnoses: Diagnoses?
    var session: HTTPSessionManager?

    init(_ work: any TransferWork, _ settings: Settings, _ report: Report) throws(Failure) {
        self.work = work
        items = work.items
        self.settings = settings
        self.report = report
        signals = try Signals(and: [SIGWINCH, SIGCONT])
        inbox = try EventInbox()
        let now = Clock.now
        running = items.map { _ in Running() }
        statuses = items.map { TransferStatus(work.direction, url: $0.address, name: $0.name, at: now) }
    }

    func run(_ configuration: SessionConfiguration, _ monitoring: MonitorConfiguration) throws(Failure) -> Ending {
        // Before there are threads that resolve names.
        if let name = monitoring.namespace?.name { NamespaceFiles.arrange(forNamespace: name) }
        let monitor: PathMonitor
        do { monitor = try PathMonitor(monitoring) } catch { throw Failure(error) }
        let session: HTTPSessionManager
        do {
            session = try HTTPSessionManager(configuration: configuration, reachability: monitor, monitors: [inbox])
        } catch {
            let code = error.underlying is MissingAuthoritiesError ? ExitCode.noInput : ExitCode.system
            throw Failure(code, "\(work.command): \(error.reason)")
        }
        self.session = session
        let interface = configuration.interface
        diagnoses = Diagnoses(
            monitor, ProbeSettings(failAfter: 1, families: monitoring.families, interface: interface), inbox)
        defer {
            diagnoses = nil
            self.session = nil
        }
        report.begin(statuses, at: Clock.now)
        while true {
            let now = Clock.now
            for entry in inbox.takeAll() { see(entry) }
            for finding in inbox.takeFindings() where diagnoses?.isCurrent(finding) == true { see(finding) }
            sample(now)
            if ending == nil { startMore(session, now) }
            diagnose(now)
            report.refresh(statuses, at: now)
            if isOver { break }
            wait(until: deadline(now))
        }
        return finish(session)
    }

    private var isOver: Bool {
        zip(running, statuses).allSatisfy { $1.phase.isOver || (ending != nil && $0.task == nil) }
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
        if let number = turn.signal { heed(number) }
        switch report.write(turn, outputs) {
        case nil, .wrote?: break
        case .readerGone?: stop(.readerGone)
        case .failed(let number)?: stop(.outputFailed(errno: number))
        }
    }

    private func heed(_ number: Int32) {
        switch number {
        case SIGWINCH: report.resized()
        case SIGCONT: report.continued()
        default:
            // A second one ends the program at once.
            signals.release()
            stop(.signal(number))
        }
    }

    /// What is under way is let go in order: its bytes are synced.
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
        // Each transfer opens its file when it begins, also while it waits for a connection.
        let parallel = min(settings.parallel, session.connectionLimit)
        var count = zip(running, statuses).count { ($0.task != nil || $0.restartsAt != nil) && !$1.phase.isOver }
        for index in running.indices where !statuses[index].phase.isOver && running[index].task == nil {
            if let due = running[index].restartsAt {
                guard due <= now.monotonicNanoseconds || isLate(now) else { continue }
                running[index].restartsAt = nil
            } else {
                guard count < parallel else { continue }
                count += 1
                tell(.started, index, now)
            }
            start(index, session, now)
        }
    }

    private func isLate(_ now: Moment) -> Bool { settings.deadline.map { now >= $0 } ?? false }

    private func start(_ index: Int, _ session: HTTPSessionManager, _ now: Moment) {
        if let size = work.presentSize(index) {
            tell(.unchanged(size: size), index, now)
            if let file = items[index].file { tell(.saved(file: file), index, now) }
            return tell(.finished, index, now)
        }
        if isLate(now) { return fail(index, nil, now) }
        var options = TransferRequest.Options()
        options.resourceTimeout = settings.deadline.map { $0.elapsed(since: now) } ?? Self.forever
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
            bytes: isUpload ? progress.sent : progress.received,
            total: isUpload ? progress.expectedToSend : progress.expectedToReceive, wait: task.timeToNextAttempt, at: now)
    }

    private func see(_ entry: EventInbox.Entry) {
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

    func act(on entry: EventInbox.Entry, _ index: Int) {
        sample(index, entry.moment)
        if let answer = entry.answer { running[index].answer = answer }
        switch entry.event {
        case .redirected(let text):
            if let url = RequestURL.reference(text, relativeTo: running[index].address) { connect(index, to: url) }
            tell(entry.event, index, entry.moment)
        case .failed(let trouble): failed(index, trouble, entry.moment)
        case .finished: finished(index, entry.moment)
        case .stopped:
            running[index].task = nil
            tell(entry.event, index, entry.moment)
        default: tell(entry.event, index, entry.moment)
        }
    }

    private func finished(_ index: Int, _ now: Moment) {
        running[index].task = nil
        let answer = running[index].answer
        if let answer, work.goesOn(index, after: answer) {
            if ending == nil { running[index].restartsAt = now.monotonicNanoseconds } else { tell(.stopped, index, now) }
        } else if let answer, work.direction == .upload, !(200...299).contains(answer.status) {
            failed(index, Trouble(answer), now)
        } else {
            work.settled(index)
            tell(.finished, index, now)
        }
    }

    private func failed(_ index: Int, _ trouble: Trouble, _ now: Moment) {
        running[index].task = nil
        if case .odd = trouble.kind, ending == nil, !isLate(now) {
            restart(index, after: trouble, now)
        } else {
            fail(index, trouble, now)
        }
    }

    /// The library does not try to mend this, but it may pass.
    private func restart(_ index: Int, after trouble: Trouble, _ now: Moment) {
        if statuses[index].bytes > running[index].bytes { running[index].backoff.reset() }
        running[index].bytes = statuses[index].bytes
        let wait = running[index].backoff.next(draw: .random(in: 0 ... .max))
        running[index].restartsAt = now.monotonicNanoseconds + wait
        tell(.failedForNow(trouble), index, now)
    }

    /// It has ended for good; `nil`: its time was over before it could begin again.
    private func fail(_ index: Int, _ trouble: Trouble?, _ now: Moment) {
        let last = statuses[index].trouble
        let explained = trouble.map { statuses[index].explained($0) }
        var end = explained ?? last ?? Trouble(HTTPSessionError(.timedOut, "it had no turn"))
        if settings.deadline != nil, end.mayPass {
            let isLate = isLate(now)
            let what = isLate ? "timed out after \(settings.timeoutText)" : "no time for another try in \(settings.timeoutText)"
            // The state that it was in says more than that its time is over.
            if isLate, let last { end = last }
            let isPlain = isLate && last == nil && trouble != nil && statuses[index].stage == .requested
            if isPlain { end.cause = Cause(.http, .timeout, detail: what) }
            end.words = isPlain ? what : "\(what): \(end.words)"
        }
        if end.kind == .lasting, [.invalidResponse, .unexpectedBody].contains(end.cause.code) { work.settled(index) }
        tell(.failed(end), index, now)
        var code = ExitCode.doesNotHold
        if case .file(let own) = end.kind { code = own }
        codes.append(code)
        let isFile = code != ExitCode.doesNotHold
        report.say(
            Failure(
                code, "\(isFile ? work.command : ShortURL.text(items[index].url.withoutSecrets)): \(end.words)\(hint(index, end))"
            ),
            statuses, at: now)
    }

    /// What becomes of what has come.
    private func hint(_ index: Int, _ end: Trouble) -> String {
        guard end.kind != .lasting, statuses[index].bytes > 0, work.isKept(index) else { return "" }
        // How much of what was sent has arrived its server knows.
        let what = work.direction == .upload ? "what the server has is" : "\(ByteCount.text(statuses[index].bytes)) are"
        return "; \(what) kept, and the same command continues"
    }

    func tell(_ event: TransferEvent, _ index: Int, _ now: Moment) {
        let isOther = statuses[index].see(event, at: now)
        // How long it waits belongs to the state that has just begun.
        sample(index, now)
        report.tell(event, statuses, index, isOther: isOther, at: now)
    }

    // MARK: The end

    private func finish(_ session: HTTPSessionManager) -> Ending {
        let now = Clock.now
        let limit = now.monotonicNanoseconds + Self.endLimit
        if case .signal? = ending { sayWhatIsKept(now) }
        work.close()
        report.refresh(statuses, at: now)
        report.erase(statuses, at: now)
        session.invalidateAndCancel()
        while Clock.nanoseconds < limit || ending == nil {
            _ = inbox.takeAll()
            report.refresh(statuses, at: Clock.now)
            let isEnded = inbox.isOver || Clock.nanoseconds >= limit
            // A reader that is gone takes no more records.
            if report.isDrained || isOutputGone, isEnded { break }
            wait(until: isEnded ? nil : limit)
        }
        if let ending { return ending }
        // One URL has its own code; of several, whatever they failed of.
        let code = codes.isEmpty ? ExitCode.holds : items.count == 1 ? codes[0] : ExitCode.doesNotHold
        return .finished(code: code)
    }

    private var isOutputGone: Bool {
        switch ending {
        case .readerGone?, .outputFailed?: true
        case .finished?, .signal?, nil: false
        }
    }

    /// One line, whatever was under way.
    private func sayWhatIsKept(_ now: Moment) {
        let open = statuses.indices.filter { statuses[$0].phase != .finished }
        let kept = open.filter { work.isKept($0) }
        let words: String
        if kept.isEmpty {
            words = "stopped: nothing of it can be continued"
        } else if work.direction == .upload {
            words = "stopped: what the server has is kept; run the same command again to continue"
        } else if kept.count == 1, let only = kept.first {
            let status = statuses[only]
            let share = status.percent.map { "\($0) % (\(ByteCount.text(status.bytes)))" } ?? ByteCount.text(status.bytes)
            words = "stopped: \(share) of \(status.name) is kept; run the same command again to continue"
        } else {
            words = "stopped: what has come of \(kept.count) files is kept; run the same command again to continue"
        }
        report.say(Failure(ExitCode.doesNotHold, "\(work.command): \(words)"), statuses, at: now)
    }
}
