internal import Pacing

/// A number of bytes per day that refills evenly: a token bucket that holds ``burst`` of its rate, and is full at first.
///
/// A probe may begin as long as the bucket is not empty. What the probe sends beyond the contents is a debt that is refilled first, so
/// that any budget allows a probe once in a while, and no budget is exceeded for long.
struct ByteBudget: Hashable, Sendable {
    /// The time in nanoseconds whose bytes may be sent at once: one hour.
    static let burst: Int64 = 3_600_000_000_000
    /// The debt in nanoseconds with which a probe that has waited still begins.
    private static let tolerance: Int64 = 60_000_000_000
    private static let day: Int64 = 86_400_000_000_000

    /// The number of bytes that are refilled in a day.
    let bytesPerDay: Int
    // The time at which the bucket is full (the generic cell rate algorithm): one number instead of a level and its time.
    private var fullAt = Int64.min
    // The time at which the last waiting probe begins.
    private var lastTurn = Int64.min

    /// Creates a full budget. `bytesPerDay` is at least 1.
    init(bytesPerDay: Int) { self.bytesPerDay = max(bytesPerDay, 1) }

    /// The time from which the bucket is not empty, in nanoseconds.
    private var opening: Int64 { fullAt.addingSaturated(1 - Self.burst) }

    /// Returns whether a probe may begin: the bucket is not empty, and no other probe waits.
    func allows(at now: Int64) -> Bool { opening <= now && lastTurn <= now }

    /// Returns the time at which a waiting probe may begin. The waiting probes begin one after the other, at the rate at which their
    /// bytes are refilled, in the order of these calls.
    mutating func reserve(_ bytes: Int) -> Int64 {
        lastTurn = max(lastTurn.addingSaturated(time(of: bytes)), opening)
        return lastTurn
    }

    /// Returns whether a probe that has waited for its turn may begin. Its predecessors may have sent more bytes than they reserved.
    func allowsWaiting(at now: Int64) -> Bool { opening <= now.addingSaturated(Self.tolerance) }

    /// Counts sent bytes.
    mutating func spend(_ bytes: Int, at now: Int64) { fullAt = max(fullAt, now).addingSaturated(time(of: bytes)) }

    private func time(of bytes: Int) -> Int64 {
        Int64(max(bytes, 0)).multipliedSaturated(by: Self.day) / Int64(bytesPerDay)
    }
}

/// The estimated sizes of the packets that probes send, with their IP headers, in bytes. Packets that arrive are not counted.
enum ProbeBytes {
    /// A SYN with Linux's options, and the reset that ends the connection.
    static func connection(_ family: IPAddress.Family) -> Int { family == .v4 ? 60 + 40 : 80 + 60 }
    /// A SYN that the kernel sends again: one for an attempt without an answer.
    static func retransmission(_ family: IPAddress.Family) -> Int { family == .v4 ? 60 : 80 }
    /// The question for one family of a name. A cached answer counts as well.
    static func question(_ name: String) -> Int { 28 + 12 + 6 + name.utf8.count }
    /// The datagrams that ask whether a host is alive.
    static let hostQuery = 3 * 29
}
