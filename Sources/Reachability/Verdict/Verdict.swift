/// What the results of probes amount to: a state and its cause, by counting results in a row.
///
/// | stands | result | then |
/// |---|---|---|
/// | unknown, up | failure | down or unreachable after `failAfter` in a row, whatever their causes; the last one's stands |
/// | down, unreachable | failure of another cause | after `failAfter` of that cause in a row |
/// | any | failure that is certain (link, address, route) | at once |
/// | unknown, down, unreachable | success | up after `recoverAfter` in a row |
///
/// `degraded` has its place here: it is what a success becomes that came over one of several families only, or beyond the limits
/// of loss and round trip, once results are kept for each family.
struct Verdict: Hashable, Sendable {
    let failAfter: Int
    let recoverAfter: Int
    private(set) var state = ServerState.unknown
    /// Set unless the state is unknown or up.
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

    /// Whether the next probe should come soon, because what was seen last is not what stands.
    var needsConfirmation: Bool {
        switch state {
        case .up, .degraded: failures > 0
        case .unknown: true
        // What stood as certain and is so no longer: the old cause is known to be wrong.
        case .down, .unreachable:
            successes > 0 || (cause?.layer.isCertain == true && lastFailure?.isSameFailure(as: cause) == false)
        }
    }

    /// A probe succeeded.
    mutating func succeed() {
        (failures, equalFailures, lastFailure) = (0, 0, nil)
        successes = min(successes + 1, recoverAfter)
        if successes >= recoverAfter { (state, cause) = (.up, nil) }
    }

    /// A probe failed, or there is certainly nothing to probe.
    ///
    /// - Returns: whether the verdict now rests on this failure.
    mutating func fail(_ failure: Cause, isCertain: Bool) -> Bool {
        successes = 0
        failures = isCertain ? failAfter : min(failures + 1, failAfter)
        equalFailures = isCertain ? failAfter : failure.isSameFailure(as: lastFailure) ? min(equalFailures + 1, failAfter) : 1
        lastFailure = failure
        let stands: Bool =
            switch state {
            case .unknown, .up, .degraded: failures >= failAfter
            case .down, .unreachable: equalFailures >= failAfter || failure.isSameFailure(as: cause)
            }
        if stands { (state, cause) = (failure.layer.accusesServer ? .down : .unreachable, failure) }
        return stands
    }

    /// The counts begin anew; what stands, stands.
    mutating func forgetCounts() {
        (successes, failures, equalFailures, lastFailure) = (0, 0, 0, nil)
    }
}
