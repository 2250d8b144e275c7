internal import Pacing

/// The running probes of targets without a result, in the order of their starts.
///
/// If other such targets wait for sockets, a probe without an answer gives its socket to them after a sixth of its deadline. Its
/// target is then probed like the silent ones. Otherwise the first result of a server that answers would wait for the deadlines of
/// all silent servers before it.
struct UntriedProbes: Hashable, Sendable {
    /// The longest time in nanoseconds after which a probe gives its socket to others: most servers answer sooner.
    static let patience: Int64 = 500_000_000

    /// A running probe.
    struct Probe: Hashable, Sendable {
        let target: TargetID
        /// The time from which it gives its socket to others, in nanoseconds.
        let due: Int64
    }

    private var probes: [Probe] = []
    // The probes before this index have ended.
    private var ended = 0

    /// The probe that started first; `nil` if none runs.
    var first: Probe? { ended < probes.count ? probes[ended] : nil }

    /// Adds a probe that starts now.
    mutating func add(_ target: TargetID, timeout: Duration, at now: Int64) {
        let due = now.addingSaturated(min(timeout.saturatingNanoseconds / 6, Self.patience))
        probes.append(Probe(target: target, due: due))
    }

    /// Removes the first probe.
    mutating func removeFirst() {
        ended += 1
        guard ended == probes.count || ended > 64 && ended * 2 > probes.count else { return }
        probes.removeFirst(ended)
        ended = 0
    }
}
