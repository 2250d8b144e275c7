import FoundationEssentials
import Pacing
import Reachability

/// A duration as people write it on the command line: `250ms`, `3s`, `2m`, `1h`.
package struct TimeSpan: Hashable {
    /// The reason why a text is not a duration.
    package struct ParseError: Error, Hashable, CustomStringConvertible {
        package let description: String
    }

    /// The maximum duration of an option.
    package static let longest = Duration.seconds(365 * 86_400)
    package static let form = "write a whole number with ms, s, m or h, as in 250ms, 3s, 2m or 1h"

    package let duration: Duration

    package init(_ text: String) throws(ParseError) {
        if text.first == "-", text.dropFirst().first?.isNumber ?? false {
            throw ParseError(description: "must be above zero; \(Self.form)")
        }
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        let unit = text.dropFirst(digits.count)
        let unitMilliseconds: Int64
        switch unit {
        case "ms": unitMilliseconds = 1
        case "s": unitMilliseconds = 1000
        case "m": unitMilliseconds = 60_000
        case "h": unitMilliseconds = 3_600_000
        case "d" where !digits.isEmpty:
            throw ParseError(description: "not a duration; write days as hours, as in 24h, at most 8760h (365 days)")
        case "" where !digits.isEmpty: throw ParseError(description: "the unit is missing; \(Self.form)")
        default: throw ParseError(description: "not a duration; \(Self.form)")
        }
        guard !digits.isEmpty else { throw ParseError(description: "not a duration; \(Self.form)") }
        let longest = Self.longest.components.seconds * 1000 / unitMilliseconds
        guard let number = Int64(digits), number <= longest else {
            throw ParseError(description: "longer than 365 days, the most that is allowed")
        }
        guard number > 0 else { throw ParseError(description: "must be above zero; \(Self.form)") }
        duration = .milliseconds(number * unitMilliseconds)
    }

    /// Creates a duration that may be zero: `0`, `0s`, `20s`.
    package init(allowingZero text: String) throws(ParseError) {
        if text.first == "-", text.dropFirst().first?.isNumber ?? false {
            throw ParseError(description: "must not be negative; \(Self.form)")
        }
        let zeros = text.prefix { $0 == "0" }
        if !zeros.isEmpty, ["", "ms", "s", "m", "h"].contains(text.dropFirst(zeros.count)) {
            duration = .zero
        } else {
            duration = try TimeSpan(text).duration
        }
    }
}

extension TimeSpan {
    /// Returns a duration as an option accepts it: `10ms`, `1s`, `90s`, `1h`. Fractions of a millisecond are omitted.
    package static func exact(_ duration: Duration) -> String {
        let milliseconds = max(0, duration.saturatingNanoseconds / 1_000_000)
        for (unit, length) in [("h", 3_600_000), ("m", 60_000), ("s", 1000)] as [(String, Int64)]
        where milliseconds > 0 && milliseconds % length == 0 {
            return "\(milliseconds / length)\(unit)"
        }
        return "\(milliseconds)ms"
    }

    /// Returns a duration in rounded form, for a person: `850ms`, `3.1s`, `2m03s`, `1h02m`, `3d04h`.
    package static func rough(_ duration: Duration) -> String {
        let milliseconds = max(0, duration.saturatingNanoseconds / 1_000_000)
        let seconds = milliseconds / 1000
        switch seconds {
        case ..<1: return "\(milliseconds)ms"
        case ..<60: return "\(seconds).\(milliseconds % 1000 / 100)s"
        case ..<3600: return "\(seconds / 60)m\(twoDigits(seconds % 60))s"
        case ..<86_400: return "\(seconds / 3600)h\(twoDigits(seconds / 60 % 60))m"
        default: return "\(seconds / 86_400)d\(twoDigits(seconds / 3600 % 24))h"
        }
    }

    /// Returns the time since the start of a stream, in milliseconds only while they matter: `+3.120s`, `+2m03.1s`, `+1h02m03s`.
    package static func offset(_ duration: Duration) -> String {
        let milliseconds = max(0, duration.saturatingNanoseconds / 1_000_000)
        let seconds = milliseconds / 1000
        switch seconds {
        case ..<60: return "+\(seconds).\(String(milliseconds % 1000 + 1000).dropFirst())s"
        case ..<3600: return "+\(seconds / 60)m\(twoDigits(seconds % 60)).\(milliseconds % 1000 / 100)s"
        default: return "+\(seconds / 3600)h\(twoDigits(seconds / 60 % 60))m\(twoDigits(seconds % 60))s"
        }
    }

    private static func twoDigits(_ number: Int64) -> String {
        number < 10 ? "0\(number)" : "\(number)"
    }
}
