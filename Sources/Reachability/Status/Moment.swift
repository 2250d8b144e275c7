public import FoundationEssentials
internal import Pacing

/// One reading of the clocks, taken once a turn of the event loop and passed to everything decided in that turn.
///
/// `CLOCK_MONOTONIC` orders events and does not advance while the machine is suspended; the wall clock is for people.
public struct Moment: Hashable, Sendable, Comparable {
    /// `CLOCK_MONOTONIC` in nanoseconds since an arbitrary point at boot.
    public let monotonicNanoseconds: Int64
    /// `CLOCK_REALTIME` in nanoseconds since 1970-01-01T00:00:00Z.
    public let wallClockNanoseconds: Int64

    /// A moment from its two readings.
    public init(monotonicNanoseconds: Int64, wallClockNanoseconds: Int64) {
        self.monotonicNanoseconds = monotonicNanoseconds
        self.wallClockNanoseconds = wallClockNanoseconds
    }

    /// The wall-clock reading as a date.
    public var date: Date {
        Date(timeIntervalSince1970: Double(wallClockNanoseconds) / 1_000_000_000)
    }

    /// Moments are ordered by the monotonic clock only: the wall clock may be set back.
    public static func < (left: Moment, right: Moment) -> Bool {
        left.monotonicNanoseconds < right.monotonicNanoseconds
    }

    /// Both clocks moved forward by `duration` (saturating).
    public func advanced(by duration: Duration) -> Moment {
        let step = duration.saturatingNanoseconds
        return Moment(
            monotonicNanoseconds: monotonicNanoseconds.addingSaturated(step),
            wallClockNanoseconds: wallClockNanoseconds.addingSaturated(step)
        )
    }

    /// The monotonic time from `earlier` to this moment; negative when `earlier` is later.
    public func elapsed(since earlier: Moment) -> Duration {
        let (span, overflow) = monotonicNanoseconds.subtractingReportingOverflow(earlier.monotonicNanoseconds)
        return .nanoseconds(overflow ? (monotonicNanoseconds < 0 ? .min : .max) : span)
    }
}

extension Duration {
    /// The duration in milliseconds with its fraction.
    package var milliseconds: Double { Double(saturatingNanoseconds) / 1_000_000 }
}
