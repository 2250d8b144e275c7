internal import Foundation

/// A date as HTTP writes it (RFC 9110 section 5.6.7).
enum HTTPDate {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// Reads the three forms that a recipient has to know; `now` decides the century of a year of two digits.
    ///
    /// ```
    /// Sun, 06 Nov 1994 08:49:37 GMT     IMF-fixdate
    /// Sunday, 06-Nov-94 08:49:37 GMT    RFC 850
    /// Sun Nov  6 08:49:37 1994          asctime
    /// ```
    static func parse(_ text: String, now: Date) -> Date? {
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
        let days = daysSinceEpoch(year: year, month: month + 1, day: day)
        return Date(timeIntervalSince1970: Double(days * 86_400 + hour * 3_600 + minute * 60 + second))
    }

    /// A year of two digits that seems to lie more than 50 years ahead is the last one that ended so.
    private static func year(_ text: Substring, now: Date) -> Int? {
        guard let value = number(text) else { return nil }
        guard text.count == 2 else { return text.count == 4 ? value : nil }
        let present = 1970 + Int(now.timeIntervalSince1970 / 31_556_952)
        let year = present - present % 100 + value
        return year > present + 50 ? year - 100 : year
    }

    private static func number(_ text: Substring) -> Int? {
        text.utf8.allSatisfy { (0x30...0x39).contains($0) } && (1...4).contains(text.count) ? Int(text) : nil
    }

    /// Of the proleptic Gregorian calendar, counted in years that begin in March (Hinnant: "chrono-Compatible Low-Level Date
    /// Algorithms").
    private static func daysSinceEpoch(year: Int, month: Int, day: Int) -> Int {
        let shifted = month > 2 ? year : year - 1
        let (era, yearOfEra) = (shifted / 400, shifted % 400)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }
}
