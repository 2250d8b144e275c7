/// The limit on the number of cookies in a store.
enum CookieLimit {
    /// The largest number of cookies, which RFC 6265 section 6.1 requires at least.
    static let most = 3_000

    /// The cookies that remain if there are more than `most`.
    ///
    /// A domain with more than its share keeps its newest cookies, and other domains keep all. Secure cookies are evicted last, because somebody
    /// other than the server may have sent the others (RFC 6265bis section 5.7).
    static func kept(_ lines: [CookieLine], most: Int = most) -> [CookieLine] {
        guard lines.count > most else { return lines }
        let domains = lines.map(\.domain)
        let counts = domains.reduce(into: [:]) { $0[$1, default: 0] += 1 }
        // Domains with fewer cookies than an equal share keep them; the others share the remaining space equally.
        var (room, share) = (most, 0)
        for (index, count) in counts.values.sorted().enumerated() {
            share = room / (counts.count - index)
            if count > share { break }
            room -= count
        }
        var surplus = counts.mapValues { max(0, $0 - share) }
        var isKept = [Bool](repeating: true, count: lines.count)
        for evictsSecure in [false, true] {
            for index in lines.indices where isKept[index] && surplus[domains[index], default: 0] > 0 {
                guard evictsSecure || !lines[index].isSecure else { continue }
                isKept[index] = false
                surplus[domains[index], default: 0] -= 1
            }
        }
        return zip(lines, isKept).filter(\.1).map(\.0)
    }
}
