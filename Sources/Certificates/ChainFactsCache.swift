internal import ByteComparison

/// Facts whose size in memory is known.
protocol SizedFacts: Sendable {
    /// The approximate number of bytes in memory, with the key of a cache.
    var byteCount: Int { get }
}

/// The facts of certificate chains that were verified before; see ``VerifiedFactsCache``.
typealias ChainFactsCache = VerifiedFactsCache<TLSChainFacts>

/// The facts of certificate chains, or of stapled responses, that were verified before, so that an unchanged chain is not verified at each
/// handshake.
///
/// The facts depend on the server's Certificate message, on the server name, on the authorities with their revocation lists, and
/// on the time. The message and the name are the key; a cache belongs to one set of authorities. An entry is valid for a range of
/// times in which no certificate and no list begins or ends to be valid, so a new verification would give equal facts. The
/// handshake itself is not affected: OpenSSL checks at each handshake that the server has the certificate's key.
///
/// The memory is limited. If it is full, entries that were not used for an hour are evicted, and new chains are not kept if there
/// are none. So a fleet that is larger than the cache still uses all entries in each round of its probes.
struct VerifiedFactsCache<Facts: SizedFacts>: Sendable {
    /// The default limit of ``byteCount``: about 7,000 certificates with two names.
    static var maximumByteCount: Int { 6 << 20 }
    /// The seconds without use after which an entry may be evicted.
    static var idleTime: Int64 { 3_600 }
    /// The seconds between two searches for entries to evict, and the precision of their times.
    private static var step: Int64 { 60 }

    /// The identity of the facts, for one set of authorities.
    struct Key: Hashable, Sendable {
        /// The SHA-256 of the server's Certificate message (RFC 8446 section 4.4.2, RFC 5246 section 7.4.2).
        var digest: SIMD4<UInt64>
        @ExactString var serverName: String
    }

    // A class, because a dictionary has free slots of the size of its values.
    private final class Kept: Sendable {
        let facts: Facts
        let validity: Range<Int64>
        let byteCount: Int

        init(_ facts: Facts, _ validity: Range<Int64>) {
            (self.facts, self.validity, byteCount) = (facts, validity, facts.byteCount)
        }
    }

    private struct Entry: Sendable {
        let kept: Kept
        var lastUse: Int64
    }

    private let limit: Int
    private var entries: [Key: Entry] = [:]
    private var lastEviction: Int64?
    /// The approximate size of all entries.
    private(set) var byteCount = 0

    init(limit: Int = Self.maximumByteCount) { self.limit = limit }

    /// The number of entries.
    var count: Int { entries.count }
    /// The keys of all entries, for tests.
    var keys: [Key] { Array(entries.keys) }

    /// Returns the facts of a chain at a time, in seconds since 1970; `nil` if they are not known.
    mutating func facts(for key: Key, at time: Int64) -> Facts? {
        guard let entry = entries[key] else { return nil }
        guard entry.kept.validity.contains(time) else {
            remove(key)
            return nil
        }
        if Self.distance(entry.lastUse, time) >= Self.step { entries[key]?.lastUse = time }
        return entry.kept.facts
    }

    /// Keeps the facts of a chain for the times of their validity, if there is room at this time.
    mutating func insert(_ facts: Facts, for key: Key, validity: Range<Int64>, at time: Int64) {
        remove(key)
        let kept = Kept(facts, validity)
        if byteCount + kept.byteCount > limit { evict(at: time) }
        guard byteCount + kept.byteCount <= limit else { return }
        entries[key] = Entry(kept: kept, lastUse: time)
        byteCount += kept.byteCount
    }

    private mutating func evict(at time: Int64) {
        if let lastEviction, Self.distance(lastEviction, time) < Self.step { return }
        lastEviction = time
        entries = entries.filter { Self.distance($0.value.lastUse, time) < Self.idleTime }
        byteCount = entries.values.reduce(0) { $0 + $1.kept.byteCount }
    }

    /// The wall clock may be set back, so the difference has no sign.
    private static func distance(_ former: Int64, _ time: Int64) -> Int64 {
        let (distance, isTooLarge) = time.subtractingReportingOverflow(former)
        return isTooLarge || distance == .min ? .max : abs(distance)
    }

    private mutating func remove(_ key: Key) {
        guard let entry = entries.removeValue(forKey: key) else { return }
        byteCount -= entry.kept.byteCount
    }
}
