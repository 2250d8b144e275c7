internal import EventLoop
internal import FoundationEssentials
internal import Glibc
internal import Reachability

/// A source whose events come from a script or a recording.
///
/// Any thread may publish. Events are ordered by the lock of the state and delivered under the lock of the delivery. A call returns when its own
/// events have been delivered, by its own thread or by another one.
final class ScriptedSource: MonitorSource {
    private struct Subscriber: Sendable {
        let number: Int
        let body: @Sendable (NetworkPath) -> Bool
    }

    private struct Sink: Sendable {
        let body: @Sendable (MonitorEvent) -> Void
    }

    private enum Step: Sendable {
        case event(MonitorEvent)
        /// A subscriber is added, which first receives the path at this point of the order.
        case addition(Subscriber, NetworkPath?)
    }

    private struct State: Sendable {
        var sink: Sink?
        /// The path of the last event, which may not have been delivered yet.
        var path: NetworkPath?
        var servers: [Endpoint: ServerUpdate] = [:]
        var targets: [TargetID: Endpoint] = [:]
        var nextTarget = 0
        var subscribers: [Subscriber] = []
        var nextSubscriber = 0
        var pending: [Step] = []
        /// The thread that delivers; `nil` if nothing is being delivered.
        var deliverer: pthread_t?
        var hasEnded = false
    }

    private let state = Locked(State())
    /// Held during a delivery, so that other publishers wait for it. A delivery calls no user code: it resumes Swift tasks, submits callbacks to
    /// their queues, and posts to the mailboxes of sessions.
    private let delivery = Locked(())

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
        case .path, .incident: emit { _ in [event] }
        case .probe, .resync, .gap: break
        case .ended: end()
        }
    }

    var watchedEndpoints: [Endpoint] { state.withLock { Array(Set($0.targets.values)).sorted { $0.text < $1.text } } }

    func end() {
        emit { state in
            state.hasEnded = true
            return [.ended(.now)]
        }
    }

    /// Adds events, and returns when they have been delivered. After the end, it adds nothing.
    private func emit(_ events: (inout State) -> [MonitorEvent]) {
        deliver { state in
            let new = events(&state)
            for case .path(let update) in new { state.path = update.path }
            return new.map { .event($0) }
        }
    }

    private func deliver(_ steps: (inout State) -> [Step]) {
        let thread = pthread_self()
        let isNested = state.withLock { state in
            if !state.hasEnded { state.pending += steps(&state) }
            return state.deliverer == thread
        }
        // A call from inside a delivery, which delivers these steps as well.
        guard !isNested else { return }
        delivery.withLock { _ in
            while let (step, sink) = next(on: thread) { perform(step, sink) }
        }
    }

    private func next(on thread: pthread_t) -> (Step, Sink)? {
        state.withLock { state in
            guard let sink = state.sink, !state.pending.isEmpty else {
                state.deliverer = nil
                return nil
            }
            state.deliverer = thread
            return (state.pending.removeFirst(), sink)
        }
    }

    private func perform(_ step: Step, _ sink: Sink) {
        switch step {
        case .event(let event):
            if case .path(let update) = event { notify(update.path) }
            sink.body(event)
            if case .ended = event { state.withLock { $0.subscribers = [] } }
        case .addition(let subscriber, let path):
            guard path.map(subscriber.body) != false else { return }
            state.withLock { $0.subscribers.append(subscriber) }
        }
    }

    private func notify(_ path: NetworkPath) {
        let subscribers = state.withLock { $0.subscribers }
        let ended = Set(subscribers.filter { !$0.body(path) }.map(\.number))
        guard !ended.isEmpty else { return }
        state.withLock { state in state.subscribers.removeAll { ended.contains($0.number) } }
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

    /// Ignores the report: a script or a recording decides alone which statuses are published.
    func report(_ report: PassiveReport) {}

    func withSnapshot(_ body: @escaping @Sendable (KernelSnapshot?) -> Void) {
        body(state.withLock { $0.hasEnded } ? nil : KernelSnapshot())
    }

    func subscribeToPath(_ body: @escaping @Sendable (NetworkPath) -> Bool) {
        deliver { state in
            state.nextSubscriber += 1
            return [.addition(Subscriber(number: state.nextSubscriber, body: body), state.path)]
        }
    }

    func requestStop() {
        state.withLock { state in
            state.hasEnded = true
            state.pending = []
            state.subscribers = []
        }
    }
}
