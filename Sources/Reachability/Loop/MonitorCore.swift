internal import EventLoop

/// The shared state of a path monitor, its iterators, tokens and server monitors: the source and the subscribers. Its
/// deinitialization ends the monitoring.
final class MonitorCore: Sendable {
    let paths: Broadcast<PathUpdate>
    let incidents: Broadcast<IncidentBatch>
    // Separate from `paths`: posting takes longer than all earlier steps, and must not delay callbacks.
    private let announcements: Broadcast<PathUpdate>
    let delivery = Delivery()
    private let servers: ServerHubs
    private let reports = ReportFilter()
    private let source: any MonitorSource
    private let announcement = Locked<CallbackToken?>(nil)

    convenience init(_ configuration: MonitorConfiguration) throws(MonitorError) {
        try self.init { (sink) throws(MonitorError) in try MonitorSession(configuration, sink: sink) }
    }

    /// Creates a core.
    ///
    /// - Parameter makeSource: creates the source, given the sink of its events.
    /// - Throws: the error of `makeSource`.
    init<Failure: Error>(
        makeSource: (_ sink: @escaping @Sendable (MonitorEvent) -> Void) throws(Failure) -> any MonitorSource
    ) throws(Failure) {
        // The sink must not retain the core: the session's thread would then keep itself alive.
        let paths = Broadcast<PathUpdate>()
        let announcements = Broadcast<PathUpdate>()
        let incidents = Broadcast<IncidentBatch>()
        let servers = ServerHubs()
        source = try makeSource { event in
            switch event {
            case .path(let update):
                paths.publish(update)
                announcements.publish(update)
            case .server(let id, let update): servers.publish(update, of: id)
            case .incident(let incident): incidents.publish(IncidentBatch(incident))
            case .ended:
                paths.finish()
                incidents.finish()
                announcements.finish()
                servers.finish()
            case .probe, .resync, .gap: break
            }
        }
        self.paths = paths
        self.incidents = incidents
        self.announcements = announcements
        self.servers = servers
    }

    deinit { cancel() }

    var isPolling: Bool { source.isPolling }

    func cancel() {
        source.requestStop()
        announcement.withLock { $0 = nil }
        paths.finish()
        incidents.finish()
        announcements.finish()
        servers.finish()
    }

    /// Calls `body` with the present update at once, and with each further update on the thread that publishes it.
    func onPublish(_ body: @escaping @Sendable (PathUpdate) -> Void) -> CallbackToken {
        let callback = paths.call(body) { job in job() }
        return CallbackToken { [self] in
            callback.end()
            withExtendedLifetime(self) {}
        }
    }

    /// Calls `post` with each update for as long as the core exists, independently of the callbacks.
    func announce(_ post: @escaping @Sendable (PathUpdate) -> Void) {
        let token = announceChanges(post)
        announcement.withLock { $0 = token }
    }

    /// Calls `post` with each update, independently of the callbacks. Releasing the token ends the calls.
    func announceChanges(_ post: @escaping @Sendable (PathUpdate) -> Void) -> CallbackToken {
        // The token has no owner, because notifications keep no object alive.
        announcements.deliver(on: nil, through: delivery, keeping: (), post)
    }

    func snapshot() async -> KernelSnapshot {
        await withCheckedContinuation { continuation in
            source.withSnapshot { snapshot in
                HomeThread.run { continuation.resume(returning: snapshot ?? KernelSnapshot()) }
            }
        }
    }

    func subscribeToPath(_ body: @escaping @Sendable (NetworkPath) -> Bool) { source.subscribeToPath(body) }

    /// Adds a target whose updates are published to each of `hubs`.
    func add(_ endpoint: Endpoint, settings: ProbeSettings, hubs: [Broadcast<ServerBatch>]) -> TargetID {
        let id = source.newTarget()
        servers.add(hubs, for: id)
        reports.add(endpoint)
        source.add(id, endpoint, settings: settings)
        return id
    }

    /// Removes targets with their endpoints.
    func remove(_ targets: [TargetID], of endpoints: [Endpoint]) {
        reports.remove(endpoints)
        for id in targets {
            servers.remove(id)
            source.remove(id)
        }
    }

    /// Passes the outcome of a connection to the targets with its endpoint, unless there was a similar report just now.
    func report(_ report: PassiveReport) {
        if reports.admits(report, at: Moment.now.monotonicNanoseconds) { source.report(report) }
    }
}

/// The broadcasts of each target.
private final class ServerHubs: Sendable {
    private struct State: Sendable {
        var hubs: [TargetID: [Broadcast<ServerBatch>]] = [:]
        var hasFinished = false
    }

    private let state = Locked(State())

    func add(_ hubs: [Broadcast<ServerBatch>], for id: TargetID) {
        let hasFinished = state.withLock { state in
            state.hubs[id] = hubs
            return state.hasFinished
        }
        if hasFinished { hubs.forEach { $0.finish() } }
    }

    func remove(_ id: TargetID) { state.withLock { $0.hubs[id] = nil } }

    func publish(_ update: ServerUpdate, of id: TargetID) {
        let hubs = state.withLock { $0.hubs[id] } ?? []
        let batch = ServerBatch(update)
        for hub in hubs { hub.publish(batch) }
    }

    func finish() {
        let hubs = state.withLock { state in
            state.hasFinished = true
            return state.hubs.values.flatMap { $0 }
        }
        for hub in hubs { hub.finish() }
    }
}
