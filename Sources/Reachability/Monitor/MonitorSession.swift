/// A running monitor: one thread that watches one namespace. Everything public composes this.
package final class MonitorSession: Sendable {
    package let identity: MonitorIdentity

    /// Starts watching; returns once the sockets are open.
    ///
    /// `sink` is called on the monitor's thread, in order, with every event; it must not block.
    package init(
        _ configuration: MonitorConfiguration, recordingTo path: String? = nil, targets: [(Endpoint, ProbeSettings)] = [],
        sink: @escaping @Sendable (MonitorEvent) -> Void
    ) throws(MonitorError) {
        identity = MonitorIdentity(bootID: "", namespaceName: nil, namespaceInode: 0)
    }

    /// Adds a target; its events follow.
    package func add(_ endpoint: Endpoint, settings: ProbeSettings) -> TargetID { TargetID(0) }

    /// Stops watching and closes everything; returns when the thread has ended. No event follows.
    package func stop() {}
}
