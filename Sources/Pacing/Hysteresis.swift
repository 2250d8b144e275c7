/// A filter that turns single results into a state that does not flap. The state is down after a number of consecutive failures,
/// and up after a number of consecutive successes.
///
/// ```
///              failAfter failures in a row
///   unknown, up ─────────────────────────▶ down
///   unknown, down ───────────────────────▶ up
///              recoverAfter successes in a row
/// ```
package struct Hysteresis: Hashable, Sendable {
    /// The number of failures in a row after which the state is down: 1 or more.
    package let failAfter: Int
    /// The number of successes in a row after which the state is up: 1 or more.
    package let recoverAfter: Int
    /// The state; `nil` until enough results were recorded.
    package private(set) var isUp: Bool?

    private var latest: Bool?
    private var streak = 0

    /// Creates a filter whose state is unknown. Thresholds below 1 count as 1.
    package init(failAfter: Int, recoverAfter: Int) {
        self.failAfter = max(1, failAfter)
        self.recoverAfter = max(1, recoverAfter)
    }

    /// Records one result. Returns the new state if this result changed it.
    package mutating func record(success: Bool) -> Bool? {
        let threshold = success ? recoverAfter : failAfter
        streak = latest == success ? min(streak + 1, threshold) : 1
        latest = success
        guard isUp != success, streak == threshold else { return nil }
        isUp = success
        return success
    }

    /// Whether the latest result contradicts the state, so that the next result is needed soon.
    package var isContradicted: Bool { latest != isUp }

    /// Discards the state and the results.
    package mutating func reset() {
        self = Hysteresis(failAfter: failAfter, recoverAfter: recoverAfter)
    }
}
