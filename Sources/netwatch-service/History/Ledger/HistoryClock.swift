/// The time of the history, which never goes back: each moment of the wall clock is recorded at most once.
///
/// - It is set forward: the skipped time is a gap.
/// - It is set back by at most an hour: nothing is recorded until it has passed the recorded time.
/// - It is set back by more, within an hour after the start or after it was set forward, to a time since then: the recorded time was
///   wrong, and the history after the present time is withdrawn.
/// - It is set back by more otherwise: nothing is recorded. After a day, the history after the present time is withdrawn.
///
/// A device without a battery for its clock starts in the past and is set forward: its history must not be lost meanwhile. One whose
/// clock was far in the future must not wait for that time.
struct HistoryClock: Hashable, Sendable {
    /// The difference between the wall clock and the elapsed time from which the wall clock was set, in milliseconds.
    static let tolerance: Int64 = 1_000
    /// The maximum time for which nothing is recorded after the wall clock was set back, in milliseconds.
    static let patience: Int64 = 3_600_000
    /// The time for which the wall clock must show a time of an earlier run until that counts as the right one, in milliseconds.
    static let proof: Int64 = 86_400_000

    /// The consequence of a reading.
    enum Reading: Hashable, Sendable {
        /// The time continues to this one.
        case time(Int64)
        /// The time continues after a gap, from its start to its end. The wall clock was set forward, or the machine was suspended.
        case gap(Range<Int64>, Reason)
        /// This time was recorded already: nothing is recorded.
        case repeated
        /// The history after this time is wrong and must be removed; the time continues from here.
        case withdraw(after: Int64)
    }

    enum Reason: Hashable, Sendable {
        case clockSet
        case suspended
        /// The process did not run.
        case stopped
    }

    /// The last time of the history in milliseconds since 1970.
    private(set) var last: Int64
    private var reading: ClockReading
    /// The end of the history whose times are believed: that of earlier runs, and after an hour with the same clock that of this run.
    private var origin: Int64
    /// The monotonic time of the start, or at which the wall clock was last set forward.
    private var setAt: Int64
    /// The monotonic time since which the wall clock shows a time before ``origin``.
    private var earlierSince: Int64?

    /// Starts the clock. - Parameter last: the time until which something was recorded by earlier runs.
    init(_ reading: ClockReading, last: Int64? = nil) {
        self.last = max(reading.wall, last ?? reading.wall)
        origin = last ?? .min
        setAt = reading.monotonic
        self.reading = reading
    }

    /// Continues with another reading of the clocks.
    ///
    /// - Parameters:
    ///   - next: the reading.
    ///   - isLate: whether the process did not run since the reading before.
    /// - Returns: the consequence.
    mutating func read(_ next: ClockReading, isLate: Bool = false) -> Reading {
        let elapsed = max(0, next.monotonic - reading.monotonic)
        let suspended = max(0, next.bootTime - reading.bootTime - elapsed)
        let wall = next.wall
        reading = next
        guard wall >= last else {
            guard last - wall > Self.patience, isBelieved(next) else { return .repeated }
            last = wall
            return .withdraw(after: wall)
        }
        earlierSince = nil
        let start = isLate ? last : min(last + elapsed, wall)
        last = wall
        guard wall - start > Self.tolerance else {
            if next.monotonic - setAt >= Self.patience { origin = wall }
            return .time(wall)
        }
        if suspended <= Self.tolerance, !isLate { setAt = next.monotonic }
        return .gap(start..<wall, suspended > Self.tolerance ? .suspended : isLate ? .stopped : .clockSet)
    }

    /// Whether a time before the end of the history is the right one.
    private mutating func isBelieved(_ next: ClockReading) -> Bool {
        guard next.wall < origin else { return true }
        let since = earlierSince ?? next.monotonic
        earlierSince = since
        guard next.monotonic - since >= Self.proof else { return false }
        (origin, earlierSince) = (next.wall, nil)
        return true
    }
}
