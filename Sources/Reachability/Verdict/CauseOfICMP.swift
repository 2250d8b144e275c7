extension FailedAttempt {
    /// Returns the cause that an ICMP message reports (RFC 792 and its successors; RFC 4443); `nil` if the message does not
    /// report a failure.
    func reported(
        by reporter: ProbeResult.Reporter, _ evidence: [String: Cause.Evidence], in localState: LocalState
    ) -> Cause? {
        let code: Cause.Code
        if reporter.origin == 1 {
            // A local error without an ICMP message has only its errno.
            guard result?.errno == SystemErrorNumber.connectionRefused.rawValue else { return nil }
            code = .portFiltered
        } else {
            guard let found = self.code(of: reporter) else { return nil }
            code = found
        }
        let address = candidate.address
        // This machine itself reports a closed port of its own address.
        if code == .portFiltered, nextHop == nil, reporter.offender == address, let refusal = scheme.kind.refusal {
            return refused(refusal, evidence)
        }
        if isOwn(reporter, in: localState), code != .packetTooBig {
            // The kernel reports its own failed neighbor discovery like a rejecting filter; the neighbor table distinguishes
            // them. Without an answer from that table, a silent neighbor is more likely than such a filter. The table forgets failed
            // entries at once if it is large, but a filter rejects at once, and discovery fails after seconds.
            let isForgotten = neighbor == .absent && elapsedNanoseconds >= Self.rejectionLimit
            let isNeighbors = neighbor == .unknown || neighbor.isSilent || isForgotten
            if code == .hostUnreachable, nextHop != nil, isNeighbors { return neighborSilence(evidence) }
            let detail = "this machine's packet filter rejects packets to \(address)"
            return Cause(.firewall, .localReject, detail: detail, evidence: evidence)
        }
        if let offender = reporter.offender, offender == address, code != .packetTooBig {
            if code == .portFiltered, let refusal = scheme.kind.refusal {
                return refused(refusal, evidence)
            }
            let detail = "\(address) itself refuses packets\(port == 0 ? "" : " to port \(port)"): \(code.rawValue)"
            return Cause(.network, code, detail: detail, evidence: evidence)
        }
        let hop = reporter.offender.map { "\($0)" } ?? "this machine"
        let detail =
            switch code {
            case .netUnreachable: "\(hop) has no route to the network of \(address)"
            case .adminProhibited: "\(hop) prohibits packets to \(address)"
            case .portFiltered: "\(hop) filters \(port == 0 ? "packets to" : "port \(port) of") \(address)"
            case .packetTooBig: "\(hop) reports that packets are too big for the path to \(address)"
            case .ttlExceeded: "\(hop) reports that packets to \(address) exceeded their hop limit"
            default: "\(hop) cannot reach \(address)"
            }
        return Cause(.network, code, detail: detail, evidence: evidence)
    }

    /// Returns the cause of a port at which nobody listens.
    private func refused(
        _ refusal: (layer: Cause.Layer, code: Cause.Code), _ evidence: [String: Cause.Evidence]
    ) -> Cause {
        Cause(refusal.layer, refusal.code, detail: "\(hostText) has no server on port \(port)", evidence: evidence)
    }

    /// The time within which this machine's packet filter has rejected a packet, in nanoseconds.
    private static let rejectionLimit: Int64 = 500_000_000

    func isOwn(_ reporter: ProbeResult.Reporter, in localState: LocalState) -> Bool {
        reporter.origin == 1 || reporter.offender.map { $0.isLoopback || localState.isOwn($0) } ?? true
    }

    func code(of reporter: ProbeResult.Reporter) -> Cause.Code? { reporter.code(candidate.address.family) }
}

extension ProbeResult.Reporter {
    /// The failure that the ICMP message reports; `nil` if it reports none.
    func code(_ family: IPAddress.Family) -> Cause.Code? {
        switch (family == .v6, type, code) {
        case (false, 3, 0), (false, 3, 5), (false, 3, 6), (false, 3, 11): return .netUnreachable
        case (false, 3, 2), (false, 3, 3): return .portFiltered
        case (false, 3, 4): return .packetTooBig
        case (false, 3, 9), (false, 3, 10), (false, 3, 13...15): return .adminProhibited
        case (false, 3, _): return .hostUnreachable
        case (false, 11, _): return .ttlExceeded
        case (true, 1, 0), (true, 1, 2): return .netUnreachable
        case (true, 1, 1), (true, 1, 5...6): return .adminProhibited
        case (true, 1, 4): return .portFiltered
        case (true, 1, _): return .hostUnreachable
        case (true, 2, _): return .packetTooBig
        case (true, 3, _): return .ttlExceeded
        case (false, 12, _), (true, 4, _): return .hostUnreachable
        default: return nil
        }
    }
}
