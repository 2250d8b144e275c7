/// The attribution of a failure: the server is at fault, or a component before it.
///
/// | evidence | fault |
/// |---|---|
/// | the server's own answer: RST, or ICMP from its address | the server |
/// | silence, and the first hop was alive during the failure: it answered a query, a host behind it answered, or its neighbor entry was confirmed | the server |
/// | silence, and nothing proves that the first hop was alive | a component before the server |
extension FailedAttempt {
    /// Returns the first hop: the gateway, the on-link server itself, or for a tunnel without a gateway the unspecified address; `nil`
    /// for a destination on this machine.
    func firstHop(in localState: TargetMachine.LocalState) -> Neighbor.Key? {
        guard let hop = nextHop else { return nil }
        guard route.gateway == nil, localState.interfaces[route.interface]?.type == .tunnel else { return hop }
        return Neighbor.Key(
            interface: route.interface, address: candidate.address.family == .v4 ? IPAddress(v4: 0) : IPAddress(v6: 0, 0))
    }

    /// Returns whether somebody beyond this machine has answered.
    func isAnswer(in localState: TargetMachine.LocalState) -> Bool {
        guard let result else { return false }
        if let reporter = result.reporter, reporter.origin != 1 { return !isOwn(reporter, in: localState) }
        return result.errno == SystemErrorNumber.connectionRefused.rawValue
            || result.errno == SystemErrorNumber.connectionReset.rawValue
    }

    /// Returns what a router has reported, as evidence for other targets of the same network; `nil` if the target itself answered, or
    /// if the report is about its host alone.
    func report(in localState: TargetMachine.LocalState, at now: Int64) -> HopBook.Report? {
        guard isAnswer(in: localState), let reporter = result?.reporter, let offender = reporter.offender,
            offender != candidate.address, let code = code(of: reporter), code != .packetTooBig, code != .hostUnreachable
        else { return nil }
        return HopBook.Report(
            target: candidate.address, code: code, reporter: reporter, port: code == .portFiltered ? candidate.port : nil,
            time: now)
    }

    /// Whether the first hop has proved during the probe that it is alive.
    var isFirstHopAlive: Bool {
        if hop?.isAlive == true || host?.isAlive == true { return true }
        if let tunnel { return tunnel.received > 0 }
        return probeStarted.map { neighbor.isConfirmed(within: probeEnded - $0) } ?? false
    }

    /// Whether the route to the server worked during the probe.
    private var isRouteProven: Bool { nextHop == nil || isFirstHopAlive }

    /// Returns whether the server is at fault, if this is the cause.
    func accusesServer(_ cause: Cause) -> Bool {
        switch cause.layer {
        case .tcp: cause.code != .timeout || isRouteProven
        case .network: result?.reporter?.offender == candidate.address
        default: cause.accusesServer
        }
    }

    /// Returns the cause of an attempt without any answer.
    func silence(_ evidence: [String: Cause.Evidence], in localState: TargetMachine.LocalState) -> Cause {
        if neighbor.isSilent { return neighborSilence(evidence) }
        var evidence = evidence
        if isDroppedHere {
            evidence["errno"] = .text(SystemErrorNumber.name(of: SystemErrorNumber.notPermitted.rawValue))
            evidence["scope"] = .text("address")
            let detail = "this machine's packet filter drops packets to \(candidate.address)"
            return Cause(.firewall, .localDrop, detail: detail, evidence: evidence)
        }
        if nextHop != nil {
            evidence["first_hop"] = .text(isFirstHopAlive ? "answered" : hop?.isSilent == true ? "silent" : "unknown")
        }
        if host?.isAlive == true {
            evidence["host"] = .text("answered")
            return timeout(evidence)
        }
        if let hop, hop.isSilent, !isFirstHopAlive { return neighborSilence(evidence) }
        if let tunnel, tunnel.sent > 0, tunnel.received == 0 {
            let name = localState.interfaces[route.interface]?.name ?? "\(route.interface)"
            evidence["packets_sent"] = .number(Int(clamping: tunnel.sent))
            evidence["packets_received"] = .number(0)
            let detail = "the tunnel \(name) sends packets and receives none"
            return Cause(.network, .tunnelSilent, detail: detail, evidence: evidence)
        }
        if let report = hop?.report ?? host?.report { return inferred(from: report, evidence) }
        return timeout(evidence)
    }

    // Datagrams to the target are refused. If those to the first hop are refused too, the filter may refuse all datagrams and pass TCP.
    private var isDroppedHere: Bool {
        func isRefused(_ state: HopBook.State?) -> Bool {
            state?.reply?.outcome == .refused && state?.reply?.errno == SystemErrorNumber.notPermitted.rawValue
        }
        if route.gateway == nil { return isRefused(hop ?? host) && hop?.isAlive != true }
        return isRefused(host) && !isRefused(hop)
    }

    private func timeout(_ evidence: [String: Cause.Evidence]) -> Cause {
        var detail = "\(hostText) does not answer on port \(candidate.port)"
        if host?.isAlive == true {
            detail += ", although the host is alive"
        } else if let gateway = route.gateway, isFirstHopAlive {
            detail += "; the gateway \(gateway) is alive"
        }
        return Cause(.tcp, .timeout, detail: detail, evidence: evidence)
    }

    private func inferred(from report: HopBook.Report, _ evidence: [String: Cause.Evidence]) -> Cause {
        var evidence = evidence
        let hop = report.reporter.offender.map { "\($0)" } ?? "a router"
        evidence["inferred"] = .text("\(report.target)")
        evidence["hop"] = .text(hop)
        evidence["icmp_type"] = .number(Int(report.reporter.type))
        evidence["icmp_code"] = .number(Int(report.reporter.code))
        let detail = "\(candidate.address) does not answer, and \(hop) has reported \(report.code.rawValue) for \(report.target)"
        return Cause(.network, report.code, detail: detail, evidence: evidence)
    }
}

/// Returns the failure that represents a probe: the one that got furthest, then the most definite, then the first.
func furthest(_ failures: [(FailedAttempt, Finding)]) -> (FailedAttempt, Finding)? {
    var best: (FailedAttempt, Finding)?
    var bestRank = -1
    for (failure, finding) in failures {
        let cause = finding.cause
        // This process's own limits rank lowest, because an attempt to another address may have been sent.
        let rank = cause.layer == .local ? 0 : cause.layer.depth * 2 + (cause.code == .timeout ? 1 : 2)
        if rank > bestRank { (best, bestRank) = ((failure, finding), rank) }
    }
    return best
}
