internal import Certificates
internal import Pacing

/// The levels of a probe above TCP: the TLS handshake and the HTTP exchange.
extension TargetMachine {
    /// Whether large segments arrive. Routers that drop them without a report are found by a connection with small ones.
    enum Segments: UInt8, Hashable, Sendable {
        case unlimited
        /// A gap in the received segments was followed by silence, so that the next probe uses small segments.
        case suspected
        /// Small segments have arrived. The next probe shows whether large ones still vanish.
        case compared
        /// Small segments arrive, and large ones do not.
        case limited
    }

    /// The verdict of the levels of one connection.
    struct LevelFindings: Sendable {
        /// Why the probe fails; `nil` if it succeeds.
        var failure: Finding?
        /// Why a server that works is degraded.
        var degradation: Cause?
        /// The errno of a connection that a layer below has ended.
        var systemError: Int32?
    }

    /// Notes that the connection is established. The levels follow on it, so that no other attempt is needed while they proceed.
    mutating func connected(
        _ run: ProbeRun, _ race: AttemptRace, _ attempt: AttemptRace.Running, _ turn: inout Turn
    ) {
        var (run, race) = (run, race)
        for other in race.established(attempt, at: turn.now) { turn.effects.append(.cancel(attempt: other.id)) }
        run.connected = turn.now
        noteTargetAnswer(attempt.entry.candidate.address, attempt.entry.route, &turn)
        phase = .connecting(run, race)
    }

    /// Ends the probe with the result of its levels, or tries another address if they have failed.
    mutating func levelsEnded(
        _ levels: LevelResult, _ run: ProbeRun, _ race: AttemptRace, _ attempt: AttemptRace.Running, _ result: ProbeResult,
        _ turn: inout Turn
    ) {
        var (run, race) = (run, race)
        run.levels = levels
        if let connected = attempt.connected {
            // The phases of the probe are those of this connection.
            if !run.failedLevels.isEmpty || race.hasConnection { run.connecting = attempt.started }
            run.connected = connected
        }
        let address = attempt.entry.candidate.address
        experience = levels.isAtDeadline ? .silent : .answered
        isConnectedInSilence = true
        if let finding = stall(levels, result, at: address) {
            if finding.cause.code == .latency {
                slowRoundTrip = UInt32(clamping: max(1, levels.progress?.roundTripMicroseconds ?? 0))
            }
            return levelsFailed(FailedLevels(run, attempt, finding, .silence), run, race, &turn)
        }
        // What was sent has not arrived: the network is silent, not the server.
        if levels.isAtDeadline, !levels.isAcknowledged {
            return attemptFailed(failure(of: attempt, nil, turn), run, race, &turn)
        }
        var findings = findings(of: levels, at: address, attempt.entry.route, run, turn)
        if let number = findings.systemError {
            let result = ProbeResult(id: attempt.id, errno: number, call: "handshake", reporter: result.reporter)
            return attemptFailed(failure(of: attempt, result, turn), run, race, &turn)
        }
        judgeSegments(levels, &findings, at: address)
        if segments == .compared, !settings.isScheduledOnly {
            // A success by small segments alone is no result.
            for other in race.stopAll() { turn.effects.append(.cancel(attempt: other.id)) }
            return finishProbe(.refusal, mustConfirm: true, &turn)
        }
        if let redirection = levels.redirection {
            for other in race.stopAll() { turn.effects.append(.cancel(attempt: other.id)) }
            let origin = RedirectedProbe.Origin(race: race, attempt: attempt, result: result)
            return follow(redirection, run, origin, findings, &turn)
        }
        guard let finding = findings.failure else {
            levelDegradation = findings.degradation ?? slowness(run, result, at: address, turn)
            return succeed(run, race, attempt, result, &turn)
        }
        // A costly server is not asked again at once.
        let ending: ProbeSchedule.Ending =
            levels.isAtDeadline ? .silence : finding.cause.code == .excessiveCost ? .other : .refusal
        let failed = FailedLevels(run, attempt, finding, ending)
        levelsFailed(failed, run, race, &turn)
    }

    /// Returns what the levels show about the server. Their bytes are its own, so that a failure is its fault.
    func findings(
        of levels: LevelResult, at address: IPAddress, _ route: ChosenRoute, _ run: ProbeRun, _ turn: Turn
    ) -> LevelFindings {
        var findings = LevelFindings()
        if let reason = levels.localFailure {
            let cause = Cause(.local, .cannotRead, detail: "the TLS handshake cannot begin: \(reason)")
            findings.failure = Finding(cause, accusesServer: false)
            return findings
        }
        if let proxy, let failure = levels.proxyFailure {
            findings.failure = Finding(CauseOfProxy.cause(failure, proxy, to: endpoint), accusesServer: false)
            return findings
        }
        if let facts = levels.tls, let end = levels.handshakeEnd {
            let isOwn = route.kind == .local || address.isLoopback
            let host = proxy != nil ? endpoint.hostText : isOwn ? "this machine (\(address))" : "\(address)"
            let handshake = FinishedHandshake(
                facts: facts, end: end, host: host, now: turn.now.wallClockNanoseconds / 1_000_000_000,
                certificateDays: settings.tls.certificateDays, isInsecure: settings.tls.isInsecure)
            switch handshake.judgment {
            case .failed(let cause):
                let finding =
                    proxy.map { CauseOfProxy.finding(cause, facts, $0, to: endpoint) } ?? Finding(cause, accusesServer: true)
                findings.failure = finding.with(
                    finding.cause.behind(levels.handshakeRedirects ?? [], of: firstHost), accusesServer: finding.accusesServer)
            case .failedBelow: if case .systemError(let number) = end { findings.systemError = number }
            case .passed(let degradation): findings.degradation = degradation
            }
            if findings.failure != nil || findings.systemError != nil { return findings }
        }
        if let http = levels.http.map({ causeOfHTTP($0, levels, run, turn) }) {
            findings.failure = http.cause.map { Finding($0, accusesServer: $0.layer == .http) }
            // Without TLS, the proxy may have answered in place of the server.
            if let proxy, levels.tls == nil, let cause = findings.failure?.cause {
                findings.failure = CauseOfProxy.finding(cause, levels.http?.response, proxy)
            }
        }
        return findings
    }

    /// The host of the target, in sentences about what its server answers.
    private var firstHost: String { redirection?.value.redirects.firstHost ?? endpoint.hostText }

    private func causeOfHTTP(_ facts: HTTPProbeFacts, _ levels: LevelResult, _ run: ProbeRun, _ turn: Turn) -> CauseOfHTTP {
        CauseOfHTTP(
            facts: facts, ending: levels.httpEnding ?? .exchange,
            host: firstHost,
            elapsedNanoseconds: turn.now.elapsed(since: run.started).saturatingNanoseconds)
    }

    /// Finds a network that drops large packets: a gap in what arrived, then silence; then a success with small segments; then a gap and silence again.
    private mutating func judgeSegments(_ levels: LevelResult, _ findings: inout LevelFindings, at address: IPAddress) {
        let isStalled = levels.isAtDeadline && levels.hasGap
        if levels.hasSmallSegments {
            segments = levels.isAtDeadline ? .unlimited : .compared
        } else if !isStalled {
            segments = .unlimited
        } else {
            segments = segments == .compared || segments == .limited ? .limited : .suspected
        }
        if segments == .suspected { findings.failure?.isProvisional = true }
        guard segments == .limited, isStalled else { return }
        let detail = "large packets from \(address) vanish on the way, and packets with segments of 536 bytes arrive"
        let cause = Cause(
            .network, .packetTooBig, detail: detail,
            evidence: ["address": .text("\(address)"), "inferred": .text("TCP_MAXSEG 536")])
        findings = LevelFindings(failure: Finding(cause, accusesServer: false))
    }
}
