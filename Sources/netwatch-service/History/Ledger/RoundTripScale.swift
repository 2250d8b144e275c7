/// The values that round trips and response times have in the history: each is within 1.25 % of the measured one.
///
/// A time jitters by far more than that, and its digits beyond would be most of what the disk is written for. Values below 100
/// units (1 ms) are exact. Above, each decade has 160 values: 100 to 199 in steps of 2, to 499 in steps of 5, and to 999 in steps of
/// 10. Round numbers stay round.
enum RoundTripScale {
    /// The greatest value of the scale.
    static let greatest: UInt32 = 4_250_000_000
    private static let first: UInt32 = 100
    private static let perDecade: UInt32 = 160

    /// Returns the nearest value of the scale.
    static func rounded(_ value: UInt32) -> UInt32 {
        let value = min(value, greatest)
        guard value >= first else { return value }
        let base = base(of: value)
        let digits = value / base
        let step = base * (digits < 200 ? 2 : digits < 500 ? 5 : 10)
        return (value + step / 2) / step * step
    }

    /// Returns the place of a value of the scale. - Parameter value: a result of ``rounded(_:)``.
    static func place(of value: UInt32) -> UInt32 {
        guard value >= first else { return value }
        var (digits, decade): (UInt32, UInt32) = (value, 0)
        while digits >= 1_000 { (digits, decade) = (digits / 10, decade + 1) }
        let step = digits < 200 ? (digits - 100) / 2 : digits < 500 ? 50 + (digits - 200) / 5 : 110 + (digits - 500) / 10
        return first + perDecade * decade + step
    }

    /// Returns the value at a place; `nil` for a place beyond the scale.
    static func value(at place: UInt32) -> UInt32? {
        guard place >= first else { return place }
        let (decade, step) = (place - first).quotientAndRemainder(dividingBy: perDecade)
        guard decade <= 7 else { return nil }
        let digits = step < 50 ? 100 + step * 2 : step < 110 ? 200 + (step - 50) * 5 : 500 + (step - 110) * 10
        let value = (0..<decade).reduce(UInt64(digits)) { value, _ in value * 10 }
        return value <= UInt64(greatest) ? UInt32(value) : nil
    }

    /// Returns the power of ten by which a value has three digits.
    private static func base(of value: UInt32) -> UInt32 {
        var base: UInt32 = 1
        while value / base >= 1_000 { base *= 10 }
        return base
    }
}
