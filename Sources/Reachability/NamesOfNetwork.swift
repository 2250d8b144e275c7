public import Dispatch

// Names of Apple's Network framework, so that the compiler names the replacement. Only names that programs really use are here; the
// article "Coming from NWPathMonitor" has all others.

/// Network's name of ``PathMonitor``.
@available(*, unavailable, renamed: "PathMonitor")
public typealias NWPathMonitor = PathMonitor

/// Network's name of ``NetworkPath``.
@available(*, unavailable, renamed: "NetworkPath")
public typealias NWPath = NetworkPath

/// Network's name of ``NetworkInterface``. Its `InterfaceType` is ``InterfaceType``.
@available(*, unavailable, renamed: "NetworkInterface")
public typealias NWInterface = NetworkInterface

/// Network's name of ``Endpoint``.
@available(*, unavailable, renamed: "Endpoint")
public typealias NWEndpoint = Endpoint

extension PathMonitor {
    /// Network's handler of paths. The counterpart is ``onChange(on:_:)``.
    @available(*, unavailable, message: "call onChange(on:_:), whose callback receives updates, and keep its token")
    public var pathUpdateHandler: (@Sendable (NetworkPath) -> Void)? {
        get { nil }
        set {}
    }

    /// Network's start of a monitor. A ``PathMonitor`` starts when it is made.
    @available(*, unavailable, message: "a monitor starts when it is made; onChange(on:_:) takes the queue")
    public func start(queue: DispatchQueue) {}
}

extension NetworkPath {
    /// Network's name of ``interfaces``.
    @available(*, unavailable, renamed: "interfaces")
    public var availableInterfaces: [NetworkInterface] { interfaces }

    /// Network's name of ``cause``.
    @available(*, unavailable, renamed: "cause")
    public var unsatisfiedReason: Cause? { cause }
}

extension NetworkPath.Status {
    /// Network's status of a path that opens on demand, which has no counterpart.
    @available(*, unavailable, message: "Linux opens no connection on demand: use satisfied and unsatisfied")
    public static var requiresConnection: NetworkPath.Status { .unsatisfied }
}

extension InterfaceType {
    /// Network's name of ``wired``.
    @available(*, unavailable, renamed: "wired")
    public static var wiredEthernet: InterfaceType { .wired }
}
