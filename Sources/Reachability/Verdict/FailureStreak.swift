/// The definite causes of each address in the present row of failures.
///
/// Routers limit their ICMP messages (RFC 1812 section 4.3.2.8), and the kernel asks a silent neighbor only from time to time.
/// Therefore most probes of a row time out, although an earlier one received the reason. A timeout adds no information: the
/// earlier cause for the same address and route remains valid until it is refuted.
struct FailureStreak: Hashable, Sendable {
    private struct Finding: Hashable, Sendable {
        let route: ChosenRoute
        let cause: Cause
    }

    private var findings: [IPAddress: Finding] = [:]

    /// Clears the causes at the end of a streak. A streak ends when the target is reached, when it has no route, or when the
    /// machine was suspended and may be on another network.
    mutating func reset() { findings = [:] }

    /// Removes the causes that were found over other routes than these.
    mutating func keep(to routes: [IPAddress: ChosenRoute]) {
        findings = findings.filter { routes[$0.key] == $0.value.route }
    }

    /// Returns the cause of a failure: its own cause, or the earlier one if the probe timed out.
    mutating func cause(of failure: FailedAttempt, in localState: TargetMachine.LocalState) -> Cause {
        let cause = failure.cause(in: localState)
        let address = failure.candidate.address
        switch (cause.layer, cause.code) {
        case (.neighbor, _), (.network, _):
            // The latest cause counts: a gateway that is silent now can no longer report, and one that reports is not silent.
            findings[address] = Finding(route: failure.route, cause: cause)
        case (.tcp, .timeout):
            guard let earlier = findings[address], earlier.route == failure.route else { return cause }
            if earlier.cause.layer == .neighbor, failure.neighbor.isReachable {
                findings[address] = nil
                return cause
            }
            return earlier.cause.markedAsEarlier
        case (.tcp, _):
            // The host has answered.
            findings[address] = nil
        default: break
        }
        return cause
    }
}

extension Cause {
    /// The cause, marked as the result of an earlier probe.
    fileprivate var markedAsEarlier: Cause {
        Cause(layer, code, detail: detail, evidence: evidence.merging(["earlier": .flag(true)]) { _, new in new })
    }
}
