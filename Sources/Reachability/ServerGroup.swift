public import Dispatch
internal import EventLoop

/// Watches many servers, with one stream for the changes of all. A ``ServerMonitor`` is a group of one.
///
/// ```swift
/// let group = try ServerGroup(["api.example.com:443", "db.example.com:5432"])
/// for await update in group.updates {
///     print(update.endpoint, update.status)
/// }
/// ```
/// Each server is probed as by a ``ServerMonitor``. Watching ends when the group, its iterators and its tokens are dropped.
public final class ServerGroup: Sendable {
    private let watch: GroupWatch

    /// Watches the servers `HOST:PORT` or `tcp://HOST:PORT`.
    ///
    /// - Parameters:
    ///   - targets: the servers; IPv6 addresses in brackets.
    ///   - settings: how each is probed.
    ///   - monitor: the path monitor whose thread and namespace serve; without one the group makes one of its own.
    /// - Throws: ``Endpoint/ParseError`` for a target that is none; ``MonitorError`` as ``PathMonitor/init(namespace:)``.
    public convenience init(
        _ targets: [String], settings: ProbeSettings = ProbeSettings(), on monitor: PathMonitor? = nil
    ) throws {
        try self.init(targets.map { try Endpoint($0) }, settings: settings, on: monitor)
    }

    /// Watches servers.
    ///
    /// - Parameters:
    ///   - endpoints: the servers; one that is there twice is watched once.
    ///   - settings: how each is probed.
    ///   - monitor: the path monitor whose thread and namespace serve; without one the group makes one of its own.
    /// - Throws: ``MonitorError`` as ``PathMonitor/init(namespace:)``.
    public init(
        _ endpoints: [Endpoint], settings: ProbeSettings = ProbeSettings(), on monitor: PathMonitor? = nil
    ) throws(MonitorError) {
        let core: MonitorCore
        if let monitor { core = monitor.core } else { core = try MonitorCore(MonitorConfiguration()) }
        watch = GroupWatch(core, endpoints, settings)
    }

    /// The servers, in the order in which they were given.
    public var endpoints: [Endpoint] { watch.endpoints }

    /// The last updates of the servers that have one, in the order of ``endpoints``.
    public var current: [ServerUpdate] {
        guard let latest = watch.hub.latest else { return [] }
        return endpoints.compactMap { latest[$0] }
    }

    /// The last update of one server; `nil` until it has one, and for a server that is not in the group.
    public func current(_ endpoint: Endpoint) -> ServerUpdate? { watch.hub.latest?[endpoint] }

    /// The changes of all servers. Any number of tasks may iterate, each from the present of every server on. A task that is slow gets the
    /// latest update of each server that has changed.
    public var updates: Updates { Updates(watch: watch) }

    /// Calls `body` with the present status of every server and with each change.
    ///
    /// - Parameters:
    ///   - queue: where `body` is called; without one on a thread that the monitor keeps for callbacks. Never twice at the same time.
    ///   - body: the callback.
    /// - Returns: a token; the callback ends when it is dropped.
    public func onChange(on queue: DispatchQueue? = nil, _ body: @escaping @Sendable (ServerUpdate) -> Void) -> CallbackToken {
        watch.hub.deliver(on: queue, through: watch.core.delivery, keeping: watch) { $0.ordered.forEach(body) }
    }

    /// Calls `post` with each change, beside the callbacks, as long as the group exists.
    func announce(_ post: @escaping @Sendable (ServerUpdate) -> Void) { watch.announce(post) }

    /// Ends watching: sequences end, callbacks stop.
    public func cancel() { watch.cancel() }

    /// The changes of servers; each iteration begins with the present.
    public struct Updates: AsyncSequence, Sendable {
        /// One change of one server.
        public typealias Element = ServerUpdate
        /// The sequence never fails.
        public typealias Failure = Never

        let watch: GroupWatch

        /// A new subscription.
        public func makeAsyncIterator() -> Iterator { Iterator(watch: watch, subscription: watch.hub.subscribe()) }

        /// A subscription.
        public struct Iterator: AsyncIteratorProtocol {
            let watch: GroupWatch
            let subscription: Broadcast<ServerBatch>.Subscription
            // The last is the next.
            private var taken: [ServerUpdate] = []

            init(watch: GroupWatch, subscription: Broadcast<ServerBatch>.Subscription) {
                (self.watch, self.subscription) = (watch, subscription)
            }

            /// The next change; `nil` at the end, and when the task is cancelled.
            public mutating func next() async -> ServerUpdate? {
                if let update = taken.popLast() { return update }
                taken = await subscription.next()?.ordered.reversed() ?? []
                return taken.popLast()
            }

            /// The next change, wherever the caller runs.
            public mutating func next(isolation actor: isolated (any Actor)?) async -> ServerUpdate? {
                if let update = taken.popLast() { return update }
                taken = await subscription.next()?.ordered.reversed() ?? []
                return taken.popLast()
            }
        }
    }
}

/// The watched servers of one group; its end is the end of probing.
final class GroupWatch: Sendable {
    let core: MonitorCore
    let endpoints: [Endpoint]
    let hub = Broadcast<ServerBatch>()
    // A broadcast of its own, because posting takes longer than a callback: callbacks do not wait for observers.
    private let announcements = Broadcast<ServerBatch>()
    private let announcement = Locked<CallbackToken?>(nil)
    private let targets: [TargetID]

    init(_ core: MonitorCore, _ endpoints: [Endpoint], _ settings: ProbeSettings) {
        self.core = core
        var known: Set<Endpoint> = []
        self.endpoints = endpoints.filter { known.insert($0).inserted }
        let hubs = [hub, announcements]
        targets = self.endpoints.map { core.add($0, settings: settings, hubs: hubs) }
    }

    deinit { end() }

    /// Calls `post` with each change; the token keeps nothing alive: watching does not continue for observers alone.
    func announce(_ post: @escaping @Sendable (ServerUpdate) -> Void) {
        let token = announcements.deliver(on: nil, through: core.delivery, keeping: ()) { $0.ordered.forEach(post) }
        announcement.withLock { $0 = token }
    }

    func cancel() {
        end()
        announcement.withLock { $0 = nil }
        hub.finish()
        announcements.finish()
    }

    private func end() { for target in targets { core.remove(target) } }
}
