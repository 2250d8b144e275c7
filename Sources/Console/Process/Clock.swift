import CLinux
package import Reachability

/// The clocks. Code in `Output/` does not read them: it receives times as arguments.
package enum Clock {
    /// The time of `CLOCK_MONOTONIC` in nanoseconds.
    package static var nanoseconds: Int64 { netwatch_clock_nanoseconds(netwatch_CLOCK_MONOTONIC) }

    package static var now: Moment { Moment.now }
}
