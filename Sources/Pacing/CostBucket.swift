/// A token bucket whose unit is time: work costs a time, and the clock pays it back.
///
/// Requests of a fixed rate cost the interval of that rate each. Work whose cost is known only at its end begins while the debt is small
/// enough, and is added afterwards. Times are nanoseconds of a monotonic clock.
package struct CostBucket: Hashable, Sendable {
    /// The debt with which further work may begin.
    private let allowance: Int64
    /// The time at which everything is paid.
    private var paidAt = Int64.min

    /// Creates a bucket without a debt. - Parameter allowance: the debt with which further work may begin. Below zero it counts as zero.
    package init(allowance: Int64) { self.allowance = max(0, allowance) }

    /// Creates a bucket for a rate of work. - Parameter burst: the number of units that may begin at once, at least 1.
    package init(interval: Int64, burst: Int64) { self.init(allowance: interval.multipliedSaturated(by: max(1, burst) - 1)) }

    /// The time from which further work may begin; it may have passed.
    package var readyAt: Int64 { paidAt.addingSaturated(-allowance) }

    /// Adds a cost to the debt.
    package mutating func spend(_ cost: Int64, at now: Int64) { paidAt = max(paidAt, now).addingSaturated(max(0, cost)) }

    /// Returns whether everything is paid.
    package func isPaid(at now: Int64) -> Bool { paidAt <= now }
}
