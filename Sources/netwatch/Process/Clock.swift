import CLinux
import Reachability

/// The readings of the clocks; nothing in `Output/` takes one.
enum Clock {
    /// `CLOCK_MONOTONIC`, nanoseconds.
    static var nanoseconds: Int64 { netwatch_clock_nanoseconds(netwatch_CLOCK_MONOTONIC) }

    static var now: Moment {
        Moment(
            monotonicNanoseconds: nanoseconds, wallClockNanoseconds: netwatch_clock_nanoseconds(netwatch_CLOCK_REALTIME)
        )
    }
}
