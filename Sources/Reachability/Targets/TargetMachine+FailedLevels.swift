internal import Pacing

/// A connection whose levels have failed.
struct FailedLevels: Hashable, Sendable {
    let entry: AttemptRace.Entry
    let finding: Finding
    let ending: ProbeSchedule.Ending
    let levels: LevelResult?
    /// The start of the attempt.
    let connecting: Moment?
    let connected: Moment?

    init(_ run: ProbeRun, _ attempt: AttemptRace.Running, _ finding: Finding, _ ending: ProbeSchedule.Ending) {
        entry = attempt.entry
        (self.finding, self.ending) = (finding, ending)
        (levels, connecting, connected) = (run.levels, run.connecting, run.connected)
    }
}

/// Addresses that are connected, and fail above TCP. A server is at fault only if all addresses that were tried fail, whatever their
/// order: after a failure the next address is tried within the same deadline.
extension TargetMachine {
    /// Tries the next address after the levels of one have failed, or ends the probe.
    mutating func levelsFailed(_ failed: FailedLevels, _ run: ProbeRun, _ race: AttemptRace, _ turn: inout Turn) {
        var (run, race) = (run, race)
        run.failedLevels.append(failed)
        // What this machine cannot do for one address, it cannot do for another.
        if failed.finding.cause.layer == .local { race.waiting = [] }
        continueRace(run, race, &turn)
    }

    /// Tries the next address after an established connection has failed below its levels, or ends the probe.
    mutating func attemptFailed(_ failure: FailedAttempt, _ run: ProbeRun, _ race: AttemptRace, _ turn: inout Turn) {
        var (run, race) = (run, race)
        if failure.result == nil {
            run.connected = nil
            run.levels = nil
        }
        race.failures.append(failure)
        continueRace(run, race, &turn)
    }

    private mutating func continueRace(_ run: ProbeRun, _ race: AttemptRace, _ turn: inout Turn) {
        phase = .connecting(run, race)
        if turn.time < run.deadline, !race.waiting.isEmpty { return startAttempt(run, race, &turn) }
        guard race.running.isEmpty else { return }
        allFailed(run, race.failures, &turn)
    }

    /// Ends a probe of which all addresses have failed.
    mutating func allFailed(_ run: ProbeRun, _ failures: [FailedAttempt], _ turn: inout Turn) {
        guard let failed = furthestLevels(run) else { return examine(run, failures, &turn) }
        var run = run
        (run.levels, run.connecting, run.connected) = (failed.levels, failed.connecting, failed.connected)
        experience = failed.ending == .silence ? .silent : .answered
        isConnectedInSilence = true
        // The host has answered, whatever was reported before.
        streak.reset()
        streak.begin(at: run.started.monotonicNanoseconds)
        let place = Place(address: failed.entry.candidate.address, interface: failed.entry.route.interface)
        fail(run, failed.finding, place, failed.ending, &turn)
    }

    /// Returns the failure that has come furthest; of equal ones, that of the lowest address, so that the cause stays the same.
    private func furthestLevels(_ run: ProbeRun) -> FailedLevels? {
        func rank(_ failed: FailedLevels) -> Int {
            let layer = failed.finding.cause.layer
            return layer == .local ? 0 : layer.depth * 2 + (failed.ending == .silence ? 1 : 2)
        }
        return run.failedLevels.min {
            (-rank($0), $0.entry.candidate.address) < (-rank($1), $1.entry.candidate.address)
        }
    }

    /// Returns the entries of a race. For targets with levels, addresses that fail come last, and are tried beside the probes. Those of
    /// them whose redirect only a probe follows come first, so that their recovery is noticed.
    func workingFirst(_ entries: [AttemptRace.Entry]) -> [AttemptRace.Entry] {
        guard endpoint.scheme != .tcp, let survey else { return entries }
        let ranked = entries.map { entry in
            let address = entry.candidate.address
            return (entry, rank: !survey.isFailing(address) ? 1 : survey.isUndecided(address) ? 0 : 2)
        }
        return (0...2).flatMap { rank in ranked.filter { $0.rank == rank }.map(\.0) }
    }
}
