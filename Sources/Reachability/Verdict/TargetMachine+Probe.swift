internal import Pacing

/// The steps of a probe, in their order.
extension TargetMachine {
    /// Starts a probe, in the place of one that runs. `ways`: what the kernel has just said of the known addresses, which is all
    /// that a target without a name needs.
    mutating func startProbe(_ turn: inout Turn, knowing ways: [(Candidate, Way)]? = nil) {
        abandon(&turn)
        isOutdated = false
        schedule.began(at: turn.time)
        let deadline = turn.time.addingSaturated(settings.timeout.saturatingNanoseconds)
        let run = ProbeRun(started: turn.now, deadline: deadline)
        switch endpoint.host {
        case .name(let name):
            let number = takeNumber()
            phase = .resolving(run, lookup: number)
            turn.effects.append(.resolve(LookupRequest(id: number, name: name, families: settings.families)))
        case .address(let address, _):
            addresses = [address]
            guard settings.families.contains(address.family) else { return excluded(address, &turn) }
            if let ways { judge(run, ways, &turn) } else { ask(run, &turn) }
        }
    }

    /// Ends what runs, without a word.
    func cancelAttempts(_ turn: inout Turn) {
        guard case .connecting(_, let race) = phase else { return }
        turn.effects += race.running.map { .cancel(attempt: $0.id) }
    }

    mutating func abandon(_ turn: inout Turn) {
        cancelAttempts(&turn)
        check = nil
        phase = .waiting
    }

    /// The settings leave the address out: no event can change that.
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
        guard !found.isEmpty else { return lookupFailed(answer, run, &turn) }
        addresses = Array(inAttemptOrder(found, last: lastAnswered).prefix(NameLimits.addresses))
        run.resolution = turn.now.elapsed(since: run.started)
        ask(run, &turn)
    }

    mutating func lookupFailed(_ answer: LookupAnswer?, _ run: ProbeRun, _ turn: inout Turn) {
        var run = run
        let elapsed = turn.now.elapsed(since: run.started)
        run.resolution = elapsed
        let nanoseconds = max(elapsed.saturatingNanoseconds, answer?.elapsedNanoseconds ?? 0)
        let cause = CauseOfLookup.cause(answer, name: endpoint.hostText, elapsed: nanoseconds, in: turn.surroundings)
        // The name has no addresses any more; in all other cases the old ones are still the best guess.
        if cause.code == .nameNotFound || cause.code == .noAddressForFamily { addresses = [] }
        fail(run, cause, Place(), &turn)
    }

    // MARK: Routes

    /// The addresses with their interfaces; the cause where an interface that the user named is not there.
    func candidates(in surroundings: Surroundings) -> Result<[Candidate], NoCandidates> {
        func index(_ name: String) -> UInt32? {
            surroundings.interfaces.values.first { $0.hasName(name) }?.index
                ?? UInt32(name).flatMap { surroundings.interfaces[$0]?.index }
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

    /// The interface to bind to, by its first name: SO_BINDTODEVICE takes no alternative name of more than 15 bytes.
    private func boundName(in surroundings: Surroundings) -> String? {
        settings.interface.map { name in surroundings.interfaces.values.first { $0.hasName(name) }?.name ?? name }
    }

    mutating func ask(_ run: ProbeRun, _ turn: inout Turn) {
        // What is asked from here on belongs to the present surroundings.
        isOutdated = false
        switch candidates(in: turn.surroundings) {
        case .failure(let failure):
            pathless(failure.cause, Place(address: addresses.first), &turn)
        case .success(let candidates):
            let survey = RouteSurvey(candidates)
            check = nil
            known = known.filter { survey.asks($0.key) }
            phase = .asking(run, survey)
            turn.effects += survey.queries.map { .askRoute($0) }
        }
    }

    mutating func routeAnswered(_ query: RouteQuery, _ answer: RouteAnswer, _ turn: inout Turn) {
        if query.showsAll { return otherHopsAnswered(query, answer, &turn) }
        // Also what comes late is the kernel's last word.
        if answer != .unanswered, addresses.contains(query.destination) { known[query] = answer }
        if case .asking(let run, var survey) = phase, survey.asks(query) {
            survey.take(query, believe(answer, to: query, turn))
            phase = .asking(run, survey)
            guard survey.isComplete else { return }
            guard survey.isTelling(in: turn.surroundings) else { return wait(&turn) }
            judge(run, survey.ways(in: turn.surroundings), &turn)
        } else if var asked = check, asked.survey.asks(query) {
            asked.survey.take(query, believe(answer, to: query, turn))
            check = asked
            guard asked.survey.isComplete else { return }
            check = nil
            if asked.survey.isTelling(in: turn.surroundings) { checked(asked.survey.ways(in: turn.surroundings), &turn) }
        }
    }

    /// Where the kernel gave no answer, what was known stands, and it is asked again.
    private mutating func believe(_ answer: RouteAnswer, to query: RouteQuery, _ turn: Turn) -> RouteAnswer {
        guard answer == .unanswered else { return answer }
        retryDue = retryDue ?? turn.time.addingSaturated(Self.retryGap)
        return known[query] ?? answer
    }

    /// Nothing is known, nothing is said.
    mutating func wait(_ turn: inout Turn) {
        phase = .waiting
        schedule.continueByGrid(at: turn.time)
    }

    mutating func judge(_ run: ProbeRun, _ ways: [(Candidate, Way)], _ turn: inout Turn) {
        let entries = ways.compactMap { candidate, way in
            way.route.map { AttemptRace.Entry(candidate: candidate, route: $0) }
        }
        guard !entries.isEmpty else { return pathless(ways, &turn) }
        openRoutes = Self.openRoutes(ways)
        streak.keep(to: openRoutes)
        startAttempt(run, AttemptRace(entries), &turn)
    }

    static func openRoutes(_ ways: [(Candidate, Way)]) -> [IPAddress: ChosenRoute] {
        var routes: [IPAddress: ChosenRoute] = [:]
        for (candidate, way) in ways { routes[candidate.address] = way.route }
        return routes
    }

    mutating func pathless(_ ways: [(Candidate, Way)], _ turn: inout Turn) {
        guard let lowest = lowestCause(ways) else { return rest(&turn) }
        pathless(lowest.cause, Place(address: lowest.candidate.address, interface: lowest.interface), &turn)
    }

    /// There is certainly no way to the target.
    mutating func pathless(_ cause: Cause, _ place: Place, _ turn: inout Turn) {
        if case .connecting(let run, _) = phase { report(run, cause, place, &turn) }
        if case .examining(let run, _) = phase { report(run, cause, place, &turn) }
        abandon(&turn)
        openRoutes = [:]
        streak.forget()
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
            // The kernel wants to know the link of such an address; where the user named none, it is that of the route.
            let isScoped = address.family == .v6 && address.isLinkLocal
            let number = takeNumber()
            run.connecting = run.connecting ?? turn.now
            race.running.append(AttemptRace.Running(id: number, entry: entry, started: turn.now))
            turn.effects.append(
                .connect(
                    ProbeAttempt(
                        id: number, address: address,
                        zone: entry.candidate.zone != 0 ? entry.candidate.zone : isScoped ? entry.route.interface : 0,
                        port: endpoint.port, interface: boundName(in: turn.surroundings),
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
        // Nothing was sent, so nothing is learnt.
        if result.call != ProbeResult.queue { race.failures.append(failure(of: ended, result, turn)) }
        phase = .connecting(run, race)
        if !race.waiting.isEmpty {
            startAttempt(run, race, &turn)
        } else if race.running.isEmpty {
            examine(run, race.failures, &turn)
        }
    }

    private func failure(of attempt: AttemptRace.Running, _ result: ProbeResult?, _ turn: Turn) -> FailedAttempt {
        FailedAttempt(
            candidate: attempt.entry.candidate, route: attempt.entry.route, result: result,
            elapsedNanoseconds: turn.now.elapsed(since: attempt.started).saturatingNanoseconds)
    }

    /// Who has not answered by now is silent.
    mutating func timeIsUp(_ run: ProbeRun, _ race: AttemptRace, _ turn: inout Turn) {
        cancelAttempts(&turn)
        examine(run, race.failures + race.running.map { failure(of: $0, nil, turn) }, &turn)
    }

    /// Whether a failure is the server's or its next hop's, the neighbor table may know.
    private mutating func examine(_ run: ProbeRun, _ failures: [FailedAttempt], _ turn: inout Turn) {
        var questions: [Neighbor.Key] = []
        for failure in failures {
            if let key = failure.suspect(in: turn.surroundings), !questions.contains(key) { questions.append(key) }
        }
        guard !questions.isEmpty else { return conclude(run, failures, &turn) }
        let until = turn.time.addingSaturated(Examination.patience)
        phase = .examining(run, Examination(failures: failures, pending: questions, until: until))
        turn.effects += questions.map { .askNeighbor($0) }
    }

    mutating func neighborAnswered(_ key: Neighbor.Key, _ answer: NeighborAnswer, _ turn: inout Turn) {
        guard case .examining(let run, var examination) = phase else { return }
        examination.take(key, answer, in: turn.surroundings)
        goOn(run, examination, &turn)
    }

    private mutating func otherHopsAnswered(_ query: RouteQuery, _ answer: RouteAnswer, _ turn: inout Turn) {
        guard case .examining(let run, var examination) = phase else { return }
        turn.effects += examination.take(query, answer).map { .askNeighbor($0) }
        goOn(run, examination, &turn)
    }

    private mutating func goOn(_ run: ProbeRun, _ examination: Examination, _ turn: inout Turn) {
        var examination = examination
        if examination.pending.isEmpty {
            turn.effects += examination.routesToAsk(in: turn.surroundings).map { .askRoute($0) }
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
        streak.forget()
        report(run, nil, place, &turn)
        verdict.succeed()
        if verdict.state == .up { self.place = place }
        rest(&turn)
        publish(&turn)
    }

    mutating func conclude(_ run: ProbeRun, _ failures: [FailedAttempt], _ turn: inout Turn) {
        let causes = failures.map { ($0, streak.cause(of: $0, in: turn.surroundings)) }
        guard let (failure, cause) = furthest(causes) else { return rest(&turn) }
        fail(run, cause, Place(address: failure.candidate.address, interface: failure.route.interface), &turn)
    }

    private mutating func fail(_ run: ProbeRun, _ cause: Cause, _ place: Place, _ turn: inout Turn) {
        report(run, cause, place, &turn)
        if verdict.fail(cause, isCertain: cause.layer.isCertain) { self.place = place }
        rest(&turn)
        publish(&turn)
    }

    /// A probe is over: when does the next one come?
    mutating func rest(_ turn: inout Turn) {
        phase = .waiting
        if isOutdated || verdict.needsConfirmation {
            schedule.confirm(at: turn.time)
        } else {
            schedule.continueByGrid(at: turn.time)
        }
        isOutdated = false
        restarts = 0
    }
}

/// Limits on what a name may bring.
enum NameLimits {
    /// So many addresses of a name have their routes asked.
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
