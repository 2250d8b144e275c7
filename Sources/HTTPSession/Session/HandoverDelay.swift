internal import Pacing

/// The time for which deferred items are collected before they wake the delivery queue together. These are the log lines and counters of
/// successful tasks, and objects to be released.
struct HandoverDelay {
    /// The number of items that are handed over at once.
    static let maximumCount = 512
    /// The maximum time that an item waits, in nanoseconds; 0 for none.
    let duration: Int64
    private var count = 0
    /// The time at which the first item has to be handed over; `nil` without items.
    private(set) var deadline: Int64?

    init(duration: Int64) { self.duration = duration }

    /// Records further items.
    mutating func add(_ items: Int, now: Int64) {
        guard items > 0 else { return }
        count += items
        deadline = deadline ?? now.addingSaturated(duration)
    }

    func isDue(now: Int64) -> Bool { count >= HandoverDelay.maximumCount || deadline.map { $0 <= now } ?? false }

    /// Records that all items have been handed over.
    mutating func end() { (count, deadline) = (0, nil) }
}
