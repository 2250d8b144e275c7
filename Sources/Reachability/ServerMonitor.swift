public import Dispatch
public import FoundationEssentials

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
    private let group: ServerGroup

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
        group = try ServerGroup([endpoint], settings: settings, on: monitor)
        group.announce { [weak self] update in
            guard let self else { return }
            NotificationCenter.default.post(StatusDidChange(update: update), subject: self)
        }
    }

    /// The server.
    public var endpoint: Endpoint { group.endpoints[0] }

    /// The last update; `nil` until the monitor has begun.
    public var current: ServerUpdate? { group.current(endpoint) }

    /// The changes of the server's status. Any number of tasks may iterate, each from the present on; one that is slow gets the latest.
    public var updates: ServerGroup.Updates { group.updates }

    /// Calls `body` with the present status and with each change.
    ///
    /// - Parameters:
    ///   - queue: where `body` is called; without one on a thread that the monitor keeps for callbacks. Never twice at the same time.
    ///   - body: the callback.
    /// - Returns: a token; the callback ends when it is dropped.
    public func onChange(on queue: DispatchQueue? = nil, _ body: @escaping @Sendable (ServerUpdate) -> Void) -> CallbackToken {
        group.onChange(on: queue, body)
    }

    /// Ends watching this server: sequences end, callbacks stop.
    public func cancel() { group.cancel() }
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
