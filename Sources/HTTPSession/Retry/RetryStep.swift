internal import Pacing

/// A long delay ends on a full step of the clock: many tasks that wait are then looked at together.
enum RetryStep {
    /// 33 ms, less one nanosecond.
    private static let step: Int64 = 1 << 25 - 1

    /// The nanoseconds to wait instead of `delay`, at `now`: not shorter, and at most a step longer.
    static func stepped(_ delay: Int64, now: Int64) -> Int64 {
        let until = now.addingSaturated(delay)
        return delay < 2 * step || until == .max ? delay : stepped(until: until) - now
    }

    /// The full step at `moment` or after it.
    static func stepped(until moment: Int64) -> Int64 { moment | step }
}
