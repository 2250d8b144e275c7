import Console
import Pacing

/// The period of a question about the history, from the texts of `--since` and `--until` or of a URL.
struct HistoryPeriod: Hashable, Sendable {
    /// The longest period in milliseconds: 50 years.
    static let limit: Int64 = 50 * 366 * 86_400_000
    /// The period without a start: a day.
    static let standard: Int64 = 86_400_000
    static let form = "write a duration such as 24h or 7d, or a time such as 2026-12-01 02:00 or 2026-12-01T02:00:00Z"

    /// A text that is no time, or an end that is not after its start.
    struct Invalid: Error, Hashable {
        /// The name of the parameter.
        var parameter: String
        var reason: String
    }

    /// The period in milliseconds since 1970.
    let range: Range<Int64>

    /// Creates a period. - Parameters: `now` is the present time in milliseconds since 1970, the latest end and the end without `until`.
    init(since: String?, until: String?, now: Int64, offset: TimeZoneOffset) throws(Invalid) {
        let end = min(try until.map { text throws(Invalid) in try Self.time(text, "until", now, offset) } ?? now, now)
        let start = try since.map { text throws(Invalid) in try Self.time(text, "since", now, offset) } ?? end - Self.standard
        guard start < end else { throw Invalid(parameter: "since", reason: "it is not before the end of the period") }
        guard end - start <= Self.limit else { throw Invalid(parameter: "since", reason: "the period is longer than 50 years") }
        range = start..<end
    }

    /// Returns the time of a text: a duration before the present time, a date, or a date and a time of day.
    private static func time(_ text: String, _ parameter: String, _ now: Int64, _ offset: TimeZoneOffset) throws(Invalid) -> Int64
    {
        if text.last == "d", let days = try? DayCount.parse(text) { return now - Int64(days) * 86_400_000 }
        if let span = try? TimeSpan(text) { return now - span.duration.saturatingNanoseconds / 1_000_000 }
        if let time = (try? LocalTime(text)) ?? (try? LocalTime("\(text) 00:00")) { return time.time(offset) }
        throw Invalid(parameter: parameter, reason: "'\(text.prefix(100))' is not a time; \(form)")
    }
}
