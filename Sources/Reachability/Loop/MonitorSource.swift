/// The source of a monitor's events: the kernel (``MonitorSession``), or a script or recording of ReachabilityTestKit.
///
/// Each source is created with a sink. The sink receives the source's events in order, on one thread at a time.
package protocol MonitorSource: Sendable {
    /// Whether the source polls because the system refuses events.
    var isPolling: Bool { get }

    /// Returns a new target's number, which is known before the target's first event.
    func newTarget() -> TargetID

    /// Adds a target; its events follow.
    func add(_ id: TargetID, _ endpoint: Endpoint, settings: ProbeSettings)

    /// Removes a target. Its pending events may still follow.
    func remove(_ id: TargetID)

    /// Passes the outcome of a connection that another part of the program made to the targets with its endpoint.
    func report(_ report: PassiveReport)

    /// Passes a copy of the kernel's state to `body`; `nil` after the end.
    func withSnapshot(_ body: @escaping @Sendable (KernelSnapshot?) -> Void)

    /// Passes the path to `body`, at first and after each change of the kernel's state, even if the path is unchanged. Ends when
    /// `body` returns false.
    func subscribeToPath(_ body: @escaping @Sendable (NetworkPath) -> Bool)

    /// Requests the end of the source. A few events may still follow.
    func requestStop()
}
