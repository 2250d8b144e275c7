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
    private let interface: String?
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
    private let notices = KernelNotices()
    private(set) var routeTracker: RouteTracker
    /// The time of the last change of the network that may have broken connections.
    private var routesChangedAt: Int64?
    /// The time at which the kernel's routes were last read after a change, and the connections that follow them since.
    private var routesSeenAt: Int64?
    private var followers: Set<ConnectionEnds> = []
    /// The time at which connections are judged again.
    private var nextJudgment: Int64?
    /// The suspended transfers that have their places in the queue, and those that wait for the program, and the times since which they are so.
    private var suspendedTransfers: [UInt64: Int64] = [:]
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
        if isInvalidating, runs.isEmpty { hasEnded = true }
        guard !hasEnded else { return }
        let deadline = min(nextDeadline, queue.deadline ?? .max, placeDeadline ?? .max, handover ?? .max)
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
        guard retryBudgets[origin]?.spend(now: now) == false, let wait = retryBudgets[origin]?.wait(now: now) else { return nil }
        let until = now + wait + Int64.random(in: 0...10_000_000_000, using: &random)
        return RetryStep.stepped(until: until) - now
    }

    /// Returns a random number from 0 to below `limit`, or 0.
    private func draw(below limit: Int64) -> Int64 { .random(in: 0..<max(1, limit), using: &random) }

    /// Returns the seed of a new task's random numbers.
    func makeTaskSeed() -> UInt64 { random.next() }

    /// The tasks under way in the order in which they were made: a scripted session performs the same steps in every run.
    private var allRuns: [TaskDriver] { runs.values.sorted { $0.task.id < $1.task.id } }

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

    // MARK: - The places of suspended transfers in the queue

    // The places of suspended transfers in the queue, and of those that wait for the program: for a reader of their chunks, or for bytes to send.
    //
    // Without this, six suspended downloads, or six streams that nobody reads, would keep all further requests to their host from starting. Such a transfer
    // therefore yields its place to a task that waits for it, and keeps its connection: the host may then have more connections than the configuration
    // allows, but the session not.

    /// How long a suspended transfer keeps its place, in nanoseconds.
    private static let placeDuration: Int64 = 1_000_000_000

    /// Records whether a transfer with a place is suspended, or waits for the program.
    func recordWait(_ id: UInt64, _ waits: Bool) {
        if !waits {
            suspendedTransfers[id] = nil
        } else if suspendedTransfers[id] == nil {
            suspendedTransfers[id] = now
        }
    }

    /// The time at which the next suspended transfer may yield its place; `nil` if nobody waits for one.
    private var placeDeadline: Int64? {
        guard !suspendedTransfers.isEmpty, queue.waiting > 0 else { return nil }
        return suspendedTransfers.lazy.filter { self.mayYield($0.key) }.map { $0.value + SessionLoop.placeDuration }.min()
    }

    /// Whether a task waits for the place of this one. A task that resolves its host's name for others keeps its place.
    private func mayYield(_ id: UInt64) -> Bool {
        runs[id].map { queue.isWanted($0.host) && !queue.isResolving(id, $0.host) } ?? false
    }

    /// Gives the places of suspended transfers to tasks that wait for them. - Returns: Whether a place has become free.
    private func yieldPlaces() -> Bool {
        guard !suspendedTransfers.isEmpty, queue.waiting > 0 else { return false }
        let due = suspendedTransfers.filter { $0.value + SessionLoop.placeDuration <= now && mayYield($0.key) }
        for (id, _) in due.sorted(by: { ($0.value, $0.key) < ($1.value, $1.key) }) {
            guard let run = runs[id], queue.yield(id, from: run.host) else { continue }
            run.hasYieldedPlace = true
            suspendedTransfers[id] = nil
            engine.allowConnections(beyondLimit: queue.yielded)
            return true
        }
        return false
    }

    /// The transfer of a task that has yielded its place has ended.
    func releaseYieldedPlace() {
        queue.releaseYielded()
        engine.allowConnections(beyondLimit: queue.yielded)
    }

    // MARK: - The path monitor

    private func serverChanged(_ origin: Origin, watch: UInt64, _ update: ServerUpdate) {
        guard let serverWatches else { return }
        obey(serverWatches.changed(origin, watch: watch, update, draw: draw))
    }

    /// A task has received a response.
    func answered(_ id: UInt64, at origin: Origin) {
        guard let serverWatches else { return }
        obey(serverWatches.answered(id, at: origin, draw: draw))
    }

    private func obey(_ decisions: [OutageTracker.Decision]) {
        for decision in decisions {
            switch decision {
            case .wait(let id, let cause): runs[id]?.send(.networkLost(cause))
            case .proceed(let id, let delay): runs[id]?.send(.networkRestored(delay: delay))
            }
        }
    }

    private func pathChanged(_ path: NetworkPath) {
        for run in allRuns { run.send(.networkChanged) }
        if path.status == .satisfied, let serverWatches { obey(serverWatches.pathRestored(draw: draw)) }
    }

    /// The shortest time between two readings of the routes, in nanoseconds. On a machine with a routing protocol, the routes may change many
    /// times a second.
    private static let routesInterval: Int64 = 50_000_000

    /// Links, addresses, routes or rules have changed, whether or not the path has.
    private func routesChanged() {
        if !notices.isUrgent, let routesSeenAt, now < routesSeenAt + SessionLoop.routesInterval {
            return scheduleJudgment(at: routesSeenAt + SessionLoop.routesInterval)
        }
        // First report the transfers that have ended, so that they are not judged.
        engine.advance()
        judgeConnections()
    }

    private func updateRoutes() {
        guard let path = notices.take() else { return }
        routesSeenAt = now
        followers = []
        guard routeTracker.update(path, now: now) else { return }
        routesChangedAt = now
        engine.networkChanged()
        queue.invalidateNames()
    }

    /// Ends the transfers whose route is gone, or has been replaced by a better one.
    private func judgeConnections() {
        nextJudgment = nil
        updateRoutes()
        var connections: [(TaskDriver, RouteTracker.Connection)] = []
        var attempts: [(TaskDriver, RouteTracker.Attempt)] = []
        var used: [IPAddress: Set<IPAddress>] = [:]
        for run in allRuns {
            if let connection = run.connection {
                connections.append((run, connection))
                used[connection.remote, default: []].insert(connection.local)
            } else if let attempt = run.connectionAttempt {
                attempts.append((run, attempt))
                for one in attempt.connectAttempts { used[one.remote, default: []].formUnion([one.chosen].compactMap(\.self)) }
            }
        }
        routeTracker.updateRoutes(Dictionary(uniqueKeysWithValues: used.map { ($0, route(to: $0, expecting: $1)) }), now: now)
        for (run, connection) in connections { apply(routeTracker.health(of: connection, now: now), to: run) }
        for (run, attempt) in attempts {
            let health = routeTracker.health(of: attempt, now: now)
            if case .dead = health, !run.mayWaitForRoute { continue }
            apply(health, to: run)
        }
    }

    private func apply(_ health: RouteTracker.Health, to run: TaskDriver) {
        switch health {
        case .healthy: break
        case .unreachable(let until): scheduleJudgment(at: until)
        case .suspect(let reason): run.send(.connectionSuspect(reason))
        case .dead(let reason):
            // The notice precedes the publication of the same path.
            run.send(.connectionDead(reason, cause: notices.path?.cause ?? settings.path?.currentPath?.cause))
        }
    }

    private func scheduleJudgment(at time: Int64) {
        nextJudgment = min(nextJudgment ?? time, time)
        scheduleWake(at: nextJudgment)
    }

    /// Schedules the judgment of an attempt that has begun, or that has begun to connect to another address.
    ///
    /// - Parameter addresses: The addresses that it connects to; empty if they are not known yet.
    func scheduleAttemptJudgment(_ addresses: [RouteTracker.ConnectAttempt] = []) {
        let hasNoRoute = addresses.contains { attempt in
            attempt.chosen.map { routeTracker.isUnreachable(.from([$0]), to: attempt.remote) } ?? false
        }
        if addresses.isEmpty ? routeTracker.hasLostAllRoutes : hasNoRoute {
            scheduleJudgment(at: now + RouteTracker.toleratedOutage)
        }
    }

    // MARK: The kernel's routes

    private func route(to remote: IPAddress, expecting locals: Set<IPAddress> = []) -> RouteTracker.Route {
        remote.isLoopback ? .unknown : KernelRoutes.route(to: remote, over: interface, expecting: locals)
    }

    /// Whether the routes to all of these addresses are lost; without addresses, whether all routes are lost.
    func isLost(_ remotes: [IPAddress]) -> Bool {
        remotes.isEmpty ? routeTracker.hasLostAllRoutes : remotes.allSatisfy { routeTracker.isUnreachable(route(to: $0), to: $0) }
    }

    /// Whether the kernel has a working route to one of these addresses, even without a default route. Always `false` for a session that is
    /// bound to an interface.
    func hasRoute(to remotes: [IPAddress]) -> Bool {
        interface == nil
            && remotes.contains { remote in
                let route = route(to: remote)
                guard case .from = route else { return false }
                return !routeTracker.isUnreachable(route, to: remote)
            }
    }

    /// Why none of these addresses can be connected to now; `nil` if one is possible, or without addresses.
    func loss(of remotes: [IPAddress]) -> Cause? {
        let losses = remotes.map { routeTracker.recoverableCause(route(to: $0), to: $0) }
        return losses.contains(nil) ? nil : losses.first ?? nil
    }

    /// Whether an existing connection still uses the route that the kernel would choose now. The kernel is asked once after each change.
    func usesCurrentRoute(from local: String, to remote: String) -> Bool {
        // libcurl closes connections that have been idle for 118 s.
        guard let routesSeenAt, now - routesSeenAt < 120_000_000_000 else { return true }
        let ends = ConnectionEnds(local: local, remote: remote)
        guard !followers.contains(ends), let near = IPAddress(local)?.unmapped, let far = IPAddress(remote)?.unmapped else {
            return true
        }
        let connection = RouteTracker.Connection(local: near, remote: far)
        guard routeTracker.health(of: connection, by: route(to: far, expecting: [near]), now: now) == .healthy else {
            return false
        }
        if followers.count >= 1_000 { followers = [] }
        followers.insert(ends)
        return true
    }

    /// The maximum idle time of an HTTP/2 connection that is reused, in whole seconds; 0 permits no reuse. A connection that was
    /// idle at the last change of the network is too old. ``IdleSockets`` does not know these connections.
    var maximumIdleSeconds: Int? {
        guard let routesChangedAt else { return nil }
        let seconds = (now - routesChangedAt) / 1_000_000_000
        // libcurl closes connections that have been idle for 118 s.
        return seconds > 120 ? nil : max(0, Int(seconds) - 2)
    }

    /// The greatest age of a lookup, in whole seconds: the name servers of another network may give other addresses.
    var maximumLookupSeconds: Int? {
        guard let routesChangedAt else { return nil }
        let seconds = (now - routesChangedAt) / 1_000_000_000
        // libcurl drops older results.
        return seconds > 61 ? nil : max(0, Int(seconds) - 1)
    }
}

/// The two addresses of a connection, as libcurl writes them.
private struct ConnectionEnds: Hashable, Sendable {
    @ExactString var local: String
    @ExactString var remote: String
}
