/// How many cookies a session keeps.
enum CookieBound {
    /// RFC 6265 section 6.1 asks for as many at least.
    static let most = 3_000

    /// The newest of those domains that have more than their share, and all of the others'. What is for https alone goes last: others than its
    /// server may have sent the rest (RFC 6265bis section 5.7).
    static func kept(_ lines: [CookieLine], most: Int = most) -> [CookieLine] {
        guard lines.count > most else { return lines }
        let domains = lines.map(\.domain)
        let counts = domains.reduce(into: [:]) { $0[$1, default: 0] += 1 }
        // The share is what is left for each when those that want less have it.
        var (room, share) = (most, 0)
        for (place, count) in counts.values.sorted().enumerated() {
            share = room / (counts.count - place)
            if count > share { break }
            room -= count
        }
        var surplus = counts.mapValues { max(0, $0 - share) }
        var isKept = [Bool](repeating: true, count: lines.count)
        for goesSecure in [false, true] {
            for index in lines.indices where isKept[index] && surplus[domains[index], default: 0] > 0 {
                guard goesSecure || !lines[index].isSecure else { continue }
                isKept[index] = false
                surplus[domains[index], default: 0] -= 1
            }
        }
        return zip(lines, isKept).filter(\.1).map(\.0)
    }
}
