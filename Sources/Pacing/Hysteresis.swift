/// Turns single results into a state that does not flap: down after so many failures in a row, up after so many successes.
///
/// ```
///              failAfter failures in a row
///   unknown, up ─────────────────────────▶ down
///   unknown, down ───────────────────────▶ up
///              recoverAfter successes in a row
/// ```
package struct Hysteresis: Hashable, Sendable {
    /// Failures in a row that make it down: 1 or more.
    package let failAfter: Int
    /// Successes in a row that make it up: 1 or more.
    package let recoverAfter: Int
    /// The state; `nil` while too few results were seen.
    package private(set) var isUp: Bool?

    private var latest: Bool?
    private var streak = 0

    /// A state still unknown. Thresholds below 1 count as 1.
    package init(failAfter: Int, recoverAfter: Int) {
        self.failAfter = max(1, failAfter)
        self.recoverAfter = max(1, recoverAfter)
    }

    /// Takes one result; returns the new state when this result changed it.
    package mutating func record(success: Bool) -> Bool? {
        let threshold = success ? recoverAfter : failAfter
        streak = latest == success ? min(streak + 1, threshold) : 1
        latest = success
        guard isUp != success, streak == threshold else { return nil }
        isUp = success
        return success
    }

    /// Whether the latest result speaks against the state, so that the next one is worth having soon.
    package var isInDoubt: Bool { latest != isUp }

    /// Forgets state and results.
    package mutating func reset() {
        self = Hysteresis(failAfter: failAfter, recoverAfter: recoverAfter)
    }
}
