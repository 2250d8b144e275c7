internal import Pacing

/// The times of a job, as crontab(5) has them: minute, hour, day of the month, month, day of the week.
///
/// A job at fixed times runs once for each local time: at the change if the clocks skip it, and at the first of two. One whose minute or hour begins with `*`
/// runs whenever the clocks show its time, as cron(8) of Debian has it.
package struct CronSchedule: Hashable, Sendable {
    /// The error for a text that is not valid.
    package struct Invalid: Error, Hashable, Sendable, CustomStringConvertible {
        /// One line with the reason.
        package let description: String

        init(_ description: String) { self.description = ExternalText.shortened(description) }
    }

    /// The text, as the user wrote it.
    package let text: String
    // A bit for each value.
    private var minutes: UInt64
    private var hours: UInt64
    private var days: UInt64
    private var months: UInt64
    private var weekdays: UInt64
    /// Whether the minute or the hour begins with `*`.
    private var isAnyTime: Bool
    /// Whether both the days of the month and of the week are given: then one of them suffices.
    private var isEitherDay: Bool

    private static let shortcuts = [
        "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *",
        "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
    ]
    private static let monthNames = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
    private static let dayNames = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]

    /// Creates a schedule from five fields, or from one of `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`.
    ///
    /// - Throws: ``Invalid``, also for a day that no month has.
    package init(_ text: String) throws(Invalid) {
        guard text.utf8.count <= 256 else { throw Invalid("is longer than 256 characters") }
        var fields = text.split { $0 == " " || $0 == "\t" }
        if fields.count == 1, fields[0].hasPrefix("@") {
            guard let long = Self.shortcuts[fields[0].lowercased()] else {
                throw Invalid("'\(fields[0])' is not known; write five fields, or @hourly, @daily, @weekly, @monthly or @yearly")
            }
            fields = long.split(separator: " ")
        }
        guard fields.count == 5 else {
            throw Invalid(
                "'\(text)' has \(fields.count) fields; write five: minute, hour, day of the month, month, day of the week")
        }
        self.text = text
        minutes = try Self.bits(fields[0], "minute", 0...59)
        hours = try Self.bits(fields[1], "hour", 0...23)
        days = try Self.bits(fields[2], "day of the month", 1...31)
        months = try Self.bits(fields[3], "month", 1...12, Self.monthNames)
        let week = try Self.bits(fields[4], "day of the week", 0...7, Self.dayNames)
        // 7 is Sunday, too.
        weekdays = (week | week >> 7) & 0x7f
        isAnyTime = fields[0].hasPrefix("*") || fields[1].hasPrefix("*")
        isEitherDay = !fields[2].hasPrefix("*") && !fields[4].hasPrefix("*")
        guard isEitherDay || hasDay else { throw Invalid("'\(text)' never runs: no such month has such a day") }
    }

    private static func bits(_ field: Substring, _ name: String, _ range: ClosedRange<Int>, _ names: [String] = [])
        throws(Invalid)
        -> UInt64
    {
        func value(_ text: Substring) throws(Invalid) -> Int {
            if let place = names.firstIndex(of: text.lowercased()) { return place + range.lowerBound }
            guard !text.isEmpty, text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }), let number = Int(text), range.contains(number)
            else {
                throw Invalid("\(name): '\(text)' is not one of \(range.lowerBound) to \(range.upperBound)")
            }
            return number
        }
        var bits: UInt64 = 0
        for part in field.split(separator: ",", omittingEmptySubsequences: false) {
            let steps = part.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            let ends = steps[0].split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
            var (low, high) = (range.lowerBound, range.upperBound)
            if steps[0] == "*" {
                // 7 would be a second Sunday.
                if range.upperBound == 7 { high = 6 }
            } else {
                low = try value(ends[0])
                high = ends.count > 1 ? try value(ends[1]) : steps.count > 1 ? high : low
            }
            guard low <= high else { throw Invalid("\(name): '\(steps[0])' ends before it begins") }
            var step = 1
            if steps.count > 1 {
                guard steps[1].utf8.allSatisfy({ 0x30...0x39 ~= $0 }), let number = Int(steps[1]), number > 0 else {
                    throw Invalid("\(name): '\(steps[1])' is not a step of 1 or more")
                }
                step = number
            }
            for number in stride(from: low, through: high, by: step) { bits |= 1 << UInt64(number) }
        }
        return bits
    }

    /// Whether a month of the schedule has a day of it, in some year.
    private var hasDay: Bool {
        let lengths = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        return (1...12).contains { month in
            months & 1 << UInt64(month) != 0 && (1...lengths[month - 1]).contains { days & 1 << UInt64($0) != 0 }
        }
    }

    private func contains(year: Int64, month: Int64, day: Int64, date: Int64) -> Bool {
        guard months & 1 << UInt64(month) != 0 else { return false }
        let inMonth = days & 1 << UInt64(day) != 0
        // 1 January 1970 was a Thursday.
        let inWeek = weekdays & 1 << UInt64((date + 4).floorDivided(by: 7).remainder) != 0
        return isEitherDay ? inMonth || inWeek : inMonth && inWeek
    }

    /// Returns the first time after another one, both in seconds since 1970; `nil` if there is none in the next twelve years, within which every day of
    /// the calendar comes.
    package func next(after time: Int64, in zone: TimeZoneRules) -> Int64? {
        // Also later calendars have no other rules; it keeps the arithmetic below from overflowing.
        let time = min(max(time, -60_000_000_000), 60_000_000_000)
        let today = (time + zone.offset(at: time)).floorDivided(by: 86_400).quotient
        // A local time of yesterday that clocks skip runs at the change, which may be today.
        for date in (today - 1)...(today + 12 * 366) {
            let (year, month, day) = Timestamp.civil(days: date)
            guard contains(year: year, month: month, day: day, date: date) else { continue }
            if let found = next(after: time, on: date, in: zone) { return found }
        }
        return nil
    }

    private func next(after time: Int64, on date: Int64, in zone: TimeZoneRules) -> Int64? {
        let midnight = date * 86_400
        let (before, after) = (zone.offset(at: midnight - 86_400), zone.offset(at: midnight + 2 * 86_400))
        let offset = zone.offset(at: midnight - before)
        // No change is near: each local time is there once.
        let isPlain = before == after && before == offset && zone.offset(at: midnight - before + 86_400) == before
        var found: Int64?
        for hour in 0..<24 as Range<Int64> where hours & 1 << UInt64(hour) != 0 {
            for minute in 0..<60 as Range<Int64> where minutes & 1 << UInt64(minute) != 0 {
                let local = midnight + hour * 3_600 + minute * 60
                if isPlain {
                    if local - before > time { return local - before }
                } else {
                    for instant in zone.times(local: local, isRepeated: isAnyTime) where instant > time {
                        found = min(found ?? instant, instant)
                    }
                }
            }
        }
        return found
    }
}

extension TimeZoneRules {
    /// Returns the times at which clocks show a local time. - Parameter isRepeated: whether a time that is there twice counts twice, and one that is skipped
    /// not at all; otherwise the first one counts, and the change.
    fileprivate func times(local: Int64, isRepeated: Bool) -> [Int64] {
        let (before, after) = (offset(at: local - 86_400), offset(at: local + 86_400))
        let candidates = before == after ? [local - before] : [local - max(before, after), local - min(before, after)]
        let shown = candidates.filter { $0 + offset(at: $0) == local }
        if let first = shown.first { return isRepeated ? shown : [first] }
        guard !isRepeated else { return [] }
        // The change is where the later offset begins.
        var (low, high) = (local - 86_400 - before, local + 86_400 - after)
        while high - low > 1 {
            let middle = low + (high - low) / 2
            if offset(at: middle) == before { low = middle } else { high = middle }
        }
        return [high]
    }
}
