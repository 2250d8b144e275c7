/// Sums and products of times and lengths that are clamped to 64 bits instead of overflowing.
extension Int64 {
    /// Returns the sum, clamped to 64 bits.
    package func addingSaturated(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }

    /// Returns the product, clamped to 64 bits.
    package func multipliedSaturated(by other: Int64) -> Int64 {
        let (product, overflow) = multipliedReportingOverflow(by: other)
        return overflow ? ((self < 0) == (other < 0) ? .max : .min) : product
    }
}

extension Duration {
    /// The duration in nanoseconds, clamped to 64 bits (292 years).
    package var saturatingNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds.multipliedSaturated(by: 1_000_000_000).addingSaturated(attoseconds / 1_000_000_000)
    }
}

/// Division of times and dates before a zero point, which lies in the middle of its scale: in 1970, or in March of the year 0.
extension FixedWidthInteger {
    /// Divides by rounding towards negative infinity.
    ///
    /// - Parameter divisor: the divisor; above zero.
    /// - Returns: The quotient, and the remainder, which is never negative.
    package func floorDivided(by divisor: Self) -> (quotient: Self, remainder: Self) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}

/// Returns the earlier of two times; `nil` means never. The minimum of a list would take an allocation and 400 instructions, and a
/// loop needs several minima before each wait.
package func earlier(_ one: Int64?, _ other: Int64?) -> Int64? {
    guard let one, let other else { return one ?? other }
    return min(one, other)
}
