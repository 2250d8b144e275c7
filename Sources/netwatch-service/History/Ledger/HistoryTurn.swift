/// A reading of the clocks, in milliseconds.
struct ClockReading: Hashable, Sendable {
    /// The wall clock since 1970. In a ``HistoryTurn``, it is the time of the ``HistoryClock``, which never goes back.
    var wall: Int64
    /// CLOCK_MONOTONIC.
    var monotonic: Int64
    /// CLOCK_BOOTTIME.
    var bootTime: Int64
}

/// A time in which nothing was recorded.
struct HistoryGap: Hashable, Sendable {
    /// The reason. Raw values are those of the record `gap`.
    enum Reason: String, Hashable, Sendable, CaseIterable {
        /// The machine was suspended.
        case suspend
        /// The service was stopped.
        case stopped
        /// The results could not be recorded, or the wall clock was set forward.
        case notRecorded = "not_recorded"
    }

    /// The time in milliseconds since 1970.
    var period: Range<Int64>
    var reason: Reason

    /// Returns the gaps since the end of a history.
    ///
    /// - Parameters:
    ///   - last: the time until which something was recorded.
    ///   - end: the end of the gaps.
    ///   - time: the time until which the service ran after `last`, and could not record; `nil` if it did not.
    /// - Returns: the time in which nothing could be recorded, and that in which the service did not run.
    static func sinceEnd(_ last: Int64, until end: Int64, unrecordedUntil time: Int64?) -> [HistoryGap] {
        let stop = min(max(time ?? last, last), end)
        return [(last, stop, Reason.notRecorded), (stop, end, .stopped)].compactMap { start, end, reason in
            start < end ? HistoryGap(period: start..<end, reason: reason) : nil
        }
    }
}

/// An input of the ledgers of all targets. ``TargetLedger`` and ``LedgerBook`` make the same summaries from the same inputs.
enum HistoryEvent: Hashable, Sendable {
    /// A target is monitored from now on. The time since its last accounted time was not recorded.
    case begin(target: Int, RecordedState, at: Int64)
    /// A probe has a result.
    case sample(target: Int, Sample)
    /// The state changes without a result, as by a maintenance window.
    case change(target: Int, RecordedState, at: Int64)
    /// A failure of a target is an outage if it lasts this time from now on, in milliseconds.
    case outageLimit(target: Int, Int64)
    /// A target is no longer monitored.
    case end(target: Int, at: Int64)
    /// Nothing was recorded of any target.
    case gap(HistoryGap)
}

/// The inputs of one turn of the keeper. A turn without events is a sign of life: the service was running at its time.
struct HistoryTurn: Hashable, Sendable {
    /// The end of the turn.
    var time: ClockReading
    /// The events, in the order in which they are accounted.
    var events: [HistoryEvent]

    init(_ time: ClockReading, _ events: [HistoryEvent] = []) { (self.time, self.events) = (time, events) }
}

extension Int64 {
    /// Returns the time from `earlier` to this one; 0 if `earlier` is later. It is limited to `Int64.max`.
    func elapsed(since earlier: Int64) -> Int64 {
        let (difference, isBeyond) = subtractingReportingOverflow(earlier)
        return isBeyond ? (self > earlier ? .max : 0) : Swift.max(0, difference)
    }
}
