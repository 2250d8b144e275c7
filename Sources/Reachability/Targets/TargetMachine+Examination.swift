internal import Pacing

/// The search for the fault after a probe without an answer: in the neighbor table, at the first hop, and at the target's host.
extension TargetMachine {
    /// The time before the probe's deadline at which hosts are asked, so that their replies are known at the deadline.
    static let hostQueryLead: Int64 = 700_000_000

    /// Asks the first hops of the silent attempts, and the target's host, whether they are alive.
    mutating func askHosts(_ run: ProbeRun, _ race: AttemptRace, _ turn: inout Turn) {
        var run = run
        let questions = hostQuestions(race.silentAttempts.map { failure(of: $0, nil, turn) }, run, turn)
        run.hosts = HostSurvey(questions)
        phase = .connecting(run, race)
        turn.effects += questions.effects
    }

    func hostQuestions(_ failures: [FailedAttempt], _ run: ProbeRun, _ turn: Turn) -> HostQuestions {
        var questions = HostQuestions()
        func add(_ failure: FailedAttempt, _ host: Neighbor.Key, isBound: Bool, _ hop: Neighbor.Key) {
            guard !questions.hosts.contains(where: { $0.query.host == host }) else { return }
            questions.hosts.append(
                HopBook.Request(
                    query: HostQuery(host, isBound: isBound), since: run.started.monotonicNanoseconds,
                    address: failure.candidate.address, port: failure.port, hop: hop))
        }
        for failure in failures where failure.isSilence(in: turn.localState) {
            guard let hop = failure.firstHop(in: turn.localState) else {
                // This machine is silent, which its packet filter may explain.
                add(failure, failure.hostKey, isBound: false, failure.hostKey)
                continue
            }
            if !hop.address.isUnspecified { add(failure, hop, isBound: true, hop) }
            // A silent name server has its own cause, whoever else is silent.
            if hop.address != failure.candidate.address, run.silentLookup == nil,
                !questions.searches.contains(where: { $0.hop == hop })
            {
                let silent = HopSearch.Destination(
                    failure.candidate.address, port: failure.port, interface: boundName(in: turn.localState))
                questions.searches.append(
                    WitnessBook.Request(hop: hop, silent: silent, since: run.started.monotonicNanoseconds))
            }
            // The target's host is asked until its state is explained; later only the hops.
            if hop.address != failure.candidate.address, !isExplained {
                add(failure, failure.hostKey, isBound: failure.candidate.boundTo != 0, hop)
            }
        }
        return questions
    }

    /// Whether somebody else than the target's host explains the verdict, so that the host need not be asked.
    private var isExplained: Bool {
        verdict.state == .down && verdict.cause?.code == .timeout && verdict.cause?.evidence["host"] != .text("answered")
    }

    /// Returns the failure with the times of its probe, and without reports that its explanation excludes.
    func completed(_ failure: FailedAttempt, _ run: ProbeRun, _ turn: Turn) -> FailedAttempt {
        var failure = failure
        failure.probeStarted = run.started.monotonicNanoseconds
        failure.ended = turn.now
        failure.streakBegan = streak.began
        // A host that is alive contradicts reports about other ports, but is not asked any more.
        if isExplained {
            if failure.hop?.report?.port != failure.port { failure.hop?.report = nil }
            // The router has sent no report about this host, although it could.
            failure.hop?.hostReport = nil
        }
        return failure
    }

    mutating func hostAnswered(_ host: Neighbor.Key, _ state: HopBook.State, _ turn: inout Turn) {
        surveyHostAnswered(host, state, &turn)
        switch phase {
        case .connecting(var run, let race):
            run.hosts?.take(host, state)
            phase = .connecting(run, race)
        case .examining(var run, let examination):
            run.hosts?.take(host, state)
            continueExamination(run, examination, &turn)
        default: break
        }
    }

    mutating func searched(_ hop: Neighbor.Key, _ state: WitnessBook.State, _ turn: inout Turn) {
        surveySearched(hop, state, &turn)
        switch phase {
        case .connecting(var run, let race):
            run.hosts?.take(hop, state)
            phase = .connecting(run, race)
        case .examining(var run, let examination):
            run.hosts?.take(hop, state)
            continueExamination(run, examination, &turn)
        default: break
        }
    }

    mutating func counted(_ interface: UInt32, _ counters: LinkCounters?, _ turn: inout Turn) {
        switch phase {
        case .connecting(var run, let race):
            run.firstCounters = run.firstCounters ?? counters.map { TunnelTraffic(interface, $0) }
            phase = .connecting(run, race)
        case .examining(let run, var examination):
            examination.take(interface, counters, since: run.firstCounters)
            continueExamination(run, examination, &turn)
        default: break
        }
    }

    /// Checks in the neighbor table whether the server or its next hop is at fault.
    mutating func examine(_ run: ProbeRun, _ failures: [FailedAttempt], _ turn: inout Turn) {
        var run = run
        var keys: [Neighbor.Key] = []
        var tunnels: [UInt32] = []
        for failure in failures {
            guard let key = failure.suspectedHop(in: turn.localState) else { continue }
            if isTunnel(failure.route, turn) {
                if !tunnels.contains(key.interface), run.firstCounters?.interface == key.interface {
                    tunnels.append(key.interface)
                }
            } else if !keys.contains(key) {
                keys.append(key)
            }
        }
        var questions = HostQuestions()
        if run.hosts == nil {
            questions = hostQuestions(failures.filter { $0.result == nil }, run, turn)
            run.hosts = HostSurvey(questions)
        }
        let examination = Examination(
            failures: failures, pending: keys, tunnels: tunnels,
            until: turn.time.addingSaturated(
                questions.hosts.isEmpty && questions.searches.isEmpty ? Examination.timeLimit : Self.hostQueryLead))
        guard !keys.isEmpty || !tunnels.isEmpty || run.hosts?.isComplete == false else {
            return conclude(run, run.hosts?.explain(failures, turn.localState) ?? failures, &turn)
        }
        phase = .examining(run, examination)
        turn.effects += questions.effects
        turn.effects += keys.map { .askNeighbor($0) }
        turn.effects += tunnels.map { .readCounters($0) }
    }

    mutating func neighborAnswered(_ key: Neighbor.Key, _ answer: NeighborAnswer, _ turn: inout Turn) {
        guard case .examining(let run, var examination) = phase else { return }
        examination.take(key, answer, in: turn.localState)
        continueExamination(run, examination, &turn)
    }

    mutating func otherHopsAnswered(_ query: RouteQuery, _ answer: RouteAnswer, _ turn: inout Turn) {
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
        if examination.isComplete, run.hosts?.isComplete != false { finishExamination(run, examination, &turn) }
    }

    mutating func finishExamination(_ run: ProbeRun, _ examination: Examination, _ turn: inout Turn) {
        conclude(run, run.hosts?.explain(examination.failures, turn.localState) ?? examination.failures, &turn)
    }
}
