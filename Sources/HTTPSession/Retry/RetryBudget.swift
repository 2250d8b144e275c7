/// The retry budget of one host: a fifth of its requests, and at least ten retries in ten seconds (after Finagle's retry budget).
/// A retry that succeeds is refunded, so that many tasks that waited for one server may proceed as fast as it responds.
struct RetryBudget: Hashable, Sendable {
    // The unit is a fiftieth of a retry, so that a fifth is an integer.
    private static let retry: Int64 = 50
    private static let request: Int64 = 10
    private static let floor = 10 * retry
    private static let cap = 100 * retry
    private static let refillInterval: Int64 = 1_000_000_000 / retry

    private var tokens = RetryBudget.floor
    private var refilledAt: Int64

    init(now: Int64) { refilledAt = now }

    /// Credits a first attempt.
    mutating func requested() { tokens = min(RetryBudget.cap, tokens + RetryBudget.request) }

    /// Charges the budget for a retry, if it suffices. - Returns: whether the retry may begin now.
    mutating func spend(now: Int64) -> Bool {
        refill(now)
        guard tokens >= RetryBudget.retry else { return false }
        tokens -= RetryBudget.retry
        return true
    }

    /// Refunds a retry whose response is not to be retried.
    mutating func succeeded() { tokens = min(RetryBudget.cap, tokens + RetryBudget.retry) }

    /// The nanoseconds until the budget pays for a retry without further requests.
    func wait(now: Int64) -> Int64 {
        var present = self
        present.refill(now)
        let missing = RetryBudget.retry - present.tokens
        return missing <= 0 ? 0 : present.refilledAt + missing * RetryBudget.refillInterval - now
    }

    /// Credits one retry a second, up to the floor.
    private mutating func refill(_ now: Int64) {
        let steps = (now - refilledAt) / RetryBudget.refillInterval
        guard steps > 0 else { return }
        refilledAt += steps * RetryBudget.refillInterval
        if tokens < RetryBudget.floor { tokens = min(RetryBudget.floor, tokens + min(steps, RetryBudget.floor)) }
    }
}
