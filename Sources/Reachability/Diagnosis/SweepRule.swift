/// The questions that the silence of a target needs.
extension DiagnosisEvidence {
    /// Whether a sweep of hop limits may find the last router that answers: the target is silent, and behind a router.
    package var needsSweep: Bool { isSilentElsewhere && !isOnLink }

    /// The first hop that is asked whether it is alive, because the target is silent and no probe has proved it; `nil` if none is. It is
    /// the gateway, or the target itself on the link.
    package var hopToAsk: Neighbor.Key? {
        guard isSilentElsewhere, cause?.evidence["first_hop"] != .text("answered"), interface?.type != .tunnel else { return nil }
        return inspection?.nextHop
    }

    /// Whether nothing answers, and the target is not on this machine.
    private var isSilentElsewhere: Bool {
        guard case .server? = destination, let cause, cause.layer == .tcp, cause.code == .timeout, !isDegraded else {
            return false
        }
        return inspection?.chosen != nil && !isLocal
    }
}
