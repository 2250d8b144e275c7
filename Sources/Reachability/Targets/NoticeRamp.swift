internal import Pacing

/// The targets that are notified of a changed route, and probed, one after the other at a growing rate.
///
/// When the network returns, many targets become reachable at once. Probes to all of them in the same millisecond would be lost in
/// the queues of the first hop, and the loss would look like failures. The first targets follow at once; from then on, the number
/// of notified targets doubles each ``doubling``. The order is random, so that the targets of one server or site are spread.
struct NoticeRamp: Sendable {
    /// The number of the last target that is notified at once, counted from 0.
    static let first = 64
    /// The time in which the number of notified targets doubles, in nanoseconds: 100,000 targets take 1.1 s.
    static let doubling: Int64 = 100_000_000

    struct Notice: Hashable, Sendable {
        let target: TargetID
        let hasResumed: Bool
    }

    private var queue: [TargetID] = []
    private var taken = 0
    // The queued targets, and whether the machine has resumed from suspend since they were added.
    private var queued: [TargetID: Bool] = [:]
    private var started: Int64 = 0

    var isEmpty: Bool { queued.isEmpty }

    /// Adds targets. A target that is already queued keeps its place, and its ``Notice/hasResumed``. If targets are queued, the
    /// rate continues to grow from the first of them.
    mutating func add(_ targets: [TargetID], hasResumed: Bool, using random: inout SplitMix64, at now: Int64) {
        if isEmpty { (queue, taken, started) = ([], 0, now) }
        var new: [TargetID] = []
        for target in targets {
            if let known = queued[target] {
                queued[target] = known || hasResumed
            } else {
                queued[target] = hasResumed
                new.append(target)
            }
        }
        if new.count > Self.first { new.shuffle(using: &random) }
        queue += new
    }

    /// Removes a target.
    mutating func remove(_ target: TargetID) { queued[target] = nil }

    /// The time of the next notice; `nil` if there is none.
    var due: Int64? { isEmpty ? nil : started.addingSaturated(Self.delay(of: taken)) }

    /// The target of the next notice; `nil` if there is none.
    var head: TargetID? { queue[taken...].first { queued[$0] != nil } }

    /// Returns the next notice if it is due.
    mutating func takeNext(at now: Int64) -> Notice? {
        while taken < queue.count, let due, due <= now {
            let target = queue[taken]
            taken += 1
            guard let hasResumed = queued.removeValue(forKey: target) else { continue }
            // The storage of 100,000 targets is not kept until the next change of the network.
            if isEmpty { (queue, taken, queued) = ([], 0, [:]) }
            return Notice(target: target, hasResumed: hasResumed)
        }
        return nil
    }

    /// The time from the first notice to the one with this number, in nanoseconds.
    static func delay(of number: Int) -> Int64 {
        guard number >= first else { return 0 }
        // The logarithm in steps: between powers of two, the notices are spread evenly.
        let doublings = Int64(
            (UInt64(number) / UInt64(first)).bitWidth - 1 - (UInt64(number) / UInt64(first)).leadingZeroBitCount)
        let base = Int64(first) << doublings
        return doublings * doubling + (Int64(number) - base) * doubling / base
    }
}
