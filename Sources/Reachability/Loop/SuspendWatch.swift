internal import CLinux
internal import EventLoop
internal import Glibc

/// Detects that the machine was suspended, without polling. The kernel cancels a timer on the wall clock when that clock is set,
/// which also happens on resume (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET). Then the boot-time clock, which includes suspended
/// time, is compared with the monotonic clock, which does not.
struct SuspendWatch: ~Copyable {
    /// A descriptor that is readable after the wall clock was set.
    let descriptor: Int32
    private var asleep = MonotonicClock.timeSuspended()

    /// The minimum suspended time in nanoseconds. Smaller differences come from the time between two clock readings.
    private static let minimum: Int64 = 50_000_000

    /// Creates a watch; `nil` if the kernel has no such timer.
    init?() {
        descriptor = timerfd_create(netwatch_CLOCK_REALTIME, netwatch_TFD_FLAGS)
        guard descriptor >= 0 else { return nil }
        guard netwatch_clock_change_timer(descriptor) == 0 else {
            close(descriptor)
            return nil
        }
    }

    deinit { close(descriptor) }

    /// Reads the event and arms the timer again.
    ///
    /// - Returns: the suspended time in nanoseconds; `nil` if the clock was only set.
    mutating func takeSuspendedTime() -> Int64? {
        var expirations: UInt64 = 0
        _ = read(descriptor, &expirations, 8)
        _ = netwatch_clock_change_timer(descriptor)
        let total = MonotonicClock.timeSuspended()
        defer { asleep = total }
        return total - asleep >= Self.minimum ? total - asleep : nil
    }
}
