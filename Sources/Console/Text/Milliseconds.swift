import FoundationEssentials
import Pacing
import Reachability

/// A duration as milliseconds, rounded to microseconds: `0`, `0.25`, `12.345`.
package enum Milliseconds {
    package static func text(_ duration: Duration) -> String {
        let nanoseconds = max(0, duration.saturatingNanoseconds)
        let microseconds = nanoseconds / 1000 + (nanoseconds % 1000 >= 500 ? 1 : 0)
        let fraction = microseconds % 1000
        guard fraction > 0 else { return "\(microseconds / 1000)" }
        var digits = String(fraction + 1000).dropFirst()
        while digits.last == "0" { digits.removeLast() }
        return "\(microseconds / 1000).\(digits)"
    }
}
