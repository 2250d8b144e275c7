internal import EventLoop
internal import FoundationEssentials
internal import Reachability

/// A source whose events come from a script or a recording.
final class ScriptedSource: MonitorSource {
    private struct PathFollower: Sendable {
        let body: @Sendable (NetworkPath) -> Bool
    }

    private struct Sink: Sendable {
        let body: @Sendable (MonitorEvent) -> Void
    }

    private struct State: Sendable {
        var sink: Sink?
        var path: NetworkPath?
        var servers: [Endpoint: ServerUpdate] = [:]
        var targets: [TargetID: Endpoint] = [:]
        var nextTarget = 0
        var followers: [PathFollower] = []
        var pending: [MonitorEvent] = []
        var isPublishing = false
        var hasEnded = false
    }

    private let state = Locked(State())

    let isPolling = false

    func begin(_ sink: @escaping @Sendable (MonitorEvent) -> Void) { state.withLock { $0.sink = Sink(body: sink) } }

    // MARK: Publishing

    func publish(_ path: NetworkPath, reasons: [PathChangeReason]?, at date: Date) {
        emit { state in
            let found = state.path.map { PathDifference.reasons(from: $0, to: path) }
            let update = PathUpdate(
                path: path, reasons: reasons ?? found.map { Array($0) } ?? [], isInitial: state.path == nil, date: date)
            return [.path(update)]
        }
        follow(path)
    }

    func publish(_ update: ServerUpdate) {
        emit { state in
            state.servers[update.endpoint] = update
            return state.targets.filter { $0.value == update.endpoint }.keys.sorted().map { .server($0, update) }
        }
    }

    /// Publishes an event of a recording.
    func publish(_ event: MonitorEvent) {
        switch event {
        case .server(_, let update): publish(update)
        case .path(let update):
            emit { _ in [event] }
            follow(update.path)
        case .probe, .resync, .gap: break
        case .ended: end()
        }
    }

    var watchedServers: [Endpoint] { state.withLock { Array(Set($0.targets.values)).sorted { $0.text < $1.text } } }

    func end() {
        emit { state in
            guard !state.hasEnded else { return [] }
            state.hasEnded = true
            return [.ended(.now)]
        }
    }

    private func follow(_ path: NetworkPath) {
        let followers = state.withLock { $0.followers }
        let ended = followers.indices.filter { !followers[$0].body(path) }
        guard !ended.isEmpty else { return }
        state.withLock { state in for index in ended.reversed() { state.followers.remove(at: index) } }
    }

    /// Adds events, and delivers all pending ones to the sink in order. The sink is called outside the lock, because it resumes
    /// readers.
    private func emit(_ events: (inout State) -> [MonitorEvent]) {
        let isPublisher = state.withLock { state in
            let new = events(&state)
            for case .path(let update) in new { state.path = update.path }
            state.pending += new
            defer { state.isPublishing = true }
            return !state.isPublishing
        }
        guard isPublisher else { return }
        while let (event, sink) = next() { sink.body(event) }
    }

    private func next() -> (MonitorEvent, Sink)? {
        state.withLock { state in
            guard let sink = state.sink, !state.pending.isEmpty else {
                state.isPublishing = false
                return nil
            }
            return (state.pending.removeFirst(), sink)
        }
    }

    // MARK: MonitorSource

    func newTarget() -> TargetID {
        state.withLock { state in
            defer { state.nextTarget += 1 }
            return TargetID(state.nextTarget)
        }
    }

    func add(_ id: TargetID, _ endpoint: Endpoint, settings: ProbeSettings) {
        emit { state in
            state.targets[id] = endpoint
            let present = state.servers[endpoint] ?? ServerUpdate(endpoint: endpoint, status: .unknown)
            return [.server(id, present.asInitial())]
        }
    }

    func remove(_ id: TargetID) { state.withLock { $0.targets[id] = nil } }

    func withSnapshot(_ body: @escaping @Sendable (Kernel.Snapshot?) -> Void) { body(Kernel.Snapshot()) }

    func follow(_ body: @escaping @Sendable (Kernel.Snapshot?, [Kernel.Change]) -> Bool) { _ = body(Kernel.Snapshot(), []) }

    func followPath(_ body: @escaping @Sendable (NetworkPath) -> Bool) {
        let path = state.withLock { state in
            state.followers.append(PathFollower(body: body))
            return state.path
        }
        if let path { _ = body(path) }
    }

    func requestStop() {
        state.withLock { state in
            state.hasEnded = true
            state.followers = []
        }
    }
}
