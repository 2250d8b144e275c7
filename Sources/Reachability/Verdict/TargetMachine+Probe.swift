internal import Pacing

/// The steps of a probe, in their order.
extension TargetMachine {
    /// Starts a probe, and replaces a running one. `candidateRoutes` are the kernel's present routes to the known addresses. A
    /// target without a name needs only these.
    mutating func startProbe(_ turn: inout Turn, knowing candidateRoutes: [(Candidate, CandidateRoute)]? = nil) {
        abandon(&turn)
        isOutdated = false
        schedule.began(at: turn.time)
        let deadline = turn.time.addingSaturated(settings.timeout.saturatingNanoseconds)
        let run = ProbeRun(started: turn.now, deadline: deadline)
        switch endpoint.host {
        case .name(let name):
            let number = takeNumber()
            phase = .resolving(run, lookup: number)
            turn.effects.append(
                .resolve(LookupRequest(id: number, name: name, families: settings.families, deadline: deadline)))
        case .address(let address, _):
            addresses = [address]
            guard settings.families.contains(address.family) else { return excluded(address, &turn) }
            if let candidateRoutes { judge(run, candidateRoutes, &turn) } else { ask(run, &turn) }
        }
    }

    /// Cancels the running attempts without a report.
    func cancelAttempts(_ turn: inout Turn) {
        guard case .connecting(_, let race) = phase else { return }
        turn.effects += race.running.map { .cancel(attempt: $0.id) }
    }

    mutating func abandon(_ turn: inout Turn) {
        cancelAttempts(&turn)
        check = nil
        phase = .waiting
    }

    /// Fails the target, because the settings exclude the address's family. No event can change that.
    private mutating func excluded(_ address: IPAddress, _ turn: inout Turn) {
        let detail = "\(address) is not of the families that are tried"
        let cause = Cause(.dns, .noAddressForFamily, detail: detail, evidence: ["address": .text("\(address)")])
        _ = verdict.fail(cause, isCertain: true)
        place = Place(address: address)
        phase = .waiting
        schedule.stop()
        publish(&turn)
    }

    // MARK: Names

    mutating func lookedUp(_ answer: LookupAnswer, _ turn: inout Turn) {
        guard case .resolving(var run, let lookup) = phase, answer.id == lookup else { return }
        let found = answer.code == 0 ? answer.addresses.filter { settings.families.contains($0.family) } : []
        // Linux connects to this machine instead (RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.2).
        let usable = found.filter { !$0.isUnspecified }
        guard !usable.isEmpty else { return lookupFailed(answer, run, &turn) }
        addresses = Array(inAttemptOrder(usable, last: lastAnswered).prefix(NameLimits.addresses))
        run.resolution = turn.now.elapsed(since: run.started)
        run.lookup = answer
        ask(run, &turn)
    }

    mutating func lookupFailed(_ answer: LookupAnswer?, _ run: ProbeRun, _ turn: inout Turn) {
        var run = run
        let elapsed = turn.now.elapsed(since: run.started)
        run.resolution = elapsed
        let nanoseconds = max(elapsed.saturatingNanoseconds, answer?.elapsedNanoseconds ?? 0)
        run.lookup = answer
        let cause =
            if let answer, answer.code == 0, answer.addresses.contains(where: \.isUnspecified) {
                CauseOfLookup.unusable(answer, name: endpoint.hostText)
            } else {
                CauseOfLookup.cause(answer, name: endpoint.hostText, elapsed: nanoseconds, in: turn.localState)
            }
        // The name no longer has addresses. After all other failures, the old addresses remain the best guess.
        if [.nameNotFound, .noAddressForFamily, .unusableAddress].contains(cause.code) {
            addresses = []
            setQueries([])
        }
        fail(run, cause, Place(), &turn)
    }

    // MARK: Routes

    /// Returns the addresses with their interfaces; the cause if an interface that the user named does not exist.
    func candidates(in localState: LocalState) -> Result<[Candidate], NoCandidates> {
        func index(_ name: String) -> UInt32? {
            localState.interfaces.values.first { $0.hasName(name) }?.index
                ?? UInt32(name).flatMap { localState.interfaces[$0]?.index }
        }
        var (zone, bound): (UInt32, UInt32) = (0, 0)
        if case .address(_, let name?) = endpoint.host {
            guard let found = index(name) else { return .failure(NoCandidates(cause: noInterface(name))) }
            zone = found
        }
        if let name = settings.interface {
            guard let found = index(name) else { return .failure(NoCandidates(cause: noInterface(name))) }
            guard zone == 0 || zone == found else {
                let detail = "\(endpoint.hostText) is not on interface \(name)"
                return .failure(
                    NoCandidates(cause: Cause(.link, .noInterface, detail: detail, evidence: ["interface": .text(name)])))
            }
            bound = found
        }
        return .success(addresses.map { Candidate(address: $0, port: endpoint.port, zone: zone, boundTo: bound) })
    }

    struct NoCandidates: Error { let cause: Cause }

    /// Returns the primary name of the interface to bind to: SO_BINDTODEVICE accepts no alternative name of more than 15 bytes.
    private func boundName(in localState: LocalState) -> String? {
        settings.interface.map { name in localState.interfaces.values.first { $0.hasName(name) }?.name ?? name }
    }

    mutating func ask(_ run: ProbeRun, _ turn: inout Turn) {
        // Queries from here on belong to the present local state.
        isOutdated = false
        switch candidates(in: turn.localState) {
        case .failure(let failure):
            setQueries([])
            pathless(failure.cause, Place(address: addresses.first), &turn)
        case .success(let candidates):
            let survey = RouteSurvey(candidates)
            check = nil
            known = known.filter { survey.asks($0.key) }
            setQueries(survey.queries)
            phase = .asking(run, survey)
            turn.effects += survey.queries.map { .askRoute($0) }
        }
    }

    mutating func routeAnswered(_ query: RouteQuery, _ answer: RouteAnswer, _ turn: inout Turn) {
        if query.showsAll { return otherHopsAnswered(query, answer, &turn) }
        // A late answer, too, is the kernel's latest.
        if answer != .unanswered, addresses.contains(query.destination) { known[query] = answer }
        if case .asking(let run, var survey) = phase, survey.asks(query) {
            survey.take(query, effectiveAnswer(answer, to: query, turn))
            phase = .asking(run, survey)
            guard survey.isComplete else { return }
            guard survey.isDecisive(in: turn.localState) else { return wait(&turn) }
            judge(run, survey.candidateRoutes(in: turn.localState), &turn)
        } else if var asked = check, asked.survey.asks(query) {
            asked.survey.take(query, effectiveAnswer(answer, to: query, turn))
            check = asked
            guard asked.survey.isComplete else { return }
            check = nil
            if asked.survey.isDecisive(in: turn.localState) { checked(asked.survey.candidateRoutes(in: turn.localState), &turn) }
        }
    }

    /// Returns the previous answer if the kernel did not answer, and schedules another query.
    private mutating func effectiveAnswer(_ answer: RouteAnswer, to query: RouteQuery, _ turn: Turn) -> RouteAnswer {
        guard answer == .unanswered else { return answer }
        retryDue = retryDue ?? turn.time.addingSaturated(Self.retryGap)
        return known[query] ?? answer
    }

    /// Waits for the next probe without a result, because the routes are not known.
    mutating func wait(_ turn: inout Turn) {
        phase = .waiting
        schedule.continueByGrid(at: turn.time)
    }

    mutating func judge(_ run: ProbeRun, _ candidateRoutes: [(Candidate, CandidateRoute)], _ turn: inout Turn) {
        let entries = candidateRoutes.compactMap { candidate, candidateRoute in
            candidateRoute.route.map { AttemptRace.Entry(candidate: candidate, route: $0) }
        }
        guard !entries.isEmpty else { return pathless(candidateRoutes, &turn) }
        openRoutes = Self.openRoutes(candidateRoutes)
        streak.keep(to: openRoutes)
        startAttempt(run, AttemptRace(entries), &turn)
    }

    static func openRoutes(_ candidateRoutes: [(Candidate, CandidateRoute)]) -> [IPAddress: ChosenRoute] {
        var routes: [IPAddress: ChosenRoute] = [:]
        for (candidate, candidateRoute) in candidateRoutes { routes[candidate.address] = candidateRoute.route }
        return routes
    }

    mutating func pathless(_ candidateRoutes: [(Candidate, CandidateRoute)], _ turn: inout Turn) {
        guard let lowest = lowestCause(candidateRoutes) else { return finishProbe(&turn) }
        pathless(lowest.cause, Place(address: lowest.candidate.address, interface: lowest.interface), &turn)
    }

    /// Fails the target, because the kernel would certainly not send a packet to it.
    mutating func pathless(_ cause: Cause, _ place: Place, _ turn: inout Turn) {
        if case .connecting(let run, _) = phase { report(run, cause, place, &turn) }
        if case .examining(let run, _) = phase { report(run, cause, place, &turn) }
        if settings.isScheduledOnly, case .asking(let run, _) = phase { report(run, cause, place, &turn) }
        abandon(&turn)
        openRoutes = [:]
        streak.reset()
        restarts = 0
        _ = verdict.fail(cause, isCertain: true)
        self.place = place
        phase = .pathless
        schedule.continueByGrid(at: turn.time)
        publish(&turn)
    }

    // MARK: Attempts

    mutating func startAttempt(_ run: ProbeRun, _ race: AttemptRace, _ turn: inout Turn) {
        var (run, race) = (run, race)
        if !race.waiting.isEmpty {
            let entry = race.waiting.removeFirst()
            let address = entry.candidate.address
            // A link-local IPv6 address needs an interface. If the user named none, it is the interface of the route.
            let isScoped = address.family == .v6 && address.isLinkLocal
            let number = takeNumber()
            run.connecting = run.connecting ?? turn.now
            race.running.append(AttemptRace.Running(id: number, entry: entry, started: turn.now))
            turn.effects.append(
                .connect(
                    ProbeAttempt(
                        id: number, address: address,
                        zone: entry.candidate.zone != 0 ? entry.candidate.zone : isScoped ? entry.route.interface : 0,
                        port: endpoint.port, interface: boundName(in: turn.localState),
                        latestStart: turn.time.addingSaturated((run.deadline - turn.time) / 2))))
        }
        race.nextStart = race.waiting.isEmpty ? nil : turn.time.addingSaturated(AttemptRace.delay)
        phase = .connecting(run, race)
    }

    mutating func attemptEnded(_ result: ProbeResult, _ turn: inout Turn) {
        guard case .connecting(let run, var race) = phase,
            let index = race.running.firstIndex(where: { $0.id == result.id })
        else { return }
        let ended = race.running.remove(at: index)
        if result.errno == 0 {
            phase = .connecting(run, race)
            return succeed(run, ended, .nanoseconds(max(1, result.roundTripNanoseconds)), &turn)
        }
        // Nothing was sent, so the result is no evidence.
        if result.call != ProbeResult.queue { race.failures.append(failure(of: ended, result, turn)) }
        phase = .connecting(run, race)
        if !race.waiting.isEmpty {
            startAttempt(run, race, &turn)
        } else if race.running.isEmpty {
            wasSilent = false
            examine(run, race.failures, &turn)
        }
    }

    private func failure(of attempt: AttemptRace.Running, _ result: ProbeResult?, _ turn: Turn) -> FailedAttempt {
        FailedAttempt(
            candidate: attempt.entry.candidate, route: attempt.entry.route, result: result,
            elapsedNanoseconds: turn.now.elapsed(since: attempt.started).saturatingNanoseconds)
    }

    /// Ends the attempts at the probe's deadline. Attempts without an answer count as silent.
    mutating func deadlineReached(_ run: ProbeRun, _ race: AttemptRace, _ turn: inout Turn) {
        cancelAttempts(&turn)
        wasSilent = true
        examine(run, race.failures + race.running.map { failure(of: $0, nil, turn) }, &turn)
    }

    /// Checks in the neighbor table whether the server or its next hop is at fault.
    private mutating func examine(_ run: ProbeRun, _ failures: [FailedAttempt], _ turn: inout Turn) {
        var keys: [Neighbor.Key] = []
        for failure in failures {
            if let key = failure.suspectedHop(in: turn.localState), !keys.contains(key) { keys.append(key) }
        }
        guard !keys.isEmpty else { return conclude(run, failures, &turn) }
        let until = turn.time.addingSaturated(Examination.timeLimit)
        phase = .examining(run, Examination(failures: failures, pending: keys, until: until))
        turn.effects += keys.map { .askNeighbor($0) }
    }

    mutating func neighborAnswered(_ key: Neighbor.Key, _ answer: NeighborAnswer, _ turn: inout Turn) {
        guard case .examining(let run, var examination) = phase else { return }
        examination.take(key, answer, in: turn.localState)
        continueExamination(run, examination, &turn)
    }

    private mutating func otherHopsAnswered(_ query: RouteQuery, _ answer: RouteAnswer, _ turn: inout Turn) {
        guard case .examining(let run, var examination) = phase else { return }
        turn.effects += examination.take(query, answer).map { .askNeighbor($0) }
        continueExamination(run, examination, &turn)
    }

    private mutating func continueExamination(_ run: ProbeRun, _ examination: Examination, _ turn: inout Turn) {
        var examination = examination
        if examination.pending.isEmpty {
            turn.effects += examination.routesToAsk(in: turn.localState).map { .askRoute($0) }
        }
        phase = .examining(run, examination)
        if examination.isComplete { conclude(run, examination.failures, &turn) }
    }

    // MARK: Ends

    private mutating func succeed(
        _ run: ProbeRun, _ attempt: AttemptRace.Running, _ roundTrip: Duration, _ turn: inout Turn
    ) {
        cancelAttempts(&turn)
        let place = Place(
            address: attempt.entry.candidate.address, interface: attempt.entry.route.interface, roundTrip: roundTrip)
        lastAnswered = place.address
        wasSilent = false
        streak.reset()
        report(run, nil, place, &turn)
        verdict.succeed()
        if verdict.state == .up { self.place = place }
        finishProbe(&turn)
        publish(&turn)
    }

    mutating func conclude(_ run: ProbeRun, _ failures: [FailedAttempt], _ turn: inout Turn) {
        let causes = failures.map { ($0, streak.cause(of: $0, in: turn.localState)) }
        guard let (failure, cause) = furthest(causes) else { return finishProbe(&turn) }
        fail(run, cause, Place(address: failure.candidate.address, interface: failure.route.interface), &turn)
    }

    private mutating func fail(_ run: ProbeRun, _ cause: Cause, _ place: Place, _ turn: inout Turn) {
        report(run, cause, place, &turn)
        if verdict.fail(cause, isCertain: cause.layer.isCertain) { self.place = place }
        finishProbe(&turn)
        publish(&turn)
    }

    /// Ends a probe, and schedules the next one.
    mutating func finishProbe(_ turn: inout Turn) {
        phase = .waiting
        if !settings.isScheduledOnly, isOutdated || verdict.needsConfirmation {
            schedule.confirm(at: turn.time)
        } else {
            schedule.continueByGrid(at: turn.time)
        }
        isOutdated = false
        restarts = 0
    }
}

/// The limits on the results of name resolution.
enum NameLimits {
    /// The maximum number of a name's addresses whose routes are queried.
    static let addresses = 16
}

extension Endpoint {
    /// The name, or the address with its zone.
    var hostText: String {
        switch host {
        case .name(let name): name
        case .address(let address, let zone): zone.map { "\(address)%\($0)" } ?? "\(address)"
        }
    }
}
