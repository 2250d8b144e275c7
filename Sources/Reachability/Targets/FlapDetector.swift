/// Decides whether a target is flapping, as Nagios does: by the weighted part of the last 20 results that differ from the result
/// before them.
///
/// ```
///                above 30 %
///   steady ───────────────────▶ flapping
///          ◀───────────────────
///                below 25 %
/// ```
///
/// A difference has the weight 1.25 if it is the newest and 0.75 if it is the oldest, with equal steps between them. A complete
/// alternation of 20 results is 100 %. Results that are not recorded yet count as equal to the first one, so a target begins to
/// flap at its sixth difference in a row, at the earliest.
struct FlapDetector: Hashable, Sendable {
    /// A change of ``isFlapping``, which users are notified of.
    enum Change: Hashable, Sendable {
        case began
        case ended
    }

    /// The number of results that are compared with the result before them.
    static let length = 20
    /// The part in percent above which flapping begins.
    static let beginPercent = 30
    /// The part in percent below which flapping ends.
    static let endPercent = 25

    // Bit 0 is set if the newest result differs from the one before it, bit 19 if the oldest does.
    private var differences: UInt32 = 0
    private var hasResult = false
    private var wasReachable = false
    /// Whether the target is flapping.
    private(set) var isFlapping = false

    /// Records one result.
    ///
    /// - Returns: the change if flapping began or ended with this result.
    mutating func record(_ isReachable: Bool) -> Change? {
        let differs = hasResult && isReachable != wasReachable
        differences = (differences << 1 | (differs ? 1 : 0)) & (1 << UInt32(Self.length) - 1)
        (hasResult, wasReachable) = (true, isReachable)
        let weight = weight
        if isFlapping {
            guard weight * 100 < Self.endPercent * Self.totalWeight else { return nil }
        } else {
            guard weight * 100 > Self.beginPercent * Self.totalWeight else { return nil }
        }
        isFlapping.toggle()
        return isFlapping ? .began : .ended
    }

    /// The weighted part of the results that differ from the result before them, in percent.
    var percent: Int { weight * 100 / Self.totalWeight }

    // The weight of a difference of age 0...19 is (95 − 2 · age) / 76, which is 1.25 for age 0 and 0.75 for age 19. The common
    // divisor is left out.
    private static let totalWeight = 20 * 76

    private var weight: Int {
        var (sum, remaining) = (0, differences)
        while remaining != 0 {
            sum += 95 - 2 * remaining.trailingZeroBitCount
            remaining &= remaining - 1
        }
        return sum
    }
}
