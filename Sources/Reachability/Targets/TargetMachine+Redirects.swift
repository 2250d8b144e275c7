internal import Pacing

/// The part of a probe on another host, to which the target has redirected it.
struct RedirectedProbe: Sendable {
    /// The connection on which the target redirected the probe.
    struct Origin: Sendable {
        let race: AttemptRace
        let attempt: AttemptRace.Running
        let result: ProbeResult
    }

    let origin: Origin
    /// The verdict of the target's own response.
    let findings: TargetMachine.LevelFindings
    /// The machine of the other host, which makes one probe with a lookup, routes and a cause of its own.
    var machine: TargetMachine
}

/// Redirects to another host (RFC 9110 section 15.4), and those within the host whose connection fails: the failure of the destination
/// is the cause, also if an expectation is declared.
extension TargetMachine {
    /// Begins the probe of the URL to which the target redirects.
    mutating func follow(
        _ redirection: Boxed<HTTPRedirection>, _ run: ProbeRun, _ origin: RedirectedProbe.Origin, _ findings: LevelFindings,
        _ turn: inout Turn
    ) {
        var settings = settings
        settings.timeout = .nanoseconds(max(1_000_000, run.deadline - turn.time))
        settings.isScheduledOnly = true
        (settings.failAfter, settings.recoverAfter) = (1, 1)
        var machine = TargetMachine(
            id: id, endpoint: redirection.value.url.probeEndpoint, settings: settings, redirection: redirection,
            firstNumber: nextNumber)
        machine.addressFailed = addressFailed
        let redirected = RedirectedProbe(origin: origin, findings: findings, machine: machine)
        phase = .following(run, redirected)
        advance(run, redirected, .begin, &turn)
    }

    /// Passes an event to the machine of the other host, if there is one.
    mutating func follow(_ event: Event, _ turn: inout Turn) {
        guard case .following(let run, let redirected) = phase else { return }
        switch event {
        case .lookup, .route, .probe, .neighbor, .host, .searched, .counters, .tick: advance(run, redirected, event, &turn)
        // The target's own machine reacts to these.
        case .begin, .localStateChanged, .resumed, .reported, .paused, .preempted: break
        }
    }

    private mutating func advance(
        _ run: ProbeRun, _ redirected: RedirectedProbe, _ event: Event, _ turn: inout Turn
    ) {
        var redirected = redirected
        // Both machines take their numbers from one sequence.
        redirected.machine.nextNumber = nextNumber
        let effects = redirected.machine.handle(event, in: turn.localState, at: turn.now)
        nextNumber = redirected.machine.nextNumber
        var report: ProbeReport?
        for effect in effects {
            switch effect {
            case .report(let last): report = last
            case .publish: break
            default: turn.effects.append(effect)
            }
        }
        phase = .following(run, redirected)
        guard !redirected.machine.isProbing else { return }
        ended(run, redirected, report, &turn)
    }

    /// Ends the probe with the result of the other host.
    private mutating func ended(
        _ run: ProbeRun, _ redirected: RedirectedProbe, _ report: ProbeReport?, _ turn: inout Turn
    ) {
        let (origin, verdict) = (redirected.origin, redirected.machine.verdict)
        var run = run
        let last = report?.levels
        if let last { run.levels = run.levels?.redirected(last) ?? last }
        if let connection = report?.connection { run.levels?.addConnection(connection) }
        guard let cause = report?.cause ?? (report == nil ? verdict.cause : nil) else {
            levelDegradation = redirected.findings.degradation ?? redirected.machine.levelDegradation
            return succeed(run, origin.race, origin.attempt, origin.result, &turn)
        }
        experience = redirected.machine.experience
        isConnectedInSilence = true
        let isOfServer = cause.layer == .http && cause.evidence["proxy"] == nil
        let finding = Finding(
            self.cause(cause, of: redirected), accusesServer: verdict.state == .down || isOfServer, isCertain: false)
        let failed = FailedLevels(run, origin.attempt, finding, experience == .silent ? .silence : .refusal)
        levelsFailed(failed, run, origin.race, &turn)
    }

    /// Returns the cause of the other host as one of the target, which names the redirect.
    private func cause(_ cause: Cause, of redirected: RedirectedProbe) -> Cause {
        cause.behind(redirected.machine.redirection?.value.redirects.locations ?? [], of: endpoint.hostText)
    }
}

extension Cause {
    /// Returns a cause that names the redirects of a host, if there are any. A cause that names them stays as it is.
    package func behind(_ locations: [String], of host: String) -> Cause {
        guard let last = locations.last, evidence["redirects"] == nil else { return self }
        return Cause(
            layer, code, detail: "\(host) redirects to \(last): \(detail)",
            evidence: evidence.merging(["redirects": .list(locations)]) { own, _ in own })
    }
}
