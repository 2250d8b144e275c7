internal import Pacing

/// The attempts to the addresses that the target's probes do not use.
extension TargetMachine {
    /// The addresses with an open route, in the order of resolution.
    private var openAddresses: [IPAddress] { addresses.filter { openRoutes[$0] != nil } }

    /// Tries another address of the target after a successful probe.
    mutating func surveyNextAddress(_ turn: inout Turn) {
        guard turn.allowances.survey, !settings.isScheduledOnly, openRoutes.count > 1, survey?.running == nil,
            !AddressSurvey.areOneHost(openAddresses)
        else { return }
        let others = openAddresses.filter { $0 != lastAnswered }
        var survey = survey ?? AddressSurvey()
        defer { self.survey = survey }
        guard let address = survey.next(of: others, failAfter: settings.failAfter),
            case .success(let candidates) = candidates(in: turn.localState),
            let candidate = candidates.first(where: { $0.address == address }), let route = openRoute(of: candidate, turn)
        else { return }
        let run = ProbeRun(
            started: turn.now, deadline: turn.time.addingSaturated(settings.timeout.saturatingNanoseconds))
        let race = AttemptRace([AttemptRace.Entry(candidate: candidate, route: route)], deadline: run.deadline)
        survey.running = AddressSurvey.Running(run: run, race: race)
        advance(&survey, &turn)
    }

    /// Returns the route by the kernel's last answer; `nil` if the kernel would not send a packet now.
    private func openRoute(of candidate: Candidate, _ turn: Turn) -> ChosenRoute? {
        known[candidate.query].flatMap { candidateRoute(of: candidate, by: $0, in: turn.localState) }?.route
    }

    private mutating func advance(_ survey: inout AddressSurvey, _ turn: inout Turn) {
        guard var running = survey.running, let entry = running.race.takeNext(at: turn.time) else { return }
        // The route may have been removed since the first attempt.
        guard openRoute(of: entry.candidate, turn) != nil else {
            cancelSurveyAttempts(&turn)
            survey.running = nil
            return
        }
        let attempt = attempt(entry, until: running.run.deadline, turn)
        running.race.running.append(AttemptRace.Running(id: attempt.id, entry: entry, started: turn.now))
        survey.running = running
        turn.effects.append(.connect(attempt))
    }

    /// The time of the survey's next step; `.max` if none runs.
    var surveyDue: Int64 {
        guard let running = survey?.running else { return .max }
        if let examination = running.examination { return examination.until }
        return min(running.run.deadline, running.race.nextStart ?? .max)
    }

    mutating func tickSurvey(_ turn: inout Turn) {
        guard var survey, let running = survey.running, turn.time >= surveyDue else { return }
        if running.examination != nil { return endSurvey(running, running.explained(turn.localState), &turn) }
        guard turn.time >= running.run.deadline else {
            advance(&survey, &turn)
            self.survey = survey
            return
        }
        cancelSurveyAttempts(&turn)
        examineSurvey(running, running.race.silentAttempts.map { failure(of: $0, nil, turn) }, &turn)
    }

    /// Handles the result of an attempt of the survey. Returns whether the attempt belongs to it.
    mutating func surveyAttemptEnded(_ result: ProbeResult, _ turn: inout Turn) -> Bool {
        guard var running = survey?.running, running.examination == nil,
            let index = running.race.running.firstIndex(where: { $0.id == result.id })
        else { return false }
        let ended = running.race.running.remove(at: index)
        survey?.running = running
        if result.errno == 0, endpoint.scheme != .tcp {
            guard let levels = result.levels else {
                cancelSurveyAttempts(&turn)
                // The levels follow on this connection.
                running.race.running = [ended]
                running.race.startNoMore()
                survey?.running = running
                return true
            }
            if let finding = stall(levels, result, at: ended.entry.candidate.address) {
                survey?.running = nil
                endSurvey(of: ended.entry.candidate.address, finding.cause, &turn)
                return true
            }
            if levels.isAtDeadline, !levels.isAcknowledged {
                examineSurvey(running, [failure(of: ended, nil, turn)], &turn)
                return true
            }
            let found = findings(of: levels, at: ended.entry.candidate.address, ended.entry.route, running.run, turn)
            if let number = found.systemError {
                let result = ProbeResult(id: ended.id, errno: number, call: "handshake", reporter: result.reporter)
                examineSurvey(running, [failure(of: ended, result, turn)], &turn)
                return true
            }
            if let cause = found.failure?.cause {
                survey?.running = nil
                endSurvey(of: ended.entry.candidate.address, cause, &turn)
                return true
            }
            if levels.redirection != nil {
                survey?.running = nil
                survey?.redirect(ended.entry.candidate.address)
                noteTargetAnswer(ended.entry.candidate.address, ended.entry.route, &turn)
                return true
            }
        }
        if result.errno == 0 {
            cancelSurveyAttempts(&turn)
            survey?.running = nil
            survey?.succeed(ended.entry.candidate.address)
            if judgeQuality() { publish(&turn) }
            noteTargetAnswer(ended.entry.candidate.address, ended.entry.route, &turn)
            return true
        }
        // Nothing was sent: the result is no evidence.
        if result.call == ProbeResult.queue {
            if running.race.running.isEmpty { survey?.running = nil }
            return true
        }
        cancelSurveyAttempts(&turn)
        let failure = failure(of: ended, result, turn)
        noteAnswer(failure, &turn)
        examineSurvey(running, [failure], &turn)
        return true
    }

    private mutating func examineSurvey(
        _ running: AddressSurvey.Running, _ failures: [FailedAttempt], _ turn: inout Turn
    ) {
        let keys = failures.compactMap { $0.suspectedHop(in: turn.localState) }
        guard let key = keys.first else { return endSurvey(running, failures, &turn) }
        let questions = hostQuestions(failures, running.run, turn)
        survey?.running?.race.running = []
        survey?.running?.hosts = HostSurvey(questions)
        survey?.running?.examination = Examination(
            failures: failures, pending: [key], until: turn.time.addingSaturated(Self.hostQueryLead))
        turn.effects += questions.effects
        turn.effects.append(.askNeighbor(key))
    }

    mutating func surveyNeighborAnswered(_ key: Neighbor.Key, _ answer: NeighborAnswer, _ turn: inout Turn) {
        survey?.running?.examination?.take(key, answer, in: turn.localState)
        continueSurvey(&turn)
    }

    mutating func surveyHostAnswered(_ host: Neighbor.Key, _ state: HopBook.State, _ turn: inout Turn) {
        survey?.running?.hosts?.take(host, state)
        continueSurvey(&turn)
    }

    mutating func surveySearched(_ hop: Neighbor.Key, _ state: WitnessBook.State, _ turn: inout Turn) {
        survey?.running?.hosts?.take(hop, state)
        continueSurvey(&turn)
    }

    private mutating func continueSurvey(_ turn: inout Turn) {
        guard let running = survey?.running, let failures = running.examined(turn.localState) else { return }
        endSurvey(running, failures, &turn)
    }

    private mutating func endSurvey(
        _ running: AddressSurvey.Running, _ failures: [FailedAttempt], _ turn: inout Turn
    ) {
        survey?.running = nil
        guard let failure = failures.first.map({ completed($0, running.run, turn) }) else { return }
        let cause = failure.cause(in: turn.localState)
        endSurvey(of: failure.candidate.address, cause, &turn)
    }

    private mutating func endSurvey(of address: IPAddress, _ cause: Cause, _ turn: inout Turn) {
        // The limits of this process are no fault of the address.
        guard cause.layer != .local else { return }
        let cause = addressFailure(cause, turn)
        let mustConfirm = survey?.fail(address, cause, failAfter: settings.failAfter) ?? false
        if judgeQuality() { publish(&turn) }
        if mustConfirm, verdict.state == .up || verdict.state == .degraded { surveyNextAddress(&turn) }
    }

    func cancelSurveyAttempts(_ turn: inout Turn) {
        turn.effects += (survey?.running?.race.running ?? []).map { .cancel(attempt: $0.id) }
    }

    /// Ends the survey without a result, because the routes or the machine's network are others now.
    mutating func abandonSurvey(_ turn: inout Turn) {
        cancelSurveyAttempts(&turn)
        survey = nil
    }

    /// Ends the survey of an address that has no route any more.
    mutating func dropSurveyWithoutRoute(_ turn: inout Turn) {
        guard let address = survey?.running?.race.running.first?.entry.candidate.address, openRoutes[address] == nil else {
            return
        }
        cancelSurveyAttempts(&turn)
        survey?.running = nil
    }

    // MARK: Quality

    /// Records the round trip and the response time of a probe, and the packets that were lost before it.
    mutating func recordQuality(_ roundTrip: Duration?, _ responseTime: Duration? = nil, lost: Int) {
        for _ in 0..<min(lost, settings.quality.window) { quality.record(nil, settings.quality) }
        if let roundTrip { quality.record(roundTrip, responseTime: responseTime, settings.quality) }
    }

    /// Determines whether a target that answers is degraded: by an address that fails, or by its quality. `report` is that of the probe that
    /// has just succeeded.
    ///
    /// - Returns: whether the status or its cause has changed.
    mutating func judgeQuality(after report: ProbeReport? = nil) -> Bool {
        verdict.degrade(
            survey?.cause(openAddresses, answering: lastAnswered, failAfter: settings.failAfter) ?? levelDegradation
                ?? quality.cause(settings.quality, last: report))
    }
}
