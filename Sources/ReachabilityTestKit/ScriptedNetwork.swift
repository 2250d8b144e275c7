public import FoundationEssentials
public import Reachability

/// A network that a test makes: one path monitor, its server monitors, and the updates that the test publishes to them.
///
/// ```swift
/// let network = ScriptedNetwork(.satisfied(over: .wifi()))
/// let model = NetworkModel(monitor: network.monitor)
/// network.publish(.unsatisfied(Cause(.link, .noCarrier, detail: "interface wlan0 has no carrier")))
/// ```
/// Nothing is opened, asked or waited for. When ``publish(_:reasons:at:)`` returns, `PathMonitor.current` is the new update, and iterators
/// and callbacks have it next.
public final class ScriptedNetwork: Sendable {
    /// The path monitor of this network. A `ServerMonitor` on it receives what ``publish(_:of:at:)`` publishes.
    public let monitor: PathMonitor
    private let source: ScriptedSource

    /// A network.
    ///
    /// - Parameters:
    ///   - path: the first path; `nil`: none is known yet.
    ///   - date: when the first path was found.
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
    ///   - reasons: why it is published; `nil` for the differences to the path before.
    ///   - date: when the change was read.
    public func publish(_ path: NetworkPath, reasons: [PathChangeReason]? = nil, at date: Date = Date()) {
        source.publish(path, reasons: reasons, at: date)
    }

    /// Publishes a server's status to the server monitors of that server, and to those that are made later.
    ///
    /// - Parameters:
    ///   - status: the status.
    ///   - server: `HOST:PORT`, as given to `ServerMonitor`.
    ///   - date: when the change was read.
    /// - Throws: `Endpoint.ParseError` for a server that is none.
    public func publish(_ status: ServerStatus, of server: String, at date: Date = Date()) throws(Endpoint.ParseError) {
        source.publish(ServerUpdate(endpoint: try Endpoint(server), status: status, date: date))
    }

    /// The servers that server monitors watch now.
    public var watchedServers: [Endpoint] { source.watchedServers }

    /// Ends the network, as the kernel ends a removed network namespace: sequences end, callbacks stop.
    public func end() { source.end() }
}
