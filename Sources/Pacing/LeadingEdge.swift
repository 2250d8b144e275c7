/// Lets the first request through at once, and after it at most one an interval.
///
/// Requests that come too early share one pending run at the interval's end. Further requests do not move it, so the delay is
/// bounded by the interval however many come. Times are nanoseconds of a monotonic clock.
package struct LeadingEdge: Hashable, Sendable {
    /// What to do about a request.
    package enum Answer: Hashable, Sendable {
        /// Run it now.
        case now
        /// Ask ``LeadingEdge/isDue(now:)`` at this time; that run stands for every request until then.
        case at(Int64)
    }

    /// The least time between two runs, in nanoseconds.
    package let intervalNanoseconds: Int64
    /// When the pending run is due; `nil` when none is.
    package private(set) var pending: Int64?

    private var latestRun: Int64?

    /// A limiter that has let nothing through yet. An interval below zero counts as zero.
    package init(intervalNanoseconds: Int64) { self.intervalNanoseconds = max(0, intervalNanoseconds) }

    /// Asks for a run.
    package mutating func request(now: Int64) -> Answer {
        guard let earliest = pending ?? earliestNext, now < earliest else {
            run(now)
            return .now
        }
        pending = earliest
        return .at(earliest)
    }

    /// Whether the pending run is to be made now; it counts as made when the answer is yes.
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
