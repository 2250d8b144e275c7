internal import Pacing

/// A moment's wall-clock time as RFC 3339 text in UTC with milliseconds: `2026-08-02T12:00:03.123Z`.
///
/// 64 bits of nanoseconds cover the years 1677 to 2262, so the year always has four digits.
package enum Timestamp {
    package static func text(_ moment: Moment) -> String {
        text(wallClockNanoseconds: moment.wallClockNanoseconds)
    }

    package static func text(wallClockNanoseconds nanoseconds: Int64) -> String {
        // Rounded down, also before 1970, so that no time is later than the moment.
        let milliseconds = nanoseconds.floorDivided(by: 1_000_000).quotient
        let (days, inDay) = milliseconds.floorDivided(by: 86_400_000)
        let (year, month, day) = civil(days: days)
        return String(unsafeUninitializedCapacity: 24) { buffer in
            var position = 0
            func put(_ byte: UInt8) {
                buffer[position] = byte
                position += 1
            }
            func put(_ number: Int64, _ divisor: Int64) {
                var divisor = divisor
                while divisor > 0 {
                    put(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / divisor % 10))
                    divisor /= 10
                }
            }
            put(year, 1000)
            put(UInt8(ascii: "-"))
            put(month, 10)
            put(UInt8(ascii: "-"))
            put(day, 10)
            put(UInt8(ascii: "T"))
            put(inDay / 3_600_000, 10)
            put(UInt8(ascii: ":"))
            put(inDay / 60_000 % 60, 10)
            put(UInt8(ascii: ":"))
            put(inDay / 1000 % 60, 10)
            put(UInt8(ascii: "."))
            put(inDay % 1000, 100)
            put(UInt8(ascii: "Z"))
            return position
        }
    }

    /// Returns the date of the proleptic Gregorian calendar that is `days` after 1970-01-01.
    ///
    /// Years are counted from 1 March, so that the leap day is the last day of a year. 400 such years have 146,097 days.
    package static func civil(days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let sinceMarch0000 = days + 719_468
        let (era, dayOfEra) = sinceMarch0000.floorDivided(by: 146_097)
        let leapDays = dayOfEra / 1460 - dayOfEra / 36_524 + dayOfEra / 146_096
        let yearOfEra = (dayOfEra - leapDays) / 365
        let dayOfYear = dayOfEra - (yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100)
        // From March on, the lengths 31, 30, 31, 30, 31 repeat every five months, which have 153 days.
        let monthFromMarch = (dayOfYear * 5 + 2) / 153
        let day = dayOfYear - (monthFromMarch * 153 + 2) / 5 + 1
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        return (era * 400 + yearOfEra + (month <= 2 ? 1 : 0), month, day)
    }

    /// Returns the number of days from 1970-01-01 to a date of the proleptic Gregorian calendar.
    package static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        // Years begin in March, so that the leap day is the last day of a year.
        let year = month <= 2 ? year - 1 : year
        let (era, yearOfEra) = year.floorDivided(by: 400)
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }
}
