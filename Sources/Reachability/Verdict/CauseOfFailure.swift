/// A failed attempt. Its cause is a pure function of the evidence, by the table of the contract.
///
/// The errno alone does not distinguish a server from a firewall or a router: all three can end a connect with ECONNREFUSED or
/// EHOSTUNREACH. The error queue does. If the queue is empty, the remote TCP answered; otherwise it contains the ICMP message and
/// its sender.
struct FailedAttempt: Hashable, Sendable {
    var candidate: Candidate
    /// The route that the kernel chose.
    var route: ChosenRoute
    /// The result; `nil` if the attempt was still waiting at the probe's deadline.
    var result: ProbeResult?
    /// The entry of the next hop in the neighbor table.
    var neighbor = NeighborAnswer.unknown
    var elapsedNanoseconds: Int64

    private var port: UInt16 { candidate.port }

    /// The target's host. A name that resolves to a loopback address means this machine.
    private var host: String {
        candidate.address.isLoopback ? "this machine (\(candidate.address))" : "\(candidate.address)"
    }

    /// The next hop, whose neighbor entry shows whether packets left this machine; `nil` for a destination on this machine.
    var nextHop: Neighbor.Key? {
        guard route.kind != .local, !candidate.address.isLoopback else { return nil }
        return Neighbor.Key(interface: route.interface, address: route.gateway ?? candidate.address)
    }

    /// Returns the next hop if it may be at fault: no answer arrived, or this machine itself reports "host unreachable". The
    /// kernel reports that if the next hop does not answer, and a packet filter may report it too.
    func suspectedHop(in localState: TargetMachine.LocalState) -> Neighbor.Key? {
        guard let result else { return nextHop }
        if let reporter = result.reporter, reporter.origin != 1 {
            return isOwn(reporter, in: localState) && code(of: reporter) == .hostUnreachable ? nextHop : nil
        }
        let isSilence: Bool =
            switch SystemErrorNumber(rawValue: result.errno) {
            case .timedOut: true
            case .hostUnreachable, .hostDown: result.call == "handshake"
            default: false
            }
        return isSilence ? nextHop : nil
    }

    /// Returns the cause. The cause's layer decides whether the server is at fault.
    func cause(in localState: TargetMachine.LocalState) -> Cause {
        let evidence = evidence(in: localState)
        let address = candidate.address
        func makeCause(_ layer: Cause.Layer, _ code: Cause.Code, _ detail: String) -> Cause {
            Cause(layer, code, detail: detail, evidence: evidence)
        }
        guard let result else { return silence(evidence) }
        if let reporter = result.reporter, let cause = reported(by: reporter, evidence, in: localState) { return cause }

        let isLocal = result.call != "handshake"
        switch SystemErrorNumber(rawValue: result.errno) {
        case .connectionRefused:
            return makeCause(.tcp, .refused, "\(host) refuses connections to port \(port)")
        case .timedOut:
            return silence(evidence)
        case .connectionReset, .connectionAborted, .brokenPipe:
            return makeCause(.tcp, .reset, "\(host) reset the connection to port \(port)")
        case .networkUnreachable where isLocal:
            return makeCause(.route, .noRoute, "there is no route to \(address)")
        case .networkUnreachable:
            return makeCause(.network, .netUnreachable, "the network of \(address) is unreachable")
        case .hostUnreachable where isLocal:
            return makeCause(.route, .routeUnreachable, "an 'unreachable' route refuses \(address)")
        case .hostUnreachable, .hostDown:
            if neighbor == .unknown || neighbor.isSilent { return neighborSilence(evidence) }
            return makeCause(.network, .hostUnreachable, "\(address) is unreachable for an unknown reason")
        case .accessDenied:
            return makeCause(.route, .routeProhibited, "a 'prohibit' route or rule refuses \(address)")
        case .notPermitted where result.call != "setsockopt":
            return makeCause(.firewall, .localReject, "this machine's packet filter rejects packets to \(address)")
        case .invalid where isLocal:
            return makeCause(.route, .routeBlackhole, "a 'blackhole' route drops packets to \(address)")
        case .familyNotSupported:
            return makeCause(.route, .noRoute, "the kernel has no IPv\(address.family.rawValue)")
        case .networkDown:
            return makeCause(.link, .interfaceDown, "the interface that leads to \(address) is switched off")
        case .noDevice:
            return makeCause(.link, .noInterface, "the interface that leads to \(address) is gone")
        case .tooManyFiles, .tooManyFilesInSystem, .outOfMemory, .noBufferSpace:
            return makeCause(.local, .fileLimit, "no descriptor or memory left for a probe of \(address)")
        case .addressNotAvailable where route.source != nil:
            return makeCause(.local, .portExhausted, "all local ports towards \(address) are in use")
        case .messageTooLong:
            return makeCause(.network, .packetTooBig, "packets are too big for the path to \(address)")
        default:
            let name = SystemErrorNumber.name(of: result.errno)
            return makeCause(.local, .sourceUnavailable, "no socket can be used towards \(address): \(name)")
        }
    }

    /// Returns the cause of an attempt without any answer.
    private func silence(_ evidence: [String: Cause.Evidence]) -> Cause {
        if neighbor.isSilent { return neighborSilence(evidence) }
        let detail = "\(host) does not answer on port \(port)"
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

    private func evidence(in localState: TargetMachine.LocalState) -> [String: Cause.Evidence] {
        var evidence: [String: Cause.Evidence] = [
            "address": .text("\(candidate.address)"), "port": .number(Int(port)),
            "elapsed_ms": .number(Int(elapsedNanoseconds / 1_000_000)),
        ]
        if let name = localState.interfaces[route.interface]?.name { evidence["interface"] = .text(name) }
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
    /// Returns the cause that an ICMP message reports (RFC 792 and its successors; RFC 4443); `nil` if the message does not
    /// report a failure.
    private func reported(
        by reporter: ProbeResult.Reporter, _ evidence: [String: Cause.Evidence], in localState: TargetMachine.LocalState
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
        if isOwn(reporter, in: localState), code != .packetTooBig {
            // The kernel reports its own failed neighbor discovery like a rejecting filter; the neighbor table distinguishes
            // them. Without an answer from that table, a silent neighbor is more likely than such a filter.
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
            case .packetTooBig: "\(hop) reports that packets are too big for the path to \(address)"
            case .ttlExceeded: "\(hop) reports that packets to \(address) exceeded their hop limit"
            default: "\(hop) cannot reach \(address)"
            }
        return Cause(.network, code, detail: detail, evidence: evidence)
    }

    private func isOwn(_ reporter: ProbeResult.Reporter, in localState: TargetMachine.LocalState) -> Bool {
        reporter.origin == 1 || reporter.offender.map { $0.isLoopback || localState.isOwn($0) } ?? true
    }

    private func code(of reporter: ProbeResult.Reporter) -> Cause.Code? { reporter.code(candidate.address.family) }
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

extension Neighbor.State {
    /// The name of the state in the output of ip-neighbor(8).
    fileprivate var name: String {
        let names: [(Neighbor.State, String)] = [
            (.failed, "FAILED"), (.incomplete, "INCOMPLETE"), (.probe, "PROBE"), (.delay, "DELAY"), (.stale, "STALE"),
            (.reachable, "REACHABLE"),
        ]
        return names.first { contains($0.0) }?.1 ?? "0x" + String(rawValue, radix: 16)
    }
}

/// Returns the failure that represents a probe: the one that got furthest, then the most definite, then the first.
func furthest(_ failures: [(FailedAttempt, Cause)]) -> (FailedAttempt, Cause)? {
    var best: (FailedAttempt, Cause)?
    var bestRank = -1
    for (failure, cause) in failures {
        // This process's own limits rank lowest, because an attempt to another address may have been sent.
        let rank = cause.layer == .local ? 0 : cause.layer.depth * 2 + (cause.code == .timeout ? 1 : 2)
        if rank > bestRank { (best, bestRank) = ((failure, cause), rank) }
    }
    return best
}
