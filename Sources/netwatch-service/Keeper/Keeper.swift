import Console
import EventLoop
import Pacing
import Reachability
import Records

/// The thread of the service between the monitor and its readers. In each turn it takes what the monitor has reported, decides with a
/// ``KeeperMachine``, and hands the results to the history and to the readers.
final class Keeper: Sendable {
    /// The receivers of the results. The keeper's thread calls them, so they must not block.
    struct Outputs: Sendable {
        /// Receives each record, without a number. The first one is the settled path.
        var sink: @Sendable (Record) -> Void
        /// The records for streams, which the encoder writes.
        var events: EventFeed
        var encoder: RecordEncoder
        /// The boards for pages and documents.
        var boards: BoardSource
        /// The jobs that report in. The keeper sets them, and keeps what is known of them.
        var heartbeats = HeartbeatDesk()
        /// Receives the line of the state for the service manager, if it has changed.
        var notify: @Sendable (ServiceManager.Notification) -> Void
    }

    /// The parts that a keeper connects. The monitor reports to the intake.
    struct Parts: Sendable {
        var machine: KeeperMachine
        var session: MonitorSession
        var intake: Intake
        var store: HistoryStore
        var watchdogInterval: Duration?
        var instance: String
        var timeZone: String
        var offset: TimeZoneOffset
        var started: Moment
        /// The time in which the service did not run; `nil` for a new history.
        var gap: Range<Int64>?
        /// The settings of the targets' probes, for the comparison with another configuration.
        var loaded: KeeperLoop.Loaded
    }

    private let mailbox = Mailbox<KeeperLoop.Message>()
    private let thread: LoopThread

    init(_ parts: Parts, _ outputs: Outputs) throws(Failure) {
        let mailbox = mailbox
        do {
            thread = try LoopThread(name: "netwatch-keeper", namespace: nil) { () throws(LoopError) in
                let loop = try KeeperLoop(parts, outputs, mailbox)
                return { loop.run() }
            }
        } catch { throw Failure(ExitCode.system, "a thread cannot be started: \(error)") }
    }

    /// Reports a change of the recording.
    func recordingChanged(_ status: RecordingStatus) { mailbox.post(.recording(status)) }

    /// Applies another configuration. `done` receives the result. The status for the service manager follows it.
    func reload(_ reload: KeeperLoop.Reload, done: @escaping @Sendable (ReloadOutcome) -> Void) {
        mailbox.post(.reload(reload, done))
    }

    /// Shows that a configuration could not be loaded. The status for the service manager follows `done`.
    func reloadFailed(_ reason: String, done: @escaping @Sendable () -> Void) { mailbox.post(.reloadFailed(reason, done)) }

    /// Keeps what is known of jobs.
    func keep(_ memories: [HeartbeatMemories.Job: HeartbeatMemory]) { mailbox.post(.heartbeats(memories)) }

    /// Ends the thread after a last turn. The monitor must be stopped.
    func stop() {
        mailbox.post(.stop)
        thread.join()
    }
}

/// The loop of the keeper's thread.
final class KeeperLoop {
    enum Message: Sendable {
        /// The history has a state of an incident.
        case committed(String, Int)
        case recording(RecordingStatus)
        /// What is known of jobs that have reported, or are late.
        case heartbeats([HeartbeatMemories.Job: HeartbeatMemory])
        /// The monitor's loop has finished a turn.
        case monitorTurn
        case reload(Reload, @Sendable (ReloadOutcome) -> Void)
        /// The history has numbers for the targets of the first of ``reloads``.
        case registered(Result<[Int], StoreError>)
        case reloadFailed(String, @Sendable () -> Void)
        /// The end of the history was withdrawn, and it continues with these ledgers.
        case withdrawn([Int: TargetLedger])
        case stop
    }

    /// A configuration with the settings of its targets' probes.
    struct Loaded: Sendable {
        var configuration: Configuration
        var settings: [ProbeSettings]
    }

    /// Another configuration.
    struct Reload: Sendable {
        var loaded: Loaded
        /// A number that other contents of its files change.
        var fingerprint = 0
        var request = ReloadGuard.Request.signal
    }

    /// The time between two turns without a change, in nanoseconds.
    private static let turnInterval: Int64 = 250_000_000
    /// The minimum time between two boards, as a multiple of the time that the last one took.
    private static let boardPause: Int64 = 10
    /// The longest such pause, in nanoseconds: a board of up to 10 s ago is a sign of health (``Board/isFresh(at:)``).
    private static let longestBoardPause: Int64 = 3_000_000_000
    /// The time after which a board, and a sign of life in the history, follow the last one without a change, in nanoseconds.
    private static let quietInterval: Int64 = 1_000_000_000
    /// The time between two writes of what is known of jobs, in nanoseconds. It is also written at the end.
    private static let heartbeatInterval: Int64 = 1_000_000_000
    /// The time between two turns from which the process counts as stopped, as by SIGSTOP, in nanoseconds.
    private static let lateInterval: Int64 = 10_000_000_000

    private let outputs: Keeper.Outputs
    private let mailbox: Mailbox<Message>
    private var parts: Keeper.Parts
    private var loop: EventLoop
    private var batch = Intake.Batch()
    private var watchdog: Watchdog?
    private var recording: RecordingStatus
    private var reloadProblem: String?
    /// The reloads that were asked for, in their order. The first one waits for the history.
    private var reloads: [(reload: Reload, done: @Sendable (ReloadOutcome) -> Void)] = []
    private var reloadGuard = ReloadGuard()
    /// The configuration with which the service started, without targets, and the keys that have had other values since.
    private let startConfiguration: Configuration
    private var restartKeys: [String] = []
    private var isChanged = true
    private var isStopped = false
    private var lastBoard: Int64 = 0
    private var boardTime: Int64 = 0
    private var lastTurnRecorded: Int64 = 0
    private var lastTurn: Int64
    /// The status while the wall clock shows recorded time again.
    private var clockStatus: RecordingStatus?
    /// The status that the service manager shows; `nil` if it shows another one, such as the result of a reload.
    private var lastStatus: String?
    private var isReady = false
    private var hasShownPath = false
    private var asksMonitor = false
    /// The number of the last checkpoint's interval.
    private var checkpoints: Int64
    /// The time from which what is known of jobs may be kept again.
    private var heartbeatsDue: Int64 = 0
    private var hasNewsOfJobs = false
    /// Records that wait for the first one, the settled path.
    private var early: [Record]? = []

    init(_ parts: Keeper.Parts, _ outputs: Keeper.Outputs, _ mailbox: Mailbox<Message>) throws(LoopError) {
        (self.parts, self.outputs, self.mailbox) = (parts, outputs, mailbox)
        loop = try EventLoop()
        var configuration = parts.loaded.configuration
        configuration.targets = []
        startConfiguration = configuration
        recording = RecordingStatus(reason: nil, since: parts.started.wallClockNanoseconds / 1_000_000)
        checkpoints = Self.checkpointInterval(parts, at: parts.started)
        lastTurn = parts.started.monotonicNanoseconds
        watchdog = parts.watchdogInterval.map { Watchdog(interval: $0, now: parts.started.monotonicNanoseconds) }
        outputs.heartbeats.deliver { [session = parts.session] in session.report($0, of: $1) }
        mailbox.attach(loop.waker)
        parts.intake.attach(loop.waker)
        if let gap = parts.gap {
            // The stream has the same end as the history.
            let event = MonitorEvent.gap(from: Self.moment(gap.lowerBound), to: parts.started.moved(to: gap.upperBound))
            early = [Record(event: event, gapReason: .stopped)]
        }
        setJobs()
    }

    /// Runs until the keeper is stopped.
    func run() {
        while true {
            let now = Moment.now
            var effects: [KeeperMachine.Effect] = []
            for message in mailbox.takeAll() { effects += receive(message, at: now) }
            parts.intake.take(&batch)
            if batch.dropped > 0 { StandardError.note("\(batch.dropped) results were dropped: the service does not keep up") }
            effects += parts.machine.turn(batch, at: now, isLate: isLate(at: now))
            lastTurn = now.monotonicNanoseconds
            checkClock(at: now)
            if !batch.events.isEmpty { isChanged = true }
            // Readers who receive a record and then ask for the board find the change there.
            publish(at: now)
            perform(effects, at: now)
            checkpoint(at: now)
            keepHeartbeats(at: now)
            feedWatchdog(at: now)
            if isStopped {
                for (_, done) in reloads { done(.refused(Failure(ExitCode.unavailable, "the service ends"))) }
                return
            }
            let next = now.monotonicNanoseconds + Self.turnInterval
            _ = loop.wait(until: min(next, parts.machine.deadline ?? next))
        }
    }

    /// Whether the process did not run since the last turn: no result is from that time.
    private func isLate(at now: Moment) -> Bool {
        guard now.monotonicNanoseconds - lastTurn >= Self.lateInterval else { return false }
        return batch.results.allSatisfy { now.milliseconds - $0.time < 2_000 }
    }

    /// Reports that nothing is recorded because the wall clock shows recorded time again, and the end of that time.
    private func checkClock(at now: Moment) {
        if clockStatus == nil {
            guard let end = parts.machine.repeatedUntil else { return }
            let reason = "the clock shows a time before the end of the history, \(Timestamp.text(milliseconds: end))"
            clockStatus = RecordingStatus(reason: reason, since: now.milliseconds)
            StandardError.note("nothing is recorded: \(reason)")
        } else {
            guard parts.machine.lag == 0 else { return }
            clockStatus = nil
            if recording.isRecording { StandardError.note("the history is recorded again") }
        }
        isChanged = true
    }

    /// The status of the recording for readers.
    private func recording(at now: Moment) -> RecordingStatus {
        var status = recording.isRecording ? clockStatus ?? recording : recording
        status.since = min(status.since, now.milliseconds)
        return status
    }

    private func receive(_ message: Message, at now: Moment) -> [KeeperMachine.Effect] {
        isChanged = true
        switch message {
        case .committed(let id, let number): return parts.machine.committed(id, number)
        case .recording(let status): recording = status
        case .monitorTurn:
            asksMonitor = false
            watchdog?.finished(.monitor)
        case .reload(let reload, let done):
            reloads.append((reload, done))
            if reloads.count == 1 { beginReload(at: now) }
        case .registered(let numbers): finishReload(numbers, at: now)
        case .reloadFailed(let reason, let done):
            reloadProblem = reason
            done()
            lastStatus = nil
        case .heartbeats(let memories): parts.store.record(memories)
        case .withdrawn(let ledgers): parts.machine.withdrawn(ledgers)
        case .stop: isStopped = true
        }
        return []
    }

    // MARK: Results

    private func perform(_ effects: [KeeperMachine.Effect], at now: Moment) {
        var records: [Record] = []
        for effect in effects {
            switch effect {
            case .record(let turn): record(turn, at: now)
            case .recordIncident(let incident, let members, let number):
                parts.store.record(incident, of: members) { [mailbox] in mailbox.post(.committed(incident.id, number)) }
            case .recordPath(let update):
                let time = update.moment.milliseconds
                parts.store.record(pathEvent: Self.text(of: update), at: time)
            case .withdraw(let time):
                let start = Timestamp.text(milliseconds: time)
                StandardError.note("the clock was set back: the history after \(start) is removed, except incidents")
                // A failure is the recording's, which the history reports itself.
                parts.store.withdraw(after: time) { [mailbox] result in
                    if case .success(let ledgers) = result { mailbox.post(.withdrawn(ledgers)) }
                }
            case .publish(let event, let isRecorded):
                var record = Record(event: event, isRecorded: isRecorded, identity: parts.machine.identity(of: event))
                if case .incident(let incident) = event { record.targetNames = parts.machine.names.names(of: incident) }
                records.append(record)
            case .ended: records.append(Record(event: .ended(now)))
            }
        }
        guard !records.isEmpty else { return }
        if var waiting = early {
            // The path settles first. A stream begins with it.
            waiting += records
            guard let first = waiting.firstIndex(where: { $0.kind == .hello || $0.isEnd }) else {
                early = waiting
                return
            }
            early = nil
            records = [waiting.remove(at: first)] + waiting
        }
        for record in records {
            outputs.sink(record)
            outputs.events.append(record, with: outputs.encoder, key: record.key)
        }
    }

    /// Returns the number of the interval between two checkpoints that contains a moment. Whole hours are moved just after their end.
    private static func checkpointInterval(_ parts: Keeper.Parts, at moment: Moment) -> Int64 {
        let interval = max(1, parts.loaded.configuration.flushEvery.saturatingNanoseconds)
        return moment.wallClockNanoseconds.floorDivided(by: interval).quotient
    }

    /// Moves the results to the database from time to time.
    private func checkpoint(at now: Moment) {
        let number = Self.checkpointInterval(parts, at: now)
        guard number != checkpoints else { return }
        checkpoints = number
        parts.store.checkpoint()
    }

    /// Asks the monitor for what is known of jobs after reports and changes of status.
    private func keepHeartbeats(at now: Moment) {
        if outputs.heartbeats.takeChange() || batch.events.contains(where: \.event.isOfJob) { hasNewsOfJobs = true }
        guard hasNewsOfJobs, now.monotonicNanoseconds >= heartbeatsDue else { return }
        hasNewsOfJobs = false
        heartbeatsDue = now.monotonicNanoseconds + Self.heartbeatInterval
        parts.session.withHeartbeats { [mailbox] in mailbox.post(.heartbeats($0)) }
    }

    /// Tells the web server which jobs may report.
    private func setJobs() {
        var jobs: [String: [HeartbeatDesk.Job]] = [:]
        for (target, settings) in zip(parts.machine.targets, parts.loaded.settings) where !settings.heartbeat.tokenDigest.isEmpty
        {
            let job = HeartbeatDesk.Job(target: target.monitor, digest: settings.heartbeat.tokenDigest)
            jobs[target.configured.endpoint.hostText.lowercased(), default: []].append(job)
        }
        outputs.heartbeats.set(jobs)
    }

    /// Records a turn with events, and a sign of life once a second.
    private func record(_ turn: HistoryTurn, at now: Moment) {
        guard !turn.events.isEmpty || now.monotonicNanoseconds - lastTurnRecorded >= Self.quietInterval || isStopped else {
            return
        }
        lastTurnRecorded = now.monotonicNanoseconds
        parts.store.record(turn, lag: parts.machine.lag)
    }

    /// The time between the last board and the next one, in nanoseconds.
    private var boardGap: Int64 {
        guard isChanged else { return Self.quietInterval }
        // Readers wait for the first board with a path.
        if parts.machine.path != nil, !hasShownPath { return 0 }
        return min(boardTime.multipliedSaturated(by: Self.boardPause), Self.longestBoardPause)
    }

    private func publish(at now: Moment) {
        guard now.monotonicNanoseconds - lastBoard >= boardGap || isStopped else { return }
        (lastBoard, isChanged) = (now.monotonicNanoseconds, false)
        hasShownPath = parts.machine.path != nil
        defer { boardTime = max(0, MonotonicClock.now() - now.monotonicNanoseconds) }
        var board = Board(
            moment: now, instance: parts.instance, timeZone: parts.timeZone, started: parts.started,
            sequence: outputs.events.last,
            path: parts.machine.path, groups: parts.loaded.configuration.groups, targets: parts.machine.targets.map(\.onBoard),
            canary: parts.machine.canary, incidents: parts.machine.incidents.shown, recording: recording(at: now),
            cells: parts.machine.frame.cells, reloadProblem: reloadProblem, restartKeys: restartKeys)
        board.eventID = outputs.events.firstID + board.sequence
        board.names = parts.machine.names
        board.timeZoneOffset = Int(parts.offset(now.wallClockNanoseconds / 1_000_000) / 1_000)
        let status = board.statusLine
        if status != lastStatus, early == nil {
            outputs.notify(isReady ? .status(status) : .ready(status: status))
            (lastStatus, isReady) = (status, true)
        }
        outputs.boards.publish(board)
    }

    private func feedWatchdog(at now: Moment) {
        guard watchdog != nil else { return }
        watchdog?.finished(.keeper)
        if watchdog?.takeNotification(at: now.monotonicNanoseconds) == true { outputs.notify(.watchdog) }
        guard !asksMonitor else { return }
        asksMonitor = true
        parts.session.withState { [mailbox] _ in mailbox.post(.monitorTurn) }
    }

    // MARK: Configurations

    /// Begins the first reload: it is refused, or its targets receive numbers in the history.
    private func beginReload(at now: Moment) {
        guard let reload = reloads.first?.reload else { return }
        let (present, next) = (parts.loaded.configuration, reload.loaded.configuration)
        let counts = difference(to: reload.loaded).counts(from: present, to: next)
        let refusal = reloadGuard.refusal(
            counts, of: present.targets.count, fingerprint: reload.fingerprint, reload.request, at: now.monotonicNanoseconds)
        if let refusal {
            reloadProblem = refusal.sentence
            return endReload(.unconfirmed(refusal), at: now)
        }
        parts.store.register(next.targets.map(HistoryStore.TargetNames.init)) { [mailbox] in mailbox.post(.registered($0)) }
    }

    private func finishReload(_ numbers: Result<[Int], StoreError>, at now: Moment) {
        guard let reload = reloads.first?.reload else { return }
        switch numbers {
        case .success(let numbers):
            let (present, difference) = (parts.loaded.configuration, difference(to: reload.loaded))
            change(to: reload.loaded, difference, numbers, at: now)
            let counts = difference.counts(from: present, to: reload.loaded.configuration)
            endReload(.loaded(counts, restartKeys: restartKeys), at: now)
        case .failure(let error):
            reloadProblem = error.reason
            endReload(.refused(Failure(keeping: error.reason, ExitCode.inputOutput)), at: now)
        }
    }

    private func endReload(_ outcome: ReloadOutcome, at now: Moment) {
        reloads.removeFirst().done(outcome)
        lastStatus = nil
        beginReload(at: now)
    }

    private func difference(to next: Loaded) -> ConfigurationDifference {
        let present = parts.loaded
        return ConfigurationDifference(
            from: (present.configuration, present.settings), to: (next.configuration, next.settings))
    }

    /// Applies another configuration.
    private func change(to next: Loaded, _ difference: ConfigurationDifference, _ numbers: [Int], at now: Moment) {
        let former = (difference.removed + difference.changed.map(\.former)).map { parts.machine.targets[$0].monitor }
        let replacements = difference.changed.map { _ in parts.session.newTarget() }
        for place in difference.removed { parts.session.remove(parts.machine.targets[place].monitor) }
        for (pair, monitor) in zip(difference.changed, replacements) {
            parts.session.replace(
                parts.machine.targets[pair.former].monitor, by: monitor, next.configuration.targets[pair.next].endpoint,
                settings: next.settings[pair.next])
        }
        // After the monitor's next turn, no report of these targets follows.
        if !former.isEmpty { parts.session.withState { [intake = parts.intake] _ in former.forEach(intake.remove) } }
        let added = difference.added.map { place in
            KeeperMachine.NewTarget(
                configured: next.configuration.targets[place], monitor: parts.session.newTarget(), number: numbers[place],
                bars: TargetBars(parts.machine.frame))
        }
        parts.machine.change(to: next.configuration, difference, additions: added, replacements: replacements, at: now)
        for (place, target) in zip(difference.added, added) {
            parts.session.add(target.monitor, target.configured.endpoint, settings: next.settings[place])
        }
        parts.store.set(next.configuration.retention)
        parts.loaded = next
        setJobs()
        reloadProblem = nil
        restartKeys = startConfiguration.restartKeys(for: next.configuration)
    }

    /// Returns the keys of a `path` record as JSON.
    private static func text(of update: PathUpdate) -> String {
        var writer = JSONWriter()
        writer.object { RecordEncoder.write(keysOf: update, to: &$0) }
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    private static func moment(_ milliseconds: Int64) -> Moment {
        Moment(monotonicNanoseconds: 0, wallClockNanoseconds: milliseconds &* 1_000_000)
    }
}

extension Moment {
    /// Returns the moment near this one at which the wall clock showed a time in milliseconds since 1970.
    fileprivate func moved(to milliseconds: Int64) -> Moment {
        let wall = milliseconds &* 1_000_000
        return Moment(
            monotonicNanoseconds: max(0, monotonicNanoseconds &+ (wall &- wallClockNanoseconds)), wallClockNanoseconds: wall,
            suspendedNanoseconds: suspendedNanoseconds)
    }
}

extension MonitorEvent {
    fileprivate var isOfJob: Bool { if case .server(_, let update) = self { update.job != nil } else { false } }
}

extension Record {
    fileprivate var isEnd: Bool { if case .ended = event { true } else { false } }

    /// The key of the record's target; `nil` for records of no target.
    fileprivate var key: String? {
        guard case .server(_, let update) = event else { return nil }
        return identity?.id ?? update.endpoint.text
    }
}

extension Board {
    /// The state of the service in one line, for `systemctl status`, as in `3 of 5 targets up, uplink eth0`.
    fileprivate var statusLine: String {
        let up = targets.count { $0.update.statusName == .up || $0.update.statusName == .degraded }
        let count = targets.isEmpty ? "no targets" : "\(up) of \(targets.count) targets up"
        guard let present = path?.path else { return "\(count), path not yet known" }
        let uplink = present.interface.map { "uplink \($0.name)" } ?? "no uplink"
        let problem = recording.reason.map { ", nothing is recorded: \($0)" } ?? ""
        return "\(count), \(uplink)\(problem)"
    }
}
