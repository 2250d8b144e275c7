public import FoundationEssentials
// Paths, causes and statuses are in the signatures of this library: its users need no import of their own.
@_exported public import Reachability

/// A network that a test controls: one path monitor, its server monitors, and the updates that the test publishes to them.
///
/// ```swift
/// let network = ScriptedNetwork(.satisfied(over: .wifi()))
/// let model = NetworkModel(monitor: network.monitor)
/// network.publish(.unsatisfied(Cause(.link, .noCarrier, detail: "interface wlan0 has no carrier")))
/// ```
/// The network opens no descriptor and never waits for a reader. When ``publish(_:reasons:at:)`` returns:
/// - `PathMonitor.current` is the new update, or a later one that another thread has published.
/// - A session on the monitor has the path among its commands. With a `ScriptedTransport` (HTTPSessionTestKit), `waitUntilIdle()` and `advance(by:)`
///   return after the session has handled the path, and no scripted time passes before.
/// - A task that waits for the next element of `PathMonitor.updates` is resumed, and runs soon.
/// - The callbacks of `onChange(on:_:)` are submitted to their queues, and run soon. A callback on a serial queue has run after `queue.sync {}`.
/// - Notifications of `NotificationCenter` follow, in any order.
///
/// Any thread may publish. Each update is delivered to all receivers in one order, and callbacks may publish as well.
///
/// As with every monitor, a reader that is not ready for an update receives the latest one only. A test that needs each
/// update awaits it before it publishes the next.
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

    /// Publishes a path. After ``cancel()`` and `PathMonitor.cancel()`, the method does nothing.
    ///
    /// - Parameters:
    ///   - path: the path.
    ///   - reasons: the reasons for the update; `nil`, the default, for the differences to the previous path.
    ///   - date: the time at which the change was read; by default the present.
    public func publish(_ path: NetworkPath, reasons: [PathChangeReason]? = nil, at date: Date = Date()) {
        source.publish(path, reasons: reasons, at: date)
    }

    /// Publishes a server's status to that server's monitors, including those that are created later. When the method returns,
    /// `ServerMonitor.current` is the new update; readers and callbacks receive it as those of a path. After ``cancel()`` and `PathMonitor.cancel()`,
    /// the method does nothing.
    ///
    /// - Parameters:
    ///   - status: the status.
    ///   - endpoint: the server, `HOST:PORT`, as given to `ServerMonitor`.
    ///   - date: the time at which the change was read; by default the present.
    /// - Throws: `Endpoint.ParseError` for an invalid endpoint.
    public func publish(_ status: ServerStatus, of endpoint: String, at date: Date = Date()) throws(Endpoint.ParseError) {
        source.publish(ServerUpdate(endpoint: try Endpoint(endpoint), status: status, date: date))
    }

    /// Publishes the state of an incident. After ``cancel()`` and `PathMonitor.cancel()`, the method does nothing.
    ///
    /// - Parameter incident: the incident. A later state of it has the same `id`.
    public func publish(_ incident: Incident) { source.publish(.incident(incident)) }

    /// The endpoints that server monitors and groups watch at present, without duplicates, in the order of their texts.
    public var watchedEndpoints: [Endpoint] { source.watchedEndpoints }

    /// Ends the network, as the kernel ends a removed network namespace: sequences end, and callbacks stop. `PathMonitor.current` remains, and nothing
    /// can be published any more.
    public func cancel() { source.end() }
}
