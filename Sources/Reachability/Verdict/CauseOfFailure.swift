internal import Pacing

/// A failed attempt. Its cause is a pure function of the evidence, by the table of causes in
/// docs/command-line.md.
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
    /// The state of the first hop; `nil` if it was not asked.
    var hop: HopBook.State?
    /// The state of the target's host, as datagrams to another port show it; `nil` if it was not asked.
    var host: HopBook.State?
    /// What is known about the way behind the first hop; `nil` if nobody was asked.
    var beyond: WitnessBook.State?
    /// Where this machine dropped the packets; `nil` if nothing shows that it did.
    var drop: FailureStreak.Drop?
    /// The packets that a tunnel carried during the probe; `nil` for other interfaces.
    var tunnel: LinkCounters?
    /// The start of the probe in nanoseconds; `nil` before the probe's end.
    var probeStarted: Int64?
    /// The start of the first probe of the present row of failures, in nanoseconds; `nil` if this is the first one.
    var streakBegan: Int64?
    /// The end of the probe.
    var ended = Moment(monotonicNanoseconds: 0, wallClockNanoseconds: 0)
    var elapsedNanoseconds: Int64
    /// The scheme of the target.
    var scheme = Endpoint.Scheme.unwritten

    /// The end of the probe in nanoseconds.
    var probeEnded: Int64 { ended.monotonicNanoseconds }

    var port: UInt16 { candidate.port }

    /// The key of the target's host, to ask it.
    var hostKey: Neighbor.Key { Neighbor.Key(interface: route.interface, address: candidate.address) }

    /// The target's host. A name that resolves to a loopback address means this machine.
    var hostText: String {
        nextHop == nil ? "this machine (\(candidate.address))" : "\(candidate.address)"
    }

    /// The next hop, whose neighbor entry shows whether packets left this machine; `nil` for a destination on this machine.
    var nextHop: Neighbor.Key? {
        guard route.kind != .local, !candidate.address.isLoopback else { return nil }
        return Neighbor.Key(interface: route.interface, address: route.gateway ?? candidate.address)
    }

    /// Returns the next hop if it may be at fault: no answer arrived, or this machine itself reports "host unreachable". The
    /// kernel reports that if the next hop does not answer, and a packet filter may report it too.
    func suspectedHop(in localState: LocalState) -> Neighbor.Key? {
        isSilence(in: localState) ? nextHop : nil
    }

    /// Returns whether no host has answered, except perhaps this machine itself with "host unreachable".
    func isSilence(in localState: LocalState) -> Bool {
        guard let result else { return true }
        if let reporter = result.reporter, reporter.origin != 1 {
            return isOwn(reporter, in: localState) && code(of: reporter) == .hostUnreachable
        }
        return switch SystemErrorNumber(rawValue: result.errno) {
        case .timedOut: true
        case .hostUnreachable, .hostDown: result.isOfNetwork
        default: false
        }
    }

    /// Returns the cause, and whether the server is at fault.
    func finding(in localState: LocalState) -> Finding {
        let cause = cause(in: localState)
        // A packet was sent, so that nothing is certain before it is confirmed, also if another host has the server's address.
        return Finding(
            cause, accusesServer: accusesServer(cause, in: localState),
            isCertain: cause.code == .duplicateAddress ? false : nil)
    }

    /// Returns the cause.
    func cause(in localState: LocalState) -> Cause {
        let evidence = evidence(in: localState)
        let address = candidate.address
        func makeCause(_ layer: Cause.Layer, _ code: Cause.Code, _ detail: String) -> Cause {
            Cause(layer, code, detail: detail, evidence: evidence)
        }
        guard let result else { return silence(evidence, in: localState) }
        if let reporter = result.reporter, let cause = reported(by: reporter, evidence, in: localState) { return cause }

        let isLocal = !result.isOfNetwork
        // The kernel has just said that it would send a packet to the address, so that no route refuses it.
        if let cause = notPermitted(result, evidence) { return cause }
        switch SystemErrorNumber(rawValue: result.errno) {
        case .connectionRefused:
            return makeCause(.tcp, .refused, "\(hostText) refuses connections to port \(port)")
        case .timedOut:
            return silence(evidence, in: localState)
        case .connectionReset, .connectionAborted, .brokenPipe:
            return makeCause(.tcp, .reset, "\(hostText) reset the connection to port \(port)")
        case .networkUnreachable where isLocal:
            return makeCause(.route, .noRoute, "there is no route to \(address)")
        case .networkUnreachable:
            return makeCause(.network, .netUnreachable, "the network of \(address) is unreachable")
        case .hostUnreachable where isLocal:
            return makeCause(.route, .routeUnreachable, "an 'unreachable' route refuses \(address)")
        case .hostUnreachable, .hostDown:
            if neighbor == .unknown || neighbor.isSilent { return neighborSilence(evidence) }
            return makeCause(.network, .hostUnreachable, "\(address) is unreachable for an unknown reason")
        // ICMPv6 of a router, whose message the error queue has not kept.
        case .accessDenied:
            return makeCause(.network, .adminProhibited, "a router prohibits packets to \(address)")
        case .notPermitted where result.call != "setsockopt":
            return makeCause(.firewall, .localReject, "this machine's packet filter rejects packets to \(address)")
        case .invalid where result.call == ProbeResult.bind: break
        case .invalid where isLocal:
            return makeCause(.route, .routeBlackhole, "a 'blackhole' route drops packets to \(address)")
        case .networkDown:
            return makeCause(.link, .interfaceDown, "the interface that leads to \(address) is switched off")
        case .noDevice:
            return makeCause(.link, .noInterface, "the interface that leads to \(address) is gone")
        case .tooManyFiles, .tooManyFilesInSystem, .outOfMemory, .noBufferSpace:
            return makeCause(.local, .fileLimit, "no descriptor or memory left for a probe of \(address)")
        case .addressNotAvailable where result.call == ProbeResult.bind:
            guard let selector = candidate.selector, let source = selector.source else { break }
            let cause = unusableSource(source, .missing, address, selector)
            return Cause(
                cause.layer, cause.code, detail: cause.detail, evidence: cause.evidence.merging(evidence) { own, _ in own })
        case .addressNotAvailable where route.source != nil:
            return makeCause(.local, .portExhausted, "all local ports towards \(address) are in use")
        case .messageTooLong:
            return makeCause(.network, .packetTooBig, "packets are too big for the path to \(address)")
        default: break
        }
        let name = SystemErrorNumber.name(of: result.errno)
        return makeCause(.local, .sourceUnavailable, "no socket can be used towards \(address): \(name)")
    }

    /// Returns the cause of a call that a sandbox refuses to this process; `nil` for others.
    private func notPermitted(_ result: ProbeResult, _ evidence: [String: Cause.Evidence]) -> Cause? {
        let number = SystemErrorNumber(rawValue: result.errno)
        if result.call == "socket", number == .accessDenied || number == .notPermitted, let permission = scheme.kind.permission {
            return Cause(.local, .notPermitted, detail: permission, evidence: evidence)
        }
        if result.call == ProbeResult.markOption, let mark = candidate.selector?.mark,
            number == .accessDenied || number == .notPermitted
        {
            let detail =
                "this process may not send packets with the mark \(RouteSelector.text(ofMark: mark)): give it CAP_NET_ADMIN, or CAP_NET_RAW from Linux 5.17 on"
            return Cause(.local, .notPermitted, detail: detail, evidence: evidence)
        }
        let what: String
        switch (result.call, SystemErrorNumber(rawValue: result.errno)) {
        case ("socket", .accessDenied), ("socket", .notPermitted), ("socket", .familyNotSupported):
            what = "open IPv\(candidate.address.family.rawValue) sockets"
        case (ProbeResult.bind, .accessDenied), (ProbeResult.bind, .notPermitted):
            what = "bind to its source address"
        case ("connect", .accessDenied): what = "connect to \(candidate.address) on port \(port)"
        default: return nil
        }
        let name = SystemErrorNumber.name(of: result.errno)
        let detail = "a sandbox does not let this process \(what) (\(name)): seccomp, Landlock or another security module"
        return Cause(.local, .notPermitted, detail: detail, evidence: evidence)
    }

    func neighborSilence(_ evidence: [String: Cause.Evidence]) -> Cause {
        if let gateway = route.gateway {
            return Cause(
                .neighbor, .gatewaySilent, detail: "the gateway \(gateway) does not answer on its link", evidence: evidence)
        }
        // The kernel asks for a neighbor again only after half a minute.
        let isAsked = neighbor.isSilent || neighbor == .absent || neighbor == .unknown
        let detail =
            "\(candidate.address) does not answer\(isAsked ? " on its link" : ", and nothing shows that its host is alive")"
        return Cause(.neighbor, .hostSilent, detail: detail, evidence: evidence)
    }

    private func evidence(in localState: LocalState) -> [String: Cause.Evidence] {
        var evidence: [String: Cause.Evidence] = [
            "address": .text("\(candidate.address)"), "elapsed_ms": .number(Int(elapsedNanoseconds / 1_000_000)),
        ]
        if let selector = candidate.selector { evidence.merge(selector.evidence) { own, _ in own } }
        if port != 0 { evidence["port"] = .number(Int(port)) }
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
        if let state = neighbor.stateName { evidence["neighbor_state"] = .text(state) }
        return evidence
    }
}
