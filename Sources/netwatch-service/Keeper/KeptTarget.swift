import Reachability

/// A target of the service while it is monitored.
struct KeptTarget: Sendable {
    /// The target in the configuration, which is also its place on the board.
    var configured: ConfiguredTarget
    /// The number at the monitor.
    var monitor: TargetID
    /// The number in the history.
    var number: Int
    var update: ServerUpdate
    var isInMaintenance = false
    var measured = MeasuredTimes()
    var bars: TargetBars

    /// The target on the board.
    var onBoard: BoardTarget {
        var target = BoardTarget(
            key: configured.key, id: configured.id, title: configured.title, group: configured.group, update: update)
        (target.isInMaintenance, target.measured) = (isInMaintenance, measured)
        target.bars = bars.bars
        (target.number, target.monitor) = (number, monitor)
        (target.name, target.labels, target.severity) = (configured.name, configured.labels, configured.severity)
        return target
    }
}
