/// How long to wait before the next try: exponential growth with full jitter, so that many clients which failed together do not
/// come back together (Brooker: "Exponential Backoff and Jitter", 2015).
package struct Backoff: Hashable, Sendable {
    /// The longest wait before the second try, in nanoseconds.
    package let baseNanoseconds: Int64
    /// The longest wait ever, in nanoseconds.
    package let capNanoseconds: Int64
    /// How many waits were drawn since the last success; counted to 63, where any base has long met its cap.
    package private(set) var attempts = 0

    /// A backoff at its beginning. A base below 1 counts as 1, a cap below the base as the base.
    package init(baseNanoseconds: Int64, capNanoseconds: Int64) {
        self.baseNanoseconds = max(1, baseNanoseconds)
        self.capNanoseconds = max(self.baseNanoseconds, capNanoseconds)
    }

    /// The longest wait that the next draw can give: base · 2^attempts, at most the cap.
    package var ceilingNanoseconds: Int64 {
        // A longer shift would push a set bit into the sign or out; the cap is below 2^63 in any case.
        guard attempts < baseNanoseconds.leadingZeroBitCount else { return capNanoseconds }
        return min(capNanoseconds, baseNanoseconds << Int64(attempts))
    }

    /// The next wait: as far between zero and ``ceilingNanoseconds`` as `draw`, 64 random bits, is between 0 and its greatest.
    package mutating func next(draw: UInt64) -> Int64 {
        let choices = UInt64(ceilingNanoseconds) + 1
        attempts = min(attempts + 1, 63)
        return Int64(choices.multipliedFullWidth(by: draw).high)
    }

    /// A success: the next wait is drawn from the base again.
    package mutating func reset() { attempts = 0 }
}
