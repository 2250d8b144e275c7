/// A set of HTTP status codes: single codes and ranges, from 100 to 999.
public struct StatusCodes: Hashable, Sendable {
    /// The ranges, in their order.
    public let ranges: [ClosedRange<Int>]

    /// The codes from 200 to 299.
    public static let success = StatusCodes([200...299])

    /// Creates a set of ranges. Ranges are limited to codes from 100 to 999.
    public init(_ ranges: [ClosedRange<Int>]) {
        self.ranges = ranges.filter { $0.overlaps(100...999) }.map { $0.clamped(to: 100...999) }
    }

    /// Creates a set from a list of codes and ranges, such as `200-299,401`; `nil` for a list that is not valid.
    public init?(_ list: String) {
        var ranges: [ClosedRange<Int>] = []
        for item in list.split(separator: ",", omittingEmptySubsequences: false) {
            let ends = item.split(separator: "-", omittingEmptySubsequences: false).map { end -> Int? in
                guard end.utf8.count == 3, end.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
                return Int(end).flatMap { $0 >= 100 ? $0 : nil }
            }
            guard (1...2).contains(ends.count), let first = ends[0], let last = ends[ends.count - 1], first <= last else {
                return nil
            }
            ranges.append(first...last)
        }
        self.ranges = ranges
    }

    /// Returns whether the set has this code.
    public func contains(_ code: Int) -> Bool { ranges.contains { $0.contains(code) } }
}

extension StatusCodes: CustomStringConvertible {
    /// The list, such as `200-299,401`.
    public var description: String {
        ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ",")
    }
}
