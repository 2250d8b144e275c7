/// The time of the history, which never goes back: each moment of the wall clock is recorded at most once.
///
/// | the wall clock | the history |
/// |---|---|
/// | is set forward | the skipped time is a gap |
/// | is set back by at most an hour | nothing is recorded until the wall clock has passed the recorded time |
/// | is set back by more | the recorded time was wrong: the history after the present time is withdrawn |
///
/// A device without a battery for its clock starts in the past and is set forward. One whose clock was far in the future must not
/// wait for that time.
struct HistoryClock: Hashable, Sendable {
    /// The difference between the wall clock and the elapsed time from which the wall clock was set, in milliseconds.
    static let tolerance: Int64 = 1_000
    /// The maximum time for which nothing is recorded after the wall clock was set back, in milliseconds.
    static let patience: Int64 = 3_600_000

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
    }

    /// The last time of the history in milliseconds since 1970.
    private(set) var last: Int64
    private var reading: ClockReading

    /// Starts the clock. - Parameter last: the time until which something was recorded, if it is later than the present time.
    init(_ reading: ClockReading, last: Int64? = nil) {
        self.last = max(reading.wall, last ?? reading.wall)
        self.reading = reading
    }

    /// Continues with another reading of the clocks.
    mutating func read(_ next: ClockReading) -> Reading {
        let elapsed = max(0, next.monotonic - reading.monotonic)
        let suspended = max(0, next.bootTime - reading.bootTime - elapsed)
        let wall = next.wall
        reading = next
        guard wall >= last else {
            guard last - wall > Self.patience else { return .repeated }
            last = wall
            return .withdraw(after: wall)
        }
        let start = min(last + elapsed, wall)
        last = wall
        guard wall - start > Self.tolerance else { return .time(wall) }
        return .gap(start..<wall, suspended > Self.tolerance ? .suspended : .clockSet)
    }
}
