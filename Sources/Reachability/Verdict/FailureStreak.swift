/// The definite causes of each address in the present row of failures.
///
/// Routers limit their ICMP messages (RFC 1812 section 4.3.2.8), and the kernel asks a silent neighbor only from time to time.
/// Therefore most probes of a row time out, although an earlier one received the reason. A timeout adds no information: the
/// earlier cause for the same address and route remains valid until it is refuted.
struct FailureStreak: Hashable, Sendable {
    private struct Earlier: Hashable, Sendable {
        let route: ChosenRoute
        let finding: Finding

        /// Returns the finding as that of an earlier probe; `nil` if the route is another one now.
        func finding(over present: ChosenRoute) -> Finding? {
            route == present ? Finding(finding.cause.markedAsEarlier, accusesServer: finding.accusesServer) : nil
        }
    }

    /// The place where this machine dropped the packets of a probe.
    struct Drop: Hashable, Sendable {
        let place: DropCount.Place
        /// Whether two counts in a row agree.
        let isConfirmed: Bool
    }

    /// The time in nanoseconds after which a first hop that answers no queries is silent, rather than limited in its messages.
    ///
    /// Linux sends a client that sends a packet every second no message at all, for as long as that lasts. Within this time, the
    /// kernel asks for the neighbor again, and its entry shows whether the hop is alive: an entry is REACHABLE for at most 45 s, and
    /// the questions take 8 s more (arp(7), base_reachable_time_ms, delay_first_probe_time).
    private static let patience: Int64 = 60_000_000_000

    private var earlier: [IPAddress: Earlier] = [:]
    /// The findings that follow from a router's reports about other targets.
    private var inferred: [IPAddress: Earlier] = [:]
    /// The findings that accuse the server by a witness.
    private var witnessed: [IPAddress: Earlier] = [:]
    /// The places where this machine dropped packets by the last count, and whether the count before it agreed.
    private var drops: [IPAddress: Drop] = [:]
    /// The start of the first probe that has failed, in nanoseconds; `nil` if none has.
    private(set) var began: Int64?

    /// Clears the causes at the end of a streak. A streak ends when the target is reached, when it has no route, or when the
    /// machine was suspended and may be on another network.
    mutating func reset() { (earlier, inferred, witnessed, drops, began) = ([:], [:], [:], [:], nil) }

    /// Notes that a probe that began at this time has failed.
    mutating func begin(at time: Int64) { began = began ?? time }

    /// Removes the causes that were found over other routes than those that `route` returns.
    mutating func keep(to route: (IPAddress) -> ChosenRoute?) {
        earlier = earlier.filter { route($0.key) == $0.value.route }
        if !inferred.isEmpty { inferred = inferred.filter { route($0.key) == $0.value.route } }
        if !witnessed.isEmpty { witnessed = witnessed.filter { route($0.key) == $0.value.route } }
    }

    /// Returns where this machine dropped the packets of a failed attempt, by its count and the one before; `nil` if nothing shows that it did.
    /// A probe without a count keeps what is known.
    mutating func drop(of failure: FailedAttempt) -> Drop? {
        let address = failure.candidate.address
        guard let count = failure.host?.reply?.drops, count.port == failure.port else { return drops[address] }
        drops[address] = count.place.map { Drop(place: $0, isConfirmed: drops[address]?.place == $0) }
        return drops[address]
    }

    /// Returns the finding of a failure: its own, or the earlier one if the probe timed out. `isDown` is whether the server is accused now.
    mutating func finding(of failure: FailedAttempt, isDown: Bool, in localState: LocalState) -> Finding {
        var failure = failure
        failure.drop = drop(of: failure)
        var finding = failure.finding(in: localState)
        // The next count confirms or refutes it.
        if failure.drop?.isConfirmed == false { finding.isProvisional = true }
        let address = failure.candidate.address
        switch (finding.cause.layer, finding.cause.code) {
        case _ where finding.cause.isSilence:
            inferred[address] = nil
            if finding.accusesServer {
                // The witness may have answered after the last packet to the target: at the end of an outage, the first targets to answer
                // would accuse all others. The next probe's packets are sent after the answer.
                if failure.nextHop != nil, witnessed[address]?.route != failure.route { finding.isProvisional = true }
                witnessed[address] = Earlier(route: failure.route, finding: finding)
            }
            guard let former = earlierFinding(failure) else { return finding }
            // The host itself answers datagrams.
            if failure.host?.isAlive == true, former.cause.code == .hostUnreachable {
                earlier[address] = nil
                return finding
            }
            if former.cause.layer != .network, failure.neighbor.isReachable || failure.isFirstHopAlive {
                earlier[address] = nil
                return finding
            }
            return former
        case (.network, _) where finding.cause.evidence["inferred"] != nil:
            inferred[address] = Earlier(route: failure.route, finding: finding)
        case (.network, .upstreamSilent):
            if let former = earlierFinding(failure, ofLayer: .network) { return former }
            if !failure.isFirstHopAlive, let former = earlierFinding(failure) { return former }
            // A router that is asked all the time sends no reports at all, so that their end says nothing while everything is silent.
            if let former = inferred[address]?.finding(over: failure.route) { return former }
            earlier[address] = nil
            // Routers limit their answers: the server stays accused until several searches in a row have found nothing.
            let empty = failure.beyond?.emptySearches ?? 0
            if isDown, empty < WitnessBook.searchesWithoutAnswer, let former = witnessed[address]?.finding(over: failure.route) {
                return former
            }
            witnessed[address] = nil
        case (.neighbor, _) where !failure.neighbor.isSilent:
            // A first hop that does not answer queries may have used up its rate of ICMP messages (RFC 1812 section 4.3.2.8).
            let silence = failure.hop?.silentSince.map { failure.probeEnded - $0 } ?? 0
            if silence < Self.patience, let earlier = earlierFinding(failure, ofLayer: .network) { return earlier }
            self.earlier[address] = Earlier(route: failure.route, finding: finding)
        case (.neighbor, _), (.network, _), (.firewall, _):
            // The latest cause counts: a gateway that is silent now can no longer report, and one that reports is not silent.
            earlier[address] = Earlier(route: failure.route, finding: finding)
        case (.tcp, _):
            // The host has answered.
            (earlier[address], inferred[address]) = (nil, nil)
        default: break
        }
        return finding
    }

    private func earlierFinding(_ failure: FailedAttempt, ofLayer layer: Cause.Layer? = nil) -> Finding? {
        let former = earlier[failure.candidate.address]?.finding(over: failure.route)
        return layer == nil || former?.cause.layer == layer ? former : nil
    }
}

extension Cause {
    /// The cause, marked as the result of an earlier probe.
    fileprivate var markedAsEarlier: Cause {
        Cause(layer, code, detail: detail, evidence: evidence.merging(["earlier": .flag(true)]) { _, new in new })
    }
}
