internal import Pacing

/// Rounds long delays up to a step of the clock, so that many waiting tasks are handled in one turn of the loop.
enum RetryStep {
    /// The mask of a step: 33 ms less one nanosecond.
    private static let step: Int64 = 1 << 25 - 1

    /// The delay in nanoseconds to use instead of `delay`: not shorter, and at most one step longer. Delays below two steps stay
    /// as they are.
    static func stepped(_ delay: Int64, now: Int64) -> Int64 {
        let until = now.addingSaturated(delay)
        return delay < 2 * step || until == .max ? delay : stepped(until: until) - now
    }

    /// The end of the step that contains `moment`.
    static func stepped(until moment: Int64) -> Int64 { moment | step }
}
