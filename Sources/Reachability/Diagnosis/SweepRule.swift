/// The questions that the silence of a target, or of the name server of its name, needs.
extension DiagnosisEvidence {
    /// Whether a sweep of hop limits may find the last router that answers: the destination is silent, and behind a router.
    package var needsSweep: Bool { isSilentElsewhere && !isOnLink }

    /// The TCP port of the sweep; `nil` if there is no destination.
    package var sweepPort: UInt16? {
        switch destination {
        case .server: endpoint?.port
        // RFC 7766 section 5: name servers answer over TCP too.
        case .resolver: 53
        case .gateway, nil: nil
        }
    }

    /// The first hop that is asked whether it is alive, because the destination is silent and no probe has proved it; `nil` if none is.
    /// It is the gateway, or the target itself on the link. A silent name server on the link has been asked already.
    package var hopToAsk: Neighbor.Key? {
        guard isSilentElsewhere || isNeighborUnconfirmed, cause?.evidence["first_hop"] != .text("answered"),
            interface?.type != .tunnel
        else { return nil }
        return inspection?.nextHop
    }

    /// Whether the target is on the link, and the kernel has not asked for it since.
    private var isNeighborUnconfirmed: Bool {
        guard let cause, !isDegraded, isOnLink, !isLocal else { return false }
        return cause.layer == .neighbor && cause.code == .hostSilent && inspection?.neighbor.isSilent == false
    }

    /// Whether nothing answers, and the destination is not on this machine.
    private var isSilentElsewhere: Bool {
        guard let cause, !isDegraded, inspection?.chosen != nil, !isLocal else { return false }
        return switch destination {
        case .server: cause.isSilence || cause.code == .upstreamSilent
        case .resolver: cause.layer == .dns && cause.code == .resolverSilent && !isOnLink
        case .gateway, nil: false
        }
    }
}
