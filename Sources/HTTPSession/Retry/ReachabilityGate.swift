internal import Reachability

/// Holds tasks whose server is out of reach, and lets them go on when it is back: each server in trouble is probed on the session's path
/// monitor, which probes again when a path changes. Requests are always tried first; the gate explains a failure, and forbids nothing.
final class ReachabilityGate {
    /// What follows for a task.
    enum Order: Hashable, Sendable {
        /// It waits without counting tries.
        case hold(UInt64, Cause)
        /// It may go on, after so many nanoseconds.
        case release(UInt64, delay: Int64)
    }

    /// Servers watched at a time: tasks of further ones have their retry policy alone.
    static let maximumWatches = 64
    /// Over how long so many tasks are spread when their server is back, each: the first goes at once and shows the way.
    private static let spread: Int64 = 1_000_000

    private final class Watch {
        let monitor: ServerMonitor
        let token: CallbackToken
        var cause: Cause?
        /// In the order in which they came.
        var waiting: [UInt64] = []

        init(_ monitor: ServerMonitor, _ token: CallbackToken) {
            self.monitor = monitor
            self.token = token
        }
    }

    private let path: PathMonitor
    private let settings: ProbeSettings
    private let report: @Sendable (Origin, ServerUpdate) -> Void
    private var watches: [Origin: Watch] = [:]

    /// `report` is called on a thread of the monitor's, and what it is told belongs to ``changed(_:_:draw:)``.
    init(_ path: PathMonitor, settings: ProbeSettings, report: @escaping @Sendable (Origin, ServerUpdate) -> Void) {
        self.path = path
        self.settings = settings
        self.report = report
    }

    /// A task's attempt has failed as it does when a network is gone; `endpoint` is what it has to reach first.
    ///
    /// `hasNoRoute`: the kernel has said that there is no way to it.
    ///
    /// - Returns: why it has to wait, where that is known.
    func failed(_ id: UInt64, at origin: Origin, endpoint: Endpoint, hasNoRoute: Bool) -> Cause? {
        guard let watch = watches[origin] ?? watch(origin, endpoint) else { return nil }
        if !watch.waiting.contains(id) { watch.waiting.append(id) }
        if let cause = watch.cause { return cause }
        guard hasNoRoute, let present = path.currentPath, present.status == .unsatisfied else { return nil }
        return present.cause
    }

    /// The task goes on, or has ended.
    func forget(_ id: UInt64, at origin: Origin) {
        guard let watch = watches[origin] else { return }
        watch.waiting.removeAll { $0 == id }
        if watch.waiting.isEmpty { watches[origin] = nil }
    }

    /// The server's state has changed. `draw` gives a number below its argument.
    func changed(_ origin: Origin, _ update: ServerUpdate, draw: (Int64) -> Int64) -> [Order] {
        guard let watch = watches[origin] else { return [] }
        switch update.state {
        case .unknown: return []
        case .unreachable:
            // A name that does not exist, or a route that an administrator refuses, will not be there for waiting.
            guard let cause = update.cause, ReachabilityGate.passes(cause) else { return [] }
            watch.cause = cause
            return watch.waiting.map { .hold($0, cause) }
        case .up, .degraded, .down:
            // Where it is down the network is back, and the retry policy counts.
            watches[origin] = nil
            let width = ReachabilityGate.spread * Int64(watch.waiting.count)
            return watch.waiting.enumerated().map { .release($1, delay: $0 == 0 ? 0 : draw(width)) }
        }
    }

    private func watch(_ origin: Origin, _ endpoint: Endpoint) -> Watch? {
        guard watches.count < ReachabilityGate.maximumWatches,
            let monitor = try? ServerMonitor(endpoint, settings: settings, on: path)
        else { return nil }
        let watch = Watch(monitor, monitor.onChange { [report] in report(origin, $0) })
        watches[origin] = watch
        return watch
    }

    /// Whether what is missing may come: this machine's link, address, route or next hop, or the way to its name server.
    private static func passes(_ cause: Cause) -> Bool {
        switch cause.layer {
        case .link, .address: true
        case .route: cause.code == .noRoute
        case .neighbour: cause.code == .gatewaySilent
        case .dns: cause.code == .resolverSilent
        case .firewall, .network, .tcp, .tls, .http, .local: false
        }
    }
}
