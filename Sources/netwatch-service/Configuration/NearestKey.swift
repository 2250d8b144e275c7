/// The search for the key that a user meant.
enum NearestKey {
    /// Returns the known key with the fewest differences from an unknown one; `nil` if all differ by more than a third of their length.
    static func find(_ unknown: String, among known: some Sequence<String>) -> String? {
        let unknown = String(unknown.lowercased().prefix(64))
        let nearest = known.map { (key: $0, distance: distance(unknown, $0)) }.min { $0.distance < $1.distance }
        guard let nearest, nearest.distance <= max(1, nearest.key.count / 3) else { return nil }
        return nearest.key
    }

    /// The number of letters to insert, remove, replace or exchange with their neighbor (optimal string alignment).
    static func distance(_ first: String, _ second: String) -> Int {
        let (first, second) = (Array(first.unicodeScalars), Array(second.unicodeScalars))
        var beforeLast: [Int] = []
        var last = Array(0...second.count)
        for (row, letter) in first.enumerated() {
            var current = [row + 1]
            for (column, other) in second.enumerated() {
                var least = min(last[column + 1] + 1, current[column] + 1, last[column] + (letter == other ? 0 : 1))
                if row > 0, column > 0, letter == second[column - 1], other == first[row - 1] {
                    least = min(least, beforeLast[column - 1] + 1)
                }
                current.append(least)
            }
            (beforeLast, last) = (last, current)
        }
        return last[second.count]
    }
}
