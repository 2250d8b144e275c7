internal import Pacing

/// The evidence of connections that other parts of the program make to the target.
///
/// - A success counts as a successful probe, and the next scheduled probe is skipped. It changes the address and the round trip
///   of the published status only if the target was not up: the addresses of a name may change with each connection.
/// - A target may have many successes in one interval. The one that replaces a probe counts for flapping and quality as a probe does,
///   and is followed by an attempt to another address. A degraded target is probed nevertheless, because only probes show the end
///   of a loss.
/// - A failure counts as no result. It is a reason to probe at once, but not within a second of the start of the last probe.
/// - While the kernel has no route to the target, its probes are certain to fail, so reports are ignored. So are reports of
///   targets that are probed only at the times of the schedule.
extension TargetMachine {
    mutating func reported(_ outcome: PassiveReport.Outcome, _ turn: inout Turn) {
        if case .pathless = phase { return }
        if settings.isScheduledOnly { return }
        switch outcome {
        case .success(let address, let roundTrip):
            // A target that is bound to an interface or a family is not reached by a connection over another one.
            if settings.interface != nil { return }
            if let address, !settings.families.contains(address.family) { return }
            // A status that is up has an address and a round trip.
            guard let address = address ?? lastAnswered ?? addresses.first, (roundTrip ?? place.roundTrip) != nil else {
                return probeSoon(&turn)
            }
            succeed(at: address, measured: roundTrip, &turn)
        case .failure: probeSoon(&turn)
        }
    }

    private mutating func succeed(at address: IPAddress, measured: Duration?, _ turn: inout Turn) {
        let (wasReachable, hadFailed) = (isReachable, verdict.lastLayer != nil)
        experience = .answered
        restarts = 0
        addressFailed = .min
        streak.reset()
        verdict.succeed(start: turn.time)
        if isReachable, !wasReachable {
            lastAnswered = address
            place = Place(address: address, interface: openRoutes[address]?.interface, roundTrip: measured ?? place.roundTrip)
        }
        let isProbe = replacesProbe(turn.time)
        if isProbe { recordQuality(measured, lost: 0) }
        if isProbe || hadFailed { _ = flaps.record(true) }
        _ = judgeQuality()
        publish(&turn)
        if isProbe, isReachable { surveyNextAddress(&turn) }
    }

    /// Whether the target answers.
    var isReachable: Bool { verdict.state == .up || verdict.state == .degraded }

    /// Schedules the next probe at least one interval from now. Returns whether a scheduled probe is skipped.
    private mutating func replacesProbe(_ now: Int64) -> Bool {
        guard case .waiting = phase, let next = schedule.next, verdict.state != .degraded else { return false }
        schedule.replaced(at: now)
        return schedule.next != next
    }

    /// Moves the next probe forward: to now, or to one second after the start of the last one.
    private mutating func probeSoon(_ turn: inout Turn) {
        guard case .waiting = phase, let next = schedule.next else { return }
        var sooner = schedule
        sooner.confirm(.other, timeout: settings.timeout, at: turn.time)
        if let due = sooner.next, due < next { schedule = sooner }
    }
}
