import Pacing

/// The order of expensive questions: one at a time for each peer, and after a burst at most a part of the time.
///
/// A question waits for the ones of its peer before it, and until their time is paid back. Times are in nanoseconds.
struct PeerTurns<Peer: Hashable & Sendable>: Sendable {
    /// The limits of a peer.
    struct Limits: Hashable, Sendable {
        /// The number of seconds that a second of work costs: with 4, a peer that never stops has a quarter of the time.
        var price: Int64 = 4
        /// The debt with which a further question may begin.
        var allowance: Int64 = 4_000_000_000
    }

    /// The step that follows an event.
    enum Step: Hashable, Sendable {
        /// The question with this number begins.
        case begin(Int)
        /// ``wake(_:at:)`` is called at this time.
        case wake(at: Int64)
        case nothing
    }

    private struct Entry: Sendable {
        var bucket: CostBucket
        var isBusy = false
        var isWaking = false
        var waiting: [Int] = []
    }

    private let limits: Limits
    private var entries: [Peer: Entry] = [:]

    init(limits: Limits = Limits()) { self.limits = limits }

    /// The number of peers that are remembered.
    var peers: Int { entries.count }

    /// A question arrives.
    mutating func arrive(_ id: Int, of peer: Peer, at now: Int64) -> Step {
        if entries.count > 64 { entries = entries.filter { !Self.isForgettable($0.value, at: now) } }
        entries[peer, default: Entry(bucket: CostBucket(allowance: limits.allowance))].waiting.append(id)
        return next(peer, at: now)
    }

    /// A question has been answered. - Parameter work: the time that it took.
    mutating func end(of peer: Peer, work: Int64, at now: Int64) -> Step {
        guard var entry = entries[peer] else { return .nothing }
        entry.isBusy = false
        entry.bucket.spend(work.multipliedSaturated(by: limits.price), at: now)
        entries[peer] = entry
        return next(peer, at: now)
    }

    /// The time of a ``Step/wake(at:)`` has come.
    mutating func wake(_ peer: Peer, at now: Int64) -> Step {
        entries[peer]?.isWaking = false
        return next(peer, at: now)
    }

    private mutating func next(_ peer: Peer, at now: Int64) -> Step {
        guard var entry = entries[peer], !entry.isBusy, !entry.isWaking, let first = entry.waiting.first else { return .nothing }
        defer { entries[peer] = entry }
        guard entry.bucket.readyAt <= now else {
            entry.isWaking = true
            return .wake(at: entry.bucket.readyAt)
        }
        entry.waiting.removeFirst()
        entry.isBusy = true
        return .begin(first)
    }

    private static func isForgettable(_ entry: Entry, at now: Int64) -> Bool {
        !entry.isBusy && !entry.isWaking && entry.waiting.isEmpty && entry.bucket.isPaid(at: now)
    }
}
