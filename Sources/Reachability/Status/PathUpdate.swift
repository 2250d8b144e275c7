public import FoundationEssentials

/// A published change of the path.
public struct PathUpdate: Hashable, Sendable {
    /// The path after the change.
    public let path: NetworkPath
    /// The reasons for the update; empty for a subscriber's first update.
    public let reasons: [PathChangeReason]
    /// Whether the update is the present path rather than a change. True for the first element that a subscriber receives.
    public let isInitial: Bool
    /// The number of kernel events since the last update that did not change the path. If several events are read together with a
    /// change, all but one of them count.
    public let coalescedEventCount: Int
    package let moment: Moment

    package init(path: NetworkPath, reasons: [PathChangeReason], isInitial: Bool, coalescedEventCount: Int, moment: Moment) {
        self.path = path
        self.reasons = reasons
        self.isInitial = isInitial
        self.coalescedEventCount = coalescedEventCount
        self.moment = moment
    }

    /// Creates an update like those that ``PathMonitor`` publishes, for tests and previews.
    ///
    /// - Parameters:
    ///   - path: the path after the change.
    ///   - reasons: the reasons for the update.
    ///   - isInitial: whether the update is the present path rather than a change.
    ///   - coalescedEventCount: the number of kernel events that did not change the path.
    ///   - date: the time at which the change was read.
    public init(
        path: NetworkPath, reasons: [PathChangeReason] = [], isInitial: Bool = false, coalescedEventCount: Int = 0,
        date: Date = Date()
    ) {
        self.init(
            path: path, reasons: reasons, isInitial: isInitial, coalescedEventCount: coalescedEventCount, moment: Moment(date))
    }

    /// The time at which the change was read, by the wall clock.
    public var date: Date { moment.date }
    /// The time at which the change was read, by a clock that is never set.
    public var instant: ContinuousClock.Instant { moment.instant }

    package func asInitial() -> PathUpdate {
        PathUpdate(path: path, reasons: [], isInitial: true, coalescedEventCount: coalescedEventCount, moment: moment)
    }
}

extension PathUpdate: CustomStringConvertible {
    /// The path, and the reasons for the update.
    public var description: String {
        reasons.isEmpty ? "\(path)" : "\(path) [\(reasons.map(\.rawValue).joined(separator: ", "))]"
    }
}
