internal import ByteComparison
internal import EventLoop
internal import FoundationEssentials
internal import Pacing
internal import Reachability

/// The loop of a session: it waits, reads the clock, takes commands and libcurl's results, asks the machines, and performs their effects. All
/// of it runs on the session's thread.
///
/// The loop never runs user code. It waits for a disk in two cases: the file of Strict-Transport-Security is read when the session begins and
/// written when it ends, and the cookies are written when it ends. libcurl waits for GSSAPI if that requests a ticket (Negotiate).
final class SessionLoop {
    let engine: any TransferEngine
    /// The transport, which provides the clock and has made the engine.
    let transport: any SessionTransport
    /// The network interface of all connections; `nil` for the kernel's choice.
    let interface: String?
    let settings: SessionSettings
    let outbox: SessionOutbox
    // Unchecked, as below: every mutation of these returns before a call that could reenter the loop. The checks of exclusive access at run
    // time took 4,600 instructions per request.
    @exclusivity(unchecked) var queue: TaskQueue
    private let mailbox: Mailbox<SessionCommand>
    // Unchecked: as above.
    @exclusivity(unchecked) private var runs: [UInt64: TaskDriver] = [:]
    /// Objects that this turn no longer needs. They may reference objects of the user, so they are released on the delivery queue.
    private var released: [any Sendable] = []
    /// Whether ``released`` contains the session's core.
    private var hasReleasedCore = false
    // Unchecked: as above.
    @exclusivity(unchecked) var recentResponses: RecentResponses
    /// Hosts whose http URLs HSTS has turned into https.
    private var upgradedHosts: Set<ExactString> = []
    /// The retry budgets of origins at which attempts have failed. Other origins need no budget yet.
    private var retryBudgets: [Origin: RetryBudget] = [:]
    /// The time before which no machine has a deadline.
    private var nextDeadline = Int64.max
    private(set) var now: Int64
    /// The random numbers that spread retries. Unchecked: as above.
    @exclusivity(unchecked) private var random: SplitMix64
    let serverWatches: ServerWatches?
    /// The reports to the path monitor; `nil` without one, if the transport does not use its network, and if the
    /// session is bound to an interface.
    let transferReports: TransferReports?
    private let pathToken: CallbackToken?
    let notices = KernelNotices()
    var routeTracker: RouteTracker
    /// The time of the last change of the network that may have broken connections.
    var routesChangedAt: Int64?
    /// The time at which the kernel's routes were last read after a change, and the connections that follow them since.
    var routesSeenAt: Int64?
    var followers: Set<ConnectionEnds> = []
    /// The time at which connections are judged again.
    var nextJudgment: Int64?
    /// The suspended transfers that have their places in the queue, and those that wait for the program, and the times since which they are so.
    var suspendedTransfers: [UInt64: Int64] = [:]
    private var isInvalidating = false
    private var hasEnded = false

    init(settings: SessionSettings, mailbox: Mailbox<SessionCommand>, outbox: SessionOutbox)
        throws(HTTPSessionError)
    {
        var network = settings.network
        // Resolved here, because this thread is in the session's network namespace.
        network.interface = network.interface.map(InterfaceNames.firstName)
        interface = network.interface
        transport = settings.transport
        now = transport.now()
        random = SplitMix64(seed: transport.seed)
        engine = try transport.makeEngine(network, path: settings.path)
        self.settings = settings
        self.mailbox = mailbox
        self.outbox = outbox
        queue = TaskQueue(limits: settings.queueLimits)
        recentResponses = RecentResponses(duration: transport.handoverDelay)
        routeTracker = RouteTracker(isBound: settings.network.interface != nil)
        serverWatches = settings.path.map { path in
            ServerWatches(path, settings: settings.probes, isProbing: settings.transport.probesServers) {
                mailbox.post(.serverChanged($0, watch: $1, $2))
            }
        }
        // Connections that are bound to an interface show nothing about the kernel's choice.
        let isEvidence = settings.transport.probesServers && network.interface == nil
        transferReports = isEvidence ? settings.path.map { settings.transferReports(to: $0) } : nil
        // A published path is in the mailbox when its publisher returns, so scripted time does not pass before the session has handled it. The
        // routes come first, because followers do: tasks that proceed with the path must not use connections of the former network.
        settings.path?.onKernelChange { [weak notices] path in
            guard let notices else { return false }
            notices.put(path) { mailbox.post(.routesChanged) }
            return true
        }
        pathToken = settings.path?.onPublish { mailbox.post(.pathChanged($0.path)) }
        mailbox.attach(engine.waker)
    }

    func run() {
        while !hasEnded { turn() }
        for command in mailbox.close() {
            switch command {
            case .add(let task, let job): refuse(task, job)
            case .list(let reader): reader([])
            case .answered(_, _, let answer): release(answer)
            case .resume, .suspend, .cancel, .sourceReady, .sinkReady, .abortRequest, .delivered, .partialFileOpened,
                .digestVerified, .uploadDigestVerified, .invalidate, .pathChanged, .routesChanged, .serverChanged, .end:
                // Their tasks have ended, and the session uses no network any more.
                break
            }
        }
        // The files are written before the end of the session is announced.
        settings.network.cookieStore?.settle()
        release(engine.close())
        outbox.flush(releasing: &released, now: nil)
        outbox.announceInvalidation()
    }

    /// Fails a task that was added after the session's invalidation.
    private func refuse(_ task: TransferTask, _ job: TaskJob) {
        let error = SessionCore.invalidated(task)
        task.chunkBuffer?.finish(error)
        outbox.complete(task, .failure(error))
        release(task)
        release(job)
    }

    private func turn() {
        now = transport.now()
        for command in mailbox.takeAll(staysAwake: true) { handle(command) }
        engine.advance()
        if nextDeadline <= now { expire() }
        repeat { while admit() { engine.advance() } } while yieldPlaces()
        // After its last task, the session may not be used for long, and the program may end.
        let handover = outbox.flush(releasing: &released, now: runs.isEmpty ? nil : now)
        hasReleasedCore = false
        if runs.isEmpty { recentResponses.removeAll() } else { recentResponses.expire(now: now) }
        if isInvalidating, runs.isEmpty { hasEnded = true }
        guard !hasEnded else { return }
        let deadline = min(
            nextDeadline, queue.deadline ?? .max, placeDeadline ?? .max, handover ?? .max, recentResponses.deadline ?? .max)
        // Results of this wait are reported with the time at its end, not at its beginning.
        engine.wait(until: mailbox.mayWait() ? deadline : now, idleness: idleness, hasCommands: { !mailbox.isEmpty }) {
            now = transport.now()
        }
    }

    /// The waits of the session, for an engine that may let time pass.
    private func idleness() -> SessionIdleness {
        var idleness = SessionIdleness()
        idleness.deadline = min(queue.deadline ?? .max, placeDeadline ?? .max)
        for run in runs.values {
            run.addWaits(to: &idleness)
            // Without a transfer, there is nothing to judge.
            if run.transfer != nil, let nextJudgment { idleness.deadline = min(idleness.deadline, nextJudgment) }
        }
        // The engine may move the time to this deadline.
        scheduleWake(at: idleness.deadline)
        return idleness
    }

    private func handle(_ command: SessionCommand) {
        switch command {
        case .add(let task, let job):
            guard !isInvalidating else { return refuse(task, job) }
            let run = TaskDriver(task, job, loop: self)
            runs[task.id] = run
            run.send(.resume)
        case .resume(let id): runs[id]?.send(.resume)
        case .suspend(let id): runs[id]?.send(.suspend)
        case .cancel(let id): runs[id]?.send(.cancel)
        case .sourceReady(let id): runs[id]?.sourceReady()
        case .sinkReady(let id): runs[id]?.sinkReady()
        case .abortRequest(let id): runs[id]?.abortRequest()
        case .answered(let id, let question, let answer):
            if let run = runs[id] { run.answered(question, answer) } else { release(answer) }
        case .delivered(let id, let body): runs[id]?.answered(body)
        case .partialFileOpened(let id, let files): runs[id]?.answered(.partialFileOpened(files))
        case .digestVerified(let id, let isRight): runs[id]?.answered(.digestVerified(isRight))
        case .uploadDigestVerified(let id, let isRight): runs[id]?.answered(.uploadDigestVerified(isRight))
        case .invalidate(let cancelsTasks):
            isInvalidating = true
            if cancelsTasks { for run in allRuns { run.send(.cancel) } }
        case .list(let reader): reader(allRuns.map(\.task))
        case .pathChanged(let path): pathChanged(path)
        case .routesChanged: routesChanged()
        case .serverChanged(let origin, let watch, let update): serverChanged(origin, watch: watch, update)
        case .end:
            isInvalidating = true
            for run in allRuns { run.send(.cancel) }
        }
    }

    /// Starts the tasks that may start. - Returns: whether any has started.
    private func admit() -> Bool {
        var hasStarted = false
        while let id = queue.admit(now: now) {
            runs[id]?.send(.admitted)
            hasStarted = true
        }
        return hasStarted
    }

    /// Handles deadlines that have passed. Most tasks end long before their deadlines, so deadlines are never removed. When the earliest one has
    /// passed, all tasks are checked, and the earliest remaining deadline is the next.
    private func expire() {
        nextDeadline = .max
        if let nextJudgment, nextJudgment <= now { judgeConnections() } else { scheduleWake(at: nextJudgment) }
        let due = runs.values.filter { run in run.deadline.map { $0 <= now } ?? false }
        for run in due.sorted(by: { $0.task.id < $1.task.id }) {
            // The end of an earlier one may have changed it.
            if let deadline = run.deadline, deadline <= now { run.timePassed() }
        }
        for run in runs.values { scheduleWake(at: run.deadline) }
    }

    func scheduleWake(at deadline: Int64?) {
        if let deadline, deadline < nextDeadline { nextDeadline = deadline }
    }

    /// Records that HSTS turns the host's http URLs into https.
    func markUpgraded(_ host: String) {
        // Few hosts are requested by http and enforce https. If there are more, libcurl upgrades them again, and they are recorded again.
        if upgradedHosts.count >= 1_000 { upgradedHosts = [] }
        upgradedHosts.insert(ExactString(host))
    }

    func isUpgraded(_ host: String) -> Bool { !upgradedHosts.isEmpty && upgradedHosts.contains(ExactString(host)) }

    /// Begins the retry budget of an origin at which an attempt has failed.
    func beginRetryBudget(for origin: Origin) {
        guard retryBudgets[origin] == nil else { return }
        if retryBudgets.count >= 1_000 { retryBudgets = retryBudgets.filter { $0.value.wait(now: now) > 0 } }
        retryBudgets[origin] = RetryBudget(now: now)
    }

    /// The lookup of a host's name has timed out. Only one task at a time resolves a name; the others that wait for it have waited as long.
    /// Without this, the last of ten tasks would wait for ten timeouts.
    func nameIsUnanswered(_ host: TaskQueue.Host) {
        for id in queue.waiting(for: host) { runs[id]?.send(.sharedLookupStalled) }
    }

    func recordRequest(to origin: Origin) {
        if !retryBudgets.isEmpty { retryBudgets[origin]?.requested() }
    }

    func recordSuccess(of origin: Origin) { retryBudgets[origin]?.succeeded() }

    /// The time in nanoseconds that a retry has to wait before it asks again; `nil` if it may begin, and is counted. The wait is random, so that not
    /// all retries come at once. It ends on a full step of the clock, so that retries at about the same time share a turn.
    func retryWait(for origin: Origin) -> Int64? {
        guard retryBudgets[origin]?.take(now: now) == false, let wait = retryBudgets[origin]?.wait(now: now) else { return nil }
        let until = now + wait + Int64.random(in: 0...10_000_000_000, using: &random)
        return RetryStep.stepped(until: until) - now
    }

    /// Returns a random number from 0 to below `limit`, or 0.
    func draw(below limit: Int64) -> Int64 { .random(in: 0..<max(1, limit), using: &random) }

    /// Returns the seed of a new task's random numbers.
    func makeTaskSeed() -> UInt64 { random.next() }

    /// The tasks under way in the order in which they were made: a scripted session performs the same steps in every run.
    var allRuns: [TaskDriver] { runs.values.sorted { $0.task.id < $1.task.id } }
    func run(_ id: UInt64) -> TaskDriver? { runs[id] }
    /// Removes a task that has ended and is in the outbox. The user's objects of its run are released on the delivery queue.
    func forget(_ id: UInt64) {
        guard let run = runs.removeValue(forKey: id) else { return }
        guard !run.mayHaveUserObjects else { return release(run.userObjects) }
        // The task may be released here, but not the last reference to the core: monitors and a log handler of the user would be released with it.
        guard !hasReleasedCore else { return }
        hasReleasedCore = true
        release(run.task.core)
    }
    /// Releases an object on the delivery queue, at the end of the turn.
    func release(_ object: any Sendable) { released.append(object) }

    func post(_ command: SessionCommand) { mailbox.post(command) }
}
