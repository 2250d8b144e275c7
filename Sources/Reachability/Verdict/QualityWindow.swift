internal import Pacing

/// The loss, the round trip and the jitter of a target over its last results, and which of them is beyond its limit.
///
/// | condition | begins when | ends when, for a complete window, |
/// |---|---|---|
/// | loss | the lost part of the window reaches the limit | it was at most a quarter of the limit |
/// | latency | the median round trip reaches the limit | it was at most three quarters of the limit |
/// | jitter | the jitter reaches the limit | it was at most half of the limit |
///
/// At a loss rate equal to the default limit, a comparison with the limit alone changes 90 times in 1,000 results. These rules end
/// a condition 0.5 times in 1,000 results at the limit, and 1.8 times at 80 % of it.
///
/// The results of an outage describe the outage, not the quality of the working connection: the owner calls ``reset()`` when the
/// target is down or unreachable.
///
/// The round trips are stored only if a limit needs them; their array is allocated with the first result.
struct QualityWindow: Hashable, Sendable {
    /// A value beyond its limit. If several are, the first in this order counts.
    enum Condition: UInt8, Hashable, Sendable, CaseIterable {
        case loss, latency, jitter
    }

    /// One condition, and the number of consecutive results in which its value was clearly below the limit.
    private struct Comparison: Hashable, Sendable {
        private(set) var isExceeded = false
        private var clearResults: UInt8 = 0

        mutating func take(reachesLimit: Bool, isClear: Bool, window: Int) {
            if reachesLimit {
                (isExceeded, clearResults) = (true, 0)
            } else if isExceeded {
                clearResults = isClear ? clearResults + 1 : 0
                if clearResults >= window { (isExceeded, clearResults) = (false, 0) }
            }
        }
    }

    /// The value of a lost result in ``roundTrips``.
    private static let lost = UInt32.max

    // Bit 0 is set if the newest result was lost.
    private var losses: UInt32 = 0
    /// The number of results in the window.
    private(set) var count: UInt8 = 0
    private var loss = Comparison()
    private var latency = Comparison()
    private var jitter = Comparison()
    // In microseconds, the oldest first.
    private var roundTrips: [UInt32] = []

    /// The first condition that holds; `nil` if the quality is within its limits.
    var condition: Condition? {
        if loss.isExceeded { return .loss }
        if latency.isExceeded { return .latency }
        return jitter.isExceeded ? .jitter : nil
    }

    /// Records the round trip of one result, or `nil` if it was lost. Each attempt of a probe that no answer ended is a result of
    /// its own.
    ///
    /// - Returns: whether ``condition`` has changed.
    @discardableResult
    mutating func record(_ roundTrip: Duration?, _ limits: QualityLimits) -> Bool {
        let (before, window) = (condition, limits.window)
        losses = (losses << 1 | (roundTrip == nil ? 1 : 0)) & (1 << UInt32(window) - 1)
        count = UInt8(min(Int(count) + 1, window))
        if limits.needsRoundTrips { store(roundTrip, window) }
        compareLoss(limits)
        compareRoundTrips(limits)
        return condition != before
    }

    /// Discards all results. No condition holds until further results are recorded.
    mutating func reset() { self = QualityWindow() }

    private mutating func store(_ roundTrip: Duration?, _ window: Int) {
        if roundTrips.isEmpty { roundTrips.reserveCapacity(window) }
        if roundTrips.count >= window { roundTrips.removeFirst(roundTrips.count - window + 1) }
        let microseconds = roundTrip.map { UInt32(clamping: min(max(0, $0.saturatingNanoseconds / 1_000), Int64(Self.lost - 1))) }
        roundTrips.append(microseconds ?? Self.lost)
    }

    private mutating func compareLoss(_ limits: QualityLimits) {
        guard let limit = limits.loss else { return }
        // Missing results count as received, so that two lost results of the first five do not degrade a target.
        let part = Double(lostCount) / Double(limits.window)
        // Limits are stored as millionths, so that two of six can be a little less than a limit of one third.
        let reachesLimit = lostCount > 0 && part + 0.000_001 >= limit
        loss.take(reachesLimit: reachesLimit, isClear: part <= limit / 4, window: limits.window)
    }

    private mutating func compareRoundTrips(_ limits: QualityLimits) {
        guard limits.needsRoundTrips, answered.count * 2 >= limits.window else { return }
        if let limit = limits.roundTrip?.saturatingNanoseconds, let median = medianMicroseconds.map({ Int64($0) * 1_000 }) {
            latency.take(reachesLimit: median >= limit, isClear: median * 4 <= limit * 3, window: limits.window)
        }
        if let limit = limits.jitter?.saturatingNanoseconds, let value = jitterMicroseconds.map({ Int64($0) * 1_000 }) {
            jitter.take(reachesLimit: value >= limit, isClear: value * 2 <= limit, window: limits.window)
        }
    }

    // MARK: Values

    /// The number of lost results in the window.
    var lostCount: Int { losses.nonzeroBitCount }

    private var answered: [UInt32] { roundTrips.filter { $0 != Self.lost } }

    /// The median round trip in the window, in microseconds; `nil` without round trips.
    var medianMicroseconds: UInt32? {
        let sorted = answered.sorted()
        guard !sorted.isEmpty else { return nil }
        let middle = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[middle] : UInt32((UInt64(sorted[middle - 1]) + UInt64(sorted[middle])) / 2)
    }

    /// The mean difference between consecutive round trips in the window, without the two largest differences, in microseconds;
    /// `nil` if there are fewer than four round trips. Lost results are skipped.
    var jitterMicroseconds: UInt32? {
        let answered = answered
        guard answered.count >= 4 else { return nil }
        let differences = zip(answered, answered.dropFirst()).map { $0 > $1 ? $0 - $1 : $1 - $0 }.sorted().dropLast(2)
        return UInt32(differences.reduce(0) { $0 + UInt64($1) } / UInt64(differences.count))
    }
}

extension QualityWindow {
    /// The cause of ``ServerState/degraded`` with its evidence; `nil` if the quality is within its limits.
    func cause(_ limits: QualityLimits) -> Cause? {
        guard let condition else { return nil }
        var evidence: [String: Cause.Evidence] = [
            "results": .number(Int(count)), "lost": .number(lostCount), "loss_percent": .number(lostPercent),
        ]
        if let limit = limits.loss { evidence["loss_limit_percent"] = .number(Self.percent(limit)) }
        if let median = medianMicroseconds { evidence["rtt_median_us"] = .number(Int(median)) }
        if let limit = limits.roundTrip { evidence["rtt_limit_us"] = .number(Self.microseconds(limit)) }
        if let jitter = jitterMicroseconds { evidence["jitter_us"] = .number(Int(jitter)) }
        if let limit = limits.jitter { evidence["jitter_limit_us"] = .number(Self.microseconds(limit)) }
        func makeCause(_ code: Cause.Code, _ detail: String) -> Cause {
            Cause(.quality, code, detail: detail, evidence: evidence)
        }
        // After a condition has begun, its value may be below the limit and not yet clearly below it.
        switch condition {
        case .loss:
            let limit = Self.percent(limits.loss ?? 0)
            return makeCause(.loss, "\(lostCount) of the last \(count) packets were lost (limit \(limit) %)")
        case .latency:
            let limit = Self.text(limits.roundTrip.map(Self.microseconds) ?? 0)
            return makeCause(.latency, "the median round trip is \(Self.text(Int(medianMicroseconds ?? 0))) (limit \(limit))")
        case .jitter:
            let limit = Self.text(limits.jitter.map(Self.microseconds) ?? 0)
            let value = Self.text(Int(jitterMicroseconds ?? 0))
            return makeCause(.jitter, "consecutive round trips differ by \(value) on average (limit \(limit))")
        }
    }

    /// The lost part of the window in percent; 0 while it has few results.
    var knownLoss: UInt8 { count >= 5 ? UInt8(lostPercent) : 0 }

    private var lostPercent: Int { count == 0 ? 0 : (lostCount * 200 + Int(count)) / (2 * Int(count)) }

    private static func percent(_ part: Double) -> Int { Int((part * 100).rounded()) }

    private static func microseconds(_ duration: Duration) -> Int { Int(duration.saturatingNanoseconds / 1_000) }

    /// Returns a round trip in milliseconds, with one decimal below 10 ms.
    private static func text(_ microseconds: Int) -> String {
        guard microseconds < 10_000 else { return "\((microseconds + 500) / 1_000) ms" }
        let tenths = (microseconds + 50) / 100
        return "\(tenths / 10).\(tenths % 10) ms"
    }
}

extension QualityLimits {
    /// Whether the round trips of the window are compared with a limit.
    var needsRoundTrips: Bool { roundTrip != nil || jitter != nil }
}
