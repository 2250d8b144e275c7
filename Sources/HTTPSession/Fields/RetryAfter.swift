internal import FoundationEssentials
internal import Pacing
internal import Wire

/// The parser of the `Retry-After` field (RFC 9110 section 10.2.3).
enum RetryAfter {
    /// The delay of a response that arrived at `now`, in nanoseconds; `nil` if it asks for none.
    static func delay(of head: ResponseHead, now: Date) -> Int64? {
        head.firstValue(of: "retry-after").flatMap { parse($0, now: now) }
    }

    /// The delay in nanoseconds; `nil` if the value is neither a number of seconds nor a date. A date in the past is 0.
    static func parse(_ text: String, now: Date) -> Int64? {
        if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            return (Int64(text) ?? .max).multipliedSaturated(by: 1_000_000_000)
        }
        guard let date = HTTPDate.parse(text, now: Int(now.timeIntervalSince1970)) else { return nil }
        let seconds = Double(date) - now.timeIntervalSince1970
        return seconds <= 0 ? 0 : seconds > 9e9 ? .max : Int64(seconds * 1e9)
    }
}
