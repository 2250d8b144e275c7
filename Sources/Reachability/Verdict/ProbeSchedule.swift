internal import Pacing

/// When the next probe starts: on a grid that begins with the first one, so that probes do not drift, with extra ones between
/// where a result needs confirmation or the path has changed. Nanoseconds of the monotonic clock.
struct ProbeSchedule: Hashable, Sendable {
    /// A result that is not confirmed yet is looked at again after this at the latest.
    static let confirmation: Int64 = 1_000_000_000

    let interval: Int64
    /// When the next probe is due; `nil` while one runs, and when none is to come.
    private(set) var next: Int64?
    private var origin: Int64?
    private var lastStart: Int64 = 0

    init(interval: Duration) {
        self.interval = max(1, interval.saturatingNanoseconds)
    }

    /// A probe starts.
    mutating func began(at now: Int64) {
        if origin == nil { origin = now }
        lastStart = now
        next = nil
    }

    /// The next one comes by the grid. A slot that follows an extra probe by less than half an interval is left out.
    mutating func continueByGrid(at now: Int64) {
        let origin = origin ?? now
        let passed = max(0, now.addingSaturated(-origin)) / interval
        let earliest = lastStart.addingSaturated(interval / 2)
        var slot = origin.addingSaturated(passed.multipliedSaturated(by: interval)).addingSaturated(interval)
        if slot < earliest { slot = slot.addingSaturated(interval) }
        next = slot
    }

    /// The next one comes within a second of the last one's start, or at once where that took longer.
    mutating func confirm(at now: Int64) {
        next = max(now, lastStart.addingSaturated(min(interval, Self.confirmation)))
    }

    /// None is to come.
    mutating func stop() { next = nil }
}
