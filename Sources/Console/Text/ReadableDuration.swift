import FoundationEssentials
import Pacing

/// A measured duration for a person, with about three significant digits: `0.412 ms`, `12.35 ms`, `3.06 s`.
package enum ReadableDuration {
    /// The width of the longest text below 1,000 seconds.
    package static let width = 8

    package static func text(_ duration: Duration) -> String {
        let microseconds = max(0, duration.saturatingNanoseconds / 1000)
        switch microseconds {
        case ..<10_000: return "\(decimal(microseconds, unit: 1000, digits: 3)) ms"
        case ..<100_000: return "\(decimal(microseconds, unit: 1000, digits: 2)) ms"
        case ..<1_000_000: return "\(decimal(microseconds, unit: 1000, digits: 1)) ms"
        default: return "\(decimal(microseconds, unit: 1_000_000, digits: 2)) s"
        }
    }

    /// Returns `amount / unit` with a number of decimals, rounded down.
    private static func decimal(_ amount: Int64, unit: Int64, digits: Int) -> String {
        var scale: Int64 = 1
        for _ in 0..<digits { scale *= 10 }
        let fraction = amount % unit * scale / unit
        return "\(amount / unit).\(String(fraction + scale).dropFirst())"
    }
}
