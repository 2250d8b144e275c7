public import Dispatch
internal import EventLoop
public import Reachability

/// Reachability in AFNetworking's words: unknown, not reachable, reachable via WWAN, via Wi-Fi, and now via cable.
///
/// For those who come from `AFNetworkReachabilityManager`. There is no `startMonitoring`: it begins when made and ends when dropped.
/// While nothing is known yet the status is `.unknown`, not `.notReachable`. For a host it does more than its model, which looked at
/// routes only: the host is probed by TCP connects.
public final class NetworkReachabilityManager: Sendable {
    /// What can be reached, and how.
    @nonexhaustive public enum Status: String, Hashable, Sendable, CaseIterable {
        /// Nothing is known yet.
        case unknown
        /// No.
        case notReachable = "not reachable"
        /// Over a mobile network, also through a tunnel over one.
        case reachableViaWWAN = "reachable via WWAN"
        /// Over Wi-Fi.
        case reachableViaWiFi = "reachable via Wi-Fi"
        /// Over a cable.
        case reachableViaWired = "reachable via cable"
        /// Over something else: a tether, a bridge, an interface made by software.
        case reachable = "reachable"
    }

    private enum Subject {
        case machine(PathMonitor)
        case host(ServerMonitor)
    }

    private let subject: Subject

    /// Watches the machine: is there a path to anywhere?
    ///
    /// - Throws: `MonitorError` as `PathMonitor.init(namespace:)`.
    public init() throws(MonitorError) { subject = .machine(try PathMonitor()) }

    /// Watches a host by name, or by address as text.
    ///
    /// - Parameters:
    ///   - host: the name or address, without a scheme or port; IPv6 addresses with or without brackets, link-local ones with their
    ///     interface: `fe80::1%eth0`.
    ///   - port: the TCP port that is connected to.
    /// - Throws: `Endpoint.ParseError`, or `MonitorError` as `PathMonitor.init(namespace:)`.
    public init(host: String, port: UInt16 = 443) throws {
        subject = .host(try ServerMonitor(Endpoint(host: host, port: port).text))
    }

    /// Watches a host by address.
    ///
    /// - Parameters:
    ///   - address: the address.
    ///   - port: the TCP port that is connected to.
    /// - Throws: `Endpoint.ParseError` for port 0, or `MonitorError` as `PathMonitor.init(namespace:)`.
    public convenience init(address: IPAddress, port: UInt16 = 443) throws { try self.init(host: "\(address)", port: port) }

    /// The status as last known.
    public var status: Status {
        switch subject {
        case .machine(let monitor): Status(monitor.currentPath)
        case .host(let monitor): Status(monitor.current)
        }
    }

    /// Whether it is reachable, by whatever way.
    public var isReachable: Bool { status.isReachable }
    /// Whether it is reachable over a mobile network.
    public var isReachableViaWWAN: Bool { status == .reachableViaWWAN }
    /// Whether it is reachable over Wi-Fi.
    public var isReachableViaWiFi: Bool { status == .reachableViaWiFi }
    /// Whether it is reachable over a cable.
    public var isReachableViaWired: Bool { status == .reachableViaWired }

    /// Calls `body` with the present status, and again whenever it changes.
    ///
    /// - Parameters:
    ///   - queue: where `body` is called; without one on a thread kept for callbacks.
    ///   - body: the callback.
    /// - Returns: a token; the callback ends when it is dropped.
    public func onStatusChange(on queue: DispatchQueue? = nil, _ body: @escaping @Sendable (Status) -> Void) -> CallbackToken {
        let last = LastStatus()
        switch subject {
        case .machine(let monitor): return monitor.onChange(on: queue) { last.tell(Status($0.path), body) }
        case .host(let monitor): return monitor.onChange(on: queue) { last.tell(Status($0), body) }
        }
    }
}

extension NetworkReachabilityManager.Status {
    /// Whether it is any of the reachable ones.
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

    // What a tunnel rests on is what it costs.
    private init(over interface: NetworkInterface?, under: NetworkInterface?) {
        switch (under ?? interface)?.type {
        case .cellular: self = .reachableViaWWAN
        case .wifi: self = .reachableViaWiFi
        case .wired: self = .reachableViaWired
        default: self = .reachable
        }
    }
}

/// Tells a status only when it is another than before.
private final class LastStatus: Sendable {
    private let last = Locked<NetworkReachabilityManager.Status?>(nil)

    func tell(_ status: NetworkReachabilityManager.Status, _ body: (NetworkReachabilityManager.Status) -> Void) {
        let isNew = last.withLock { last in
            defer { last = status }
            return last != status
        }
        if isNew { body(status) }
    }
}
