internal import EventLoop
internal import FoundationEssentials
internal import Pacing
internal import Reachability

/// The session's thread: it waits, reads the clock, hears commands and libcurl, asks the machines, and acts. All of it runs on that
/// one thread. Nothing here waits for a user's code, and for a disk only the files of Strict-Transport-Security, read when it begins and
/// written when it ends, and the cookies' when it ends. libcurl waits for GSSAPI where that asks for a ticket (Negotiate).
final class SessionLoop {
    let engine: any TransferEngine
    /// The clock, beside the engine.
    let transport: any SessionTransport
    /// The network interface that everything goes over; `nil`: the routes decide.
    let interface: String?
    let settings: SessionSettings
    let outbox: SessionOutbox
    /// The session's view of its cookie store; `nil` if the session keeps no cookies.
    let cookieShare: CookieShare?
    // Unchecked, as below: every mutation of these returns before anything is called that could come back to the loop; the checks of
    // exclusive access at run time took 4,600 instructions a request.
    @exclusivity(unchecked) var queue: TransferQueue
    private let mailbox: Mailbox<SessionCommand>
    // Unchecked: as above.
    @exclusivity(unchecked) private var runs: [UInt64: TransferDriver] = [:]
    /// What the turn has done with, and the user's objects may be part of: the delivery queue lets go of it.
    private var spent: [any Sendable] = []
    private var raisedHosts: Set<String> = []
    /// Of hosts that have been in trouble. Where there is none, there is nothing to count.
    private var retryBudgets: [Origin: RetryBudget] = [:]
    /// No machine is due before this.
    private var nextDeadline = Int64.max
    private(set) var now: Int64
    /// Of the random numbers that tasks draw.
    let seed = UInt64.random(in: 0 ... .max)
    let gate: ServerWatches?
    private let pathToken: CallbackToken?
    let notices = KernelNotices()
    var routeTracker: RouteTracker
    /// When connections may have died of a change of the network.
    var waysChangedAt: Int64?
    /// When the kernel's routes were last looked at after a change, and which connections have been found to follow them since.
    var waysSeenAt: Int64?
    var followers: Set<ConnectionEnds> = []
    /// When connections that carry nothing are looked at again.
    var judgesAt: Int64?
    private var isInvalidating = false
    private var hasEnded = false

    init(settings: SessionSettings, mailbox: Mailbox<SessionCommand>, outbox: SessionOutbox)
        throws(HTTPSessionError)
    {
        cookieShare = settings.network.cookieStore.map { CookieShare($0) }
        var network = settings.network
        // Here, because this thread is in the session's network namespace.
        network.interface = network.interface.map(InterfaceNames.firstName)
        interface = network.interface
        transport = settings.transport
        now = transport.now()
        engine = try transport.makeEngine(network, cookieLines: cookieShare?.known ?? [], path: settings.path)
        cookieShare?.settle(engine.cookieLines)
        self.settings = settings
        self.mailbox = mailbox
        self.outbox = outbox
        queue = TransferQueue(limits: settings.queueLimits)
        routeTracker = RouteTracker(isBound: settings.network.interface != nil)
        gate = settings.path.map { path in
            ServerWatches(path, settings: settings.probes, isProbing: settings.transport.probesServers) {
                mailbox.post(.serverChanged($0, watch: $1, $2))
            }
        }
        settings.path?.followKernel { [weak notices] path in notices?.put(path) { mailbox.post(.routesChanged) } ?? false }
        pathToken = settings.path?.onChange { mailbox.post(.pathChanged($0.path)) }
        mailbox.attach(engine.waker)
    }

    func run() {
        while !hasEnded { turn() }
        for command in mailbox.close() {
            switch command {
            case .add(let task, let job): refuse(task, job)
            case .list(let reader): reader([])
            // Of tasks that have ended, or of a network that nobody uses any more.
            case .answered(_, _, let answer): letGo(answer)
            case .resume, .suspend, .cancel, .sourceReady, .sinkReady, .requestStopDue, .delivered, .partialFileOpened,
                .digestVerified,
                .uploadDigestVerified, .invalidate, .pathChanged, .routesChanged, .serverChanged, .end:
                break
            }
        }
        // What has been announced as over is over: the files are written.
        cookieShare?.store.settle()
        letGo(engine.close())
        outbox.flush(lettingGo: &spent)
        outbox.announceInvalidation()
    }

    /// It came too late.
    private func refuse(_ task: TransferTask, _ job: TransferJob) {
        let error = SessionCore.invalidated(task)
        task.chunkBuffer?.finish(error)
        outbox.complete(task, .failure(error))
        letGo(task)
        letGo(job)
    }

    private func turn() {
        now = transport.now()
        for command in mailbox.takeAll(staysAwake: true) { handle(command) }
        engine.advance()
        if nextDeadline <= now { expire() }
        while admit() { engine.advance() }
        outbox.flush(lettingGo: &spent)
        if isInvalidating, runs.isEmpty { hasEnded = true }
        guard !hasEnded else { return }
        let deadline = min(nextDeadline, queue.deadline ?? .max)
        // What arrives is told at once, and arrives now, not when the wait began.
        engine.wait(until: mailbox.mayWait() ? deadline : now, idleness: idleness) { now = transport.now() }
    }

    /// The waits of the session, for an engine that may let time pass.
    private func idleness() -> SessionIdleness {
        var idleness = SessionIdleness()
        idleness.deadline = min(queue.deadline ?? .max, judgesAt ?? .max)
        for run in runs.values { run.note(in: &idleness) }
        // The engine may move the time to this deadline.
        wakes(at: idleness.deadline)
        return idleness
    }

    private func handle(_ command: SessionCommand) {
        switch command {
        case .add(let task, let job):
            guard !isInvalidating else { return refuse(task, job) }
            let run = TransferDriver(task, job, loop: self)
            runs[task.id] = run
            run.send(.resume)
        case .resume(let id): runs[id]?.send(.resume)
        case .suspend(let id): runs[id]?.send(.suspend)
        case .cancel(let id): runs[id]?.send(.cancel)
        case .sourceReady(let id): runs[id]?.sourceReady()
        case .sinkReady(let id): runs[id]?.sinkReady()
        case .requestStopDue(let id): runs[id]?.breakOff()
        case .answered(let id, let question, let answer):
            if let run = runs[id] { run.answered(question, answer) } else { letGo(answer) }
        case .delivered(let id, let body): runs[id]?.answered(body)
        case .partialFileOpened(let id, let part): runs[id]?.answered(.partialFileOpened(part))
        case .digestVerified(let id, let isRight): runs[id]?.answered(.digestVerified(isRight))
        case .uploadDigestVerified(let id, let isRight): runs[id]?.answered(.uploadDigestVerified(isRight))
        case .invalidate(let cancelsTasks):
            isInvalidating = true
            if cancelsTasks { for run in Array(runs.values) { run.send(.cancel) } }
        case .list(let reader): reader(runs.values.map(\.task))
        case .pathChanged(let path): pathChanged(path)
        case .routesChanged: routesChanged()
        case .serverChanged(let origin, let watch, let update): serverChanged(origin, watch: watch, update)
        case .end:
            isInvalidating = true
            for run in Array(runs.values) { run.send(.cancel) }
        }
    }

    /// Starts what may start. - Returns: whether anything has.
    private func admit() -> Bool {
        var hasStarted = false
        while let id = queue.admit(now: now) {
            runs[id]?.send(.admitted)
            hasStarted = true
        }
        return hasStarted
    }

    /// Most transfers end long before any of their deadlines. So none is taken back: when the earliest that was ever set has come, all
    /// are looked at, and the earliest that still stands is the next.
    private func expire() {
        nextDeadline = .max
        if let judgesAt, judgesAt <= now { judgeConnections() } else { wakes(at: judgesAt) }
        for run in Array(runs.values) {
            if let deadline = run.deadline, deadline <= now { run.timePassed() }
            if let deadline = run.deadline { nextDeadline = min(nextDeadline, deadline) }
        }
    }

    func wakes(at deadline: Int64?) {
        if let deadline, deadline < nextDeadline { nextDeadline = deadline }
    }

    /// Strict-Transport-Security holds for the host.
    func raise(_ host: String) {
        // Few hosts are asked by http and want https: whoever meets more of them meets them anew.
        if raisedHosts.count >= 1_000 { raisedHosts = [] }
        raisedHosts.insert(host)
    }

    func isUpgraded(_ host: String) -> Bool { !raisedHosts.isEmpty && raisedHosts.contains(host) }

    /// An attempt has failed, and others may follow it.
    func noteTrouble(with origin: Origin) {
        guard retryBudgets[origin] == nil else { return }
        if retryBudgets.count >= 1_000 { retryBudgets = retryBudgets.filter { $0.value.wait(now: now) > 0 } }
        retryBudgets[origin] = RetryBudget(now: now)
    }

    /// One task at a time looks a name up. What waits for its answer has waited as long: else the last of ten had ten timeouts.
    func nameIsUnanswered(_ host: TransferQueue.Host) {
        for id in queue.waiting(for: host) { runs[id]?.send(.sharedLookupStalled) }
    }

    func noteRequest(to origin: Origin) {
        if !retryBudgets.isEmpty { retryBudgets[origin]?.requested() }
    }

    func noteSuccess(of origin: Origin) { retryBudgets[origin]?.succeeded() }

    /// How long a retry has to wait until it may ask again; `nil`: it may begin, and has been counted. The wait is drawn, so that not
    /// all come back at once, and ends on a full step of the clock, so that those who come together are looked at together.
    func retryWait(for origin: Origin) -> Int64? {
        guard retryBudgets[origin]?.take(now: now) == false, let wait = retryBudgets[origin]?.wait(now: now) else { return nil }
        let until = now + wait + Int64.random(in: 0...10_000_000_000)
        return RetryStep.stepped(until: until) - now
    }

    var allRuns: [TransferDriver] { Array(runs.values) }
    func run(_ id: UInt64) -> TransferDriver? { runs[id] }
    /// The task has ended, and the outbox has it: what only the run has of the user's may not end here.
    func forget(_ id: UInt64) {
        if let run = runs.removeValue(forKey: id) { letGo(run.remains) }
    }
    /// Here it has been used for the last time.
    func letGo(_ something: any Sendable) { spent.append(something) }

    func post(_ command: SessionCommand) { mailbox.post(command) }
}
