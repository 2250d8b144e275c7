public import Dispatch
public import FoundationEssentials
internal import EventLoop

/// Watches whether a server can be reached, by TCP connects that the server's program does not see, and says why not.
///
/// ```swift
/// let server = try ServerMonitor("api.example.com:443")
/// for await update in server.updates {
///     switch update.status {
///     case .up(let route), .degraded(let route, _): print("up via", route.interface?.type as Any, route.roundTrip)
///     case .down(let cause), .unreachable(let cause): print(cause)       // "route: there is no route: …"
///     default: break                                                     // .unknown
///     }
/// }
/// ```
/// The server is probed at once, then every ``ProbeSettings/interval``, and at once when the network changes in a way that could
/// matter; never while there is certainly no path to it. Several server monitors on one ``PathMonitor`` share its thread. Watching
/// ends when the monitor, its iterators and its tokens are dropped. Each change is also posted to `NotificationCenter.default`
/// (``StatusDidChange``).
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
        watch.announce(for: self)
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
    // A broadcast of its own, because posting takes longer than a callback: callbacks do not wait for observers.
    private let announcements = Broadcast<ServerUpdate>()
    private let announcement = Locked<CallbackToken?>(nil)
    private let id: TargetID

    init(_ core: MonitorCore, _ endpoint: Endpoint, _ settings: ProbeSettings) {
        self.core = core
        self.endpoint = endpoint
        id = core.add(endpoint, settings: settings, hubs: [hub, announcements])
    }

    deinit { core.remove(id) }

    /// Posts each update with `monitor` as its subject, as long as `monitor` exists.
    func announce(for monitor: ServerMonitor) {
        // The token keeps nothing alive: watching does not continue for observers alone.
        let token = announcements.deliver(on: nil, through: core.delivery, keeping: ()) { [weak monitor] update in
            guard let monitor else { return }
            NotificationCenter.default.post(ServerMonitor.StatusDidChange(update: update), subject: monitor)
        }
        announcement.withLock { $0 = token }
    }

    func cancel() {
        core.remove(id)
        announcement.withLock { $0 = nil }
        hub.finish()
        announcements.finish()
    }
}

extension ServerMonitor {
    /// Posted to `NotificationCenter.default` on every change of the server's state, and once for the first state after the monitor's
    /// start. An observer that is added later receives the next change; ``ServerMonitor/current`` has the present state.
    /// Foundation delivers messages of this kind asynchronously, and two of them in any order.
    ///
    /// ```swift
    /// let token = NotificationCenter.default.addObserver(of: server, for: .statusDidChange) { message in
    ///     if let cause = message.update.cause { print(cause) }
    /// }
    /// ```
    public struct StatusDidChange: NotificationCenter.AsyncMessage {
        /// The poster.
        public typealias Subject = ServerMonitor
        /// The change.
        public let update: ServerUpdate
    }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<ServerMonitor.StatusDidChange> {
    /// The identifier of ``ServerMonitor/StatusDidChange``.
    public static var statusDidChange: Self { .init() }
}
