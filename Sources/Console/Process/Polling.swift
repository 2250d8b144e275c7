import EventLoop
import Glibc

/// A call of poll(2) for a few descriptors, with a deadline on `CLOCK_MONOTONIC`.
package struct Polling {
    private var entries: [pollfd] = []

    package init() {}

    /// Adds a descriptor. Returns its index among the results.
    package mutating func add(_ descriptor: Int32, _ events: Int32) -> Int {
        entries.append(pollfd(fd: descriptor, events: Int16(truncatingIfNeeded: events), revents: 0))
        return entries.count - 1
    }

    /// Waits until an event arrives or the deadline has passed (nanoseconds; `nil` for no deadline).
    package mutating func wait(until deadline: Int64?) {
        var milliseconds: Int32 = -1
        if let deadline {
            let left = max(0, deadline - MonotonicClock.now())
            // Rounded up: after a wake-up slightly too early, the loop would spin.
            milliseconds = Int32(clamping: left / 1_000_000 + (left % 1_000_000 > 0 ? 1 : 0))
        }
        if poll(&entries, nfds_t(entries.count), milliseconds) < 0 {
            for index in entries.indices { entries[index].revents = 0 }
        }
    }

    /// Returns whether the descriptor at this index has an event.
    package func isReady(_ place: Int?) -> Bool { place.map { entries[$0].revents != 0 } ?? false }

    package func has(_ events: Int32, at place: Int?) -> Bool {
        place.map { Int32(entries[$0].revents) & events != 0 } ?? false
    }
}
