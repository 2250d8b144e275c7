import CLinux
package import Reachability

/// The readings of the clocks; nothing in `Output/` takes one.
package enum Clock {
    /// `CLOCK_MONOTONIC`, nanoseconds.
    package static var nanoseconds: Int64 { netwatch_clock_nanoseconds(netwatch_CLOCK_MONOTONIC) }

    package static var now: Moment { Moment.now }
}
