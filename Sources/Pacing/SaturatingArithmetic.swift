/// Sums and products of times and lengths: where 64 bits do not hold one, it is the nearest number that they do.
extension Int64 {
    /// The sum of both.
    package func addingSaturated(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }

    /// The product of both.
    package func multipliedSaturated(by other: Int64) -> Int64 {
        let (product, overflow) = multipliedReportingOverflow(by: other)
        return overflow ? ((self < 0) == (other < 0) ? .max : .min) : product
    }
}

extension Duration {
    /// The whole duration in nanoseconds, clamped to what 64 bits hold (292 years).
    package var saturatingNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds.multipliedSaturated(by: 1_000_000_000).addingSaturated(attoseconds / 1_000_000_000)
    }
}
