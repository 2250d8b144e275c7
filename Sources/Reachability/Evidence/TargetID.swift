/// The number of a target within one monitor.
package struct TargetID: Hashable, Sendable, Comparable {
    package let number: Int
    package init(_ number: Int) { self.number = number }
    package static func < (left: TargetID, right: TargetID) -> Bool { left.number < right.number }
}
