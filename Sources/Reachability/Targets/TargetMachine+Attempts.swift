internal import Pacing

/// The connection attempts of a probe.
extension TargetMachine {
    mutating func startAttempt(_ run: ProbeRun, _ race: AttemptRace, _ turn: inout Turn) {
        var (run, race) = (run, race)
        if let entry = race.takeNext(at: turn.time, allowsRepetition: turn.allowances.repetition && mayRepeat) {
            let isFirst = run.connecting == nil
            run.connecting = run.connecting ?? turn.now
            var attempt = attempt(entry, until: run.deadline, turn)
            attempt.hasHandshakePlace = hasHandshakePlace && !race.hasConnection
            race.running.append(AttemptRace.Running(id: attempt.id, entry: entry, started: turn.now))
            turn.effects.append(.connect(attempt))
            phase = .connecting(run, race)
            if isFirst, isTunnel(entry.route, turn) {
                // The counters at the start show at the end whether the tunnel has carried anything in between.
                turn.effects.append(.readCounters(entry.route.interface))
            }
        } else {
            phase = .connecting(run, race)
        }
    }

    /// Whether silent attempts are repeated. After the verdict a lost packet only delays the recovery, while each packet to a host that
    /// is off uses up a router's messages, which other targets need.
    private var mayRepeat: Bool { settings.isScheduledOnly || !isHostSilent }

    /// Whether the verdict is that the target's host is silent.
    private var isHostSilent: Bool {
        verdict.isFailing
            && [.timeout, .hostUnreachable, .upstreamSilent].contains(verdict.cause?.code)
    }

    /// Returns the attempt to an address, with a new number.
    mutating func attempt(_ entry: AttemptRace.Entry, until deadline: Int64, _ turn: Turn) -> ProbeAttempt {
        let address = entry.candidate.address
        // A link-local IPv6 address needs an interface. If the user named none, it is the interface of the route.
        let isScoped = address.family == .v6 && address.isLinkLocal
        return ProbeAttempt(
            id: takeNumber(), address: address,
            zone: entry.candidate.zone != 0 ? entry.candidate.zone : isScoped ? entry.route.interface : 0,
            port: peer.port, interface: boundName(in: turn.localState),
            latestStart: turn.time.addingSaturated((deadline - turn.time) / 2),
            plan: LevelPlan(endpoint, settings, after: redirection?.value), deadline: deadline,
            hasSmallSegments: segments == .suspected)
    }

    /// Returns the primary name of the interface to bind to: SO_BINDTODEVICE accepts no alternative name of more than 15 bytes.
    func boundName(in localState: LocalState) -> String? {
        settings.interface.map { name in localState.interfaces.values.first { $0.hasName(name) }?.name ?? name }
    }

    func isTunnel(_ route: ChosenRoute, _ turn: Turn) -> Bool {
        turn.localState.interfaces[route.interface]?.type == .tunnel
    }

    mutating func attemptEnded(_ result: ProbeResult, _ turn: inout Turn) {
        guard case .connecting(let run, var race) = phase,
            let index = race.running.firstIndex(where: { $0.id == result.id })
        else { return }
        let ended = race.running.remove(at: index)
        if result.errno != 0 || result.levels?.isAtDeadline == true {
            phase = .connecting(run, race)
            if repeatOverslept(run, &turn) { return }
        }
        if result.errno == 0 {
            guard endpoint.scheme != .tcp else { return succeed(run, race, ended, result, &turn) }
            guard let levels = result.levels else { return connected(run, race, ended, &turn) }
            return levelsEnded(levels, run, race, ended, result, &turn)
        }
        // Nothing was sent, so the result is no evidence.
        if result.call != ProbeResult.queue {
            let failure = failure(of: ended, result, turn)
            race.failures.append(failure)
            noteAnswer(failure, &turn)
            // The other attempts to this address would fail alike.
            for other in race.running where other.entry.candidate == ended.entry.candidate {
                turn.effects.append(.cancel(attempt: other.id))
            }
            race.running.removeAll { $0.entry.candidate == ended.entry.candidate }
        }
        phase = .connecting(run, race)
        if !race.waiting.isEmpty {
            startAttempt(run, race, &turn)
        } else if race.running.isEmpty {
            experience = .answered
            allFailed(run, race.failures, &turn)
        }
    }

    /// Notes what an answer from beyond this machine proves for other targets: the first hop is alive, and perhaps a router has
    /// reported why it does not forward.
    func noteAnswer(_ failure: FailedAttempt, _ turn: inout Turn) {
        guard let answer = failure.answer(in: turn.localState) else { return }
        switch answer {
        case .target: noteTargetAnswer(failure.candidate.address, failure.route, &turn)
        case .router:
            guard let hop = failure.firstHop(in: turn.localState) else { return }
            if failure.route.gateway != nil { turn.effects.append(.noteAlive(hop, by: .router)) }
            if let report = failure.report(in: turn.localState, at: turn.time) {
                turn.effects.append(.note(report, behind: hop))
            }
        }
    }

    /// Notes that the target itself has answered, over a gateway or on the link.
    func noteTargetAnswer(_ address: IPAddress, _ route: ChosenRoute, _ turn: inout Turn) {
        guard let hop = route.firstHop(to: address, in: turn.localState) else { return }
        turn.effects.append(.noteAlive(hop, by: .target(address, port: peer.port)))
    }

    func failure(of attempt: AttemptRace.Running, _ result: ProbeResult?, _ turn: Turn) -> FailedAttempt {
        FailedAttempt(
            candidate: attempt.entry.candidate, route: attempt.entry.route, result: result,
            elapsedNanoseconds: turn.now.elapsed(since: attempt.started).saturatingNanoseconds)
    }

    /// The time after which a router or this machine reports that the next hop does not answer, in nanoseconds.
    static let resolutionFailure: Int64 = 3_090_000_000
    /// The maximum time for which a silent probe is extended, in nanoseconds.
    static let extensionLimit: Int64 = 100_000_000

    /// The time after a probe's deadline from which this process has overslept it, in nanoseconds: it was stopped, or had no processor.
    static let oversleep: Int64 = 500_000_000

    /// Repeats a probe whose deadline this process has overslept: the answers may have come in time. A process that does so again and again must use
    /// what it has.
    ///
    /// - Returns: whether another probe runs.
    mutating func repeatOverslept(_ run: ProbeRun, _ turn: inout Turn) -> Bool {
        guard turn.time >= run.deadline.addingSaturated(Self.oversleep), restarts < Self.restartLimit else { return false }
        restarts += 1
        startProbe(&turn)
        return true
    }

    /// Ends the attempts at the probe's deadline. Attempts without an answer count as silent. A probe is extended by up to 100 ms if
    /// reports of a silent next hop are about to arrive. One that confirms the first of a streak is not, so that the verdict does not
    /// wait.
    mutating func deadlineReached(_ run: ProbeRun, _ race: AttemptRace, _ turn: inout Turn) {
        guard run.failedLevels.isEmpty else {
            cancelAttempts(&turn)
            return allFailed(run, race.failures, &turn)
        }
        let report = (run.connecting ?? run.started).monotonicNanoseconds.addingSaturated(Self.resolutionFailure)
        if streak.began == nil || isHostSilent, report > run.deadline, report - run.deadline <= Self.extensionLimit {
            var (run, race) = (run, race)
            run.deadline = report
            race.startNoMore()
            if run.hosts == nil { return askHosts(run, race, &turn) }
            phase = .connecting(run, race)
            return
        }
        cancelAttempts(&turn)
        experience = .silent
        isConnectedInSilence = race.hasConnection || run.connected != nil
        examine(run, race.failures + race.silentAttempts.map { failure(of: $0, nil, turn) }, &turn)
    }

    // MARK: Ends

    mutating func succeed(
        _ run: ProbeRun, _ race: AttemptRace, _ attempt: AttemptRace.Running, _ result: ProbeResult, _ turn: inout Turn
    ) {
        for other in race.running { turn.effects.append(.cancel(attempt: other.id)) }
        var run = run
        run.connecting = attempt.started
        let route = attempt.entry.route
        let address = attempt.entry.candidate.address
        // After a retransmission the last measured value holds. Without one, the time of the connection is its upper limit.
        let measured: Duration? = result.roundTripNanoseconds > 0 ? .nanoseconds(result.roundTripNanoseconds) : nil
        var place = Place(
            address: address, interface: route.interface,
            roundTrip: measured ?? (self.place.address == address ? self.place.roundTrip : nil)
                ?? turn.now.elapsed(since: attempt.started))
        let retransmissions = result.retransmissions ?? 0
        noteTargetAnswer(address, route, &turn)
        lastAnswered = place.address
        experience = .answered
        addressFailed = .min
        streak.reset()
        let report = report(
            run, nil, Place(address: address, interface: route.interface, roundTrip: measured),
            lost: retransmissions + lostPackets(race, beside: attempt, measured, turn), &turn)
        let responseTime = report.responseTime
        (place.responseNanoseconds, place.phases) = (responseTime?.saturatingNanoseconds, PhaseTimes(report))
        // What was lost before a recovery belongs to the outage.
        let lost = verdict.isFailing ? 0 : retransmissions + lostAttempts(race, before: attempt)
        recordQuality(place.roundTrip, responseTime, lost: lost)
        (lossAtSuccess, failuresSinceSuccess) = (quality.knownLoss, 0)
        noteOtherAddresses(run, race, attempt, turn)
        _ = flaps.record(true)
        verdict.succeed(start: schedule.countedStart)
        _ = judgeQuality(after: report)
        if verdict.state == .up || verdict.state == .degraded { self.place = place }
        finishProbe(.other, &turn)
        publish(&turn)
        surveyNextAddress(&turn)
    }

    /// Returns the number of earlier attempts to the same address that are still unanswered.
    private func lostAttempts(_ race: AttemptRace, before attempt: AttemptRace.Running) -> Int {
        race.running.count { $0.entry.candidate == attempt.entry.candidate && $0.started < attempt.started }
    }

    /// Returns the number of packets of the other attempts to the same address that are lost: SYN segments that are still unanswered,
    /// although more than two round trips have passed. The kernel sends the second one after a second.
    private func lostPackets(
        _ race: AttemptRace, beside attempt: AttemptRace.Running, _ roundTrip: Duration?, _ turn: Turn
    ) -> Int {
        let patience = max((roundTrip ?? .zero) * 2, .milliseconds(50))
        return race.running.filter { $0.entry.candidate == attempt.entry.candidate }.reduce(0) { count, other in
            let elapsed = turn.now.elapsed(since: other.started)
            return count + (elapsed > patience ? 1 : 0) + (elapsed > .seconds(1) + patience ? 1 : 0)
        }
    }

    /// Notes the results of the addresses that were tried in the same probe.
    private mutating func noteOtherAddresses(
        _ run: ProbeRun, _ race: AttemptRace, _ attempt: AttemptRace.Running, _ turn: Turn
    ) {
        guard openRoutes.count > 1 else { return }
        var survey = survey ?? AddressSurvey()
        survey.succeed(attempt.entry.candidate.address)
        let failures =
            race.failures.map { ($0.candidate.address, $0.cause(in: turn.localState)) }
            + run.failedLevels.map { ($0.entry.candidate.address, $0.finding.cause) }
        for (address, cause) in failures where cause.layer != .local {
            _ = survey.fail(address, addressFailure(cause, turn), failAfter: settings.failAfter)
        }
        self.survey = survey
    }

    mutating func conclude(_ run: ProbeRun, _ failures: [FailedAttempt], _ turn: inout Turn) {
        if run.silentLookup != nil { return endTrace(run, failures, &turn) }
        streak.begin(at: run.started.monotonicNanoseconds)
        let failures = failures.map { completed($0, run, turn) }
        let isDown = verdict.state == .down
        let findings = failures.map { ($0, streak.finding(of: $0, isDown: isDown, in: turn.localState)) }
        guard let (failure, finding) = furthest(findings) else { return finishProbe(.other, &turn) }
        let place = Place(address: failure.candidate.address, interface: failure.route.interface)
        fail(run, lossy(finding, at: failure.candidate.address), place, experience == .silent ? .silence : .refusal, &turn)
    }

    mutating func fail(
        _ run: ProbeRun, _ finding: Finding, _ place: Place, _ ending: ProbeSchedule.Ending, _ turn: inout Turn
    ) {
        var finding = finding
        finding.isProvisional = !settings.isScheduledOnly && (finding.isProvisional || isSingleReport(finding.cause))
        // The failure of a redirect's destination names the proxy itself, if it uses one.
        if let proxy, finding.cause.layer.depth < Cause.Layer.tls.depth, finding.cause.evidence["redirects"] == nil {
            finding = finding.with(finding.cause.before(proxy), accusesServer: false)
        }
        if run.silentLookup == nil, finding.cause.layer != .dns, finding.cause.layer != .local {
            finding = finding.with(addressFailure(finding.cause, turn), accusesServer: finding.accusesServer)
        }
        report(run, finding.cause, place, isProvisional: finding.isProvisional, &turn)
        failuresSinceSuccess = max(failuresSinceSuccess, failuresSinceSuccess &+ 1)
        // An interruption is one lost result, however many packets fell into it: loss means that packets are lost again and again.
        // Those of an outage are not the path's loss.
        if ending == .silence, run.levels == nil, !verdict.isFailing { recordQuality(nil, lost: 1) }
        _ = flaps.record(false)
        if verdict.fail(finding, start: schedule.countedStart, at: turn.time) {
            self.place = place
            // The results of an outage do not describe the quality of the working connection.
            quality.reset()
            abandonSurvey(&turn)
        }
        finishProbe(ending, mustConfirm: finding.isProvisional, &turn)
        publish(&turn)
    }

    /// Whether the cause is the first message of a router, and one failure suffices for a verdict.
    private func isSingleReport(_ cause: Cause) -> Bool {
        verdict.failAfter == 1 && failuresSinceSuccess == 0 && cause.layer == .network && cause.evidence["icmp_type"] != nil
            && cause.evidence["inferred"] == nil
    }

    /// Notes that an address of the name has failed, so that the name is asked for again. Returns the cause with the age of the name server's
    /// answer as evidence.
    mutating func addressFailure(_ cause: Cause, _ turn: Turn) -> Cause {
        addressFailed = turn.time
        // The failure of a redirect's destination has the age of that host's answer.
        guard let answered, cause.evidence["redirects"] == nil, cause.evidence[Self.answerAge] == nil else { return cause }
        let seconds = max(0, turn.time - answered) / 1_000_000_000
        let evidence = cause.evidence.merging([Self.answerAge: .number(Int(seconds))]) { old, _ in old }
        return Cause(cause.layer, cause.code, detail: cause.detail, evidence: evidence)
    }

    /// The proxy to which connections are made; `nil` if they are made to the server.
    var proxy: ProbeProxy? { peer == endpoint ? nil : settings.http.proxy }

    /// Returns a cause before the connection, which names the proxy if there is one.
    func onTheWay(_ cause: Cause) -> Cause { proxy.map { cause.before($0) } ?? cause }

    private static let answerAge = "answer_age_s"

    /// Ends a probe, and schedules the next one.
    mutating func finishProbe(_ ending: ProbeSchedule.Ending, mustConfirm: Bool = false, _ turn: inout Turn) {
        phase = .waiting
        pathNewsDue = .max
        if !settings.isScheduledOnly, isOutdated || mustConfirm || verdict.needsConfirmation {
            schedule.confirm(isOutdated ? .other : ending, timeout: settings.timeout, at: turn.time)
        } else {
            schedule.continueByGrid(at: turn.time, factor: intervalFactor)
            if !settings.isScheduledOnly, let due = verdict.countDue { schedule.count(from: due, at: turn.time) }
        }
        isOutdated = false
        restarts = 0
    }
}
