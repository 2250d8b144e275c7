/// The wait before the next attempt: exponential growth with full jitter, so that many clients that failed together do not retry
/// together (Brooker: "Exponential Backoff and Jitter", 2015).
package struct Backoff: Hashable, Sendable {
    /// The longest wait before the second attempt, in nanoseconds.
    package let baseNanoseconds: Int64
    /// The longest wait before any attempt, in nanoseconds.
    package let capNanoseconds: Int64
    /// The number of waits that were drawn since the last success. It stops at 63, when any base has reached its cap.
    package private(set) var attempts = 0

    /// Creates a backoff without attempts. A base below 1 counts as 1, a cap below the base as the base.
    package init(baseNanoseconds: Int64, capNanoseconds: Int64) {
        self.baseNanoseconds = max(1, baseNanoseconds)
        self.capNanoseconds = max(self.baseNanoseconds, capNanoseconds)
    }

    /// The longest wait that the next draw can give: base · 2^attempts, at most the cap.
    package var ceilingNanoseconds: Int64 {
        // A longer shift would move a set bit into the sign or beyond it; the cap is always below 2^63.
        guard attempts < baseNanoseconds.leadingZeroBitCount else { return capNanoseconds }
        return min(capNanoseconds, baseNanoseconds << Int64(attempts))
    }

    /// Draws the next wait in nanoseconds: `draw`, 64 random bits, scaled to 0...``ceilingNanoseconds``.
    package mutating func next(draw: UInt64) -> Int64 {
        let choices = UInt64(ceilingNanoseconds) + 1
        attempts = min(attempts + 1, 63)
        return Int64(choices.multipliedFullWidth(by: draw).high)
    }

    /// Records a success: the next wait is drawn from the base again.
    package mutating func reset() { attempts = 0 }
}
