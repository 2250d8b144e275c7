import Console
import FoundationEssentials
package import Reachability

/// The results of the probes of one target.
package struct ProbeStatistics: Hashable {
    package var endpoint: Endpoint
    /// The number of probes that ended.
    package private(set) var sent = 0
    /// The number of probes that the target answered.
    package private(set) var ok = 0
    /// The cause of the last failed probe; `nil` if none failed.
    package var cause: Cause?
    /// The number of packets that remained unanswered in the probes that the target answered.
    package private(set) var lostPackets = 0
    /// The result of one probe.
    package enum Outcome: Hashable, Sendable {
        case lost
        /// The target answered. The round trip is `nil` if it could not be measured.
        case answered(Duration?)

        package var roundTrip: Duration? { if case .answered(let roundTrip) = self { roundTrip } else { nil } }
    }

    /// The number of round trips of which ``median`` is exact. A longer run forgets the oldest tenth at a time.
    private static let roundTripLimit = 1_000_000
    /// The number of results in ``recent``.
    package static let recentLimit = 1_000
    private var roundTrips: [Duration] = []
    private var responseTimes: [Duration] = []
    private var newest: [Outcome] = []
    package private(set) var shortest: Duration?
    package private(set) var longest: Duration?
    private var previous: Duration?
    private var differenceSum = Duration.zero
    private var differenceCount = 0

    package init(_ endpoint: Endpoint) {
        self.endpoint = endpoint
    }

    package mutating func add(_ report: ProbeReport) {
        sent += 1
        if newest.count == 2 * Self.recentLimit { newest.removeFirst(Self.recentLimit) }
        newest.append(report.cause == nil ? .answered(report.roundTrip) : .lost)
        if let cause = report.cause {
            self.cause = cause
            return
        }
        ok += 1
        lostPackets += report.lostPackets
        if let responseTime = report.responseTime {
            if responseTimes.count == Self.roundTripLimit { responseTimes.removeFirst(Self.roundTripLimit / 10) }
            responseTimes.append(responseTime)
        }
        guard let roundTrip = report.roundTrip else { return }
        if roundTrips.count == Self.roundTripLimit { roundTrips.removeFirst(Self.roundTripLimit / 10) }
        roundTrips.append(roundTrip)
        shortest = min(shortest ?? roundTrip, roundTrip)
        longest = max(longest ?? roundTrip, roundTrip)
        if let previous {
            differenceSum += previous < roundTrip ? roundTrip - previous : previous - roundTrip
            differenceCount += 1
        }
        previous = roundTrip
    }

    /// The newest results, the oldest first, at most ``recentLimit``.
    package var recent: ArraySlice<Outcome> { newest.suffix(Self.recentLimit) }

    /// Returns the round trip that `percent` of the ``recent`` ones do not exceed (nearest rank); `nil` without one.
    package func recentPercentile(_ percent: Int) -> Duration? {
        Self.percentile(percent, of: recent.compactMap(\.roundTrip).sorted())
    }

    /// Returns the response times that these parts of them do not exceed, in percent (nearest rank); `nil` without one.
    package func responsePercentiles(_ percents: [Int]) -> [Duration?] {
        let sorted = responseTimes.sorted()
        return percents.map { Self.percentile($0, of: sorted) }
    }

    /// The median response time of the newest probes, at most ``recentLimit``; `nil` without one.
    package var recentResponseMedian: Duration? { Self.percentile(50, of: responseTimes.suffix(Self.recentLimit).sorted()) }

    private static func percentile(_ percent: Int, of sorted: [Duration]) -> Duration? {
        sorted.isEmpty ? nil : sorted[max(0, (sorted.count * percent + 99) / 100 - 1)]
    }

    /// The lost part of the packets, in thousandths; `nil` without a probe. It is 0 or 1000 only if none or all are lost.
    ///
    /// A probe is sent again while no answer arrives, so most lost packets make no probe fail. A failed probe counts as one packet.
    package var lossThousandths: Int? {
        guard sent > 0 else { return nil }
        let (packets, lost) = (sent + lostPackets, sent - ok + lostPackets)
        guard lost > 0, ok > 0 else { return lost == 0 ? 0 : 1000 }
        return min(999, max(1, (lost * 1000 + packets / 2) / packets))
    }

    /// The middle round trip, or the mean of the two in the middle.
    package var median: Duration? {
        guard !roundTrips.isEmpty else { return nil }
        let sorted = roundTrips.sorted()
        return (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
    }

    /// The mean difference between consecutive round trips (RFC 3550 section 6.4.1, without its smoothing); `nil` for fewer than two.
    package var jitter: Duration? {
        differenceCount > 0 ? differenceSum / differenceCount : nil
    }
}

/// The results of all targets, which decide the exit code of `probe`.
package struct ProbeSummary: Hashable {
    /// The time at which the summary was made.
    package var moment: Moment
    /// The targets in the order in which the user gave them.
    package var targets: [ProbeStatistics]

    package init(moment: Moment, targets: [ProbeStatistics]) {
        (self.moment, self.targets) = (moment, targets)
    }

    /// Each target answered at least one probe, or a target answered none, or a target has no result.
    package var verdict: StatusDocument.Verdict {
        if targets.contains(where: { $0.ok == 0 && $0.cause != nil }) { return .doesNotHold }
        return targets.allSatisfy { $0.ok > 0 } ? .holds : .undetermined
    }

    /// The document as one line of JSON, without the newline.
    package func encode() -> [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("v", RecordFormat.version)
            writer.member("ts", Timestamp.text(moment))
            writer.key("targets")
            writer.array { writer in
                for target in targets { writer.object { Self.write(target, to: &$0) } }
            }
        }
        return writer.bytes
    }

    private static func write(_ target: ProbeStatistics, to writer: inout JSONWriter) {
        writer.member("target", target.endpoint.text)
        writer.member("sent", target.sent)
        writer.member("ok", target.ok)
        writer.member("loss", thousandths: target.lossThousandths)
        writer.key("rtt_ms")
        writer.object { writer in
            writer.member("min", milliseconds: target.shortest)
            writer.member("median", milliseconds: target.median)
            writer.member("max", milliseconds: target.longest)
            writer.member("jitter", milliseconds: target.jitter)
        }
        writer.key("response_ms")
        writer.object { writer in
            let times = target.responsePercentiles([50, 95, 99])
            for (name, time) in zip(["p50", "p95", "p99"] as [StaticString], times) { writer.member(name, milliseconds: time) }
        }
        writer.member(target.cause)
        TargetIdentity?.none.write(to: &writer)
    }
}
