import Pacing

/// The decision when the service manager is told that the service works: once in half the watchdog's interval, if the monitor's loop and
/// the keeper have both finished a turn since the last time.
///
/// A thread that only sleeps would report a service whose loops have stopped as working.
struct Watchdog: Hashable, Sendable {
    /// The parts of the service that must work.
    enum Part: Hashable, Sendable, CaseIterable {
        case monitor
        case keeper
    }

    private let period: Int64
    private var due: Int64
    private var finished: Set<Part> = []

    /// Starts the watchdog. - Parameter now: CLOCK_MONOTONIC in nanoseconds.
    init(interval: Duration, now: Int64) {
        period = max(1, interval.saturatingNanoseconds / 2)
        due = now + period
    }

    /// Notes that a part has finished a turn.
    mutating func finished(_ part: Part) { finished.insert(part) }

    /// Returns whether the manager must be notified now. The parts must then finish another turn.
    mutating func takeNotification(at now: Int64) -> Bool {
        guard now >= due, finished.count == Part.allCases.count else { return false }
        due = now + period
        finished = []
        return true
    }
}
