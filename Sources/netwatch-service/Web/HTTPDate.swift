import Glibc

/// The date of a response (RFC 9110 section 5.6.7).
enum HTTPDate {
    private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// The present date.
    static var now: String { text(time(nil)) }

    /// Returns the text of a time in seconds since 1970.
    static func text(_ seconds: Int) -> String {
        var (moment, parts) = (time_t(seconds), tm())
        guard gmtime_r(&moment, &parts) != nil, days.indices ~= Int(parts.tm_wday), months.indices ~= Int(parts.tm_mon) else {
            return "Thu, 01 Jan 1970 00:00:00 GMT"
        }
        let time = [parts.tm_hour, parts.tm_min, parts.tm_sec].map { two($0) }.joined(separator: ":")
        return
            "\(days[Int(parts.tm_wday)]), \(two(parts.tm_mday)) \(months[Int(parts.tm_mon)]) \(1900 + Int(parts.tm_year)) \(time) GMT"
    }

    private static func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
