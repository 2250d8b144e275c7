/// A rate limiter: tokens that return evenly, up to a burst. Times are nanoseconds of a monotonic clock.
package struct TokenBucket: Hashable, Sendable {
    /// The time in which a token returns.
    package let intervalNanoseconds: Int64
    /// The longest time that the consumed tokens need to return, without the next one.
    private let debtLimit: Int64
    /// The time at which all tokens have returned.
    private var full = Int64.min

    /// Creates a full bucket. `burst` tokens can be consumed at once, at least one.
    package init(intervalNanoseconds: Int64, burst: Int64) {
        self.intervalNanoseconds = max(0, intervalNanoseconds)
        debtLimit = self.intervalNanoseconds.multipliedSaturated(by: max(1, burst) - 1)
    }

    /// Consumes a token. Returns whether there was one.
    package mutating func consume(now: Int64) -> Bool {
        let start = max(full, now)
        guard start <= now.addingSaturated(debtLimit) else { return false }
        full = start.addingSaturated(intervalNanoseconds)
        return true
    }
}
