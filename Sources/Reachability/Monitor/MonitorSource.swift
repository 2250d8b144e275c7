/// The source of a monitor's events: the kernel (``MonitorSession``), or a script or recording of ReachabilityTestKit.
///
/// Each source is made with a sink, which receives its events in order, on one thread at a time.
package protocol MonitorSource: Sendable {
    /// Whether the source polls because the system refuses events.
    var isPolling: Bool { get }

    /// Makes a target's number, which is known before the target's first event.
    func newTarget() -> TargetID

    /// Adds a target; its events follow.
    func add(_ id: TargetID, _ endpoint: Endpoint, settings: ProbeSettings)

    /// Ends a target; events that are under way may still follow.
    func remove(_ id: TargetID)

    /// Gives a copy of the kernel's state to `body`; `nil` after the end.
    func withSnapshot(_ body: @escaping @Sendable (Kernel.Snapshot?) -> Void)

    /// Gives the snapshot with each batch of changes to `body`, first with none, until `body` returns false; `nil` at the end.
    func follow(_ body: @escaping @Sendable (Kernel.Snapshot?, [Kernel.Change]) -> Bool)

    /// Gives the path to `body` whenever the kernel's state has changed, whether the path has or not, and at first, until `body` returns false.
    func followPath(_ body: @escaping @Sendable (NetworkPath) -> Bool)

    /// Ends the source soon; a few events may still follow.
    func requestStop()
}
