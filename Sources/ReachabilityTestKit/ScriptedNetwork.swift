public import FoundationEssentials
public import Reachability

/// A network that a test controls: one path monitor, its server monitors, and the updates that the test publishes to them.
///
/// ```swift
/// let network = ScriptedNetwork(.satisfied(over: .wifi()))
/// let model = NetworkModel(monitor: network.monitor)
/// network.publish(.unsatisfied(Cause(.link, .noCarrier, detail: "interface wlan0 has no carrier")))
/// ```
/// The network opens no descriptor and never waits. When ``publish(_:reasons:at:)`` returns, `PathMonitor.current` is the new update, and iterators
/// and callbacks receive it next. As with every monitor, a reader that is not ready for an update later receives the latest one only. A test that
/// needs each update awaits it before it publishes the next.
public final class ScriptedNetwork: Sendable {
    /// The path monitor of this network. A `ServerMonitor` on it receives the updates of ``publish(_:of:at:)``.
    public let monitor: PathMonitor
    private let source: ScriptedSource

    /// Creates a network.
    ///
    /// - Parameters:
    ///   - path: the first path; `nil`, the default, if no path is known yet.
    ///   - date: the time at which the first path was found; by default the present.
    public init(_ path: NetworkPath? = nil, at date: Date = Date()) {
        let source = ScriptedSource()
        self.source = source
        monitor = PathMonitor { sink in
            source.begin(sink)
            return source
        }
        if let path { publish(path, at: date) }
    }

    /// Publishes a path.
    ///
    /// - Parameters:
    ///   - path: the path.
    ///   - reasons: the reasons for the update; `nil`, the default, for the differences to the previous path.
    ///   - date: the time at which the change was read; by default the present.
    public func publish(_ path: NetworkPath, reasons: [PathChangeReason]? = nil, at date: Date = Date()) {
        source.publish(path, reasons: reasons, at: date)
    }

    /// Publishes a server's status to that server's monitors, including those that are created later.
    ///
    /// - Parameters:
    ///   - status: the status.
    ///   - server: the server, `HOST:PORT`, as given to `ServerMonitor`.
    ///   - date: the time at which the change was read; by default the present.
    /// - Throws: `Endpoint.ParseError` for an invalid server.
    public func publish(_ status: ServerStatus, of server: String, at date: Date = Date()) throws(Endpoint.ParseError) {
        source.publish(ServerUpdate(endpoint: try Endpoint(server), status: status, date: date))
    }

    /// The servers that server monitors watch at present.
    public var watchedServers: [Endpoint] { source.watchedServers }

    /// Ends the network, as the kernel ends a removed network namespace: sequences end, and callbacks stop.
    public func end() { source.end() }
}
