internal import EventLoop

/// What a path monitor, its iterators, tokens and server monitors share: the session and who hears what. Its end is the end of
/// watching.
final class MonitorCore: Sendable {
    let paths: Broadcast<PathUpdate>
    // By itself, because posting takes longer than everything before it: what callbacks hear must not wait for that.
    private let announcements: Broadcast<PathUpdate>
    let delivery = Delivery()
    private let servers: ServerHubs
    private let session: MonitorSession
    private let announcement = Locked<CallbackToken?>(nil)

    init(_ configuration: MonitorConfiguration) throws(MonitorError) {
        // The sink must not keep the core: the session's thread would keep itself.
        let paths = Broadcast<PathUpdate>()
        let announcements = Broadcast<PathUpdate>()
        let servers = ServerHubs()
        session = try MonitorSession(configuration) { event in
            switch event {
            case .path(let update):
                paths.publish(update)
                announcements.publish(update)
            case .server(let id, let update): servers.publish(update, of: id)
            case .ended:
                paths.finish()
                announcements.finish()
                servers.finish()
            case .probe, .resync, .gap: break
            }
        }
        self.paths = paths
        self.announcements = announcements
        self.servers = servers
    }

    deinit { cancel() }

    var isPolling: Bool { session.isPolling }

    func cancel() {
        session.requestStop()
        announcement.withLock { $0 = nil }
        paths.finish()
        announcements.finish()
        servers.finish()
    }

    /// Calls `post` with each change, beside the callbacks.
    func announce(_ post: @escaping @Sendable (PathUpdate) -> Void) {
        // The token's owner is nobody: notifications keep nothing alive.
        let token = announcements.deliver(on: nil, through: delivery, keeping: (), post)
        announcement.withLock { $0 = token }
    }

    func snapshot() async -> NetworkSnapshot {
        await withCheckedContinuation { continuation in
            session.withSnapshot { snapshot in
                HomeThread.run { continuation.resume(returning: snapshot ?? NetworkSnapshot()) }
            }
        }
    }

    func follow(_ body: @escaping @Sendable (NetworkSnapshot?, [SnapshotChange]) -> Bool) { session.follow(body) }

    func followPath(_ body: @escaping @Sendable (NetworkPath) -> Bool) { session.followPath(body) }

    /// Adds a target whose events go to each of `hubs`.
    func add(_ endpoint: Endpoint, settings: ProbeSettings, hubs: [Broadcast<ServerUpdate>]) -> TargetID {
        let id = session.newTarget()
        servers.add(hubs, for: id)
        session.add(id, endpoint, settings: settings)
        return id
    }

    func remove(_ id: TargetID) {
        servers.remove(id)
        session.remove(id)
    }
}

/// The broadcasts of each target.
private final class ServerHubs: Sendable {
    private struct State: Sendable {
        var hubs: [TargetID: [Broadcast<ServerUpdate>]] = [:]
        var hasFinished = false
    }

    private let state = Locked(State())

    func add(_ hubs: [Broadcast<ServerUpdate>], for id: TargetID) {
        let hasFinished = state.withLock { state in
            state.hubs[id] = hubs
            return state.hasFinished
        }
        if hasFinished { hubs.forEach { $0.finish() } }
    }

    func remove(_ id: TargetID) { state.withLock { $0.hubs[id] = nil } }

    func publish(_ update: ServerUpdate, of id: TargetID) {
        for hub in state.withLock({ $0.hubs[id] }) ?? [] { hub.publish(update) }
    }

    func finish() {
        let hubs = state.withLock { state in
            state.hasFinished = true
            return state.hubs.values.flatMap { $0 }
        }
        for hub in hubs { hub.finish() }
    }
}
