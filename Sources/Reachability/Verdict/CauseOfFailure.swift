/// What an attempt that failed says: the table of the contract, as a pure function of the evidence.
///
/// The errno alone does not tell a server from a firewall or a router: all three can end a connect with ECONNREFUSED or
/// EHOSTUNREACH. The error queue does. An empty one means that the other end's TCP spoke; else it names the ICMP message and its
/// sender.
struct FailedAttempt: Hashable, Sendable {
    var candidate: Candidate
    /// The way that the kernel chose for it.
    var route: ChosenRoute
    /// How it ended; `nil` when it was still waiting at the probe's deadline.
    var result: ProbeResult?
    /// What the neighbor table says of the next hop.
    var neighbor = NeighborAnswer.unknown
    var elapsedNanoseconds: Int64

    private var port: UInt16 { candidate.port }

    /// The next hop, whose entry in the neighbor table tells whether packets got off this machine; `nil` to this machine itself.
    var nextHop: Neighbor.Key? {
        guard route.kind != .local, !candidate.address.isLoopback else { return nil }
        return Neighbor.Key(interface: route.interface, address: route.gateway ?? candidate.address)
    }

    /// The next hop, where the failure may be its: nothing came back, or this machine itself says that the host is unreachable,
    /// which the kernel does when nobody answers on the link, and a packet filter where somebody wants it so.
    func suspect(in surroundings: TargetMachine.Surroundings) -> Neighbor.Key? {
        guard let result else { return nextHop }
        if let reporter = result.reporter, reporter.origin != 1 {
            return isOwn(reporter, in: surroundings) && code(of: reporter) == .hostUnreachable ? nextHop : nil
        }
        let isSilence: Bool =
            switch SystemErrorNumber(rawValue: result.errno) {
            case .timedOut: true
            case .hostUnreachable, .hostDown: result.call == "handshake"
            default: false
            }
        return isSilence ? nextHop : nil
    }

    /// The cause. Whether it accuses the server follows from its layer.
    func cause(in surroundings: TargetMachine.Surroundings) -> Cause {
        let evidence = evidence(in: surroundings)
        let address = candidate.address
        func because(_ layer: Cause.Layer, _ code: Cause.Code, _ detail: String) -> Cause {
            Cause(layer, code, detail: detail, evidence: evidence)
        }
        guard let result else { return silence(evidence) }
        if let reporter = result.reporter, let cause = reported(by: reporter, evidence, in: surroundings) { return cause }

        let isLocal = result.call != "handshake"
        switch SystemErrorNumber(rawValue: result.errno) {
        case .connectionRefused:
            return because(.tcp, .refused, "\(address) refuses connections to port \(port)")
        case .timedOut:
            return silence(evidence)
        case .connectionReset, .connectionAborted, .brokenPipe:
            return because(.tcp, .reset, "\(address) reset the connection to port \(port)")
        case .networkUnreachable where isLocal:
            return because(.route, .noRoute, "there is no route to \(address)")
        case .networkUnreachable:
            return because(.network, .netUnreachable, "the network of \(address) is unreachable")
        case .hostUnreachable where isLocal:
            return because(.route, .routeUnreachable, "an 'unreachable' route refuses \(address)")
        case .hostUnreachable, .hostDown:
            if neighbor == .unknown || neighbor.isSilent { return neighborSilence(evidence) }
            return because(.network, .hostUnreachable, "\(address) is unreachable, and nobody says why")
        case .accessDenied:
            return because(.route, .routeProhibited, "a 'prohibit' route or rule refuses \(address)")
        case .notPermitted where result.call != "setsockopt":
            return because(.firewall, .localReject, "this machine's packet filter rejects packets to \(address)")
        case .invalid where isLocal:
            return because(.route, .routeBlackhole, "a 'blackhole' route swallows packets to \(address)")
        case .familyNotSupported:
            return because(.route, .noRoute, "the kernel has no IPv\(address.family.rawValue)")
        case .networkDown:
            return because(.link, .interfaceDown, "the interface that leads to \(address) is switched off")
        case .noDevice:
            return because(.link, .noInterface, "the interface that leads to \(address) is gone")
        case .tooManyFiles, .tooManyFilesInSystem, .outOfMemory, .noBufferSpace:
            return because(.local, .fileLimit, "no descriptor or memory left for a probe of \(address)")
        case .addressNotAvailable where route.source != nil:
            return because(.local, .portExhausted, "all local ports towards \(address) are in use")
        case .messageTooLong:
            return because(.network, .packetTooBig, "packets are too big for the way to \(address)")
        default:
            let name = SystemErrorNumber.name(of: result.errno)
            return because(.local, .sourceUnavailable, "no socket can be used towards \(address): \(name)")
        }
    }

    /// Nothing came back.
    private func silence(_ evidence: [String: Cause.Evidence]) -> Cause {
        if neighbor.isSilent { return neighborSilence(evidence) }
        let detail = "\(candidate.address) does not answer on port \(port)"
        return Cause(.tcp, .timeout, detail: detail, evidence: evidence)
    }

    private func neighborSilence(_ evidence: [String: Cause.Evidence]) -> Cause {
        if let gateway = route.gateway {
            return Cause(
                .neighbor, .gatewaySilent, detail: "the gateway \(gateway) does not answer on its link", evidence: evidence)
        }
        let detail = "\(candidate.address) does not answer on its link"
        return Cause(.neighbor, .hostSilent, detail: detail, evidence: evidence)
    }

    private func evidence(in surroundings: TargetMachine.Surroundings) -> [String: Cause.Evidence] {
        var evidence: [String: Cause.Evidence] = [
            "address": .text("\(candidate.address)"), "port": .number(Int(port)),
            "elapsed_ms": .number(Int(elapsedNanoseconds / 1_000_000)),
        ]
        if let name = surroundings.interfaces[route.interface]?.name { evidence["interface"] = .text(name) }
        if let gateway = route.gateway { evidence["gateway"] = .text("\(gateway)") }
        if let result {
            evidence["errno"] = .text(SystemErrorNumber.name(of: result.errno))
            if let call = result.call { evidence["call"] = .text(call) }
        }
        if let reporter = result?.reporter {
            evidence["icmp_type"] = .number(Int(reporter.type))
            evidence["icmp_code"] = .number(Int(reporter.code))
            if let offender = reporter.offender { evidence["hop"] = .text("\(offender)") }
        }
        switch neighbor {
        case .unknown: break
        case .absent: evidence["neighbor_state"] = .text("NONE")
        case .state(let state): evidence["neighbor_state"] = .text(state.name)
        }
        return evidence
    }
}

extension FailedAttempt {
    /// What an ICMP message says (RFC 792 and its successors; RFC 4443); `nil` for one that says nothing of a failure.
    private func reported(
        by reporter: ProbeResult.Reporter, _ evidence: [String: Cause.Evidence], in surroundings: TargetMachine.Surroundings
    ) -> Cause? {
        let code: Cause.Code
        if reporter.origin == 1 {
            // A local error without an ICMP message: the errno tells all there is.
            guard result?.errno == SystemErrorNumber.connectionRefused.rawValue else { return nil }
            code = .portFiltered
        } else {
            guard let told = self.code(of: reporter) else { return nil }
            code = told
        }
        let address = candidate.address
        if isOwn(reporter, in: surroundings), code != .packetTooBig {
            // The kernel tells of its own failed neighbor discovery in the same way as a filter that rejects: the neighbor table
            // tells them apart. Where that cannot be asked, neighbors fail more often than anybody rejects in this way.
            let isNeighbors = neighbor == .unknown || neighbor.isSilent
            if code == .hostUnreachable, nextHop != nil, isNeighbors { return neighborSilence(evidence) }
            let detail = "this machine's packet filter rejects packets to \(address)"
            return Cause(.firewall, .localReject, detail: detail, evidence: evidence)
        }
        let hop = reporter.offender.map { "\($0)" } ?? "this machine"
        let detail =
            switch code {
            case .netUnreachable: "\(hop) has no route to the network of \(address)"
            case .adminProhibited: "\(hop) prohibits packets to \(address)"
            case .portFiltered: "\(hop) filters port \(port) of \(address)"
            case .packetTooBig: "\(hop) says that packets are too big for the way to \(address)"
            case .ttlExceeded: "\(hop) says that packets to \(address) were on the way for too long"
            default: "\(hop) cannot reach \(address)"
            }
        return Cause(.network, code, detail: detail, evidence: evidence)
    }

    private func isOwn(_ reporter: ProbeResult.Reporter, in surroundings: TargetMachine.Surroundings) -> Bool {
        reporter.origin == 1 || reporter.offender.map { $0.isLoopback || surroundings.isOwn($0) } ?? true
    }

    private func code(of reporter: ProbeResult.Reporter) -> Cause.Code? {
        switch (candidate.address.family == .v6, reporter.type, reporter.code) {
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

extension Neighbor.State {
    /// As ip-neighbor(8) writes it.
    fileprivate var name: String {
        let names: [(Neighbor.State, String)] = [
            (.failed, "FAILED"), (.incomplete, "INCOMPLETE"), (.probe, "PROBE"), (.delay, "DELAY"), (.stale, "STALE"),
            (.reachable, "REACHABLE"),
        ]
        return names.first { contains($0.0) }?.1 ?? "0x" + String(rawValue, radix: 16)
    }
}

/// Which of a probe's failures speaks for all: that which got furthest, and among several the most definite; the first of equals.
func furthest(_ failures: [(FailedAttempt, Cause)]) -> (FailedAttempt, Cause)? {
    var best: (FailedAttempt, Cause)?
    var bestRank = -1
    for (failure, cause) in failures {
        // This process's own limits say least: another address may have been tried in earnest.
        let rank = cause.layer == .local ? 0 : cause.layer.depth * 2 + (cause.code == .timeout ? 1 : 2)
        if rank > bestRank { (best, bestRank) = ((failure, cause), rank) }
    }
    return best
}
