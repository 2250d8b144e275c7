/// A rate limiter that grants the first request at once, and then at most one per interval.
///
/// Requests that come too early share one pending run at the interval's end. Further requests do not move it, so the delay is
/// at most one interval for any number of requests. Times are nanoseconds of a monotonic clock.
package struct LeadingEdge: Hashable, Sendable {
    /// The answer to a request.
    package enum Answer: Hashable, Sendable {
        /// The caller runs now.
        case now
        /// The caller asks ``LeadingEdge/isDue(now:)`` at this time. That run serves every request until then.
        case at(Int64)
    }

    /// The minimum time between two runs, in nanoseconds.
    package let intervalNanoseconds: Int64
    /// The time at which the pending run is due; `nil` if none is pending.
    package private(set) var pending: Int64?

    private var latestRun: Int64?

    /// Creates a limiter that has granted nothing yet. An interval below zero counts as zero.
    package init(intervalNanoseconds: Int64) { self.intervalNanoseconds = max(0, intervalNanoseconds) }

    /// Requests a run.
    package mutating func request(now: Int64) -> Answer {
        guard let earliest = pending ?? earliestNext, now < earliest else {
            run(now)
            return .now
        }
        pending = earliest
        return .at(earliest)
    }

    /// Returns whether the pending run is due now. If so, it counts as made.
    package mutating func isDue(now: Int64) -> Bool {
        guard let pending, now >= pending else { return false }
        run(now)
        return true
    }

    private var earliestNext: Int64? {
        latestRun?.addingSaturated(intervalNanoseconds)
    }

    private mutating func run(_ now: Int64) {
        latestRun = now
        pending = nil
    }
}
