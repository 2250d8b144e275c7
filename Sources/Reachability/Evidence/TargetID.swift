/// The number of a target within one monitor.
package struct TargetID: Hashable, Sendable, Comparable {
    package let number: Int
    package init(_ number: Int) { self.number = number }
    package static func < (left: TargetID, right: TargetID) -> Bool { left.number < right.number }
}

extension TargetID {
    /// The first number of a target's attempts and lookups. The number of an answer identifies its target.
    var firstNumber: UInt64 { UInt64(UInt32(truncatingIfNeeded: number)) << 32 }

    init(owning attempt: UInt64) { self.init(Int(attempt >> 32)) }
}
