import Pacing

extension MaintenanceWindow {
    private static let minute: Int64 = 60_000
    private static let day: Int64 = 86_400_000
    private static let week: Int64 = 7 * day

    /// Returns whether the window covers a time. - Parameter time: milliseconds since 1970.
    func covers(_ time: Int64, offset: TimeZoneOffset) -> Bool {
        switch schedule {
        case .once(let from, let to): from.time(offset) <= time && time < to.time(offset)
        case .weekly(let start, let duration):
            Self.start(start, before: time, offset: offset).contains {
                time >= $0 && time - $0 < duration.saturatingNanoseconds / 1_000_000
            }
        }
    }

    /// Returns the last starts before a time. Around a change of daylight saving time, the local time of one may be slightly later.
    private static func start(_ start: WeekTime, before time: Int64, offset: TimeZoneOffset) -> [Int64] {
        let local = time + offset(time)
        // 1970-01-01 was a Thursday, the fourth day of the week.
        let index = Int64(WeekTime.Weekday.allCases.firstIndex(of: start.weekday) ?? 0)
        let inWeek = index * day + Int64(start.hour) * 60 * minute + Int64(start.minute) * minute
        let monday = local - (local + 3 * day).floorDivided(by: week).remainder
        return [-1, 0, 1].map { LocalTime.time(local: monday + $0 * week + inWeek, offset) }
    }
}

extension LocalTime {
    /// Returns the time in milliseconds since 1970.
    func time(_ offset: TimeZoneOffset) -> Int64 {
        let days = Self.days(year: Int64(year), month: Int64(month), day: Int64(day))
        let local = ((days * 24 + Int64(hour)) * 60 + Int64(minute)) * 60_000 + Int64(second) * 1_000 + Int64(millisecond)
        guard let offsetMinutes else { return Self.time(local: local, offset) }
        return local - Int64(offsetMinutes) * 60_000
    }

    /// Returns the time at which clocks show a local time. If they skip it, the time is as much later; if they show it twice, the
    /// first one counts.
    static func time(local: Int64, _ offset: TimeZoneOffset) -> Int64 {
        let day: Int64 = 86_400_000
        let (before, after) = (offset(local - day), offset(local + day))
        let first = local - max(before, after)
        if first + offset(first) == local { return first }
        let second = local - min(before, after)
        return second + offset(second) == local ? second : local - before
    }

    /// Returns the number of days from 1970-01-01 to a date of the proleptic Gregorian calendar.
    private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        // Years begin in March, so that the leap day is the last day of a year.
        let year = month <= 2 ? year - 1 : year
        let (era, yearOfEra) = year.floorDivided(by: 400)
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }
}
