/// How many retries one host is worth: a fifth of the requests, and ten in ten seconds in any case (the idea is Finagle's). A retry that
/// succeeds costs nothing: many tasks that waited for one server may then go on as fast as it answers.
struct RetryBudget: Hashable, Sendable {
    // Fiftieths of a retry, so that a fifth is a whole number.
    private static let retry: Int64 = 50
    private static let request: Int64 = 10
    private static let floor = 10 * retry
    private static let cap = 100 * retry
    private static let refillInterval: Int64 = 1_000_000_000 / retry

    private var tokens = RetryBudget.floor
    private var refilledAt: Int64

    init(now: Int64) { refilledAt = now }

    /// A first attempt begins.
    mutating func requested() { tokens = min(RetryBudget.cap, tokens + RetryBudget.request) }

    /// Whether a retry may begin now; it is paid for when the answer is yes.
    mutating func take(now: Int64) -> Bool {
        refill(now)
        guard tokens >= RetryBudget.retry else { return false }
        tokens -= RetryBudget.retry
        return true
    }

    /// A retry has brought an answer that is none to be tried again.
    mutating func succeeded() { tokens = min(RetryBudget.cap, tokens + RetryBudget.retry) }

    /// Nanoseconds until time alone has paid for a retry.
    func wait(now: Int64) -> Int64 {
        var present = self
        present.refill(now)
        let missing = RetryBudget.retry - present.tokens
        return missing <= 0 ? 0 : present.refilledAt + missing * RetryBudget.refillInterval - now
    }

    /// One retry a second, up to the floor.
    private mutating func refill(_ now: Int64) {
        let steps = (now - refilledAt) / RetryBudget.refillInterval
        guard steps > 0 else { return }
        refilledAt += steps * RetryBudget.refillInterval
        if tokens < RetryBudget.floor { tokens = min(RetryBudget.floor, tokens + min(steps, RetryBudget.floor)) }
    }
}
