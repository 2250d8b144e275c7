/// The result of a failed probe: its cause, and whether the server is at fault.
struct Finding: Hashable, Sendable {
    let cause: Cause
    /// Whether it is proven that the route to the server works, so that the server is `down`. Otherwise it is `unreachable`.
    let accusesServer: Bool

    /// Whether the cause needs no confirmation: this machine alone determines it, without sending a packet.
    let isCertain: Bool
    /// Whether the next probe examines the failure in another way: with more time, with other segments, or because one message of a router is no
    /// proof. Such a failure alone decides nothing, even if one failure suffices otherwise.
    var isProvisional = false

    init(_ cause: Cause, accusesServer: Bool, isCertain: Bool? = nil) {
        self.cause = cause
        self.accusesServer = accusesServer
        self.isCertain = isCertain ?? cause.layer.isCertain
    }

    /// Returns the finding with another form of its cause.
    func with(_ cause: Cause, accusesServer: Bool) -> Finding {
        var finding = Finding(cause, accusesServer: accusesServer, isCertain: isCertain)
        finding.isProvisional = isProvisional
        return finding
    }

    /// Creates the finding of a cause that needs no further proof.
    init(_ cause: Cause) { self.init(cause, accusesServer: cause.accusesServer) }
}

/// The state of a target and its cause, determined by counting consecutive results.
///
/// | present state | result | effect |
/// |---|---|---|
/// | unknown, up | failure | down or unreachable after `failAfter` consecutive failures of any cause, with the last cause |
/// | down, unreachable | failure of another cause | the new cause after `failAfter` consecutive failures of that cause |
/// | any | certain failure (link, address, route) | down or unreachable at once |
/// | unknown, down, unreachable | success | up after `recoverAfter` consecutive successes |
///
/// A target that answers is degraded while one of its addresses fails or its quality is beyond its limits.
struct Verdict: Hashable, Sendable {
    let failAfter: Int
    let recoverAfter: Int
    private(set) var state = ServerState.unknown
    /// The cause of the state; `nil` if the state is unknown or up.
    private(set) var cause: Cause?
    private var successes = 0
    private var failures = 0
    private var equalFailures = 0
    private var lastFailure: Cause?

    init(failAfter: Int, recoverAfter: Int) {
        self.failAfter = max(1, failAfter)
        self.recoverAfter = max(1, recoverAfter)
    }

    /// The layer of the last result; `nil` after a success.
    var lastLayer: Cause.Layer? { lastFailure?.layer }

    /// Whether the next probe should start soon, because the last result differs from the present state.
    var needsConfirmation: Bool {
        switch state {
        case .up, .degraded: failures > 0
        case .unknown: true
        // A certain cause that a later failure contradicts is known to be wrong.
        case .down, .unreachable:
            successes > 0 || (cause?.layer.isCertain == true && lastFailure?.isSameFailure(as: cause) == false)
        }
    }

    /// Counts a successful probe.
    mutating func succeed() {
        (failures, equalFailures, lastFailure) = (0, 0, nil)
        successes = min(successes + 1, recoverAfter)
        guard successes >= recoverAfter else { return }
        if state != .degraded { (state, cause) = (.up, nil) }
    }

    /// Sets the cause for which a target that answers is degraded; `nil` if it is not. Has no effect on other states.
    ///
    /// - Returns: whether the state, the cause's layer or code, or the number of failing addresses has changed.
    mutating func degrade(_ degradation: Cause?) -> Bool {
        guard state == .up || state == .degraded else { return false }
        let isChanged =
            (degradation == nil) != (state == .up)
            || degradation.map { !$0.isSameFailure(as: cause) || $0.failingAddresses != cause?.failingAddresses } ?? false
        (state, cause) = (degradation == nil ? .up : .degraded, degradation)
        return isChanged
    }

    /// Counts a failed probe, or the certainty that no packet can be sent.
    ///
    /// - Returns: whether this failure now determines the state and its cause.
    mutating func fail(_ finding: Finding) -> Bool {
        let failure = finding.cause
        let isCertain = finding.isCertain
        successes = 0
        failures = isCertain ? failAfter : min(failures + 1, finding.isProvisional ? max(failures, failAfter - 1) : failAfter)
        equalFailures = isCertain ? failAfter : failure.isSameFailure(as: lastFailure) ? min(equalFailures + 1, failAfter) : 1
        lastFailure = failure
        let isAccepted: Bool =
            switch state {
            case .unknown, .up, .degraded: failures >= failAfter
            case .down, .unreachable:
                (equalFailures >= failAfter && !finding.isProvisional) || failure.isSameFailure(as: cause)
            }
        guard isAccepted else { return false }
        // A proof remains valid as long as the cause is the same: the first hop is not asked in every probe.
        let isProven =
            finding.accusesServer
            || (state == .down && failure.isSameFailure(as: cause) && failure.evidence["proxy"] == cause?.evidence["proxy"])
        (state, cause) = (isProven ? .down : .unreachable, failure)
        return true
    }

    /// Resets the counts. The state and its cause stay unchanged.
    mutating func resetCounts() {
        (successes, failures, equalFailures, lastFailure) = (0, 0, 0, nil)
    }
}

extension Cause {
    /// The number of addresses that fail while others answer, as evidence; `nil` for other causes.
    var failingAddresses: Evidence? { evidence["failing_addresses"] }
}
