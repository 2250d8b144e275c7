/// The search for the key or name that a user meant.
package enum NearestKey {
    /// The maximum number of keys that are compared. A file of 1 MiB can have a hundred thousand.
    static let candidateLimit = 300
    /// The maximum number of characters of a key that are compared.
    private static let lengthLimit = 64

    /// Returns the known key with the fewest differences from an unknown one; `nil` if all differ by more than a third of their length.
    package static func find(_ unknown: String, among known: some Sequence<String>) -> String? {
        let unknown = shortened(unknown)
        var nearest: (key: String, distance: Int)?
        for key in candidates(for: unknown, among: known) {
            let limit = min(allowed(key), nearest.map { $0.distance - 1 } ?? .max)
            guard limit >= 0, let distance = distance(unknown, key, limit: limit) else { continue }
            nearest = (key, distance)
        }
        return nearest?.key
    }

    /// Returns the known names that a user may have meant, at most `count`: first those that contain the unknown one, then those with the fewest
    /// differences, as ``find(_:among:)``.
    package static func list(_ unknown: String, among known: [String], count: Int = 3) -> [String] {
        let short = shortened(unknown)
        var names = short.unicodeScalars.count > 2 ? known.filter { $0.contains(short) } : []
        while names.count < count, let next = find(unknown, among: known.filter { !names.contains($0) }) { names.append(next) }
        return Array(names.prefix(count))
    }

    /// Returns the first keys whose length alone does not exclude them.
    static func candidates(for unknown: String, among known: some Sequence<String>) -> [String] {
        let length = shortened(unknown).unicodeScalars.count
        var candidates: [String] = []
        for key in known where key.utf8.count <= 4 * lengthLimit && abs(key.unicodeScalars.count - length) <= allowed(key) {
            candidates.append(key)
            if candidates.count == candidateLimit { break }
        }
        return candidates
    }

    /// The number of differences that a key may have.
    private static func allowed(_ key: String) -> Int { max(1, key.unicodeScalars.count / 3) }

    private static func shortened(_ key: String) -> String {
        String(String.UnicodeScalarView(key.unicodeScalars.prefix(lengthLimit))).lowercased()
    }

    /// The number of letters to insert, remove, replace or exchange with their neighbor (optimal string alignment); `nil` if it is
    /// greater than `limit`.
    static func distance(_ first: String, _ second: String, limit: Int = .max) -> Int? {
        let (first, second) = (Array(first.unicodeScalars), Array(second.unicodeScalars))
        guard abs(first.count - second.count) <= limit else { return nil }
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
            // An exchange of neighbors builds on the row before the last one.
            guard min(current.min() ?? 0, last.min() ?? 0) <= limit else { return nil }
            (beforeLast, last) = (last, current)
        }
        return last[second.count] <= limit ? last[second.count] : nil
    }
}
