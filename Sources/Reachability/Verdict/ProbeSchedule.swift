internal import Pacing

/// The time of the next probe, in nanoseconds of the monotonic clock. Probes start on a grid that begins with the first one, so
/// that they do not drift. Additional probes start when a result needs confirmation or the path has changed.
struct ProbeSchedule: Hashable, Sendable {
    /// The maximum delay before an unconfirmed result is probed again.
    static let confirmation: Int64 = 1_000_000_000

    let interval: Int64
    /// The time of the next probe; `nil` while one runs, and after ``stop()``.
    private(set) var next: Int64?
    private var origin: Int64?
    private var lastStart: Int64 = 0

    init(interval: Duration) {
        self.interval = max(1, interval.saturatingNanoseconds)
    }

    /// Records the start of a probe.
    mutating func began(at now: Int64) {
        if origin == nil { origin = now }
        lastStart = now
        next = nil
    }

    /// Schedules the next probe on the grid. A slot less than half an interval after an additional probe is skipped.
    mutating func continueByGrid(at now: Int64) {
        let origin = origin ?? now
        let passed = max(0, now.addingSaturated(-origin)) / interval
        let earliest = lastStart.addingSaturated(interval / 2)
        var slot = origin.addingSaturated(passed.multipliedSaturated(by: interval)).addingSaturated(interval)
        if slot < earliest { slot = slot.addingSaturated(interval) }
        next = slot
    }

    /// Schedules the next probe within a second of the last start, or at once if the last probe took longer.
    mutating func confirm(at now: Int64) {
        next = max(now, lastStart.addingSaturated(min(interval, Self.confirmation)))
    }

    /// Schedules no further probe.
    mutating func stop() { next = nil }
}
