internal import Pacing

/// A connection that was established and whose TLS handshake or HTTP exchange has not ended at the deadline. The kernel's counters tell a slow path, a
/// lossy one, and one that carries no data from a server that is silent.
///
/// | progress of the connection at the deadline, the first row that applies | fault |
/// |---|---|
/// | the last data were sent less than one and a half round trips ago, and nothing was sent again | the path is slow |
/// | no byte of data was acknowledged, and the first segment was sent four times (three over a path that leaves no time for more), or never, because this machine's packet filter refuses it | the path carries no data |
/// | segments were sent again | the path loses packets |
/// | packets were lost in the results before | the path loses packets |
/// | otherwise | that of the server, or of the whole path |
struct StalledConnection: Hashable, Sendable {
    enum Fault: Hashable, Sendable { case latency, noData, loss, unknown }

    let progress: ConnectionProgress
    /// The number of SYN segments that were sent again.
    let handshakeRetransmissions: Int
    /// The time of the probe in nanoseconds.
    let timeout: Int64
    /// The part of the packets that were lost before the failure, in percent; 0 if few results are known.
    let knownLoss: Int

    /// A round trip that is a smaller part of the probe's time does not explain why the time did not suffice.
    static let slowPart: Int64 = 10
    /// The time after which the kernel sends a SYN again, in nanoseconds (TCP_TIMEOUT_INIT).
    private static let firstTimeout: Int64 = 1_000_000_000
    /// The least time after which the kernel sends data again, in nanoseconds (TCP_RTO_MIN).
    private static let leastTimeout: Int64 = 200_000_000
    /// The loss from which the next silence is probably loss too, in percent.
    static let decisiveLoss = 10

    /// The retransmissions of the first data after which their silence is no chance: at a loss of 20 % each way all four segments are lost in one of
    /// sixty connections, and at 30 % in one of fifteen, and a verdict needs two such connections. Three segments decide where the time does not suffice
    /// for the third retransmission, whose time is seven times that of the first one.
    private var decisiveRetransmissions: Int {
        let roundTrip = Int64(progress.roundTripMicroseconds).multipliedSaturated(by: 1_000)
        // RFC 6298 section 2.2, with the kernel's least deviation.
        let first = max(roundTrip.addingSaturated(Self.leastTimeout), roundTrip.multipliedSaturated(by: 3))
        let third = first.multipliedSaturated(by: 7).addingSaturated(roundTrip)
        return third <= timeout / 10 * 9 ? 3 : 2
    }

    var fault: Fault {
        let roundTrip = Int64(progress.roundTripMicroseconds).multipliedSaturated(by: 1_000)
        let sinceSent = Int64(progress.sinceSentMilliseconds).multipliedSaturated(by: 1_000_000)
        let total = max(0, progress.retransmissions)
        let again = total - min(total, max(0, handshakeRetransmissions))
        // The kernel sends the SYN again after a second, even if its answer is still on the way (RFC 6298 section 2).
        let isExplained = handshakeRetransmissions == 0 || (roundTrip >= Self.firstTimeout && knownLoss < Self.decisiveLoss)
        let isDue = sinceSent >= roundTrip.addingSaturated(roundTrip / 2)
        if again == 0, isExplained, !isDue, roundTrip >= timeout / Self.slowPart { return .latency }
        let isRepeated = again >= decisiveRetransmissions && progress.unacknowledged > 0
        // The kernel keeps data that this machine's packet filter refuses, and counts them neither as sent nor as sent again.
        let isKept = again == 0 && sinceSent >= max(Self.firstTimeout, roundTrip.multipliedSaturated(by: 3))
        if let bytes = progress.bytesAcknowledged, bytes <= 1, handshakeRetransmissions == 0, isRepeated || isKept,
            knownLoss < Self.decisiveLoss
        {
            return .noData
        }
        if progress.retransmissions > 0 || knownLoss >= Self.decisiveLoss { return .loss }
        return .unknown
    }

    /// Returns the cause of the probe's failure; `nil` if the fault is not that of the path.
    func cause(_ address: IPAddress, port: UInt16) -> Cause? {
        var evidence: [String: Cause.Evidence] = [
            "address": .text("\(address)"), "port": .number(Int(port)), "retransmissions": .number(progress.retransmissions),
        ]
        if progress.roundTripMicroseconds > 0 { evidence["rtt_us"] = .number(progress.roundTripMicroseconds) }
        evidence["bytes_acknowledged"] = progress.bytesAcknowledged.map { .number(max(1, $0) - 1) }
        switch fault {
        case .latency:
            return Self.slow(roundTrip: progress.roundTripMicroseconds, "more than \(Self.text(timeout))", evidence)
        case .noData:
            let detail = "\(address) accepts connections to port \(port), and nothing that is sent on them afterwards arrives"
            return Cause(.network, .dataDropped, detail: detail, evidence: evidence)
        case .loss:
            if progress.retransmissions == 0 { evidence["loss_percent"] = .number(knownLoss) }
            let count = progress.retransmissions
            let lost = count == 0 ? "\(knownLoss) % of the last packets to" : count == 1 ? "1 packet to" : "\(count) packets to"
            let detail = "\(lost) \(address) \(count == 1 ? "was" : "were") lost, and its answer did not arrive in time"
            return Cause(.quality, .loss, detail: detail, evidence: evidence)
        case .unknown: return nil
        }
    }

    /// Returns the cause of a path so slow that a probe needs a time, in words, because of its round trips.
    static func slow(roundTrip microseconds: Int, _ time: String, _ evidence: [String: Cause.Evidence]) -> Cause {
        let detail = "a round trip takes \(text(Int64(microseconds).multipliedSaturated(by: 1_000))), so a probe needs \(time)"
        return Cause(.quality, .latency, detail: detail, evidence: evidence)
    }

    /// Returns a time in seconds with one decimal, or in milliseconds below a second.
    static func text(_ nanoseconds: Int64) -> String {
        guard nanoseconds >= 1_000_000_000 else { return "\((nanoseconds + 500_000) / 1_000_000) ms" }
        let tenths = (nanoseconds.addingSaturated(50_000_000)) / 100_000_000
        return tenths % 10 == 0 ? "\(tenths / 10) s" : "\(tenths / 10).\(tenths % 10) s"
    }
}
