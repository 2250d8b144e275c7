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
