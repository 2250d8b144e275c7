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

    /// Returns bytes that were counted and are not used.
    mutating func refund(_ bytes: Int) { fullAt = fullAt.addingSaturated(-time(of: bytes)) }

    private func time(of bytes: Int) -> Int64 {
        // The product of a megabyte and a day exceeds 64 bits.
        let product = UInt64(max(bytes, 0)).multipliedFullWidth(by: UInt64(Self.day))
        let divisor = UInt64(bytesPerDay)
        guard product.high < divisor else { return .max }
        return Int64(clamping: divisor.dividingFullWidth(product).quotient)
    }
}

/// The estimated sizes of the packets of probes, with their IP headers, in bytes. Packets that arrive count only for the levels above
/// TCP, whose answers are larger than their questions.
enum ProbeBytes {
    /// A SYN with Linux's options, and the reset that ends the connection.
    static func connection(_ family: IPAddress.Family) -> Int { family == .v4 ? 60 + 40 : 80 + 60 }
    /// A SYN that the kernel sends again: one for an attempt without an answer.
    static func retransmission(_ family: IPAddress.Family) -> Int { family == .v4 ? 60 : 80 }
    /// The question for one family of a name. A cached answer counts as well.
    static func question(_ name: String) -> Int { 28 + 12 + 6 + name.utf8.count }
    /// The datagrams and the connection that ask whether a host is alive.
    static let hostQuery = 3 * 29 + 60 + 40

    /// The estimate for the levels of a probe before they run. Recordings have the scheme, and not the request.
    static func levels(_ scheme: Endpoint.Scheme) -> Int { scheme.form.estimatedBytes }

    /// The bytes of levels that have ended: what they sent and received, and the headers of each segment and of its acknowledgment. The
    /// segments at the end of the connection are two more.
    static func levels(_ result: LevelResult, _ family: IPAddress.Family) -> Int {
        let (sent, received) = (max(result.bytesSent, 0), max(result.bytesReceived, 0))
        let header = family == .v4 ? 52 : 72
        // The segment size of an Ethernet link, with TCP timestamps (RFC 7323).
        let size = family == .v4 ? 1_448 : 1_428
        func segments(_ bytes: Int) -> Int { bytes / size + (bytes % size > 0 ? 1 : 0) }
        let packets = segments(sent) + segments(received) + 2
        let (data, overflow) = sent.addingReportingOverflow(received)
        let (total, totalOverflow) = data.addingReportingOverflow(2 * header * packets)
        return overflow || totalOverflow ? .max : total
    }
}
