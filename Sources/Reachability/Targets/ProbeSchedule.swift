internal import Pacing

/// The time of the next probe, in nanoseconds of the monotonic clock. Probes start on a grid, so that they do not drift. Additional
/// probes start when a result needs confirmation or the path has changed.
///
/// The grid begins at the first probe, shifted by the target's *phase*: the first probes of many targets start together, and the
/// next ones are spread evenly over the interval.
///
/// If the interval grows, there is no grid: a probe starts one present interval after the start of the one before.
struct ProbeSchedule: Hashable, Sendable {
    /// The end of a probe.
    enum Ending: Hashable, Sendable {
        /// The server, a router or this machine refused the connection.
        case refusal
        /// No answer arrived before the deadline.
        case silence
        /// The server was reached, its name was not resolved, or the probe has no result.
        case other
    }

    /// The maximum delay before another result is confirmed, in nanoseconds.
    static let confirmation: Int64 = 1_000_000_000
    /// The time between the starts of a silent probe and the probe that confirms it, in nanoseconds. The kernel reports a silent
    /// neighbor 3.05 to 3.08 s after the first packet, and so do routers.
    static let silentConfirmation: Int64 = 3_100_000_000
    /// The number of refusals that are confirmed at once. Further ones are confirmed once a second, so that a server that refuses
    /// connections is not flooded.
    static let immediateLimit = 100

    /// The time between two slots of the grid, in nanoseconds.
    let interval: Int64
    /// The time of the next probe; `nil` while one runs, and after ``stop()``.
    private(set) var next: Int64?
    /// The start of the last probe, for the count of its result: the time for which it was scheduled, or at most a tenth of the interval before it
    /// began. A probe that a busy machine starts a moment late counts all the same, and so does the next one.
    private(set) var countedStart: Int64 = 0
    private var origin: Int64?
    private var lastStart: Int64 = 0
    private var immediate = 0
    private let shift: Int64
    /// The first interval, in nanoseconds; `nil` if the interval is constant.
    private let initial: Int64?
    /// The time since which the interval grows.
    private var growsSince: Int64?

    /// Creates a schedule.
    ///
    /// - Parameters:
    ///   - interval: the time between probes.
    ///   - initial: the time between the first probes, which grows to the interval; `nil` for a constant interval.
    ///   - phase: the shift of the grid, as a part of the interval in units of 2⁻³².
    init(interval: Duration, initial: Duration? = nil, phase: UInt32 = 0) {
        let interval = max(1, interval.saturatingNanoseconds)
        self.interval = interval
        let initial = initial.map { min(interval, max(1, $0.saturatingNanoseconds)) }
        self.initial = initial
        shift = Int64(UInt64(initial ?? interval).multipliedFullWidth(by: UInt64(phase) << 32).high)
    }

    /// Returns an interval that grows from `initial` to `longest`, in nanoseconds. It is an eighth of the time waited, so that a server
    /// is found at most an eighth later than by probing without a pause.
    static func interval(from initial: Int64, to longest: Int64, afterWaiting waited: Int64) -> Int64 {
        min(longest, max(initial, waited / 8))
    }

    /// Returns the phase of a target: multiples of the golden ratio, which are spread more evenly than random numbers (Knuth, The Art
    /// of Computer Programming, volume 3, section 6.4). The first target has phase 0.
    static func phase(of target: TargetID) -> UInt32 { UInt32(truncatingIfNeeded: target.number) &* 0x9e37_79b9 }

    /// Schedules the first probe for now.
    mutating func begin(at now: Int64) { next = now }

    /// Records the start of a probe.
    mutating func began(at now: Int64) {
        if origin == nil { origin = now.addingSaturated(shift) }
        countedStart = max(min(next ?? now, now), now.addingSaturated(-(interval / 10)))
        lastStart = now
        next = nil
    }

    /// Schedules the next probe on the grid. A slot less than half an interval after an additional probe is skipped.
    ///
    /// `factor` is the number of intervals between two slots. The phase is the same part of this longer interval.
    mutating func continueByGrid(at now: Int64, factor: Int = 1) {
        immediate = 0
        if let initial { return next = growing(from: initial, factor, now) }
        let step = interval.multipliedSaturated(by: Int64(factor))
        let origin = (origin ?? now).addingSaturated(shift.multipliedSaturated(by: Int64(factor - 1)))
        let first = slot(notBefore: lastStart.addingSaturated(step / 2), origin, step)
        next = now < first ? first : slot(notBefore: now.addingSaturated(1), origin, step)
    }

    /// Moves the next probe forward to the time at which it counts, but not before now: a failure is pending, and a probe that examined it has passed
    /// a slot of the grid.
    mutating func count(from time: Int64, at now: Int64) {
        guard let next else { return }
        self.next = min(next, max(now, time))
    }

    private mutating func growing(from initial: Int64, _ factor: Int, _ now: Int64) -> Int64 {
        // The second probes of many targets are spread, and so are those that follow.
        let delay = growsSince == nil ? shift : 0
        let since = growsSince ?? lastStart
        growsSince = since
        let step = Self.interval(from: initial, to: interval, afterWaiting: now.addingSaturated(-since))
            .multipliedSaturated(by: Int64(factor))
        return max(now, lastStart.addingSaturated(step).addingSaturated(delay))
    }

    /// Moves the next probe forward, because something has changed: to now, but at least the first interval after the start of the last
    /// one. Does nothing if the interval is constant.
    mutating func hurry(at now: Int64) {
        guard let initial, let next else { return }
        self.next = min(next, max(now, lastStart.addingSaturated(initial)))
    }

    /// Lets the interval grow from its first value again. Does nothing if the interval is constant.
    mutating func restartGrowth(at now: Int64) { if initial != nil { growsSince = now } }

    private func slot(notBefore time: Int64, _ origin: Int64, _ step: Int64) -> Int64 {
        guard time > origin else { return origin }
        let passed = (time.addingSaturated(-origin) - 1) / step + 1
        return origin.addingSaturated(passed.multipliedSaturated(by: step))
    }

    /// Schedules the probe that confirms a result. A refusal is confirmed at once. Silence is confirmed 3.1 s after the start of the
    /// silent probe, but at most 0.1 s after its end. Other results are confirmed within a second.
    mutating func confirm(_ ending: Ending, timeout: Duration, at now: Int64) {
        switch ending {
        case .refusal where immediate < Self.immediateLimit:
            immediate += 1
            next = now
        case .refusal, .other: next = max(now, lastStart.addingSaturated(min(interval, Self.confirmation)))
        case .silence:
            let gap = min(Self.silentConfirmation, timeout.saturatingNanoseconds.addingSaturated(100_000_000))
            next = max(now, lastStart.addingSaturated(gap))
        }
    }

    /// Records that a connection of another part of the program has served as a probe. The next probe is at least one interval later.
    mutating func replaced(at now: Int64) {
        lastStart = now
        immediate = 0
        next = slot(notBefore: now.addingSaturated(interval), origin ?? now, interval)
    }

    /// Schedules no further probe.
    mutating func stop() { next = nil }
}
