internal import Pacing

/// The reaction of a target to changed links, addresses, routes or resolver configuration.
extension TargetMachine {
    mutating func localStateChanged(_ turn: inout Turn) {
        // The interface in the published update may have another name or type now.
        publish(&turn)
        guard recheckDue == nil else { return }
        let due = lastRecheck?.addingSaturated(needsLookup ? Self.lookupGap : Self.recheckGap) ?? turn.time
        if turn.time >= due {
            recheck(&turn)
        } else {
            recheckDue = due
        }
    }

    /// Whether the name must be resolved first, because it has no address or the last lookup failed.
    var needsLookup: Bool { addresses.isEmpty || verdict.lastLayer == .dns || isCutOffFromNames }

    /// Whether a lookup runs, or its failure is examined.
    private var isResolving: Bool {
        switch phase {
        case .resolving, .tracing: true
        case .examining(let run, _): run.silentLookup != nil
        default: false
        }
    }

    mutating func recheck(_ turn: inout Turn) {
        (recheckDue, retryDue) = (nil, nil)
        lastRecheck = turn.time
        if isResolving {
            isOutdated = true
            if !addresses.isEmpty { startCheck(&turn) }
            return
        }
        switch phase {
        case .idle, .resolving, .tracing: break
        case .asking(let run, _): ask(run, &turn)
        case .waiting where needsLookup:
            verdict.pathChanged()
            if !settings.isScheduledOnly { startProbe(&turn) }
        case .waiting, .pathless, .connecting, .examining, .following: startCheck(&turn)
        }
    }

    private mutating func startCheck(_ turn: inout Turn) {
        switch candidates(in: turn.localState) {
        case .failure(let failure):
            setQueries([])
            pathless(failure.cause, Place(address: addresses.first), &turn)
        case .success(let candidates):
            let survey = RouteSurvey(candidates)
            check = (survey, turn.time.addingSaturated(settings.timeout.saturatingNanoseconds))
            setQueries(survey.queries)
            turn.effects += survey.queries.map { .askRoute($0) }
        }
    }

    /// Notes that the target has a path. If it had none, this is published soon, also if the target stays silent.
    mutating func pathFound(_ turn: Turn) {
        guard pathNewsDue == .max, verdict.lacksPath else { return }
        pathNewsDue = turn.time.addingSaturated(Self.pathNews)
    }

    /// Handles the routes that a check found.
    mutating func checked(_ candidateRoutes: [(Candidate, CandidateRoute)], _ turn: inout Turn) {
        let routes = Self.openRoutes(candidateRoutes)
        guard !routes.isEmpty else { return pathless(candidateRoutes, &turn) }
        let isChanged = routes != openRoutes
        if isChanged {
            schedule.restartGrowth(at: turn.time)
            verdict.pathChanged()
        }
        openRoutes = routes
        pathFound(turn)
        noteMeteredInterface(turn)
        streak.keep { routes[$0] }
        dropSurveyWithoutRoute(&turn)
        if isResolving { return }
        switch phase {
        case .idle, .asking, .resolving, .tracing: break
        case .pathless where settings.isScheduledOnly: phase = .waiting
        case .pathless: startProbe(&turn, knowing: candidateRoutes)
        case .waiting:
            if isChanged, !settings.isScheduledOnly {
                startProbe(&turn, knowing: candidateRoutes)
            } else {
                schedule.hurry(at: turn.time)
            }
        case .connecting, .examining, .following:
            guard isChanged else { return }
            // Running attempts keep their routes.
            guard restarts < Self.restartLimit, !settings.isScheduledOnly else {
                isOutdated = true
                if case .connecting(let run, var race) = phase {
                    race.reroute(by: routes)
                    phase = .connecting(run, race)
                }
                return
            }
            restarts += 1
            startProbe(&turn, knowing: candidateRoutes)
        }
    }
}

/// Reports and updates.
extension TargetMachine {
    @discardableResult
    mutating func report(
        _ run: ProbeRun, _ cause: Cause?, _ place: Place, lost: Int = 0, isProvisional: Bool = false, _ turn: inout Turn
    ) -> ProbeReport {
        var report = ProbeReport(
            endpoint: endpoint, roundTrip: place.roundTrip, lostPackets: lost, address: place.address,
            resolution: run.resolution, lookup: run.lookup,
            connection: run.connection(at: turn.now), cause: cause, moment: turn.now)
        if let levels = run.levels {
            report.levels = levels
        }
        report.isProvisional = isProvisional
        if peer != endpoint { report.proxy = peer }
        turn.effects.append(.report(report))
        certificateEnd = report.certificateEnd ?? certificateEnd
        return report
    }

    /// Publishes the present status if it differs from the last update in a relevant value.
    mutating func publish(isInitial: Bool = false, _ turn: inout Turn) {
        let interface = place.interface.flatMap { index in
            turn.localState.interfaces[index] ?? (lastInterface?.index == index ? lastInterface : nil)
        }
        lastInterface = interface
        // Updates are made only for changes: most probes have the result of the one before.
        if let published, !isInitial, isCurrent(published, interface) { return }
        let failing = verdict.failingSince.map { turn.now.advanced(by: .nanoseconds($0.addingSaturated(-turn.time))) }
        let update = ServerUpdate(
            endpoint: endpoint, state: verdict.state, cause: verdict.cause, pending: verdict.pending, failingSince: failing,
            since: published.flatMap { $0.state == verdict.state ? $0.stateMoment : nil } ?? turn.now, address: place.address,
            interface: interface, roundTrip: place.roundTrip,
            responseTime: place.responseNanoseconds.map { .nanoseconds($0) }, phases: place.phases,
            certificateEnd: certificateEnd,
            isFlapping: flaps.isFlapping, isPaused: isPaused,
            isInitial: isInitial, moment: turn.now)
        published = update
        turn.effects.append(.publish(update))
    }

    /// Returns whether an update has the present status, cause, address and interface. Round trip, detail and evidence are ignored.
    private func isCurrent(_ update: ServerUpdate, _ interface: NetworkInterface?) -> Bool {
        update.state == verdict.state && update.isFlapping == flaps.isFlapping && update.isPaused == isPaused
            && update.cause?.layer == verdict.cause?.layer
            && update.cause?.code == verdict.cause?.code
            && update.pending?.layer == verdict.pending?.layer && update.pending?.code == verdict.pending?.code
            && (verdict.state != .degraded || update.cause?.failingAddresses == verdict.cause?.failingAddresses)
            && update.address == place.address
            && update.interface?.index == interface?.index && update.interface?.name == interface?.name
            && update.interface?.type == interface?.type
    }
}
