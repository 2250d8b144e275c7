/// The results of a target's addresses beside the one that its probes use, each from attempts of its own.
///
/// A probe ends with the first address that answers, so it says nothing of the others. After each successful probe, one other address
/// is tried, in turn, or all of them (``ProbedAddresses/each``). An address that fails `failAfter` times in a row degrades the target.
struct AddressSurvey: Hashable, Sendable {
    private struct Record: Hashable, Sendable {
        var failures = 0
        /// The cause of the last failure.
        var cause: Cause?
    }

    /// The attempts to one address that run now.
    struct Running: Hashable, Sendable {
        let run: ProbeRun
        var race: AttemptRace
        /// The neighbor queries after a failure; `nil` while the attempts run.
        var examination: Examination?
        /// The states of the first hop and of the address's host; `nil` while the attempts run.
        var hosts: HostSurvey?

        /// The failures with all that is known about them; `nil` while queries are not answered.
        func examined(_ localState: LocalState) -> [FailedAttempt]? {
            guard let examination, examination.pending.isEmpty, hosts?.isComplete != false else { return nil }
            return explained(localState)
        }

        /// The failures with what is known about them now.
        func explained(_ localState: LocalState) -> [FailedAttempt] {
            let failures = examination?.failures ?? []
            return hosts?.explain(failures, localState) ?? failures
        }
    }

    private var boxed: Boxed<Running>?
    private var records: [IPAddress: Record] = [:]
    /// The addresses that have answered last.
    private var answering: Set<IPAddress> = []
    /// The addresses that redirect to another connection, which the survey does not follow: a probe has to.
    private var undecided: Set<IPAddress> = []
    private var last: IPAddress?
    /// The addresses that are still to be tried after the last successful probe, if all of them are.
    private var remaining: [IPAddress] = []

    /// The attempts that run; `nil` between them.
    var running: Running? {
        get { boxed?.value }
        set { boxed = newValue.map { Boxed($0) } }
    }

    /// Whether addresses are still to be tried after the last successful probe.
    var isUnderWay: Bool { !remaining.isEmpty }

    /// Begins to try all these addresses, one after another, unless earlier ones are still to be tried.
    mutating func tryEach(of addresses: [IPAddress]) { if remaining.isEmpty { remaining = addresses } }

    /// Returns the address to try next: one whose failure is not confirmed, otherwise one that is still to be tried (``tryEach(of:)``).
    mutating func nextOfEach(of addresses: [IPAddress], failAfter: Int) -> IPAddress? {
        forgetAll(but: addresses)
        remaining.removeAll { !addresses.contains($0) }
        if let unconfirmed = unconfirmed(of: addresses, failAfter) { return unconfirmed }
        return remaining.isEmpty ? nil : remaining.removeFirst()
    }

    /// Returns the address to try next: one whose failure is not confirmed, otherwise the one after the last.
    mutating func next(of addresses: [IPAddress], failAfter: Int) -> IPAddress? {
        forgetAll(but: addresses)
        let after = last.flatMap { addresses.firstIndex(of: $0) }.map { ($0 + 1) % addresses.count } ?? 0
        guard let chosen = unconfirmed(of: addresses, failAfter) ?? (addresses.indices.contains(after) ? addresses[after] : nil)
        else { return nil }
        last = chosen
        return chosen
    }

    private mutating func forgetAll(but addresses: [IPAddress]) {
        records = records.filter { addresses.contains($0.key) }
        undecided.formIntersection(addresses)
        answering.formIntersection(addresses)
    }

    private func unconfirmed(of addresses: [IPAddress], _ failAfter: Int) -> IPAddress? {
        addresses.first { (1..<max(failAfter, 2)).contains(records[$0]?.failures ?? 0) && failAfter > 1 }
    }

    /// Notes that an address answers.
    mutating func succeed(_ address: IPAddress) {
        records[address] = nil
        undecided.remove(address)
        answering.insert(address)
    }

    /// Notes that an address redirects to another connection.
    mutating func redirect(_ address: IPAddress) { undecided.insert(address) }

    /// Counts a failure. Returns whether another attempt must confirm it.
    mutating func fail(_ address: IPAddress, _ cause: Cause, failAfter: Int) -> Bool {
        let failures = min((records[address]?.failures ?? 0) + 1, failAfter)
        records[address] = Record(failures: failures, cause: cause)
        undecided.remove(address)
        if failures >= failAfter { answering.remove(address) }
        return failures < failAfter
    }

    /// Notes the failure of an address in a probe that no address has answered.
    mutating func note(_ address: IPAddress, _ cause: Cause) { records[address] = Record(failures: .max, cause: cause) }

    /// Returns the status of an address that this machine has a route to, with the cause of its failure.
    func status(of address: IPAddress, failAfter: Int) -> (StatusName, Cause?) {
        if let record = records[address], record.failures >= failAfter { return (.down, record.cause) }
        return (answering.contains(address) || undecided.contains(address) ? .up : .unknown, nil)
    }

    /// Returns whether the last attempt to an address has failed.
    func isFailing(_ address: IPAddress) -> Bool { records[address] != nil }

    /// Returns whether only a probe shows if an address answers, because it redirects to another connection.
    func isUndecided(_ address: IPAddress) -> Bool { undecided.contains(address) }

    /// Forgets all results.
    mutating func reset() { (records, undecided, answering, remaining) = ([:], [], [], []) }

    /// Returns the cause of ``StatusName/degraded``: the cause of an address that fails while others answer; `nil` if none does.
    /// `addresses` are those with an open route: a family without a route on this machine does not degrade a target.
    /// `answering` is the one that serves the probes.
    func cause(_ addresses: [IPAddress], answering served: IPAddress?, failAfter: Int) -> Cause? {
        let failing = addresses.filter { (records[$0]?.failures ?? 0) >= failAfter }
        guard let first = failing.first, let cause = records[first]?.cause else { return nil }
        let areAllTried = addresses.allSatisfy {
            failing.contains($0) || $0 == served || answering.contains($0) || undecided.contains($0)
        }
        return Self.degradation(by: cause, failing, of: addresses, areAllTried: areAllTried)
    }

    /// Returns whether addresses are those of one host, so that one that answers suffices.
    ///
    /// The loopback addresses are this machine: a name such as localhost has one of each family, and many services listen on one alone.
    static func areOneHost(_ addresses: [IPAddress]) -> Bool { addresses.allSatisfy(\.isLoopback) }

    /// Returns the cause for which a target is degraded if these addresses fail; `nil` if none or all of them do, or if all are one host.
    /// `cause` is that of the first one. `areAllTried`: whether the others are known to work.
    static func degradation(
        by cause: Cause, _ failing: [IPAddress], of addresses: [IPAddress], areAllTried: Bool = true
    ) -> Cause? {
        guard let first = failing.first, failing.count < addresses.count, !areOneHost(addresses) else { return nil }
        var evidence = cause.evidence
        evidence["addresses"] = .number(addresses.count)
        evidence["failing_addresses"] = .number(failing.count)
        let family = first.family
        if evidence["address"] == nil { evidence["address"] = .text("\(first)") }
        let sentence = cause.names(first) ? cause.detail : "at \(first), \(cause.detail)"
        let isFamilyBroken = addresses.allSatisfy { $0.family != family || failing.contains($0) }
        let detail: String
        if isFamilyBroken {
            evidence["family"] = .number(family == .v4 ? 4 : 6)
            detail = "IPv\(family == .v4 ? 4 : 6) is broken and IPv\(family == .v4 ? 6 : 4) works: \(sentence)"
        } else {
            detail = "\(areAllTried ? "" : "at least ")\(failing.count) of \(addresses.count) addresses fail: \(sentence)"
        }
        return Cause(cause.layer, cause.code, detail: detail, evidence: evidence)
    }
}

extension Cause {
    /// Returns whether the sentence says which address fails. Those of the lower layers name it, or what lies before it.
    fileprivate func names(_ address: IPAddress) -> Bool {
        guard layer.isAboveConnection || evidence["redirects"] != nil else { return true }
        let words = detail.split { " ,;()".contains($0) }
        return words.contains { $0 == "\(address)" || $0 == "\(address):" }
    }
}

/// Sorts addresses for connection attempts (RFC 8305 section 4): the families alternate, starting with the family that the
/// resolver put first. `last`, the address that answered before, comes first within its family. Otherwise a server with many
/// addresses would appear to change with each probe.
func inAttemptOrder(_ addresses: [IPAddress], last: IPAddress?) -> [IPAddress] {
    guard let first = addresses.first else { return [] }
    let remembered = addresses.filter { $0 == last } + addresses.filter { $0 != last }
    let family = AddressSurvey.areOneHost(addresses) ? remembered[0].family : first.family
    let preferred = remembered.filter { $0.family == family }
    let others = remembered.filter { $0.family != family }
    var ordered: [IPAddress] = []
    for index in 0..<max(preferred.count, others.count) {
        if index < preferred.count { ordered.append(preferred[index]) }
        if index < others.count { ordered.append(others[index]) }
    }
    return ordered
}
