extension MonitorLoop {
    /// Hears the snapshot with each batch of changes, first with none, and `nil` at the end; false ends it.
    typealias Follower = @Sendable (Kernel.Snapshot?, [Kernel.Change]) -> Bool
    /// Hears the path whenever links, addresses, routes or rules have changed, whether the path has or not, and at once where there is one;
    /// false ends it.
    typealias PathFollower = @Sendable (NetworkPath) -> Bool

    /// What other threads want of the loop.
    enum Command: Sendable {
        case add(TargetID, Endpoint, ProbeSettings)
        case remove(TargetID)
        case lookup(LookupAnswer)
        case snapshot(@Sendable (Kernel.Snapshot?) -> Void)
        case follow(Follower)
        case followPath(PathFollower)
        case state(@Sendable (MonitorState) -> Void)
        case stop
    }
}
