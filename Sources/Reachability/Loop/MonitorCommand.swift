extension MonitorLoop {
    /// Receives the snapshot with each batch of changes, first without changes, and `nil` at the end. Returns false to
    /// unsubscribe.
    typealias Follower = @Sendable (Kernel.Snapshot?, [Kernel.Change]) -> Bool
    /// Receives the path after each change of links, addresses, routes or rules, even if the path is unchanged, and at once if a
    /// path exists. Returns false to unsubscribe.
    typealias PathFollower = @Sendable (NetworkPath) -> Bool

    /// A command from another thread to the loop.
    enum Command: Sendable {
        case add(TargetID, Endpoint, ProbeSettings)
        case remove(TargetID)
        /// Removes a target, and adds another one in its place.
        case replace(TargetID, by: TargetID, Endpoint, ProbeSettings)
        case lookup(LookupAnswer)
        case report(PassiveReport)
        case snapshot(@Sendable (Kernel.Snapshot?) -> Void)
        case inspect(RouteQuery, @Sendable (RouteInspection?) -> Void)
        case follow(Follower)
        case followPath(PathFollower)
        case state(@Sendable (MonitorState) -> Void)
        case stop
    }
}
