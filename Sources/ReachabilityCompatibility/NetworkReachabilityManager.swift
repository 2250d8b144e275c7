public import Dispatch
internal import EventLoop
public import FoundationEssentials
public import Reachability

/// Reachability with the statuses of AFNetworking: unknown, not reachable, reachable via WWAN, via Wi-Fi, and also via cable.
///
/// The class replaces `AFNetworkReachabilityManager`. It has no `startMonitoring`: a manager monitors from its creation until its
/// release. Before the first result the status is `.unknown`, not `.notReachable`. For a host, AFNetworking examined only routes;
/// this manager probes the host by TCP connections. Each change of the status is also posted to `NotificationCenter.default`
/// (``StatusDidChange``).
public final class NetworkReachabilityManager: Sendable {
    /// The status of a machine's or a host's reachability. Later versions may add statuses.
    @nonexhaustive public enum Status: String, Hashable, Sendable, CaseIterable {
        /// No result is known yet.
        case unknown
        /// The machine has no usable path, or the host does not answer.
        case notReachable = "not reachable"
        /// Reachable over a mobile network, directly or through a tunnel.
        case reachableViaWWAN = "reachable via WWAN"
        /// Reachable over Wi-Fi, directly or through a tunnel.
        case reachableViaWiFi = "reachable via Wi-Fi"
        /// Reachable over a cable, directly or through a tunnel.
        case reachableViaWired = "reachable via cable"
        /// Reachable over another interface: a tethered phone, a bridge, or a virtual interface.
        case reachable = "reachable"
    }

    private enum Subject {
        case machine(PathMonitor)
        case host(ServerMonitor)
    }

    private let subject: Subject
    private let announcement = Locked<CallbackToken?>(nil)

    private init(_ subject: Subject) {
        self.subject = subject
        // Posted statuses start from `unknown`, so that a manager without a result posts nothing.
        let last = LastStatus(.unknown)
        let post: @Sendable (Status) -> Void = { [weak self] status in
            guard let self else { return }
            NotificationCenter.default.post(StatusDidChange(status: status), subject: self)
        }
        let token =
            switch subject {
            case .machine(let monitor): monitor.announceChanges { last.deliver(Status($0.path), post) }
            case .host(let monitor): monitor.announceChanges { last.deliver(Status($0), post) }
            }
        announcement.withLock { $0 = token }
    }

    /// Creates a manager for this machine. The machine is reachable if it has a satisfied path.
    ///
    /// - Throws: `MonitorError`, as `PathMonitor.init(namespace:)`.
    public convenience init() throws(MonitorError) { self.init(monitor: try PathMonitor()) }

    /// Creates a manager for a host, by its name or by its address as text.
    ///
    /// - Parameters:
    ///   - host: the name or address, without a scheme or port. Brackets around an IPv6 address are optional; a link-local
    ///     address needs its interface (`fe80::1%eth0`).
    ///   - port: the TCP port to which the probes connect, 1 to 65535; default 443.
    /// - Throws: `Endpoint.ParseError`, or `MonitorError`, as `PathMonitor.init(namespace:)`.
    public convenience init(host: String, port: UInt16 = 443) throws {
        self.init(server: try ServerMonitor(Endpoint(host: host, port: port).text))
    }

    /// Creates a manager for a host by its address.
    ///
    /// - Parameters:
    ///   - address: the address.
    ///   - port: the TCP port to which the probes connect, 1 to 65535; default 443.
    /// - Throws: `Endpoint.ParseError` for port 0, or `MonitorError`, as `PathMonitor.init(namespace:)`.
    public convenience init(address: IPAddress, port: UInt16 = 443) throws { try self.init(host: "\(address)", port: port) }

    /// Creates a manager on a path monitor.
    package convenience init(monitor: PathMonitor) { self.init(.machine(monitor)) }

    /// Creates a manager on a server monitor.
    package convenience init(server: ServerMonitor) { self.init(.host(server)) }

    /// The present status.
    public var status: Status {
        switch subject {
        case .machine(let monitor): Status(monitor.currentPath)
        case .host(let monitor): Status(monitor.current)
        }
    }

    /// Whether the machine or host is reachable over any interface.
    public var isReachable: Bool { status.isReachable }
    /// Whether the machine or host is reachable over a mobile network.
    public var isReachableViaWWAN: Bool { status == .reachableViaWWAN }
    /// Whether the machine or host is reachable over Wi-Fi.
    public var isReachableViaWiFi: Bool { status == .reachableViaWiFi }
    /// Whether the machine or host is reachable over a cable.
    public var isReachableViaWired: Bool { status == .reachableViaWired }

    /// Calls `body` with the present status, and with each changed status.
    ///
    /// - Parameters:
    ///   - queue: the queue on which `body` runs; `nil`, the default, for a thread that the manager keeps for callbacks.
    ///   - body: the callback.
    /// - Returns: a token. Releasing the token ends the callback.
    public func onStatusChange(on queue: DispatchQueue? = nil, _ body: @escaping @Sendable (Status) -> Void) -> CallbackToken {
        let last = LastStatus(nil)
        switch subject {
        case .machine(let monitor): return monitor.onChange(on: queue) { last.deliver(Status($0.path), body) }
        case .host(let monitor): return monitor.onChange(on: queue) { last.deliver(Status($0), body) }
        }
    }
}

extension NetworkReachabilityManager {
    /// The message that is posted to `NotificationCenter.default` for every change of the status, like AFNetworking's
    /// `AFNetworkingReachabilityDidChangeNotification`.
    ///
    /// The first message has the first status other than `unknown`. An observer that is added later receives the next change;
    /// ``NetworkReachabilityManager/status`` is the present status. A manager posts messages until its release. Foundation
    /// delivers messages of this kind asynchronously, and may change their order.
    ///
    /// ```swift
    /// let token = NotificationCenter.default.addObserver(of: manager, for: .networkReachabilityDidChange) { message in
    ///     print(message.status.rawValue)
    /// }
    /// ```
    public struct StatusDidChange: NotificationCenter.AsyncMessage {
        /// The type of the object that posts the message.
        public typealias Subject = NetworkReachabilityManager
        /// The changed status.
        public let status: Status
    }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<NetworkReachabilityManager.StatusDidChange> {
    /// The identifier of ``NetworkReachabilityManager/StatusDidChange``.
    public static var networkReachabilityDidChange: Self { .prepared }
}

extension NetworkReachabilityManager.Status {
    /// Whether the status is one of the reachable ones.
    public var isReachable: Bool { self != .unknown && self != .notReachable }

    init(_ path: NetworkPath?) {
        guard let path else {
            self = .unknown
            return
        }
        self = path.status == .satisfied ? Self(over: path.interface, under: path.underlying) : .notReachable
    }

    init(_ update: ServerUpdate?) {
        switch update?.status {
        case nil, .unknown: self = .unknown
        case .up(let route), .degraded(let route, _): self = Self(over: route.interface, under: nil)
        case .down, .unreachable: self = .notReachable
        }
    }

    // The interface under a tunnel determines the tunnel's cost.
    private init(over interface: NetworkInterface?, under: NetworkInterface?) {
        switch (under ?? interface)?.type {
        case .cellular: self = .reachableViaWWAN
        case .wifi: self = .reachableViaWiFi
        case .wired: self = .reachableViaWired
        default: self = .reachable
        }
    }
}

/// Delivers a status only if it differs from the previous one.
private final class LastStatus: Sendable {
    private let last: Locked<NetworkReachabilityManager.Status?>

    init(_ status: NetworkReachabilityManager.Status?) { last = Locked(status) }

    func deliver(_ status: NetworkReachabilityManager.Status, _ body: (NetworkReachabilityManager.Status) -> Void) {
        let isNew = last.withLock { last in
            defer { last = status }
            return last != status
        }
        if isNew { body(status) }
    }
}
