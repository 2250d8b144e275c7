internal import FoundationEssentials
internal import Pacing

/// The parser of the `Retry-After` field (RFC 9110 section 10.2.3).
enum RetryAfter {
    /// The delay in nanoseconds; `nil` if the value is neither a number of seconds nor a date. A date in the past is 0.
    static func parse(_ text: String, now: Date) -> Int64? {
        if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            return (Int64(text) ?? .max).multipliedSaturated(by: 1_000_000_000)
        }
        guard let date = HTTPDate.parse(text, now: now) else { return nil }
        let seconds = date.timeIntervalSince(now)
        return seconds <= 0 ? 0 : seconds > 9e9 ? .max : Int64(seconds * 1e9)
    }
}

extension ResponseHead {
    /// The delay of `Retry-After`. A date counts from the response's own `Date`.
    var retryAfter: Duration? {
        guard let text = firstValue(of: "retry-after") else { return nil }
        let now = firstValue(of: "date").flatMap { HTTPDate.parse($0, now: Date(timeIntervalSince1970: 0)) }
        guard now != nil || text.utf8.first.map({ (0x30...0x39).contains($0) }) == true else { return nil }
        return RetryAfter.parse(text, now: now ?? Date(timeIntervalSince1970: 0)).map { .nanoseconds($0) }
    }
}
