internal import Pacing

/// The date format of HTTP (RFC 9110 section 5.6.7), as seconds since 1970.
package enum HTTPDate {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]

    /// Parses the three forms that a recipient must accept. `now` decides the century of a two-digit year.
    ///
    /// ```
    /// Sun, 06 Nov 1994 08:49:37 GMT     IMF-fixdate
    /// Sunday, 06-Nov-94 08:49:37 GMT    RFC 850
    /// Sun Nov  6 08:49:37 1994          asctime
    /// ```
    package static func parse(_ text: String, now: Int) -> Int? {
        let words = text.split { $0 == " " || $0 == "\t" }
        let parts: (day: Substring, month: Substring, year: Substring, time: Substring)
        switch words.count {
        case 6 where words[5] == "GMT": parts = (words[1], words[2], words[3], words[4])
        case 4 where words[3] == "GMT":
            let date = words[1].split(separator: "-")
            guard date.count == 3 else { return nil }
            parts = (date[0], date[1], date[2], words[2])
        case 5: parts = (words[2], words[1], words[4], words[3])
        default: return nil
        }
        let time = parts.time.split(separator: ":", omittingEmptySubsequences: false).map { number($0) }
        guard let month = months.firstIndex(of: String(parts.month)), let day = number(parts.day), (1...31).contains(day),
            let year = year(parts.year, now: now), time.count == 3, let hour = time[0], hour < 24, let minute = time[1],
            minute < 60, let second = time[2], second <= 60
        else { return nil }
        return daysSinceEpoch(year: year, month: month + 1, day: day) * 86_400 + hour * 3_600 + minute * 60 + second
    }

    /// Whether a text is an IMF-fixdate exactly as a sender generates it: an existing day, its own day name, one spelling.
    package static func isCanonical(_ text: String) -> Bool {
        // A year of four digits needs no guess of its century.
        guard text.utf8.count == 29, let date = parse(text, now: 0) else { return false }
        return format(date) == text
    }

    /// The IMF-fixdate of a time.
    package static func format(_ seconds: Int) -> String {
        let (days, second) = seconds.floorDivided(by: 86_400)
        // Hinnant's algorithm, as in `daysSinceEpoch`: years begin in March.
        let shifted = days + 719_468
        let era = shifted.floorDivided(by: 146_097).quotient
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        func padded(_ number: Int, _ width: Int = 2) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, width - text.count)) + text
        }
        // 1970 began on a Thursday.
        let weekday = weekdays[(days + 4).floorDivided(by: 7).remainder]
        let day = padded(dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
        let time = "\(padded(second / 3_600)):\(padded(second / 60 % 60)):\(padded(second % 60))"
        return "\(weekday), \(day) \(months[month - 1]) \(padded(year, 4)) \(time) GMT"
    }

    /// Interprets a year. A two-digit year more than 50 years ahead belongs to the previous century.
    private static func year(_ text: Substring, now: Int) -> Int? {
        guard let value = number(text) else { return nil }
        guard text.count == 2 else { return text.count == 4 ? value : nil }
        let present = 1970 + now / 31_556_952
        let year = present - present % 100 + value
        return year > present + 50 ? year - 100 : year
    }

    private static func number(_ text: Substring) -> Int? {
        text.utf8.allSatisfy { (0x30...0x39).contains($0) } && (1...4).contains(text.count) ? Int(text) : nil
    }

    /// The days since 1970 in the proleptic Gregorian calendar, counted in years that begin in March (Hinnant: "chrono-Compatible
    /// Low-Level Date Algorithms").
    package static func daysSinceEpoch(year: Int, month: Int, day: Int) -> Int {
        let shifted = month > 2 ? year : year - 1
        let (era, yearOfEra) = (shifted / 400, shifted % 400)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }
}
