internal import Reachability

/// The monitors of servers that tasks failed to reach. Each server is probed on the session's path monitor, which probes again when a path
/// changes. ``OutageTracker`` decides which tasks wait.
final class ServerWatches {
    private let path: PathMonitor
    private let settings: ProbeSettings
    private let isProbing: Bool
    private let report: @Sendable (Origin, _ watch: UInt64, ServerUpdate) -> Void
    private var outages = OutageTracker()
    private var monitors: [Origin: (monitor: ServerMonitor, token: CallbackToken)] = [:]

    /// `report` is called on a thread of the monitor; its values are to be passed to ``changed(_:watch:_:draw:)`` on the session's thread.
    init(
        _ path: PathMonitor, settings: ProbeSettings, isProbing: Bool,
        report: @escaping @Sendable (Origin, _ watch: UInt64, ServerUpdate) -> Void
    ) {
        self.path = path
        self.settings = settings
        self.isProbing = isProbing
        self.report = report
    }

    /// An attempt of a task has failed. `endpoint` is the server or proxy that it connects to. See ``OutageTracker`` for this method and those
    /// below.
    func failed(_ id: UInt64, at origin: Origin, endpoint: Endpoint, hasNoRoute: Bool, loss: Cause?) -> Cause? {
        if !outages.isWatched(origin), outages.hasRoom(for: origin) { watch(origin, endpoint) }
        return outages.failed(id, at: origin, hasNoRoute: hasNoRoute, loss: loss, path: path.currentPath)
    }

    func join(_ id: UInt64, at origin: Origin) -> Cause? { outages.join(id, at: origin) }

    func hasRoom(for origin: Origin) -> Bool { outages.hasRoom(for: origin) }

    func answered(_ id: UInt64, at origin: Origin, draw: (Int64) -> Int64) -> [OutageTracker.Decision] {
        outages.answered(id, at: origin, draw: draw)
    }

    func forget(_ id: UInt64, at origin: Origin) {
        outages.forget(id, at: origin)
        endWatch(of: origin)
    }

    func changed(
        _ origin: Origin, watch number: UInt64, _ update: ServerUpdate, draw: (Int64) -> Int64
    ) -> [OutageTracker.Decision] {
        let orders = outages.changed(origin, watch: number, update, path: path.currentPath, draw: draw)
        endWatch(of: origin)
        return orders
    }

    func pathRestored(draw: (Int64) -> Int64) -> [OutageTracker.Decision] {
        outages.pathRestored(isProbed: isProbing, draw: draw)
    }

    private func watch(_ origin: Origin, _ endpoint: Endpoint) {
        guard isProbing else {
            _ = outages.watch(origin)
            return
        }
        guard let monitor = try? ServerMonitor(endpoint, settings: settings, monitor: path) else { return }
        let number = outages.watch(origin)
        monitors[origin] = (monitor, monitor.onChange { [report] in report(origin, number, $0) })
    }

    /// Ends the monitor, unless the tracker still watches the server.
    private func endWatch(of origin: Origin) {
        if !outages.isWatched(origin) { monitors[origin] = nil }
    }
}
