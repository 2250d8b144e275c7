internal import CLinux
internal import EventLoop
internal import Glibc

/// Notices that the machine was suspended, without polling: a timer on the wall clock is cancelled by the kernel when that clock is
/// set, which resuming does too (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET); then the boot-time clock, which counts sleep, is
/// compared with the monotonic one, which does not.
struct SuspendWatch: ~Copyable {
    /// Readable when the wall clock was set.
    let descriptor: Int32
    private var asleep = MonotonicClock.timeSuspended()

    /// Less than this is the time between two clock readings, not a sleep.
    private static let least: Int64 = 50_000_000

    /// `nil` where the kernel has no such timer.
    init?() {
        descriptor = timerfd_create(netwatch_CLOCK_REALTIME, netwatch_TFD_FLAGS)
        guard descriptor >= 0 else { return nil }
        guard netwatch_clock_change_timer(descriptor) == 0 else {
            close(descriptor)
            return nil
        }
    }

    deinit { close(descriptor) }

    /// Takes the event and arms the timer again.
    ///
    /// - Returns: how long the machine slept, in nanoseconds; `nil` when the clock was only set.
    mutating func wokeAfter() -> Int64? {
        var expirations: UInt64 = 0
        _ = read(descriptor, &expirations, 8)
        _ = netwatch_clock_change_timer(descriptor)
        let total = MonotonicClock.timeSuspended()
        defer { asleep = total }
        return total - asleep >= Self.least ? total - asleep : nil
    }
}
