public import Dispatch
internal import EventLoop

/// Monitors many servers, with one stream for the updates of all. A ``ServerMonitor`` is a group of one server.
///
/// ```swift
/// let group = try ServerGroup(["api.example.com:443", "db.example.com:5432"])
/// for await update in group {
///     print(update.endpoint, update.status)
/// }
/// ```
/// Each server is probed as by a ``ServerMonitor``. Monitoring ends when the group, its iterators and its tokens are released.
public final class ServerGroup: Sendable {
    private let watch: GroupWatch

    /// Creates a group of the servers `HOST:PORT`, `tls://HOST[:PORT]`, or of URLs with `http` or `https`.
    ///
    /// - Parameters:
    ///   - endpoints: the servers. IPv6 addresses need brackets. Equal ones are monitored once, with the text of the first.
    ///   - settings: the settings of each server's probes.
    ///   - monitor: the path monitor whose thread and namespace are used; `nil`, the default, for a new one.
    /// - Throws: ``Endpoint/ParseError`` for an invalid endpoint; ``MonitorError``, as ``PathMonitor/init(namespace:)``.
    public convenience init(
        _ endpoints: [String], settings: ProbeSettings = ProbeSettings(), monitor: PathMonitor? = nil
    ) throws {
        try self.init(endpoints.map { try Endpoint($0) }, settings: settings, monitor: monitor)
    }

    /// Creates a group of servers.
    ///
    /// - Parameters:
    ///   - endpoints: the servers. Equal ones are monitored once, with the text of the first.
    ///   - settings: the settings of each server's probes.
    ///   - monitor: the path monitor whose thread and namespace are used; `nil`, the default, for a new one.
    /// - Throws: ``MonitorError``, as ``PathMonitor/init(namespace:)``.
    public init(
        _ endpoints: [Endpoint], settings: ProbeSettings = ProbeSettings(), monitor: PathMonitor? = nil
    ) throws(MonitorError) {
        let core: MonitorCore
        if let monitor { core = monitor.core } else { core = try MonitorCore(MonitorConfiguration()) }
        watch = GroupWatch(core, endpoints, settings)
    }

    /// The servers in the given order, without duplicates.
    public var endpoints: [Endpoint] { watch.endpoints }

    /// The last update of each server that has one, in the order of ``endpoints``.
    public var current: [ServerUpdate] {
        guard let latest = watch.hub.latest else { return [] }
        return endpoints.compactMap { latest[$0] }
    }

    /// Returns the last update of one server; `nil` before its first update, and for a server that is not in the group.
    public func current(_ endpoint: Endpoint) -> ServerUpdate? { watch.hub.latest?[endpoint] }

    /// The updates of all servers, starting with each server's present one. Any number of tasks may iterate. A slow task receives
    /// the latest update of each server that has changed.
    public var updates: Updates { Updates(watch: watch) }

    /// Calls `body` with the present update of every server, and with each further update.
    ///
    /// - Parameters:
    ///   - queue: the queue on which `body` runs; `nil`, the default, for a thread that the monitor keeps for callbacks. `body`
    ///     never runs twice at the same time.
    ///   - body: the callback.
    /// - Returns: a token. Releasing the token ends the callback.
    public func onChange(on queue: DispatchQueue? = nil, _ body: @escaping @Sendable (ServerUpdate) -> Void) -> CallbackToken {
        watch.hub.deliver(on: queue, through: watch.core.delivery, keeping: watch) { $0.ordered.forEach(body) }
    }

    /// The incidents of the group's path monitor.
    var hubOfIncidents: Broadcast<IncidentBatch> { watch.core.incidents }

    /// Passes the outcome of a connection that another part of the program made.
    func report(_ report: PassiveReport) { watch.core.report(report) }

    /// Calls `post` with each update, independently of the callbacks, while the group exists.
    func announce(_ post: @escaping @Sendable (ServerUpdate) -> Void) { watch.announce(post) }

    /// Calls `post` with each update, independently of the callbacks. Releasing the token ends the calls.
    func announceChanges(_ post: @escaping @Sendable (ServerUpdate) -> Void) -> CallbackToken { watch.announceChanges(post) }

    /// Ends the group: sequences end, and callbacks stop.
    public func cancel() { watch.cancel() }

    /// The updates of servers. Each iteration begins with the present updates.
    public struct Updates: AsyncSequence, Sendable {
        /// An update of one server.
        public typealias Element = ServerUpdate
        /// The sequence never fails.
        public typealias Failure = Never

        let watch: GroupWatch

        /// Creates a subscription, which begins with the present updates.
        public func makeAsyncIterator() -> Iterator { Iterator(watch: watch, subscription: watch.hub.subscribe()) }

        /// A subscription to the updates.
        public struct Iterator: AsyncIteratorProtocol {
            let watch: GroupWatch
            let subscription: Broadcast<ServerBatch>.Subscription
            // The received updates in reverse order, so that the last element is the next one.
            private var taken: [ServerUpdate] = []

            init(watch: GroupWatch, subscription: Broadcast<ServerBatch>.Subscription) {
                (self.watch, self.subscription) = (watch, subscription)
            }

            /// Waits for the next update; `nil` at the end, and if the task is canceled.
            public mutating func next() async -> ServerUpdate? {
                if let update = taken.popLast() { return update }
                taken = await subscription.next()?.ordered.reversed() ?? []
                return taken.popLast()
            }

            /// Waits for the next update, in the caller's isolation; `nil` at the end, and if the task is canceled.
            public mutating func next(isolation actor: isolated (any Actor)?) async -> ServerUpdate? {
                if let update = taken.popLast() { return update }
                taken = await subscription.next()?.ordered.reversed() ?? []
                return taken.popLast()
            }
        }
    }
}

/// A group is a sequence of the updates of all its servers: `for await update in group`. ``ServerGroup/updates`` is the same
/// sequence.
extension ServerGroup: AsyncSequence {
    /// An update of one server.
    public typealias Element = ServerUpdate
    /// The sequence never fails.
    public typealias Failure = Never
    /// A subscription to the updates.
    public typealias AsyncIterator = Updates.Iterator

    /// Creates a subscription, which begins with the present update of every server.
    public func makeAsyncIterator() -> Updates.Iterator { updates.makeAsyncIterator() }
}

/// The monitored servers of one group. Its deinitialization ends their probes.
final class GroupWatch: Sendable {
    let core: MonitorCore
    let endpoints: [Endpoint]
    let hub = Broadcast<ServerBatch>()
    // Separate from `hub`: posting takes longer than a callback, and must not delay callbacks.
    private let announcements = Broadcast<ServerBatch>()
    private let announcement = Locked<CallbackToken?>(nil)
    private let targets: [TargetID]
    private let hasEnded = Locked(false)

    init(_ core: MonitorCore, _ endpoints: [Endpoint], _ settings: ProbeSettings) {
        self.core = core
        var known: Set<Endpoint> = []
        self.endpoints = endpoints.filter { known.insert($0).inserted }
        let hubs = [hub, announcements]
        targets = self.endpoints.map { core.add($0, settings: settings, hubs: hubs) }
    }

    deinit { end() }

    func announce(_ post: @escaping @Sendable (ServerUpdate) -> Void) {
        let token = announceChanges(post)
        announcement.withLock { $0 = token }
    }

    /// Calls `post` with each update. The token keeps no object alive, so observers alone do not continue the monitoring.
    func announceChanges(_ post: @escaping @Sendable (ServerUpdate) -> Void) -> CallbackToken {
        announcements.deliver(on: nil, through: core.delivery, keeping: ()) { $0.ordered.forEach(post) }
    }

    func cancel() {
        end()
        announcement.withLock { $0 = nil }
        hub.finish()
        announcements.finish()
    }

    private func end() {
        let hadEnded = hasEnded.withLock { hasEnded in
            defer { hasEnded = true }
            return hasEnded
        }
        if !hadEnded { core.remove(targets, of: endpoints) }
    }
}
