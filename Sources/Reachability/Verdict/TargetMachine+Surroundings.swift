internal import Pacing

/// What a change of links, addresses, routes or the resolver's configuration means to a target.
extension TargetMachine {
    mutating func surroundingsChanged(_ turn: inout Turn) {
        // The interface of what is published may have another name or type now.
        publish(&turn)
        guard recheckDue == nil else { return }
        let due = lastRecheck?.addingSaturated(needsLookup ? Self.lookupGap : Self.recheckGap) ?? turn.time
        if turn.time >= due {
            recheck(&turn)
        } else {
            recheckDue = due
        }
    }

    /// Whether no route can be asked for, or asking would not help: the name was not resolved.
    private var needsLookup: Bool { addresses.isEmpty || verdict.lastLayer == .dns }

    mutating func recheck(_ turn: inout Turn) {
        (recheckDue, retryDue) = (nil, nil)
        lastRecheck = turn.time
        switch phase {
        case .idle: break
        case .asking(let run, _): ask(run, &turn)
        case .resolving:
            isOutdated = true
            if !addresses.isEmpty { startCheck(&turn) }
        case .waiting where needsLookup: startProbe(&turn)
        case .waiting, .pathless, .connecting, .examining: startCheck(&turn)
        }
    }

    private mutating func startCheck(_ turn: inout Turn) {
        switch candidates(in: turn.surroundings) {
        case .failure(let failure):
            pathless(failure.cause, Place(address: addresses.first), &turn)
        case .success(let candidates):
            let survey = RouteSurvey(candidates)
            check = (survey, turn.time.addingSaturated(settings.timeout.saturatingNanoseconds))
            turn.effects += survey.queries.map { .askRoute($0) }
        }
    }

    /// The routes are known again.
    mutating func checked(_ ways: [(Candidate, Way)], _ turn: inout Turn) {
        let routes = Self.openRoutes(ways)
        guard !routes.isEmpty else { return pathless(ways, &turn) }
        let isChanged = routes != openRoutes
        openRoutes = routes
        streak.keep(to: routes)
        switch phase {
        case .idle, .asking, .resolving: break
        case .pathless: startProbe(&turn, knowing: ways)
        case .waiting:
            if isChanged { startProbe(&turn, knowing: ways) }
        case .connecting, .examining:
            guard isChanged else { return }
            // Attempts under way keep to the route that they began on.
            guard restarts < Self.restartLimit else {
                isOutdated = true
                if case .connecting(let run, var race) = phase {
                    race.reroute(by: routes)
                    phase = .connecting(run, race)
                }
                return
            }
            restarts += 1
            startProbe(&turn, knowing: ways)
        }
    }
}

/// What is said.
extension TargetMachine {
    mutating func report(_ run: ProbeRun, _ cause: Cause?, _ place: Place, _ turn: inout Turn) {
        turn.effects.append(
            .report(
                ProbeReport(
                    endpoint: endpoint, roundTrip: place.roundTrip, address: place.address, resolution: run.resolution,
                    connection: run.connecting.map { turn.now.elapsed(since: $0) }, cause: cause, moment: turn.now)))
    }

    /// Publishes what stands, if it differs from what was published in anything that counts.
    mutating func publish(isInitial: Bool = false, _ turn: inout Turn) {
        let interface = place.interface.flatMap { index in
            turn.surroundings.interfaces[index] ?? (lastInterface?.index == index ? lastInterface : nil)
        }
        lastInterface = interface
        let update = ServerUpdate(
            endpoint: endpoint, state: verdict.state, cause: verdict.cause,
            since: published.flatMap { $0.state == verdict.state ? $0.stateMoment : nil } ?? turn.now, address: place.address,
            interface: interface, roundTrip: place.roundTrip, isInitial: isInitial, moment: turn.now)
        if let published, published.saysTheSame(as: update) { return }
        published = update
        turn.effects.append(.publish(update))
    }
}

extension ServerUpdate {
    /// Whether state, cause, address and interface are the same; round trip, detail and evidence do not count.
    func saysTheSame(as other: ServerUpdate) -> Bool {
        state == other.state && cause?.layer == other.cause?.layer && cause?.code == other.cause?.code
            && address == other.address && interface?.index == other.interface?.index
            && interface?.name == other.interface?.name && interface?.type == other.interface?.type
    }
}
