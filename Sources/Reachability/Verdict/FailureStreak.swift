/// What was told for certain of each address in the present row of failures.
///
/// Routers send few ICMP messages (RFC 1812, 4.3.2.8), and the kernel asks a silent neighbor only now and then, so most probes of
/// a row meet silence where one was told the reason. Silence says nothing new: what was told of the same address over the same
/// route stands until it is refuted.
struct FailureStreak: Hashable, Sendable {
    private struct Told: Hashable, Sendable {
        let route: ChosenRoute
        let cause: Cause
    }

    private var told: [IPAddress: Told] = [:]

    /// The row has ended: the target was reached, there is no way to it, or the machine has slept and may be anywhere.
    mutating func forget() { told = [:] }

    /// What was told over other routes than these counts no more.
    mutating func keep(to routes: [IPAddress: ChosenRoute]) {
        told = told.filter { routes[$0.key] == $0.value.route }
    }

    /// The cause of a failure: its own, or what was told before where it was only silence.
    mutating func cause(of failure: FailedAttempt, in surroundings: TargetMachine.Surroundings) -> Cause {
        let cause = failure.cause(in: surroundings)
        let address = failure.candidate.address
        switch (cause.layer, cause.code) {
        case (.neighbor, _), (.network, _):
            // The latest: a gateway that fell silent has nothing to tell any more, and one that tells is not silent.
            told[address] = Told(route: failure.route, cause: cause)
        case (.tcp, .timeout):
            guard let earlier = told[address], earlier.route == failure.route else { return cause }
            if earlier.cause.layer == .neighbor, failure.neighbor.isReachable {
                told[address] = nil
                return cause
            }
            return earlier.cause.remembered
        case (.tcp, _):
            // The host has answered.
            told[address] = nil
        default: break
        }
        return cause
    }
}

extension Cause {
    /// The same, marked as the word on an earlier probe.
    fileprivate var remembered: Cause {
        Cause(layer, code, detail: detail, evidence: evidence.merging(["earlier": .flag(true)]) { _, new in new })
    }
}
