internal import Pacing

/// The time of the next probe, in nanoseconds of the monotonic clock. Probes start on a grid, so that they do not drift. Additional
/// probes start when a result needs confirmation or the path has changed.
///
/// The grid begins at the first probe, shifted by the target's *phase*: the first probes of many targets start together, and the
/// next ones are spread evenly over the interval.
struct ProbeSchedule: Hashable, Sendable {
    /// The maximum delay before an unconfirmed result is probed again.
    static let confirmation: Int64 = 1_000_000_000

    /// The time between two slots of the grid, in nanoseconds.
    let interval: Int64
    /// The time of the next probe; `nil` while one runs, and after ``stop()``.
    private(set) var next: Int64?
    /// The number of slots of the grid that passed while a probe ran or waited for its turn.
    private(set) var missed = 0
    private var origin: Int64?
    private var lastStart: Int64 = 0
    private let shift: Int64

    /// Creates a schedule.
    ///
    /// - Parameters:
    ///   - interval: the time between probes.
    ///   - phase: the shift of the grid, as a part of the interval in units of 2⁻³².
    init(interval: Duration, phase: UInt32 = 0) {
        let interval = max(1, interval.saturatingNanoseconds)
        self.interval = interval
        shift = Int64(UInt64(interval).multipliedFullWidth(by: UInt64(phase) << 32).high)
    }

    /// Returns the phase of a target: multiples of the golden ratio, which are spread more evenly than random numbers (Knuth, The Art
    /// of Computer Programming, volume 3, section 6.4). The first target has phase 0.
    static func phase(of target: TargetID) -> UInt32 { UInt32(truncatingIfNeeded: target.number) &* 0x9e37_79b9 }

    /// Records the start of a probe.
    mutating func began(at now: Int64) {
        if origin == nil { origin = now.addingSaturated(shift) }
        // A probe that starts later than one interval after its slot has missed slots.
        if let next, now > next { missed += Int(clamping: (now - next) / interval) }
        lastStart = now
        next = nil
    }

    /// Schedules the next probe on the grid. A slot less than half an interval after an additional probe is skipped.
    mutating func continueByGrid(at now: Int64) {
        let origin = origin ?? now
        let first = slot(notBefore: lastStart.addingSaturated(interval / 2), origin)
        guard now >= first else { return next = first }
        let following = slot(notBefore: now.addingSaturated(1), origin)
        missed += Int(clamping: (following - first) / interval)
        next = following
    }

    private func slot(notBefore time: Int64, _ origin: Int64) -> Int64 {
        guard time > origin else { return origin }
        let passed = (time.addingSaturated(-origin) - 1) / interval + 1
        return origin.addingSaturated(passed.multipliedSaturated(by: interval))
    }

    /// Schedules the next probe within a second of the last start, or at once if the last probe took longer.
    mutating func confirm(at now: Int64) {
        next = max(now, lastStart.addingSaturated(min(interval, Self.confirmation)))
    }

    /// Schedules no further probe.
    mutating func stop() { next = nil }
}
