internal import Pacing

/// The status of a target and its cause, determined by counting consecutive results.
///
/// | present status | result | effect |
/// |---|---|---|
/// | unknown, up, degraded | failure | ``pending``, and down or unreachable after `failAfter` counted failures of any cause, with the last cause |
/// | down, unreachable | failure of another cause | the new cause after `failAfter` counted failures of that cause |
/// | unreachable for a certain cause | another failure | unknown, and ``pending`` |
/// | any | certain failure (link, address, route, EPERM, this process's limits and files) | down or unreachable at once |
/// | unknown, down, unreachable | success | up after `recoverAfter` counted successes; at once if the path has changed or the cause was certain |
///
/// Of consecutive results of one kind, the first one counts, and each whose probe began at least one interval after the last one that
/// counted. The others confirm: they find the cause, and do not shorten the count. Each success ends a row of failures.
///
/// A target that answers is degraded while one of its addresses fails or its quality is beyond its limits.
struct Verdict: Hashable, Sendable {
    let failAfter: Int
    let recoverAfter: Int
    /// The minimum time between the starts of two probes that count, in nanoseconds.
    private let interval: Int64
    private(set) var status = StatusName.unknown
    /// The cause of the status; `nil` if the status is unknown or up.
    private(set) var cause: Cause?
    /// The time at which the first failure was seen since the target was up, on the monotonic clock in nanoseconds; `nil` if none was.
    private(set) var failingSince: Int64?
    /// The counted results of the present row: successes if ``lastFailure`` is `nil`, else failures.
    private var counted = 0
    /// The counted failures of the present row whose cause is that of ``lastFailure``.
    private var equalFailures = 0
    /// The start of the last probe that counted.
    private var lastCounted = Int64.min
    private var lastFailure: Cause?
    /// Whether the last result was counted.
    private var wasCounted = true
    /// Whether the cause of the status is certain.
    private var isCertain = false
    /// Whether the path has changed since the last success.
    private var hasNewPath = false

    init(failAfter: Int, recoverAfter: Int, interval: Int64) {
        self.failAfter = max(1, failAfter)
        self.recoverAfter = max(1, recoverAfter)
        self.interval = interval
    }

    /// The layer of the last result; `nil` after a success.
    var lastLayer: Cause.Layer? { lastFailure?.layer }

    /// The cause of the last failure of a target that is not down or unreachable yet, because the failures are too few; `nil` if the last
    /// result was a success.
    var pending: Cause? { isFailing ? nil : lastFailure }

    /// The earliest start of the next probe that counts, while a failure is pending; `nil` otherwise.
    var countDue: Int64? { pending == nil || counted == 0 ? nil : lastCounted.addingSaturated(interval) }

    /// Whether the target is down or unreachable.
    var isFailing: Bool { status == .down || status == .unreachable }

    /// Whether the next probe should start soon: there is no result yet, a counted failure needs its cause, or the last result contradicts a
    /// certain cause.
    var needsConfirmation: Bool {
        guard let lastFailure else { return status == .unknown && counted == 0 }
        // A certain cause that a later failure contradicts is known to be wrong.
        if pending == nil { return isCertain && !lastFailure.isSameFailure(as: cause) }
        return wasCounted
    }

    /// Notes that the path to the target has changed, or the machine has resumed. The next success needs no other.
    mutating func pathChanged() { hasNewPath = true }

    /// Counts a successful probe. - Parameter start: the time at which it began, in nanoseconds.
    mutating func succeed(start: Int64) {
        if lastFailure != nil { counted = 0 }
        if !isFailing { failingSince = nil }
        lastFailure = nil
        count(start)
        guard counted >= recoverAfter || isCertain || hasNewPath else { return }
        if status != .degraded { (status, cause) = (.up, nil) }
        (failingSince, isCertain, hasNewPath) = (nil, false, false)
    }

    /// Sets the cause for which a target that answers is degraded; `nil` if it is not. Has no effect on other states.
    ///
    /// - Returns: whether the status, the cause's layer or code, or the number of failing addresses has changed.
    mutating func degrade(_ degradation: Cause?) -> Bool {
        guard status == .up || status == .degraded else { return false }
        let isChanged =
            (degradation == nil) != (status == .up)
            || degradation.map { !$0.isSameFailure(as: cause) || $0.failingAddresses != cause?.failingAddresses } ?? false
        (status, cause) = (degradation == nil ? .up : .degraded, degradation)
        return isChanged
    }

    /// Counts a failed probe, or the certainty that no packet can be sent.
    ///
    /// - Parameters:
    ///   - finding: the result.
    ///   - start: the time at which the probe began, in nanoseconds.
    ///   - now: the present time, in nanoseconds.
    /// - Returns: whether this failure now determines the status and its cause.
    mutating func fail(_ finding: Finding, start: Int64, at now: Int64) -> Bool {
        let failure = finding.cause
        // Without an interval every failure counts, and the next ones replace the cause at once.
        if !finding.isCertain { _ = endCertainCause() }
        // What this machine determines is no earlier failure's continuation.
        if finding.isCertain, !isCertain { failingSince = nil }
        let isSame = failure.isSameFailure(as: lastFailure)
        if lastFailure == nil { counted = 0 }
        if !isSame { equalFailures = 0 }
        failingSince = failingSince ?? now
        lastFailure = failure
        count(start)
        if wasCounted { equalFailures = min(equalFailures + 1, failAfter) }
        let isAccepted: Bool =
            switch status {
            case _ where finding.isCertain: true
            case .unknown, .up, .degraded: counted >= failAfter && !finding.isProvisional
            case .down, .unreachable:
                (equalFailures >= failAfter && !finding.isProvisional) || failure.isSameFailure(as: cause)
            }
        guard isAccepted else { return false }
        // A proof remains valid as long as the cause is the same: the first hop is not asked in every probe.
        let isProven =
            finding.accusesServer
            || (status == .down && failure.isSameFailure(as: cause) && failure.evidence["proxy"] == cause?.evidence["proxy"])
        (status, cause, isCertain) = (isProven ? .down : .unreachable, failure, finding.isCertain)
        return true
    }

    /// Whether this machine has no path to the target, and alone determines that.
    var lacksPath: Bool { isCertain && (cause?.layer.isCertain ?? false) }

    /// Notes that the certain cause of the status is over, and nothing is known yet of what follows it.
    ///
    /// - Returns: whether the status has changed.
    mutating func endCertainCause() -> Bool {
        guard isCertain, interval > 0 else { return false }
        (status, cause, isCertain, counted, failingSince, lastFailure) = (.unknown, nil, false, 0, nil, nil)
        return true
    }

    /// Counts the present result if its row is empty, or if its probe began at least one interval after the last one that counted.
    private mutating func count(_ start: Int64) {
        wasCounted = counted == 0 || start >= lastCounted.addingSaturated(interval)
        guard wasCounted else { return }
        counted = min(counted + 1, max(failAfter, recoverAfter))
        lastCounted = start
    }

    /// Resets the counts, after a suspend. The status and its cause stay unchanged.
    mutating func resetCounts() {
        if !isFailing { failingSince = nil }
        (counted, equalFailures, lastFailure) = (0, 0, nil)
    }
}

extension Cause {
    /// The number of addresses that fail while others answer, as evidence; `nil` for other causes.
    var failingAddresses: Evidence? { evidence["failing_addresses"] }
}
