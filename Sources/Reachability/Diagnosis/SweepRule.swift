extension DiagnosisEvidence {
    /// Whether a sweep of hop limits may find the last router that answers: the target is silent, and behind a router.
    package var needsSweep: Bool {
        guard case .server? = destination, let cause, cause.layer == .tcp, cause.code == .timeout else { return false }
        return inspection?.chosen != nil && !isLocal && !isOnLink
    }
}
