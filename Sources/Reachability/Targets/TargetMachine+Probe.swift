internal import Pacing

/// The steps of a probe, in their order.
extension TargetMachine {
    /// Starts a probe, and replaces a running one. `candidateRoutes` are the kernel's present routes to the known addresses. A
    /// target without a name needs only these.
    mutating func startProbe(_ turn: inout Turn, knowing candidateRoutes: [(Candidate, CandidateRoute)]? = nil) {
        abandon(&turn)
        isOutdated = false
        // A probe that did not have to wait shows that the budget suffices again.
        isPaused = isPaused && pausedUntil != .min
        pausedUntil = .min
        schedule.began(at: turn.time)
        let deadline = turn.time.addingSaturated(probeTime)
        let run = ProbeRun(started: turn.now, deadline: deadline)
        switch peer.host {
        case .name(let name):
            let number = takeNumber()
            phase = .resolving(run, lookup: number)
            turn.effects.append(
                .resolve(
                    LookupRequest(
                        id: number, name: name, families: settings.families, deadline: deadline, notBefore: addressFailed)))
        case .address(let address, _):
            if addresses.first != address { addresses = [address] }
            if address.isUnspecified { return exclude(CauseOfLookup.unusable(address), address, &turn) }
            guard settings.families.contains(address.family) else {
                let detail = "\(address) is not of the families that are tried"
                return exclude(
                    Cause(.dns, .noAddressForFamily, detail: detail, evidence: ["address": .text("\(address)")]), address, &turn)
            }
            if let candidateRoutes { judge(run, candidateRoutes, &turn) } else { ask(run, &turn) }
        }
    }

    /// Cancels the running attempts without a report.
    func cancelAttempts(_ turn: inout Turn) {
        switch phase {
        case .connecting(_, let race): turn.effects += race.running.map { .cancel(attempt: $0.id) }
        case .following(_, let redirected): redirected.machine.cancelAttempts(&turn)
        default: break
        }
    }

    /// Ends the first probe without a result, because others need its socket. It starts again when silent targets have their turn.
    mutating func preempt(_ turn: inout Turn) {
        guard case .connecting(let run, let race) = phase, experience == .untried, race.failures.isEmpty,
            !settings.isScheduledOnly
        else { return }
        cancelAttempts(&turn)
        experience = .silent
        isConnectedInSilence = run.connected != nil
        phase = .waiting
        schedule.begin(at: turn.time)
    }

    mutating func abandon(_ turn: inout Turn) {
        cancelAttempts(&turn)
        check = nil
        phase = .waiting
    }

    /// Fails the target, because its address cannot be probed. No event can change that.
    private mutating func exclude(_ cause: Cause, _ address: IPAddress, _ turn: inout Turn) {
        let finding = Finding(onTheWay(cause), accusesServer: false, isCertain: true)
        _ = verdict.fail(finding, start: turn.time, at: turn.time)
        place = Place(address: address)
        phase = .waiting
        schedule.stop()
        publish(&turn)
    }

    // MARK: Names

    mutating func lookedUp(_ answer: LookupAnswer, _ turn: inout Turn) {
        guard case .resolving(var run, let lookup) = phase, answer.id == lookup else { return }
        // The questions waited for others, and little of the deadline is left for the name servers and the target. The probe begins
        // again. The addresses are in the cache, or the questions keep their places.
        if let queued = answer.queuedNanoseconds, queued > settings.timeout.saturatingNanoseconds / 2 { return startProbe(&turn) }
        let found = answer.code == 0 ? answer.addresses.filter { settings.families.contains($0.family) } : []
        // Linux connects to this machine instead (RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.2).
        let usable = found.filter { !$0.isUnspecified }
        guard !usable.isEmpty else { return lookupFailed(answer, run, &turn) }
        isCutOffFromNames = false
        answered = answer.ageNanoseconds.map { turn.time.addingSaturated(-$0) }
        addresses = Array(inAttemptOrder(usable, last: lastAnswered).prefix(NameLimits.addresses))
        run.resolution = turn.now.elapsed(since: run.started)
        run.lookup = answer
        // A slow name server is no silence of the target, which has half of a probe's time in any case.
        run.deadline = max(run.deadline, turn.time.addingSaturated(probeTime / 2))
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
                CauseOfLookup.unusable(answer, name: peer.hostText)
            } else {
                CauseOfLookup.cause(answer, name: peer.hostText, elapsed: nanoseconds, in: turn.localState)
            }
        // The name no longer has addresses. After all other failures, the old addresses remain the best guess.
        if [.nameNotFound, .noAddressForFamily, .unusableAddress].contains(cause.code) {
            addresses = []
            setQueries([])
        }
        isCutOffFromNames = false
        if let lookup = SilentLookup(cause, answer) { return trace(lookup, run, &turn) }
        // An answer of a name server is confirmed at once, like a refusal by the server.
        let isAnswered = answer?.families.contains { $0.exchanges.contains { $0.outcome == .answered } } ?? false
        experience = isAnswered ? .answered : .silent
        fail(run, Finding(cause), Place(), isAnswered ? .refusal : .other, &turn)
    }

    // MARK: Routes

    /// Returns the addresses with their interfaces; the cause if an interface that the user named does not exist.
    func candidates(in localState: LocalState) -> Result<[Candidate], NoCandidates> {
        func index(_ name: String) -> UInt32? {
            localState.interfaces.values.first { $0.hasName(name) }?.index
                ?? UInt32(name).flatMap { localState.interfaces[$0]?.index }
        }
        var (zone, bound): (UInt32, UInt32) = (0, 0)
        if case .address(_, let name?) = peer.host {
            guard let found = index(name) else { return .failure(NoCandidates(cause: noInterface(name))) }
            zone = found
        }
        if let name = settings.interface {
            guard let found = index(name) else { return .failure(NoCandidates(cause: noInterface(name))) }
            guard zone == 0 || zone == found else {
                let detail = "\(peer.hostText) is not on interface \(name)"
                return .failure(
                    NoCandidates(cause: Cause(.link, .noInterface, detail: detail, evidence: ["interface": .text(name)])))
            }
            bound = found
        }
        return .success(addresses.map { Candidate(address: $0, port: peer.port, zone: zone, boundTo: bound) })
    }

    struct NoCandidates: Error { let cause: Cause }

    mutating func ask(_ run: ProbeRun, _ turn: inout Turn) {
        // Queries from here on belong to the present local state.
        isOutdated = false
        switch candidates(in: turn.localState) {
        case .failure(let failure):
            setQueries([])
            phase = .asking(run, RouteSurvey([]))
            pathless(failure.cause, Place(address: addresses.first), &turn)
        case .success(let candidates):
            check = nil
            if let fresh = turn.fresh, candidates.count == 1, candidates[0].query == fresh.query,
                let route = candidateRoute(of: candidates[0], by: fresh.answer, in: turn.localState)
            {
                known = [fresh.query: fresh.answer]
                setQueries([fresh.query])
                if route.route == nil { phase = .asking(run, RouteSurvey(candidates)) }
                return judge(run, [(candidates[0], route)], &turn)
            }
            let survey = RouteSurvey(candidates)
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
        if case .tracing(let run, let survey) = phase, survey.asks(query) {
            traced(query, answer, run, survey, &turn)
        } else if case .asking(let run, var survey) = phase, survey.asks(query) {
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
        schedule.continueByGrid(at: turn.time, factor: intervalFactor)
    }

    mutating func judge(_ run: ProbeRun, _ candidateRoutes: [(Candidate, CandidateRoute)], _ turn: inout Turn) {
        let entries = candidateRoutes.compactMap { candidate, candidateRoute in
            candidateRoute.route.map { AttemptRace.Entry(candidate: candidate, route: $0) }
        }
        guard !entries.isEmpty else { return pathless(candidateRoutes, &turn) }
        openRoutes = Self.openRoutes(candidateRoutes)
        pathFound(turn)
        noteMeteredInterface(turn)
        streak.keep { [openRoutes] in openRoutes[$0] }
        dropSurveyWithoutRoute(&turn)
        startAttempt(run, AttemptRace(workingFirst(entries), deadline: run.deadline), &turn)
    }

    static func openRoutes(_ candidateRoutes: [(Candidate, CandidateRoute)]) -> SmallMap<IPAddress, ChosenRoute> {
        var routes: SmallMap<IPAddress, ChosenRoute> = [:]
        for (candidate, candidateRoute) in candidateRoutes { routes[candidate.address] = candidateRoute.route }
        return routes
    }

    mutating func pathless(_ candidateRoutes: [(Candidate, CandidateRoute)], _ turn: inout Turn) {
        guard let lowest = lowestCause(candidateRoutes) else { return finishProbe(.other, &turn) }
        let address = lowest.candidate.address
        let removed = causeOfRemovedRoute(lowest.cause, to: address, over: Array(usedInterfaces), in: turn.localState)
        pathless(
            removed?.cause ?? lowest.cause, Place(address: address, interface: removed?.interface ?? lowest.interface), &turn)
    }

    /// Fails the target, because the kernel would certainly not send a packet to it.
    mutating func pathless(_ cause: Cause, _ place: Place, _ turn: inout Turn) {
        let cause = onTheWay(cause)
        if case .connecting(let run, _) = phase { report(run, cause, place, &turn) }
        if case .examining(let run, _) = phase { report(run, cause, place, &turn) }
        if case .following(let run, _) = phase { report(run, cause, place, &turn) }
        if settings.isScheduledOnly, case .asking(let run, _) = phase { report(run, cause, place, &turn) }
        abandon(&turn)
        abandonSurvey(&turn)
        quality.reset()
        openRoutes = [:]
        pathNewsDue = .max
        noteMeteredInterface(turn)
        streak.reset()
        restarts = 0
        // The name may have an address with a route now. Lower layers say nothing of the address.
        let failure = cause.layer == .route ? addressFailure(cause, turn) : cause
        _ = verdict.fail(Finding(failure), start: turn.time, at: turn.time)
        self.place = place
        phase = .pathless
        schedule.continueByGrid(at: turn.time)
        publish(&turn)
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
