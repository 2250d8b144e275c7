import Pacing

/// The days of a time zone, as a partition of time. Days at a change of daylight saving time have 23 or 25 hours.
struct DayCalendar: Sendable {
    private static let day: Int64 = 86_400_000

    /// Returns the offset of local time from UTC in milliseconds at a time.
    private let offset: @Sendable (Int64) -> Int64
    /// The last day that was asked for. All targets ask for the same one.
    private var last: Range<Int64>?

    /// Creates a calendar. - Parameter offset: the offset of local time from UTC in milliseconds, at a time in milliseconds since 1970.
    init(offset: @escaping @Sendable (Int64) -> Int64) { self.offset = offset }

    /// Returns the number of the local day since 1970 at a time. It can decrease if a clock is set back over midnight.
    private func number(at time: Int64) -> Int64 { (time &+ offset(time)).floorDivided(by: Self.day).quotient }

    /// Returns the day that contains a time, from its start to the start of the next day.
    mutating func day(containing time: Int64) -> Range<Int64> {
        if let last, last.contains(time) { return last }
        var number = number(at: time)
        while start(of: number) > time { number -= 1 }
        while start(of: number + 1) <= time { number += 1 }
        let day = start(of: number)..<start(of: number + 1)
        last = day
        return day
    }

    /// Returns the first millisecond of a day.
    ///
    /// Midnight does not exist if clocks are set forward then, and exists twice if they are set back over it. The search finds one
    /// and the same moment in any case.
    private func start(of day: Int64) -> Int64 {
        let noon = day * Self.day
        // Offsets from UTC are at most 14 hours; a zone that changes its date has changed by 24.
        var (low, high) = (noon - 38 * 3_600_000, noon + 38 * 3_600_000)
        while low + 1 < high {
            let middle = low + (high - low) / 2
            if number(at: middle) >= day { high = middle } else { low = middle }
        }
        return high
    }
}
