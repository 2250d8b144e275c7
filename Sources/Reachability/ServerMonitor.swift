public import Dispatch

/// Watches whether a server can be reached, by TCP connects that the server's program does not see, and says why not.
///
/// ```swift
/// let server = try ServerMonitor("api.example.com:443")
/// for await update in server.updates {
///     switch update.status {
///     case .reachable(let via):     print("up via", via.interface?.type as Any, via.roundTrip)
///     case .unreachable(let cause): print(cause)       // "route: there is no route: …"
///     case .unknown:                break
///     }
/// }
/// ```
/// The server is probed at once, then every ``ProbeSettings/interval``, and at once when the network changes in a way that could
/// matter; never while there is certainly no path to it. Several server monitors on one ``PathMonitor`` share its thread. Watching
/// ends when the monitor, its iterators and its tokens are dropped.
public final class ServerMonitor: Sendable {
    private let watch: ServerWatch

    /// Watches the server `HOST:PORT` or `tcp://HOST:PORT`.
    ///
    /// - Parameters:
    ///   - target: the server; IPv6 addresses in brackets.
    ///   - settings: how it is probed.
    ///   - monitor: the path monitor whose thread and namespace serve; without one it makes one of its own.
    /// - Throws: ``Endpoint/ParseError`` for a target that is none; ``MonitorError`` as ``PathMonitor/init(namespace:)``.
    public convenience init(
        _ target: String, settings: ProbeSettings = ProbeSettings(), on monitor: PathMonitor? = nil
    ) throws {
        try self.init(Endpoint(target), settings: settings, on: monitor)
    }

    /// Watches a server.
    ///
    /// - Parameters:
    ///   - endpoint: the server.
    ///   - settings: how it is probed.
    ///   - monitor: the path monitor whose thread and namespace serve; without one it makes one of its own.
    /// - Throws: ``MonitorError`` as ``PathMonitor/init(namespace:)``.
    public init(
        _ endpoint: Endpoint, settings: ProbeSettings = ProbeSettings(), on monitor: PathMonitor? = nil
    ) throws(MonitorError) {
        let core: MonitorCore
        if let monitor { core = monitor.core } else { core = try MonitorCore(MonitorConfiguration()) }
        watch = ServerWatch(core, endpoint, settings)
    }

    /// The server.
    public var endpoint: Endpoint { watch.endpoint }

    /// The state as last published; `nil` until the monitor has begun.
    public var current: ServerUpdate? { watch.hub.latest }

    /// The changes of the server's state. Any number of tasks may iterate, each from the present on; one that is slow gets the latest.
    public var updates: ServerUpdates { ServerUpdates(watch: watch) }

    /// Calls `body` with the present state and with each change.
    ///
    /// - Parameters:
    ///   - queue: where `body` is called; without one on a thread that the monitor keeps for callbacks. Never twice at the same time.
    ///   - body: the callback.
    /// - Returns: a token; the callback ends when it is dropped.
    public func onChange(on queue: DispatchQueue? = nil, _ body: @escaping @Sendable (ServerUpdate) -> Void) -> CallbackToken {
        watch.hub.deliver(on: queue, through: watch.core.delivery, keeping: watch, body)
    }

    /// Ends watching this server: sequences end, callbacks stop.
    public func cancel() { watch.cancel() }

    /// The changes of a server's state; each iteration begins with the present.
    public struct ServerUpdates: AsyncSequence, Sendable {
        /// One change.
        public typealias Element = ServerUpdate
        /// It never fails.
        public typealias Failure = Never

        let watch: ServerWatch

        /// A new subscription.
        public func makeAsyncIterator() -> Iterator { Iterator(watch: watch, subscription: watch.hub.subscribe()) }

        /// A subscription.
        public struct Iterator: AsyncIteratorProtocol {
            let watch: ServerWatch
            let subscription: Broadcast<ServerUpdate>.Subscription

            /// The next change; `nil` at the end, and when the task is cancelled.
            public mutating func next() async -> ServerUpdate? { await subscription.next() }

            /// The same, wherever the caller runs.
            public mutating func next(isolation actor: isolated (any Actor)?) async -> ServerUpdate? { await subscription.next() }
        }
    }
}

/// One watched server; its end is the end of probing.
final class ServerWatch: Sendable {
    let core: MonitorCore
    let endpoint: Endpoint
    let hub = Broadcast<ServerUpdate>()
    private let id: TargetID

    init(_ core: MonitorCore, _ endpoint: Endpoint, _ settings: ProbeSettings) {
        self.core = core
        self.endpoint = endpoint
        id = core.add(endpoint, settings: settings, hub: hub)
    }

    deinit { core.remove(id) }

    func cancel() {
        core.remove(id)
        hub.finish()
    }
}
