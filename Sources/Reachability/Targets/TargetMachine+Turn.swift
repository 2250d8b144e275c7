internal import Pacing

/// The context of one event.
extension TargetMachine {
    /// The limits that the other targets leave to this one.
    struct Allowances {
        /// Whether attempts to further addresses may start.
        var survey = true
        /// Whether the first probe, or one that the schedule demands, may start. Otherwise it is due at once.
        var probe = true
        /// Whether attempts may be repeated.
        var repetition = true
    }

    /// An answer of the kernel that still holds.
    struct FreshAnswer {
        let query: RouteQuery
        let answer: RouteAnswer
    }

    /// The context of handling one event.
    struct Turn {
        let localState: LocalState
        let now: Moment
        let allowances: Allowances
        let fresh: FreshAnswer?
        var effects: [Effect] = []

        /// The time on the monotonic clock, in nanoseconds.
        var time: Int64 { now.monotonicNanoseconds }
    }
}
