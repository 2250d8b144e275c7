internal import ByteComparison

/// The addresses of names, for as long as the name servers allow (their TTL).
///
/// Only names with addresses are cached. A failure is not: the probe that confirms it must ask again. A missing family is cached
/// beside the addresses of the other one, so that a name without AAAA records causes one question per TTL.
///
/// A server may give a TTL of ten minutes for the address of a container that the next start changes. ``NameTable`` therefore asks again
/// before the TTL has passed if an address fails.
struct NameCache: Hashable, Sendable {
    /// The shortest and the longest time in seconds for which addresses are used. A monitor reports a resolver that fails, so it
    /// does not live from old answers for hours.
    static let secondsAllowed: ClosedRange<UInt32> = 1...300
    /// The maximum number of names.
    static let limit = 131_072

    /// The cached addresses of one family; empty if the name has none.
    struct Entry: Hashable, Sendable {
        var addresses: [IPAddress]
        /// The time of the answer, on the monotonic clock in nanoseconds.
        var received: Int64
        /// On the monotonic clock in nanoseconds.
        var expiry: Int64
        var server: ResolverConfiguration.Nameserver?
        /// The complete name that has the addresses.
        var candidate: String
    }

    private struct Families: Hashable, Sendable {
        var v4: Entry?
        var v6: Entry?
    }

    private var names: [ExactString: Families] = [:]
    // The number of names at which expired ones are removed.
    private var sweepCount = 1024
    // While the cache is full, expired names are searched for once a second.
    private var fullSweepDue = Int64.min

    var count: Int { names.count }

    /// Returns the entry of a family; `nil` if it is unknown or has expired.
    func entry(_ name: String, _ family: IPAddress.Family, now: Int64) -> Entry? {
        guard let families = names[ExactString(name)] else { return nil }
        let entry = family == .v4 ? families.v4 : families.v6
        return entry.flatMap { $0.expiry > now ? $0 : nil }
    }

    /// The time until which an answer with a TTL in seconds is used.
    static func expiry(ttl: UInt32, now: Int64) -> Int64 {
        now + Int64(min(max(ttl, secondsAllowed.lowerBound), secondsAllowed.upperBound)) * 1_000_000_000
    }

    /// Stores an entry. If the cache is full of fresh names, a new name is not stored.
    mutating func store(_ entry: Entry, _ name: String, _ family: IPAddress.Family, now: Int64) {
        if names.count >= sweepCount || (names.count >= Self.limit && now >= fullSweepDue) {
            fullSweepDue = now + 1_000_000_000
            names = names.filter { max($0.value.v4?.expiry ?? .min, $0.value.v6?.expiry ?? .min) > now }
            sweepCount = max(1024, 2 * names.count)
        }
        let name = ExactString(name)
        guard names.count < Self.limit || names[name] != nil else { return }
        if family == .v4 { names[name, default: Families()].v4 = entry } else { names[name, default: Families()].v6 = entry }
    }

    mutating func remove(_ name: String) { names[ExactString(name)] = nil }

    mutating func removeAll() {
        names = [:]
        sweepCount = 1024
    }
}
