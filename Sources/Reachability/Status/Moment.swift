internal import EventLoop
package import FoundationEssentials
internal import Pacing

/// One reading of the clocks. The event loop takes one in each turn and passes it to every decision of that turn.
///
/// `CLOCK_MONOTONIC` orders events and does not advance while the machine is suspended. The wall clock is for display.
package struct Moment: Hashable, Sendable, Comparable {
    /// The reading of `CLOCK_MONOTONIC` in nanoseconds.
    package let monotonicNanoseconds: Int64
    /// The reading of `CLOCK_REALTIME` in nanoseconds since 1970-01-01T00:00:00Z.
    package let wallClockNanoseconds: Int64
    /// The total suspended time since boot in nanoseconds: `CLOCK_BOOTTIME` minus `CLOCK_MONOTONIC`. 0 in recordings.
    package let suspendedNanoseconds: Int64

    /// Creates a moment from clock readings.
    package init(monotonicNanoseconds: Int64, wallClockNanoseconds: Int64, suspendedNanoseconds: Int64 = 0) {
        self.monotonicNanoseconds = monotonicNanoseconds
        self.wallClockNanoseconds = wallClockNanoseconds
        self.suspendedNanoseconds = suspendedNanoseconds
    }

    /// The present moment, read from the system's clocks.
    package static var now: Moment {
        Moment(
            monotonicNanoseconds: MonotonicClock.now(), wallClockNanoseconds: MonotonicClock.wallClock(),
            suspendedNanoseconds: MonotonicClock.timeSuspended())
    }

    /// Creates the moment at which the wall clock shows `date`.
    package init(_ date: Date) {
        let now = Moment.now
        // A larger Duration would trap.
        let seconds = min(max(date.timeIntervalSince(now.date), -1e11), 1e11)
        self = now.advanced(by: .seconds(seconds.isNaN ? 0 : seconds))
    }

    /// The wall-clock reading as a `Date`.
    package var date: Date {
        Date(timeIntervalSince1970: Double(wallClockNanoseconds) / 1_000_000_000)
    }

    /// The reading of `CLOCK_BOOTTIME`, which is `ContinuousClock` on Linux.
    package var instant: ContinuousClock.Instant {
        let (instant, boot) = Moment.reference
        return instant.advanced(
            by: .nanoseconds(monotonicNanoseconds.addingSaturated(suspendedNanoseconds).addingSaturated(-boot)))
    }

    /// One moment read from both clocks: `ContinuousClock.Instant` has no public initializer.
    private static let reference = (instant: ContinuousClock.now, boot: MonotonicClock.now() + MonotonicClock.timeSuspended())

    /// Ignores the suspended time: two readings of the same moment differ in it by nanoseconds.
    package static func == (left: Moment, right: Moment) -> Bool {
        left.monotonicNanoseconds == right.monotonicNanoseconds && left.wallClockNanoseconds == right.wallClockNanoseconds
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(monotonicNanoseconds)
        hasher.combine(wallClockNanoseconds)
    }

    /// Orders by the monotonic clock only, because the wall clock may be set back.
    package static func < (left: Moment, right: Moment) -> Bool {
        left.monotonicNanoseconds < right.monotonicNanoseconds
    }

    /// Returns the moment with both clocks advanced by `duration`, saturating.
    package func advanced(by duration: Duration) -> Moment {
        let step = duration.saturatingNanoseconds
        return Moment(
            monotonicNanoseconds: monotonicNanoseconds.addingSaturated(step),
            wallClockNanoseconds: wallClockNanoseconds.addingSaturated(step), suspendedNanoseconds: suspendedNanoseconds
        )
    }

    /// Returns the monotonic time from `earlier` to this moment; negative if `earlier` is later.
    package func elapsed(since earlier: Moment) -> Duration {
        let (span, overflow) = monotonicNanoseconds.subtractingReportingOverflow(earlier.monotonicNanoseconds)
        return .nanoseconds(overflow ? (monotonicNanoseconds < 0 ? .min : .max) : span)
    }
}

extension Duration {
    /// The duration in milliseconds, with its fraction.
    package var milliseconds: Double { Double(saturatingNanoseconds) / 1_000_000 }
}
