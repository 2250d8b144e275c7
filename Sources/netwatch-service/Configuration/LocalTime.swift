import FoundationEssentials
import Pacing
import Reachability

/// Returns the offset of local time from UTC in milliseconds, at a time in milliseconds since 1970.
typealias TimeZoneOffset = @Sendable (Int64) -> Int64

extension TimeZone {
    /// The offset of the zone from UTC, as a function of the time.
    var offset: TimeZoneOffset {
        { Int64(secondsFromGMT(for: Date(timeIntervalSince1970: Double($0) / 1_000))) * 1_000 }
    }
}

/// A date and a time of day, in the configured time zone or at a fixed offset from UTC.
struct LocalTime: Hashable, Sendable, CustomStringConvertible {
    let year: Int
    let month: Int
    let day: Int
    let hour: Int
    let minute: Int
    let second: Int
    let millisecond: Int
    /// The offset from UTC in minutes; `nil` for the configured time zone.
    let offsetMinutes: Int?

    static let form = "write a date and a time, as in 2026-12-01 02:00 or 2026-12-01T02:00:00+01:00"

    /// Creates a time from its text: RFC 3339, or without seconds and offset. A fraction of a second has 1 to 9 digits, of which the first
    /// three count.
    init(_ text: String) throws(ConfigurationReader.Invalid) {
        let invalid = ConfigurationReader.Invalid("not a time; \(Self.form)")
        var scanner = DigitScanner(text)
        guard let year = scanner.number(4), scanner.skip("-"), let month = scanner.number(2), scanner.skip("-"),
            let day = scanner.number(2), scanner.skip(" ") || scanner.skip("T"), let hour = scanner.number(2), scanner.skip(":"),
            let minute = scanner.number(2)
        else { throw invalid }
        var (second, millisecond) = (0, 0)
        if scanner.skip(":") {
            guard let number = scanner.number(2) else { throw invalid }
            second = number
            if scanner.skip(".") {
                guard let number = scanner.milliseconds() else { throw invalid }
                millisecond = number
            }
        }
        if scanner.skip("Z") {
            offsetMinutes = 0
        } else if scanner.isAtEnd {
            offsetMinutes = nil
        } else {
            let isWest = scanner.skip("-")
            guard isWest || scanner.skip("+"), let hours = scanner.number(2), scanner.skip(":"), let minutes = scanner.number(2),
                hours < 24, minutes < 60
            else { throw invalid }
            offsetMinutes = (hours * 60 + minutes) * (isWest ? -1 : 1)
        }
        guard scanner.isAtEnd else { throw invalid }
        guard 1970...2200 ~= year, 1...12 ~= month, 1...Self.days(in: month, of: year) ~= day, hour < 24, minute < 60, second < 60
        else { throw ConfigurationReader.Invalid("there is no such time; \(Self.form)") }
        (self.year, self.month, self.day) = (year, month, day)
        (self.hour, self.minute, self.second, self.millisecond) = (hour, minute, second, millisecond)
    }

    private static func days(in month: Int, of year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Whether this time is earlier. Times in the configured time zone are compared with others as if that were UTC.
    func isBefore(_ other: LocalTime) -> Bool {
        (minutes * 60 + second, millisecond) < (other.minutes * 60 + other.second, other.millisecond)
    }

    /// The minutes since a fixed day, with 31 days a month: the order is right, the differences are not.
    private var minutes: Int { (((year * 12 + month) * 31 + day) * 24 + hour) * 60 + minute - (offsetMinutes ?? 0) }

    var description: String {
        func digits(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let fraction = millisecond > 0 ? ".\(String(1_000 + millisecond).dropFirst())" : ""
        let time = "\(year)-\(digits(month))-\(digits(day))T\(digits(hour)):\(digits(minute)):\(digits(second))\(fraction)"
        guard let offsetMinutes else { return time }
        guard offsetMinutes != 0 else { return "\(time)Z" }
        let size = abs(offsetMinutes)
        return "\(time)\(offsetMinutes < 0 ? "-" : "+")\(digits(size / 60)):\(digits(size % 60))"
    }
}

extension LocalTime {
    /// Returns the time in milliseconds since 1970.
    func time(_ offset: TimeZoneOffset) -> Int64 {
        let days = Timestamp.days(year: Int64(year), month: Int64(month), day: Int64(day))
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
}

/// A time of a day of the week, in the configured time zone.
struct WeekTime: Hashable, Sendable, CustomStringConvertible {
    enum Weekday: String, Hashable, Sendable, CaseIterable {
        case monday, tuesday, wednesday, thursday, friday, saturday, sunday
    }

    let weekday: Weekday
    let hour: Int
    let minute: Int

    /// Creates a time from its text, such as `sunday 02:00` or `sun 02:00`.
    init(_ text: String) throws(ConfigurationReader.Invalid) {
        let parts = text.lowercased().split(separator: " ")
        guard parts.count == 2,
            let weekday = Weekday.allCases.first(where: { $0.rawValue == parts[0] || $0.rawValue.prefix(3) == parts[0] })
        else { throw ConfigurationReader.Invalid("not a time of the week; write a day and a time, as in sunday 02:00") }
        var scanner = DigitScanner(String(parts[1]))
        guard let hour = scanner.number(2), scanner.skip(":"), let minute = scanner.number(2), scanner.isAtEnd, hour < 24,
            minute < 60
        else { throw ConfigurationReader.Invalid("not a time of the week; write a day and a time, as in sunday 02:00") }
        (self.weekday, self.hour, self.minute) = (weekday, hour, minute)
    }

    var description: String { "\(weekday.rawValue) \(hour < 10 ? "0" : "")\(hour):\(minute < 10 ? "0" : "")\(minute)" }
}

/// A scanner of digits and separators in ASCII.
private struct DigitScanner {
    private var bytes: ArraySlice<UInt8>

    init(_ text: String) { bytes = Array(text.utf8)[...] }

    var isAtEnd: Bool { bytes.isEmpty }

    /// Reads a number of exactly `count` digits.
    mutating func number(_ count: Int) -> Int? {
        let digits = bytes.prefix(count)
        guard digits.count == count, digits.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
        bytes = bytes.dropFirst(count)
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    /// Reads 1 to 9 digits of a fraction of a second. - Returns: its complete milliseconds.
    mutating func milliseconds() -> Int? {
        let digits = bytes.prefix { 0x30...0x39 ~= $0 }
        guard 1...9 ~= digits.count else { return nil }
        bytes = bytes.dropFirst(digits.count)
        return (Array(digits) + [0x30, 0x30]).prefix(3).reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    /// Skips a separator, if it is next.
    mutating func skip(_ separator: Character) -> Bool {
        guard bytes.first == separator.asciiValue else { return false }
        bytes = bytes.dropFirst()
        return true
    }
}
