public import FoundationEssentials

/// A change of the path.
public struct PathUpdate: Hashable, Sendable {
    /// The present path.
    public let path: NetworkPath
    /// What changed since the last update; empty for the first.
    public let reasons: [PathChangeReason]
    /// Whether this is the present path rather than a change: true for the first element that a subscriber receives.
    public let isInitial: Bool
    /// The number of kernel events since the last update that changed nothing of the path: of those that were read together with a change, all
    /// but one.
    public let coalescedEventCount: Int
    package let moment: Moment

    package init(path: NetworkPath, reasons: [PathChangeReason], isInitial: Bool, coalescedEventCount: Int, moment: Moment) {
        self.path = path
        self.reasons = reasons
        self.isInitial = isInitial
        self.coalescedEventCount = coalescedEventCount
        self.moment = moment
    }

    /// An update as a ``PathMonitor`` publishes it, for tests and previews.
    ///
    /// - Parameters:
    ///   - path: the path.
    ///   - reasons: what changed since the update before.
    ///   - isInitial: whether this is the present path rather than a change.
    ///   - coalescedEventCount: the number of events that changed nothing.
    ///   - date: when the change was read.
    public init(
        path: NetworkPath, reasons: [PathChangeReason] = [], isInitial: Bool = false, coalescedEventCount: Int = 0,
        date: Date = Date()
    ) {
        self.init(
            path: path, reasons: reasons, isInitial: isInitial, coalescedEventCount: coalescedEventCount, moment: Moment(date))
    }

    /// When the change was read, by the wall clock.
    public var date: Date { moment.date }
    /// When the change was read, by a clock that nobody sets.
    public var instant: ContinuousClock.Instant { moment.instant }

    package func asInitial() -> PathUpdate {
        PathUpdate(path: path, reasons: [], isInitial: true, coalescedEventCount: coalescedEventCount, moment: moment)
    }
}
