import Pacing
import Reachability

/// Times and durations for people, in the time zone of the board.
///
/// The offset from UTC is that of the board's time, also for times before a change of daylight saving time. The page names it, so that
/// each time is right.
struct LocalClock: Hashable, Sendable {
    /// The time of the page in milliseconds since 1970.
    let now: Int64
    /// The offset of local time from UTC in seconds.
    let offset: Int
    /// The name of the time zone.
    let zone: String
    /// The starts and the ends of the board's days, which had another offset before a change of daylight saving time.
    private let midnights: Set<Int64>

    private static let day: Int64 = 86_400_000
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    private static let weekdays = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]

    init(_ board: Board) {
        now = board.moment.wallClockNanoseconds.floorDivided(by: 1_000_000).quotient
        // Offsets are at most 14 hours; no clock of this type computes with more.
        offset = min(max(board.timeZoneOffset, -86_400), 86_400)
        zone = board.timeZone
        midnights = Set(board.cells.quarter.flatMap { [$0.lowerBound, $0.upperBound] })
    }

    /// The offset from UTC: `UTC+01:00`, or `UTC`.
    var offsetText: String {
        guard offset != 0 else { return "UTC" }
        let minutes = abs(offset) / 60
        return "UTC\(offset < 0 ? "-" : "+")\(Self.two(minutes / 60)):\(Self.two(minutes % 60))"
    }

    /// The zone with its offset: `Europe/Berlin, UTC+01:00`.
    var zoneText: String { zone == offsetText || zone.isEmpty ? offsetText : "\(zone), \(offsetText)" }

    private struct Fields {
        var date: CivilDay
        var hour: Int64
        var minute: Int64
        var second: Int64
    }

    private func fields(_ time: Int64) -> Fields {
        // The years 0001 to 9999.
        let limited = min(max(time, -62_135_596_800_000), 253_402_214_400_000)
        let local = limited + Int64(offset) * 1_000
        let (day, inDay) = local.floorDivided(by: Self.day)
        return Fields(
            date: CivilDay(number: day), hour: inDay / 3_600_000, minute: inDay / 60_000 % 60, second: inDay / 1_000 % 60)
    }

    /// Returns the time of day: `12:03:07`.
    func time(_ time: Int64) -> String {
        let fields = fields(time)
        return "\(Self.two(fields.hour)):\(Self.two(fields.minute)):\(Self.two(fields.second))"
    }

    /// Returns the time of day without seconds: `12:03`.
    func minute(_ time: Int64) -> String {
        let fields = fields(time)
        return "\(Self.two(fields.hour)):\(Self.two(fields.minute))"
    }

    /// Returns the day: `Wed 25 Nov`.
    func day(_ time: Int64) -> String {
        let date = fields(time).date
        let weekday = Self.weekdays[Int(date.number.floorDivided(by: 7).remainder)]
        return "\(weekday) \(date.day) \(Self.months[date.month - 1])"
    }

    /// Returns the day as `2026-11-25`.
    func date(_ time: Int64) -> String {
        let date = fields(time).date
        return "\(String(date.year + 10_000).dropFirst())-\(Self.two(date.month))-\(Self.two(date.day))"
    }

    /// Returns the time of day, with the day unless it is the present one: `12:03:07`, `Tue 24 Nov 12:03:07`.
    func short(_ time: Int64) -> String {
        isToday(time) ? self.time(time) : "\(day(time)) \(self.time(time))"
    }

    func isToday(_ time: Int64) -> Bool { fields(time).date.number == fields(now).date.number }

    /// Returns the complete time with its offset: `2026-11-25 12:03:07 UTC+01:00`.
    func full(_ time: Int64) -> String { "\(date(time)) \(self.time(time)) \(offsetText)" }

    /// Returns the time for programs (RFC 3339): `2026-11-25T12:03:07+01:00`.
    func machine(_ time: Int64) -> String {
        "\(date(time))T\(self.time(time))\(offset == 0 ? "Z" : String(offsetText.dropFirst(3)))"
    }

    private func isMidnight(_ time: Int64) -> Bool {
        midnights.contains(time) || time.addingSaturated(Int64(offset) * 1_000).floorDivided(by: Self.day).remainder == 0
    }

    /// Returns a period for people: `14:00–15:00` or `Tue 24 Nov 14:00–15:00` within a day, `Tue 24 Nov` or
    /// `Tue 24 Nov to Fri 27 Nov` for entire days, and `Tue 24 Nov 22:00 to Wed 25 Nov 13:00` for another one.
    func interval(_ period: Range<Int64>) -> String {
        let (start, end) = (period.lowerBound, period.upperBound)
        if end.elapsed(since: start) >= 23 * 3_600_000, isMidnight(start), isMidnight(end) {
            // Noon is on the right day, whatever the offset at midnight was.
            let (first, last) = (day(start.addingSaturated(43_200_000)), day(end.addingSaturated(-43_200_000)))
            return first == last ? first : "\(first) to \(last)"
        }
        // Midnight ends the day before it.
        guard fields(start).date.number == fields(max(start, end.addingSaturated(-1))).date.number else {
            return "\(day(start)) \(minute(start)) to \(day(end)) \(minute(end))"
        }
        return "\(isToday(start) ? minute(start) : "\(day(start)) \(minute(start))")–\(minute(end))"
    }

    /// Returns a duration in two units: `45 s`, `12 min 5 s`, `3 h 20 min`, `2 d 4 h`.
    static func duration(milliseconds: Int64) -> String {
        let seconds = max(0, milliseconds) / 1_000
        switch seconds {
        case 0: return milliseconds > 0 ? "\(milliseconds) ms" : "0 s"
        case ..<60: return "\(seconds) s"
        case ..<600: return "\(seconds / 60) min" + (seconds % 60 > 0 ? " \(seconds % 60) s" : "")
        case ..<3_600: return "\(seconds / 60) min"
        case ..<86_400: return "\(seconds / 3_600) h" + (seconds / 60 % 60 > 0 ? " \(seconds / 60 % 60) min" : "")
        default: return "\(seconds / 86_400) d" + (seconds / 3_600 % 24 > 0 ? " \(seconds / 3_600 % 24) h" : "")
        }
    }

    private static func two(_ number: some BinaryInteger) -> String { number < 10 ? "0\(number)" : "\(number)" }
}

/// A day of the proleptic Gregorian calendar.
private struct CivilDay {
    /// The number of the day since 1970-01-01.
    let number: Int64
    let year: Int64
    let month: Int
    let day: Int

    /// Creates the day. Years are counted from 1 March, so that the leap day is the last day of a year.
    init(number: Int64) {
        self.number = number
        let (era, dayOfEra) = (number + 719_468).floorDivided(by: 146_097)
        let leapDays = dayOfEra / 1_460 - dayOfEra / 36_524 + dayOfEra / 146_096
        let yearOfEra = (dayOfEra - leapDays) / 365
        let dayOfYear = dayOfEra - (yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100)
        // From March on, the lengths 31, 30, 31, 30, 31 repeat every five months, which have 153 days.
        let monthFromMarch = (dayOfYear * 5 + 2) / 153
        day = Int(dayOfYear - (monthFromMarch * 153 + 2) / 5 + 1)
        month = Int(monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9)
        year = era * 400 + yearOfEra + (month <= 2 ? 1 : 0)
    }
}
