public import Dispatch
public import FoundationEssentials

/// Monitors a server, and reports the cause if the server is not reachable. Probes of `HOST:PORT` are TCP connections that the server's
/// program does not notice; endpoints with `tls`, `http` and `https` have TLS handshakes and HTTP requests.
///
/// ```swift
/// let server = try ServerMonitor("api.example.com:443")
/// for await update in server {
///     switch update.status {
///     case .up(let route), .degraded(let route, _): print("up via", route.interface?.type as Any, route.roundTrip)
///     case .down(let cause), .unreachable(let cause): print(cause)       // "route: there is no route: …"
///     default: break                                                     // .unknown
///     }
/// }
/// ```
/// The server is probed at once, then every ``ProbeSettings/interval``, and at once after a network change that may affect it. It
/// is not probed while the kernel has no route to it. Several server monitors on one ``PathMonitor`` share its thread. Monitoring
/// ends when the monitor, its iterators and its tokens are released. Each update is also posted to `NotificationCenter.default`
/// (``StatusDidChange``).
public final class ServerMonitor: Sendable {
    let group: ServerGroup

    /// Creates a monitor of the server `HOST:PORT`, `tls://HOST[:PORT]`, or of a URL with `http` or `https`.
    ///
    /// - Parameters:
    ///   - endpoint: the server. IPv6 addresses need brackets.
    ///   - settings: the settings of the probes.
    ///   - monitor: the path monitor whose thread and namespace are used; `nil`, the default, for a new one.
    /// - Throws: ``Endpoint/ParseError`` for an invalid endpoint; ``MonitorError``, as ``PathMonitor/init(namespace:)``.
    public convenience init(
        _ endpoint: String, settings: ProbeSettings = ProbeSettings(), monitor: PathMonitor? = nil
    ) throws {
        try self.init(Endpoint(endpoint), settings: settings, monitor: monitor)
    }

    /// Creates a monitor of a server.
    ///
    /// - Parameters:
    ///   - endpoint: the server.
    ///   - settings: the settings of the probes.
    ///   - monitor: the path monitor whose thread and namespace are used; `nil`, the default, for a new one.
    /// - Throws: ``MonitorError``, as ``PathMonitor/init(namespace:)``.
    public init(
        _ endpoint: Endpoint, settings: ProbeSettings = ProbeSettings(), monitor: PathMonitor? = nil
    ) throws(MonitorError) {
        group = try ServerGroup([endpoint], settings: settings, monitor: monitor)
        group.announce { [weak self] update in
            guard let self else { return }
            NotificationCenter.default.post(StatusDidChange(update: update), subject: self)
        }
    }

    /// The monitored server.
    public var endpoint: Endpoint { group.endpoints[0] }

    /// The last update; `nil` until the monitor has started.
    public var current: ServerUpdate? { group.current(endpoint) }

    /// The updates of the server's status, starting with the present one. Any number of tasks may iterate. A slow task receives
    /// the latest update.
    public var updates: ServerGroup.Updates { group.updates }

    /// Calls `body` with the present update, and with each further update.
    ///
    /// - Parameters:
    ///   - queue: the queue on which `body` runs; `nil`, the default, for a thread that the monitor keeps for callbacks. `body`
    ///     never runs twice at the same time.
    ///   - body: the callback.
    /// - Returns: a token. Releasing the token ends the callback.
    public func onChange(on queue: DispatchQueue? = nil, _ body: @escaping @Sendable (ServerUpdate) -> Void) -> CallbackToken {
        group.onChange(on: queue, body)
    }

    /// Calls `post` with each update, independently of the callbacks, to post notifications. The calls do not keep the monitor
    /// running. Releasing the token ends them.
    package func announceChanges(_ post: @escaping @Sendable (ServerUpdate) -> Void) -> CallbackToken {
        group.announceChanges(post)
    }

    /// Ends the monitor: sequences end, and callbacks stop.
    public func cancel() { group.cancel() }
}

/// A monitor is a sequence of its updates: `for await update in server`. ``ServerMonitor/updates`` is the same sequence.
extension ServerMonitor: AsyncSequence {
    /// An update of the server.
    public typealias Element = ServerUpdate
    /// The sequence never fails.
    public typealias Failure = Never
    /// A subscription to the updates.
    public typealias AsyncIterator = ServerGroup.Updates.Iterator

    /// Creates a subscription, which begins with the present update.
    public func makeAsyncIterator() -> ServerGroup.Updates.Iterator { updates.makeAsyncIterator() }
}

extension ServerMonitor {
    /// The message that is posted to `NotificationCenter.default` for every update of the server.
    ///
    /// The first message follows the monitor's start. An observer that is added later receives the next update;
    /// ``ServerMonitor/current`` is the present one. Foundation delivers messages of this kind asynchronously, and may change
    /// their order.
    ///
    /// ```swift
    /// let token = NotificationCenter.default.addObserver(of: server, for: .statusDidChange) { message in
    ///     if let cause = message.update.cause { print(cause) }
    /// }
    /// ```
    public struct StatusDidChange: NotificationCenter.AsyncMessage {
        /// The type of the object that posts the message.
        public typealias Subject = ServerMonitor
        /// The update.
        public let update: ServerUpdate
    }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<ServerMonitor.StatusDidChange> {
    /// The identifier of ``ServerMonitor/StatusDidChange``.
    public static var statusDidChange: Self { .prepared }
}
