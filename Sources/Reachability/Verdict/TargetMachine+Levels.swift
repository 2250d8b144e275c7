internal import Certificates
internal import Pacing

/// The levels of a probe above TCP: the TLS handshake and the HTTP exchange.
extension TargetMachine {
    /// Whether large segments arrive. Routers that drop them without a report are found by a connection with small ones.
    enum Segments: UInt8, Hashable, Sendable {
        case unlimited
        /// A gap in the received segments was followed by silence, so that the next probe uses small segments.
        case suspected
        /// Small segments arrive, and large ones do not.
        case limited
    }

    /// The verdict of the levels of one connection.
    struct LevelFindings {
        /// Why the probe fails; `nil` if it succeeds.
        var failure: Finding?
        /// Why a server that works is degraded.
        var degradation: Cause?
    }

    /// Notes that the connection is established. The levels follow on it, so that no other attempt is needed.
    mutating func connected(
        _ run: ProbeRun, _ race: AttemptRace, _ attempt: AttemptRace.Running, _ turn: inout Turn
    ) {
        var (run, race) = (run, race)
        for other in race.running { turn.effects.append(.cancel(attempt: other.id)) }
        race.running = [attempt]
        race.waiting = []
        race.startNoMore()
        run.connected = turn.now
        noteTargetAnswer(attempt.entry.candidate.address, attempt.entry.route, &turn)
        phase = .connecting(run, race)
    }

    /// Ends the probe with the result of its levels.
    mutating func levelsEnded(
        _ levels: LevelResult, _ run: ProbeRun, _ race: AttemptRace, _ attempt: AttemptRace.Running, _ result: ProbeResult,
        _ turn: inout Turn
    ) {
        var run = run
        run.levels = levels
        let address = attempt.entry.candidate.address
        experience = levels.ending == .deadline ? .silent : .answered
        // What was sent has not arrived: the network is silent, not the server.
        if levels.ending == .deadline, !levels.isAcknowledged {
            run.connected = nil
            run.levels = nil
            return examine(run, [failure(of: attempt, nil, turn)], &turn)
        }
        var findings = findings(of: levels, at: address, turn)
        judgeSegments(levels, &findings, at: address)
        guard let finding = findings.failure else {
            levelDegradation = findings.degradation
            return succeed(run, race, attempt, result, &turn)
        }
        // The host has answered, whatever was reported before.
        streak.reset()
        streak.begin()
        let place = Place(address: address, interface: attempt.entry.route.interface)
        fail(run, finding, place, levels.ending == .deadline ? .silence : .refusal, &turn)
    }

    /// Returns what the levels show about the server. Their bytes are its own, so that a failure is its fault.
    func findings(of levels: LevelResult, at address: IPAddress, _ turn: Turn) -> LevelFindings {
        var findings = LevelFindings()
        if let reason = levels.localFailure {
            let cause = Cause(.local, .cannotRead, detail: "the TLS handshake cannot begin: \(reason)")
            findings.failure = Finding(cause, accusesServer: false)
            return findings
        }
        if let facts = levels.tls, let name = LevelPlan(endpoint, settings)?.handshake?.name {
            let tls = CauseOfTLS(
                facts: facts, result: levels, settings: settings.tls, name: name, address: address, port: endpoint.port,
                now: turn.now.wallClockNanoseconds / 1_000_000_000)
            if let cause = tls.cause {
                findings.failure = Finding(cause, accusesServer: true)
                return findings
            }
            findings.degradation = tls.degradation
        }
        if let facts = levels.http {
            let http = CauseOfHTTP(
                facts: facts, result: levels, settings: settings.http, endpoint: endpoint, address: address, redirects: [],
                origin: endpoint)
            findings.failure = http.cause.map { Finding($0, accusesServer: true) }
        }
        return findings
    }

    /// Finds a network that drops large packets: a gap in what arrived, then silence, then a success with small segments.
    private mutating func judgeSegments(_ levels: LevelResult, _ findings: inout LevelFindings, at address: IPAddress) {
        let isStalled = levels.ending == .deadline && levels.hasGap
        if levels.hasSmallSegments {
            segments = levels.ending == .deadline ? .unlimited : .limited
        } else if !isStalled {
            segments = .unlimited
        } else if segments != .limited {
            segments = .suspected
        }
        guard segments == .limited, isStalled || levels.hasSmallSegments else { return }
        let detail =
            "packets above the size of small segments vanish on the way from \(address); with small segments the server answers"
        let cause = Cause(
            .network, .packetTooBig, detail: detail,
            evidence: ["address": .text("\(address)"), "inferred": .text("TCP_MAXSEG 536")])
        findings = LevelFindings(failure: Finding(cause, accusesServer: false))
    }
}
