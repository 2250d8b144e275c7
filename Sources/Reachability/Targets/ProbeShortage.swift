internal import Pacing

/// Whether probes have to wait because of the process's limit of open files, as reported to users.
///
/// A wait of a moment is usual when many targets begin, or when silent servers need their deadlines. The shortage is reported when
/// probes have waited for ``patience``, and its end when no probe has waited for as long.
struct ProbeShortage: Hashable, Sendable {
    /// The time in nanoseconds for which the condition lasts before it is reported.
    static let patience: Int64 = 5_000_000_000

    /// The present condition, as last reported.
    private(set) var isReported = false
    // The time since which the condition differs from the reported one.
    private var since: Int64?

    /// The time at which ``update(isWaiting:at:)`` may report a change, in nanoseconds.
    var deadline: Int64? { since.map { $0.addingSaturated(Self.patience) } }

    /// Notes whether probes wait now.
    ///
    /// - Returns: whether the reported condition has changed.
    mutating func update(isWaiting: Bool, at now: Int64) -> Bool {
        guard isWaiting != isReported else {
            since = nil
            return false
        }
        let since = since ?? now
        self.since = since
        guard now >= since.addingSaturated(Self.patience) else { return false }
        isReported = isWaiting
        self.since = nil
        return true
    }
}
