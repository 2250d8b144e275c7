internal import Pacing

/// The local time of a place: its offsets from UTC in the past, and the rule for the future, as a file of the tz database has them (RFC 9636).
///
/// `TimeZone` of Foundation needs the data of ICU, 40 MB that no other part of this library needs.
package struct TimeZoneRules: Hashable, Sendable, Codable {
    /// The rule of a year (RFC 9636 section 3.3.1; POSIX.1-2017 section 8.3, `TZ`).
    private struct YearRule: Hashable, Codable {
        var standard: Int64
        /// Summer time; `nil` for none.
        var summer: Summer?

        struct Summer: Hashable, Codable {
            var offset: Int64
            var start: Change
            var end: Change
        }
    }

    /// The time of a change in each year: a day, and seconds after its midnight.
    fileprivate struct Change: Hashable, Codable {
        enum Day: Hashable, Codable {
            /// 1 to 365, without 29 February.
            case julian(Int64)
            /// 0 to 365.
            case ordinal(Int64)
            /// Month, week 1 to 5 (5 for the last one), day of the week with 0 for Sunday.
            case weekday(month: Int64, week: Int64, day: Int64)
        }

        var day: Day
        var seconds: Int64
    }

    /// The times at which the offset changes, in seconds since 1970, ascending, and the offsets from then on, in seconds east of UTC.
    private var transitions: [Int64] = []
    private var offsets: [Int32] = []
    private var first: Int32 = 0
    private var rule: YearRule?

    /// Coordinated universal time.
    package static let utc = TimeZoneRules()

    private init() {}

    /// Creates the rules from the content of a file; `nil` if it is not one of the tz database.
    package init?(_ bytes: [UInt8]) {
        var reader = Reader(bytes: bytes[...])
        guard var header = reader.header() else { return nil }
        var width = 4
        if header.version >= 2 {
            guard reader.skip(header.length(width: 4)), let second = reader.header() else { return nil }
            (header, width) = (second, 8)
        }
        guard let block = reader.block(header, width: width) else { return nil }
        (transitions, offsets, first) = block
        guard width == 8 else { return }
        guard let footer = reader.footer() else { return nil }
        guard !footer.isEmpty else { return }
        var parser = RuleParser(text: footer[...])
        guard let rule = parser.rule() else { return nil }
        self.rule = rule
    }

    /// Returns the offset of local time from UTC in seconds, at a time in seconds since 1970.
    package func offset(at time: Int64) -> Int64 {
        guard let last = transitions.last else { return rule.map { Self.offset(of: $0, at: time) } ?? Int64(first) }
        if time >= last, let rule { return Self.offset(of: rule, at: time) }
        guard time >= transitions[0] else { return Int64(first) }
        var (low, high) = (0, transitions.count)
        while high - low > 1 {
            let middle = (low + high) / 2
            if transitions[middle] <= time { low = middle } else { high = middle }
        }
        return Int64(offsets[low])
    }

    private static func offset(of rule: YearRule, at time: Int64) -> Int64 {
        guard let summer = rule.summer else { return rule.standard }
        let year = Timestamp.civil(days: time.addingSaturated(rule.standard).floorDivided(by: 86_400).quotient).year
        let start = summer.start.seconds(in: year) - rule.standard
        let end = summer.end.seconds(in: year) - summer.offset
        let isSummer = start < end ? start <= time && time < end : !(end <= time && time < start)
        return isSummer ? summer.offset : rule.standard
    }
}

extension TimeZoneRules.Change {
    /// Returns the change in a year, in seconds since 1970 as a clock of UTC would show them.
    func seconds(in year: Int64) -> Int64 {
        let first = Timestamp.days(year: year, month: 1, day: 1)
        let date: Int64
        switch day {
        case .ordinal(let day): date = first + day
        case .julian(let day):
            let isLeap = Timestamp.days(year: year, month: 3, day: 1) - first == 60
            date = first + day - 1 + (isLeap && day >= 60 ? 1 : 0)
        case .weekday(let month, let week, let weekday):
            let start = Timestamp.days(year: year, month: month, day: 1)
            let next =
                month == 12
                ? Timestamp.days(year: year + 1, month: 1, day: 1) : Timestamp.days(year: year, month: month + 1, day: 1)
            // 1 January 1970 was a Thursday.
            let shift = (weekday - (start + 4).floorDivided(by: 7).remainder + 7) % 7
            var day = start + shift + 7 * (week - 1)
            while day >= next { day -= 7 }
            date = day
        }
        return date * 86_400 + seconds
    }
}

/// The parser of a file's bytes.
private struct Reader {
    struct Header {
        var version = 1
        var utcIndicators = 0
        var standardIndicators = 0
        var leaps = 0
        var times = 0
        var types = 0
        var characters = 0

        func length(width: Int) -> Int {
            times * (width + 1) + types * 6 + characters + leaps * (width + 4) + standardIndicators + utcIndicators
        }
    }

    var bytes: ArraySlice<UInt8>

    mutating func skip(_ count: Int) -> Bool { take(count) != nil }

    private mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
        guard count >= 0, bytes.count >= count else { return nil }
        defer { bytes = bytes.dropFirst(count) }
        return bytes.prefix(count)
    }

    private mutating func number(_ width: Int) -> Int64? {
        guard let part = take(width) else { return nil }
        let bits = part.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return width == 8 ? Int64(bitPattern: bits) : Int64(Int32(truncatingIfNeeded: bits))
    }

    mutating func header() -> Header? {
        guard take(4).map({ $0.elementsEqual("TZif".utf8) }) == true, let version = take(1)?.first, skip(15) else { return nil }
        var header = Header()
        header.version = version >= UInt8(ascii: "2") ? Int(version) - Int(UInt8(ascii: "0")) : 1
        var counts: [Int] = []
        for _ in 0..<6 {
            // The counts of real files are a few hundred.
            guard let count = number(4), 0...65_536 ~= count else { return nil }
            counts.append(Int(count))
        }
        (header.utcIndicators, header.standardIndicators, header.leaps) = (counts[0], counts[1], counts[2])
        (header.times, header.types, header.characters) = (counts[3], counts[4], counts[5])
        return header
    }

    mutating func block(_ header: Header, width: Int) -> ([Int64], [Int32], Int32)? {
        guard header.types > 0 else { return nil }
        var times: [Int64] = []
        for _ in 0..<header.times {
            guard let time = number(width), times.last.map({ $0 < time }) ?? true else { return nil }
            times.append(time)
        }
        guard let places = take(header.times) else { return nil }
        var types: [Int32] = []
        for _ in 0..<header.types {
            // The offsets of real places are at most 26 h (RFC 9636 section 3.2).
            guard let offset = number(4), abs(offset) <= 93_600, skip(2) else { return nil }
            types.append(Int32(offset))
        }
        guard skip(header.characters + header.leaps * (width + 4) + header.standardIndicators + header.utcIndicators) else {
            return nil
        }
        var offsets: [Int32] = []
        for place in places {
            guard types.indices.contains(Int(place)) else { return nil }
            offsets.append(types[Int(place)])
        }
        return (times, offsets, types[0])
    }

    /// Reads the text between two line feeds.
    mutating func footer() -> String? {
        guard take(1)?.first == UInt8(ascii: "\n"), let end = bytes.firstIndex(of: UInt8(ascii: "\n")),
            end - bytes.startIndex < 256
        else { return nil }
        return String(decoding: bytes[..<end], as: UTF8.self)
    }
}

extension TimeZoneRules {
    /// The parser of the rule of a year: `CET-1CEST,M3.5.0,M10.5.0/3`.
    private struct RuleParser {
        var text: Substring

        mutating func rule() -> YearRule? {
            guard skipName(), let standard = offset() else { return nil }
            guard !text.isEmpty else { return YearRule(standard: standard) }
            guard skipName() else { return nil }
            var summer = standard + 3_600
            if text.first != "," {
                guard let offset = offset() else { return nil }
                summer = offset
            }
            guard take(","), let start = change(), take(","), let end = change(), text.isEmpty else { return nil }
            return YearRule(standard: standard, summer: .init(offset: summer, start: start, end: end))
        }

        private mutating func take(_ character: Character) -> Bool {
            guard text.first == character else { return false }
            text.removeFirst()
            return true
        }

        private mutating func skipName() -> Bool {
            if take("<") {
                guard let end = text.firstIndex(of: ">") else { return false }
                text = text[text.index(after: end)...]
                return true
            }
            let name = text.prefix { $0.isASCII && $0.isLetter }
            text = text[name.endIndex...]
            return name.count >= 3
        }

        private mutating func number(_ limit: Int64) -> Int64? {
            let digits = text.prefix { $0.isASCII && $0.isNumber }
            guard let number = Int64(digits), number <= limit else { return nil }
            text = text[digits.endIndex...]
            return number
        }

        /// Reads hours, minutes and seconds with a sign, in seconds.
        private mutating func time(_ hours: Int64) -> Int64? {
            let isNegative = take("-")
            if !isNegative { _ = take("+") }
            guard var seconds = number(hours).map({ $0 * 3_600 }) else { return nil }
            for unit in [60, 1] as [Int64] where take(":") {
                guard let part = number(59) else { return nil }
                seconds += part * unit
            }
            return isNegative ? -seconds : seconds
        }

        /// Reads an offset, whose sign is that of the way to UTC.
        private mutating func offset() -> Int64? { time(24).map { -$0 } }

        private mutating func change() -> Change? {
            let day: Change.Day
            if take("J") {
                guard let number = number(365), number > 0 else { return nil }
                day = .julian(number)
            } else if take("M") {
                guard let month = number(12), month > 0, take("."), let week = number(5), week > 0, take("."),
                    let weekday = number(6)
                else { return nil }
                day = .weekday(month: month, week: week, day: weekday)
            } else {
                guard let number = number(365) else { return nil }
                day = .ordinal(number)
            }
            guard take("/") else { return Change(day: day, seconds: 7_200) }
            return time(167).map { Change(day: day, seconds: $0) }
        }
    }
}
