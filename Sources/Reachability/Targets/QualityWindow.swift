internal import Pacing

/// The loss, the round trip, the response time and the jitter of a target over its last results, and which of them is beyond its limit.
///
/// | condition | begins when | ends when, for a complete window, |
/// |---|---|---|
/// | loss | the lost part of the window reaches the limit | it was at most a quarter of the limit |
/// | latency | the median round trip reaches the limit | it was at most three quarters of the limit |
/// | response | the median response time reaches the limit | it was at most three quarters of the limit |
/// | jitter | the jitter reaches the limit | it was at most half of the limit |
///
/// At a loss rate equal to the default limit, a comparison with the limit alone changes 90 times in 1,000 results. These rules end
/// a condition 0.5 times in 1,000 results at the limit, and 1.8 times at 80 % of it.
///
/// The results of an outage describe the outage, not the quality of the working connection: the owner calls ``reset()`` when the
/// target is down or unreachable.
///
/// The times are stored only if a limit needs them; their array is allocated with the first result.
struct QualityWindow: Hashable, Sendable {
    /// A value beyond its limit. If several are, the first in this order counts.
    enum Condition: UInt8, Hashable, Sendable, CaseIterable {
        case loss, latency, response, jitter
    }

    /// One condition, and the number of consecutive results in which its value was clearly below the limit.
    private struct Comparison: Hashable, Sendable {
        private(set) var isExceeded = false
        private var clearResults: UInt8 = 0

        mutating func update(reachesLimit: Bool, isClear: Bool, window: Int) {
            if reachesLimit {
                (isExceeded, clearResults) = (true, 0)
            } else if isExceeded {
                clearResults = isClear ? clearResults + 1 : 0
                if clearResults >= window { (isExceeded, clearResults) = (false, 0) }
            }
        }
    }

    /// The times of one result in microseconds.
    private struct Times: Hashable, Sendable {
        /// The value of a time that was not measured, and of both times of a lost result.
        static let none = UInt32.max

        var roundTrip: UInt32
        var response: UInt32
    }

    // Bit 0 is set if the newest result was lost.
    private var losses: UInt32 = 0
    /// The number of results in the window.
    private(set) var count: UInt8 = 0
    private var loss = Comparison()
    private var latency = Comparison()
    private var response = Comparison()
    private var jitter = Comparison()
    // The oldest first.
    private var times: [Times] = []

    /// The first condition that holds; `nil` if the quality is within its limits.
    var condition: Condition? {
        if loss.isExceeded { return .loss }
        if latency.isExceeded { return .latency }
        if response.isExceeded { return .response }
        return jitter.isExceeded ? .jitter : nil
    }

    /// Records one result. Each attempt of a probe that no answer ended is a result of its own.
    ///
    /// - Parameters:
    ///   - roundTrip: its round trip; `nil` if it was lost.
    ///   - responseTime: its response time; `nil` if it has none, as the connections of other parts of the program.
    ///   - limits: the limits.
    /// - Returns: whether ``condition`` has changed.
    @discardableResult
    mutating func record(_ roundTrip: Duration?, responseTime: Duration? = nil, _ limits: QualityLimits) -> Bool {
        let (before, window) = (condition, limits.window)
        losses = (losses << 1 | (roundTrip == nil ? 1 : 0)) & (1 << UInt32(window) - 1)
        count = UInt8(min(Int(count) + 1, window))
        if limits.needsTimes { store(roundTrip, roundTrip == nil ? nil : responseTime, window) }
        compareLoss(limits)
        compareRoundTrips(limits)
        compareResponseTimes(limits)
        return condition != before
    }

    /// Discards all results. No condition holds until further results are recorded.
    mutating func reset() { self = QualityWindow() }

    private mutating func store(_ roundTrip: Duration?, _ responseTime: Duration?, _ window: Int) {
        if times.isEmpty { times.reserveCapacity(window) }
        if times.count >= window { times.removeFirst(times.count - window + 1) }
        func microseconds(_ duration: Duration?) -> UInt32 {
            guard let duration else { return Times.none }
            return UInt32(clamping: min(max(0, duration.saturatingNanoseconds / 1_000), Int64(Times.none - 1)))
        }
        times.append(Times(roundTrip: microseconds(roundTrip), response: microseconds(responseTime)))
    }

    private mutating func compareLoss(_ limits: QualityLimits) {
        guard let limit = limits.loss else { return }
        // Missing results count as received, so that two lost results of the first five do not degrade a target.
        let part = Double(lostCount) / Double(limits.window)
        // Limits are stored as millionths, so that two of six can be a little less than a limit of one third.
        let reachesLimit = lostCount > 0 && part + 0.000_001 >= limit
        loss.update(reachesLimit: reachesLimit, isClear: part <= limit / 4, window: limits.window)
    }

    private mutating func compareRoundTrips(_ limits: QualityLimits) {
        guard limits.roundTrip != nil || limits.jitter != nil, roundTrips.count * 2 >= limits.window else { return }
        if let limit = limits.roundTrip?.saturatingNanoseconds, let median = medianMicroseconds.map({ Int64($0) * 1_000 }) {
            latency.update(reachesLimit: median >= limit, isClear: median * 4 <= limit * 3, window: limits.window)
        }
        if let limit = limits.jitter?.saturatingNanoseconds, let value = jitterMicroseconds.map({ Int64($0) * 1_000 }) {
            jitter.update(reachesLimit: value >= limit, isClear: value * 2 <= limit, window: limits.window)
        }
    }

    private mutating func compareResponseTimes(_ limits: QualityLimits) {
        guard let limit = limits.responseTime?.saturatingNanoseconds else { return }
        let responseTimes = responseTimes
        guard responseTimes.count * 2 >= limits.window, let median = Self.median(responseTimes).map({ Int64($0) * 1_000 }) else {
            return
        }
        response.update(reachesLimit: median >= limit, isClear: median * 4 <= limit * 3, window: limits.window)
    }

    // MARK: Values

    /// The number of lost results in the window.
    var lostCount: Int { losses.nonzeroBitCount }

    private var roundTrips: [UInt32] { times.map(\.roundTrip).filter { $0 != Times.none } }
    private var responseTimes: [UInt32] { times.map(\.response).filter { $0 != Times.none } }

    /// The median round trip in the window, in microseconds; `nil` without round trips.
    var medianMicroseconds: UInt32? { Self.median(roundTrips) }

    /// The median response time in the window, in microseconds; `nil` without response times.
    var medianResponseMicroseconds: UInt32? { Self.median(responseTimes) }

    private static func median(_ values: [UInt32]) -> UInt32? {
        let sorted = values.sorted()
        guard !sorted.isEmpty else { return nil }
        let middle = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[middle] : UInt32((UInt64(sorted[middle - 1]) + UInt64(sorted[middle])) / 2)
    }

    /// The mean difference between consecutive round trips in the window, without the two largest differences, in microseconds;
    /// `nil` if there are fewer than four round trips. Lost results are skipped.
    var jitterMicroseconds: UInt32? {
        let roundTrips = roundTrips
        guard roundTrips.count >= 4 else { return nil }
        let differences = zip(roundTrips, roundTrips.dropFirst()).map { $0 > $1 ? $0 - $1 : $1 - $0 }.sorted().dropLast(2)
        return UInt32(differences.reduce(0) { $0 + UInt64($1) } / UInt64(differences.count))
    }
}

extension QualityWindow {
    /// The cause of ``StatusName/degraded`` with its evidence; `nil` if the quality is within its limits. The phases of the last probe show
    /// where a response time passes.
    func cause(_ limits: QualityLimits, last report: ProbeReport? = nil) -> Cause? {
        guard let condition else { return nil }
        var evidence: [String: Cause.Evidence] = [
            "results": .number(Int(count)), "lost": .number(lostCount), "loss_percent": .number(lostPercent),
        ]
        if let limit = limits.loss { evidence["loss_limit_percent"] = .number(Self.percent(limit)) }
        if let median = medianMicroseconds { evidence["rtt_median_us"] = .number(Int(median)) }
        if let limit = limits.roundTrip { evidence["rtt_limit_us"] = .number(Self.microseconds(limit)) }
        // Without a limit of its own, the response time says nothing about another condition.
        if let limit = limits.responseTime {
            if let median = medianResponseMicroseconds { evidence["response_median_us"] = .number(Int(median)) }
            evidence["response_limit_us"] = .number(Self.microseconds(limit))
        }
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
        case .response:
            let limit = Self.text(limits.responseTime.map(Self.microseconds) ?? 0)
            let median = Self.text(Int(medianResponseMicroseconds ?? 0))
            for phase in ProbePhase.allCases where phase != .resolution {
                guard let time = report?.duration(of: phase) else { continue }
                evidence["last_\(phase.rawValue)_us"] = .number(Self.microseconds(time))
            }
            return makeCause(.response, "the median response time is \(median) (limit \(limit))")
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

    /// Returns a time in milliseconds, with one decimal below 10 ms.
    private static func text(_ microseconds: Int) -> String {
        guard microseconds < 10_000 else { return "\((microseconds + 500) / 1_000) ms" }
        let tenths = (microseconds + 50) / 100
        return "\(tenths / 10).\(tenths % 10) ms"
    }
}

extension QualityLimits {
    /// Whether the times of the window are compared with a limit.
    var needsTimes: Bool { roundTrip != nil || responseTime != nil || jitter != nil }
}
