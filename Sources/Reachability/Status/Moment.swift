internal import EventLoop
package import FoundationEssentials
internal import Pacing

/// One reading of the clocks, taken once a turn of the event loop and passed to everything decided in that turn.
///
/// `CLOCK_MONOTONIC` orders events and does not advance while the machine is suspended; the wall clock is for people.
package struct Moment: Hashable, Sendable, Comparable {
    /// `CLOCK_MONOTONIC` in nanoseconds since an arbitrary point at boot.
    package let monotonicNanoseconds: Int64
    /// `CLOCK_REALTIME` in nanoseconds since 1970-01-01T00:00:00Z.
    package let wallClockNanoseconds: Int64
    /// How long the machine has been suspended since its boot, in nanoseconds: `CLOCK_BOOTTIME` less `CLOCK_MONOTONIC`. 0 in recordings.
    package let suspendedNanoseconds: Int64

    /// A moment from its readings.
    package init(monotonicNanoseconds: Int64, wallClockNanoseconds: Int64, suspendedNanoseconds: Int64 = 0) {
        self.monotonicNanoseconds = monotonicNanoseconds
        self.wallClockNanoseconds = wallClockNanoseconds
        self.suspendedNanoseconds = suspendedNanoseconds
    }

    /// The present, read from the system's clocks.
    package static var now: Moment {
        Moment(
            monotonicNanoseconds: MonotonicClock.now(), wallClockNanoseconds: MonotonicClock.wallClock(),
            suspendedNanoseconds: MonotonicClock.timeSuspended())
    }

    /// The moment at which the wall clock shows `date`.
    package init(_ date: Date) {
        let now = Moment.now
        // A Duration of more would trap.
        let seconds = min(max(date.timeIntervalSince(now.date), -1e11), 1e11)
        self = now.advanced(by: .seconds(seconds.isNaN ? 0 : seconds))
    }

    /// The wall-clock reading as a date.
    package var date: Date {
        Date(timeIntervalSince1970: Double(wallClockNanoseconds) / 1_000_000_000)
    }

    /// The reading of `CLOCK_BOOTTIME`, which is Swift's `ContinuousClock` on Linux.
    package var instant: ContinuousClock.Instant {
        let (instant, boot) = Moment.reference
        return instant.advanced(
            by: .nanoseconds(monotonicNanoseconds.addingSaturated(suspendedNanoseconds).addingSaturated(-boot)))
    }

    /// One moment by both ways to read the clock: an instant has no public initializer.
    private static let reference = (instant: ContinuousClock.now, boot: MonotonicClock.now() + MonotonicClock.timeSuspended())

    /// The suspended time does not count: two readings of the same moment differ in it by nanoseconds.
    package static func == (left: Moment, right: Moment) -> Bool {
        left.monotonicNanoseconds == right.monotonicNanoseconds && left.wallClockNanoseconds == right.wallClockNanoseconds
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(monotonicNanoseconds)
        hasher.combine(wallClockNanoseconds)
    }

    /// Moments are ordered by the monotonic clock only: the wall clock may be set back.
    package static func < (left: Moment, right: Moment) -> Bool {
        left.monotonicNanoseconds < right.monotonicNanoseconds
    }

    /// Both clocks moved forward by `duration` (saturating).
    package func advanced(by duration: Duration) -> Moment {
        let step = duration.saturatingNanoseconds
        return Moment(
            monotonicNanoseconds: monotonicNanoseconds.addingSaturated(step),
            wallClockNanoseconds: wallClockNanoseconds.addingSaturated(step), suspendedNanoseconds: suspendedNanoseconds
        )
    }

    /// The monotonic time from `earlier` to this moment; negative when `earlier` is later.
    package func elapsed(since earlier: Moment) -> Duration {
        let (span, overflow) = monotonicNanoseconds.subtractingReportingOverflow(earlier.monotonicNanoseconds)
        return .nanoseconds(overflow ? (monotonicNanoseconds < 0 ? .min : .max) : span)
    }
}

extension Duration {
    /// The duration in milliseconds with its fraction.
    package var milliseconds: Double { Double(saturatingNanoseconds) / 1_000_000 }
}
