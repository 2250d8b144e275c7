internal import Pacing

/// The evidence of connections that other parts of the program make to the target.
///
/// - A success counts as a successful probe, and the next scheduled probe is skipped. It changes the address and the round trip
///   of the published status only if the target was not up: the addresses of a name may change with each connection.
/// - A failure counts as no result. It is a reason to probe at once, but not within a second of the start of the last probe.
/// - While the kernel has no route to the target, its probes are certain to fail, so reports are ignored. So are reports of targets that
///   are probed only at the times of the schedule.
extension TargetMachine {
    mutating func reported(_ outcome: PassiveReport.Outcome, _ turn: inout Turn) {
        if case .pathless = phase { return }
        if settings.isScheduledOnly { return }
        switch outcome {
        case .success(let address, let roundTrip):
            // A target that is bound to an interface or a family is not reached by a connection over another one.
            if settings.interface != nil { return }
            if let address, !settings.families.contains(address.family) { return }
            let (address, roundTrip) = (address ?? lastAnswered ?? addresses.first, roundTrip ?? place.roundTrip)
            // A status that is up has an address and a round trip.
            guard let address, let roundTrip else { return probeSoon(&turn) }
            succeed(at: address, roundTrip, &turn)
        case .failure: probeSoon(&turn)
        }
    }

    private mutating func succeed(at address: IPAddress, _ roundTrip: Duration, _ turn: inout Turn) {
        let wasUp = verdict.state == .up || verdict.state == .degraded
        wasSilent = false
        restarts = 0
        streak.reset()
        verdict.succeed()
        if verdict.state == .up, !wasUp {
            lastAnswered = address
            place = Place(address: address, interface: openRoutes[address]?.interface, roundTrip: roundTrip)
        }
        if case .waiting = phase { skipProbe(&turn) }
        publish(&turn)
    }

    /// Schedules the next probe at least one interval from now, or soon if the success needs a confirmation.
    private mutating func skipProbe(_ turn: inout Turn) {
        guard schedule.next != nil else { return }
        if verdict.needsConfirmation {
            schedule.began(at: turn.time)
            schedule.confirm(.other, timeout: settings.timeout, at: turn.time)
        } else {
            // The grid skips slots that follow a probe by less than half an interval.
            schedule.began(at: turn.time.addingSaturated(schedule.interval / 2))
            schedule.continueByGrid(at: turn.time)
        }
    }

    /// Moves the next probe forward: to now, or to one second after the start of the last one.
    private mutating func probeSoon(_ turn: inout Turn) {
        guard case .waiting = phase, let next = schedule.next else { return }
        var sooner = schedule
        sooner.confirm(.other, timeout: settings.timeout, at: turn.time)
        if let due = sooner.next, due < next { schedule = sooner }
    }
}
