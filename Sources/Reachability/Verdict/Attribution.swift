internal import Pacing

/// The attribution of a failure: the server is at fault, or a component before it.
///
/// | evidence | fault |
/// |---|---|
/// | the server's own answer: RST, or ICMP from its address | the server |
/// | silence, and somebody behind the first hop has answered since the probe began: the server's host, another target, a router, a name server (``WitnessBook``) | the server |
/// | silence of a server on the link, and its neighbor entry was confirmed since the probe began, or its host has answered | the server |
/// | silence, and nobody behind the first hop has answered | a component before the server |
/// | silence of this machine itself, to datagrams too | this machine's packet filter |
/// | silence, and two counts of the namespace's packets show where this machine dropped them (``DropCounter``) | this machine's packet filter, or `rp_filter` |
extension FailedAttempt {
    /// Returns the first hop: the gateway, the on-link server itself, or for a tunnel without a gateway the unspecified address; `nil`
    /// for a destination on this machine.
    func firstHop(in localState: LocalState) -> Neighbor.Key? {
        route.firstHop(to: candidate.address, in: localState)
    }

    /// Returns the sender of an answer to the attempt.
    func answer(in localState: LocalState) -> Answer? {
        guard let result else { return nil }
        if let reporter = result.reporter, reporter.origin != 1 {
            if isOwn(reporter, in: localState) { return nil }
            return reporter.offender == candidate.address ? .target : .router
        }
        let isTCP =
            result.errno == SystemErrorNumber.connectionRefused.rawValue
            || result.errno == SystemErrorNumber.connectionReset.rawValue
        return isTCP ? .target : nil
    }

    /// The sender of an answer.
    enum Answer: Hashable {
        /// The target itself, or somebody in its name.
        case target
        case router
    }

    /// Returns what a router has reported, as evidence for other targets of the same network or host; `nil` if the target itself
    /// answered.
    func report(in localState: LocalState, at now: Int64) -> HopBook.Report? {
        guard answer(in: localState) == .router, let reporter = result?.reporter, reporter.offender != nil,
            let code = code(of: reporter), code != .packetTooBig
        else { return nil }
        return HopBook.Report(
            target: candidate.address, port: candidate.port, code: code, reporter: reporter, time: now)
    }

    /// Whether the first hop has proved during the probe that it is alive. A connection of another target is no proof if the hop
    /// usually answers queries and does not now: this machine's packet filter may have answered in the target's name.
    var isFirstHopAlive: Bool {
        if hop?.isAlive == true || host?.isAlive == true { return true }
        if beyond?.witness != nil, !isFirstHopSilent { return true }
        if let hop, hop.isUsed, !isFirstHopSilent { return true }
        if let tunnel { return tunnel.received > 0 }
        guard let probeStarted else { return false }
        // The kernel asks for a neighbor about twice a minute. One on the link that it has confirmed since the failures began, and that has
        // not become silent, is alive.
        let since = route.gateway == nil ? min(streakBegan ?? probeStarted, probeStarted) : probeStarted
        return neighbor.isConfirmed(within: probeEnded - since)
    }

    /// Whether the first hop usually answers queries, and does not now. One whose neighbor entry was confirmed since its first silence
    /// is alive, and answers no queries any more.
    private var isFirstHopSilent: Bool {
        guard let hop, hop.isSilent else { return false }
        guard let silentSince = hop.silentSince, probeStarted != nil else { return true }
        return !neighbor.isConfirmed(within: probeEnded - silentSince)
    }

    /// Whether the first hop is another host than the server: a gateway, or the far end of a tunnel.
    func isBehindHop(in localState: LocalState) -> Bool {
        firstHop(in: localState).map { $0.address != candidate.address } ?? false
    }

    /// Whether the route to the server worked during the probe.
    private func isRouteProven(in localState: LocalState) -> Bool {
        if nextHop == nil || host?.isAlive == true { return true }
        return isBehindHop(in: localState) ? beyond?.witness != nil : isFirstHopAlive
    }

    /// Returns whether the server is at fault, if this is the cause.
    func accusesServer(_ cause: Cause, in localState: LocalState) -> Bool {
        if let refusal = scheme.kind.refusal, refusal == (cause.layer, cause.code) { return true }
        return switch cause.layer {
        case _ where cause.isSilence: isRouteProven(in: localState)
        case .tcp: true
        case .network: result?.reporter?.offender == candidate.address
        default: cause.accusesServer
        }
    }

    /// Returns the cause of an attempt without any answer.
    func silence(_ evidence: [String: Cause.Evidence], in localState: LocalState) -> Cause {
        if neighbor.isSilent { return neighborSilence(evidence) }
        var evidence = evidence
        if isDroppedHere {
            if isRefused(host) || isRefused(hop) {
                evidence["errno"] = .text(SystemErrorNumber.name(of: SystemErrorNumber.notPermitted.rawValue))
            }
            evidence["scope"] = .text("address")
            let address = nextHop == nil ? "its own address \(candidate.address)" : "\(candidate.address)"
            let detail = "this machine's packet filter drops packets to \(address)"
            return Cause(.firewall, .localDrop, detail: detail, evidence: evidence)
        }
        if let drop, drop.isConfirmed { return localDrop(at: drop.place, evidence) }
        if nextHop != nil {
            evidence["first_hop"] = .text(isFirstHopAlive ? "answered" : isFirstHopSilent ? "silent" : "unknown")
        }
        let report = hop?.report ?? host?.report
        if host?.isAlive == true {
            evidence["host"] = .text("answered")
            // The host answers other ports, so that only a report about this port explains the silence.
            if let report, report.port == candidate.port { return inferred(from: report, evidence) }
            return timeout(evidence)
        }
        if isFirstHopSilent, !isFirstHopAlive {
            // Its answers to queries count towards the same limit as its reports.
            if let hop, let report = hop.hostReport, hop.silentSince.map({ probeEnded - $0 < HopBook.exhaustionTime }) ?? false {
                return inferred(from: report, evidence)
            }
            return neighborSilence(evidence)
        }
        if let tunnel, tunnel.sent > 0, tunnel.received == 0, let beyond, beyond.last != nil, beyond.witness == nil {
            let name = localState.interfaces[route.interface]?.name ?? "\(route.interface)"
            evidence["packets_sent"] = .number(Int(clamping: tunnel.sent))
            evidence["packets_received"] = .number(0)
            let detail = "the tunnel \(name) sends packets and receives none"
            return Cause(.network, .tunnelSilent, detail: detail, evidence: evidence)
        }
        if let report = report ?? hop?.hostReport { return inferred(from: report, evidence) }
        guard isBehindHop(in: localState) else {
            if let cause = otherHost(evidence) { return cause }
            // On the link, the server's own entry in the neighbor table is the only further sign of life.
            return nextHop == nil || isFirstHopAlive ? timeout(evidence) : neighborSilence(evidence)
        }
        if beyond?.witness != nil { return timeout(evidence) }
        // A gateway that has no route to one network reports so, and at most once a second.
        if let report = hop?.routeReport { return inferred(from: report, evidence) }
        return upstreamSilence(evidence, in: localState)
    }

    /// Returns the cause of packets that this machine has dropped, as its counters show.
    private func localDrop(at place: DropCount.Place, _ evidence: [String: Cause.Evidence]) -> Cause {
        var evidence = evidence
        evidence["scope"] = .text("port")
        evidence["place"] = .text(place.rawValue)
        let subject = port == 0 ? hostText : "port \(port) of \(hostText)"
        let detail =
            switch place {
            case .output: "this machine's packet filter drops packets to \(subject)"
            case .input: "this machine's packet filter drops the answers from \(subject)"
            case .reversePath:
                "this machine's rp_filter drops the answers from \(subject), because its route to them leads over another interface"
            }
        return Cause(.firewall, .localDrop, detail: detail, evidence: evidence)
    }

    /// Returns the cause of silence on the link if the kernel has found another host with the server's address since the failures began.
    private func otherHost(_ evidence: [String: Cause.Evidence]) -> Cause? {
        guard let known = hop?.linkAddress, !known.isEmpty, !neighbor.linkAddress.isEmpty, known != neighbor.linkAddress,
            isFirstHopAlive
        else { return nil }
        func text(_ address: [UInt8]) -> String {
            address.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: ":")
        }
        let (former, present) = (text(known), text(neighbor.linkAddress))
        let evidence = evidence.merging(["link_address": .text(present), "former_link_address": .text(former)]) { _, new in new }
        let detail =
            "another host answers for \(candidate.address) on its link: \(present) in place of \(former), and not on port \(port)"
        return Cause(.address, .duplicateAddress, detail: detail, evidence: evidence)
    }

    /// Returns the cause of silence behind a first hop that nobody behind it has broken.
    private func upstreamSilence(_ evidence: [String: Cause.Evidence], in localState: LocalState) -> Cause {
        var evidence = evidence
        let hop =
            route.gateway.map { "the gateway \($0)" }
            ?? "the tunnel \(localState.interfaces[route.interface]?.name ?? "\(route.interface)")"
        var silence =
            isFirstHopAlive ? "\(hop) is alive, but nothing behind it has answered" : "nothing behind \(hop) has answered"
        if let last = beyond?.last {
            let text = Timestamp.text(wallClockNanoseconds: wallClock(of: last.time))
            evidence["silent_since"] = .text(text)
            silence += " since \(text.dropFirst(11).prefix(8)) UTC"
        }
        let networks = beyond?.silentNetworks ?? 0
        let fault: String
        if networks > 1 {
            evidence["silent_networks"] = .number(networks)
            fault = "the connection behind it is at fault"
        } else {
            // A router or a target of another network would have told the two apart.
            let isAlone = beyond?.hasRouters != true && beyond?.hasOthers != true
            fault =
                "either the connection behind it or the server is at fault"
                + (isAlone ? "; a second target in another network would tell them apart" : "")
        }
        let detail = "\(candidate.address) does not answer \(requestText); \(silence): \(fault)"
        return Cause(.network, .upstreamSilent, detail: detail, evidence: evidence)
    }

    /// What the target does not answer: `on port 443`, or `pings`.
    private var requestText: String { scheme.kind.request ?? "on port \(port)" }

    private func wallClock(of time: Int64) -> Int64 {
        ended.wallClockNanoseconds.addingSaturated(time.addingSaturated(-probeEnded))
    }

    // Datagrams to the target are refused. If those to the first hop are refused too, the filter may refuse all datagrams and pass
    // TCP. This machine itself answers every datagram to a closed port, without a limit on `lo`: only its packet filter prevents it.
    private var isDroppedHere: Bool {
        if nextHop == nil { return isRefused(host) || host?.reply?.outcome == .silent }
        if route.gateway == nil { return isRefused(hop ?? host) && hop?.isAlive != true }
        return isRefused(host) && !isRefused(hop)
    }

    private func isRefused(_ state: HopBook.State?) -> Bool {
        state?.reply?.outcome == .refused && state?.reply?.errno == SystemErrorNumber.notPermitted.rawValue
    }

    private func timeout(_ evidence: [String: Cause.Evidence]) -> Cause {
        var evidence = evidence
        var detail = "\(hostText) does not answer \(requestText)"
        if nextHop == nil, host?.isAlive == true, port != 0 {
            detail +=
                scheme.kind.usesTCP
                ? ", although it answers on others: its server accepts no more connections, or its packet filter drops them"
                : ", although it answers on others: its server is stopped or busy, or its packet filter drops the packets"
        } else if host?.isAlive == true {
            detail += ", although the host is alive"
        } else if nextHop != nil, route.gateway == nil, let confirmed = neighbor.confirmedAgo, isFirstHopAlive, beyond == nil {
            // The host's answer to the kernel's question for its link-layer address.
            evidence["witness"] = .text("\(candidate.address)")
            evidence["witness_at"] = .text(
                Timestamp.text(wallClockNanoseconds: ended.wallClockNanoseconds.addingSaturated(-confirmed)))
            detail += ", although its host answers on the link"
        } else if let witness = beyond?.witness {
            evidence["witness"] = .text(witness.text)
            evidence["witness_at"] = .text(Timestamp.text(wallClockNanoseconds: wallClock(of: witness.time)))
            if let distance = witness.distance { evidence["witness_hop"] = .number(distance) }
            detail += "; \(witness.sentence) does"
        }
        let silence = scheme.kind.silence
        return Cause(silence.layer, silence.code, detail: detail, evidence: evidence)
    }

    private func inferred(from report: HopBook.Report, _ evidence: [String: Cause.Evidence]) -> Cause {
        var evidence = evidence
        let hop = report.reporter.offender.map { "\($0)" } ?? "a router"
        evidence["inferred"] = .text("\(report.target)")
        evidence["hop"] = .text(hop)
        evidence["icmp_type"] = .number(Int(report.reporter.type))
        evidence["icmp_code"] = .number(Int(report.reporter.code))
        let subject = report.target == candidate.address ? "port \(report.port)" : "\(report.target)"
        var detail = "\(candidate.address) does not answer, and \(hop) has reported \(report.code.rawValue) for \(subject)"
        if report.code == .hostUnreachable, report.target != candidate.address { detail += "; it may send no more reports now" }
        return Cause(.network, report.code, detail: detail, evidence: evidence)
    }
}

extension ChosenRoute {
    /// Returns the first hop to an address: the gateway, the on-link host itself, or for a tunnel without a gateway the unspecified
    /// address; `nil` for a destination on this machine.
    func firstHop(to address: IPAddress, in localState: LocalState) -> Neighbor.Key? {
        guard kind != .local, !address.isLoopback else { return nil }
        guard gateway == nil, localState.interfaces[interface]?.type == .tunnel else {
            return Neighbor.Key(interface: interface, address: gateway ?? address)
        }
        return Neighbor.Key(interface: interface, address: address.family == .v4 ? IPAddress(v4: 0) : IPAddress(v6: 0, 0))
    }
}

/// Returns the failure that represents a probe: the one that got furthest, then the most definite, then the first.
func furthest(_ failures: [(FailedAttempt, Finding)]) -> (FailedAttempt, Finding)? {
    var best: (FailedAttempt, Finding)?
    var bestRank = -1
    for (failure, finding) in failures {
        let cause = finding.cause
        // This process's own limits rank lowest, because an attempt to another address may have been sent.
        let rank = cause.layer == .local ? 0 : cause.layer.depth * 2 + (cause.isSilence ? 1 : 2)
        if rank > bestRank { (best, bestRank) = ((failure, finding), rank) }
    }
    return best
}
