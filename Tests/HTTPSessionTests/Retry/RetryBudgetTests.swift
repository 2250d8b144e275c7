import Expectations
import Foundation
import Testing

@testable import HTTPSession

struct RetryBudgetTests {
    private let second: Int64 = 1_000_000_000

    /// The number of retries, of so many, that may begin.
    private func take(_ count: Int, from budget: inout RetryBudget, now: Int64) -> Int {
        var taken = 0
        for _ in 0..<count where budget.spend(now: now) { taken += 1 }
        return taken
    }

    @Test func `the budget allows ten retries at once, then one a second`() {
        var budget = RetryBudget(now: 0)
        expectEqual(take(12, from: &budget, now: 0), 10)
        expectEqual(budget.wait(now: 0), second)
        expectEqual(take(1, from: &budget, now: second - 1), 0)
        expectEqual(take(1, from: &budget, now: second), 1)
        expectEqual(take(20, from: &budget, now: 5 * second), 4)
        expectEqual(take(20, from: &budget, now: 1_000 * second), 10)
    }

    @Test func `the budget grows by a fifth of the requests`() {
        var budget = RetryBudget(now: 0)
        _ = take(100, from: &budget, now: 0)
        for _ in 0..<50 { budget.requested() }
        expectEqual(take(20, from: &budget, now: 0), 10)
        for _ in 0..<100_000 { budget.requested() }
        expectEqual(take(200, from: &budget, now: 0), 100)
    }

    @Test func `a successful retry is refunded`() {
        var budget = RetryBudget(now: 0)
        _ = take(100, from: &budget, now: 0)
        budget.succeeded()
        expectEqual(take(2, from: &budget, now: 0), 1)
    }

    @Test func `a clock that stands still or jumps back adds nothing to the budget`() {
        var budget = RetryBudget(now: 100 * second)
        _ = take(100, from: &budget, now: 100 * second)
        expectEqual(take(1, from: &budget, now: 0), 0)
        expectEqual(take(1, from: &budget, now: 101 * second), 1)
    }
}

struct RetryAfterTests {
    private let now = Date(timeIntervalSince1970: 784_111_777)

    @Test func `Retry-After accepts seconds and dates only`() {
        expectEqual(RetryAfter.parse("120", now: now), 120_000_000_000)
        expectEqual(RetryAfter.parse("0", now: now), 0)
        expectEqual(RetryAfter.parse("Sun, 06 Nov 1994 08:50:37 GMT", now: now), 60_000_000_000)
        expectEqual(RetryAfter.parse("Sun, 06 Nov 1994 08:00:00 GMT", now: now), 0)
        expectEqual(RetryAfter.parse("99999999999999999999", now: now), .max)
        expectEqual(RetryAfter.parse("Sun, 06 Nov 9999 08:00:00 GMT", now: now), .max)
        for text in ["", "-1", "1.5", "soon", " 1", "1s"] { expectNil(RetryAfter.parse(text, now: now)) }
    }
}
