internal import Pacing

/// The search for the fault after a lookup without an answer. A name server that is on the link, or on this machine, is itself the
/// next hop; the way to another one begins with a gateway, which is examined like the gateway of a silent target.
extension TargetMachine {
    /// Asks for the routes to the silent name servers.
    mutating func trace(_ lookup: SilentLookup, _ run: ProbeRun, _ turn: inout Turn) {
        var run = run
        run.silentLookup = lookup
        // The kernel answers from memory.
        run.deadline = turn.time.addingSaturated(Examination.timeLimit)
        let survey = RouteSurvey(
            lookup.servers.map { server in
                let zone = server.zone.flatMap { name in turn.localState.interfaces.values.first { $0.hasName(name) }?.index }
                return Candidate(address: server.address, port: SilentLookup.port, zone: zone ?? 0, boundTo: 0)
            })
        phase = .tracing(run, survey)
        turn.effects += survey.queries.map { .askRoute($0) }
    }

    /// Stores the route to a name server. If all are known, their gateways are examined.
    mutating func traced(
        _ query: RouteQuery, _ answer: RouteAnswer, _ run: ProbeRun, _ survey: RouteSurvey, _ turn: inout Turn
    ) {
        var survey = survey
        survey.take(query, answer)
        phase = .tracing(run, survey)
        guard survey.isComplete else { return }
        let failures = survey.candidateRoutes(in: turn.localState).compactMap { candidate, candidateRoute in
            candidateRoute.route.map { route in
                FailedAttempt(
                    candidate: candidate, route: route, result: nil,
                    elapsedNanoseconds: run.resolution?.saturatingNanoseconds ?? 0)
            }
        }
        // A name server without a gateway is silent itself.
        guard failures.count == survey.candidates.count, failures.allSatisfy({ $0.route.gateway != nil }) else {
            return endTrace(run, [], &turn)
        }
        examine(run, failures, &turn)
    }

    /// Ends the probe. The gateways are at fault if the way to every silent name server begins with a silent one.
    mutating func endTrace(_ run: ProbeRun, _ failures: [FailedAttempt], _ turn: inout Turn) {
        guard let lookup = run.silentLookup else { return finishProbe(.other, &turn) }
        let failures = failures.map { completed($0, run, turn) }
        let causes = failures.map { $0.cause(in: turn.localState) }
        isCutOffFromNames = !causes.isEmpty && causes.allSatisfy { $0.layer == .neighbor }
        guard isCutOffFromNames, let failure = failures.first, let cause = causes.first else {
            // The way to the server that the cause names.
            let way = zip(failures, causes).first { lookup.cause.evidence["resolver"] == .text("\($0.0.candidate.address)") }
            let keys = ["first_hop", "gateway", "interface"]
            let finding = Finding(lookup.cause.adding(Dictionary(uniqueKeysWithValues: keys.map { ($0, way?.1.evidence[$0]) })))
            return fail(run, finding, Place(), .other, &turn)
        }
        let server = failure.candidate.address
        let gateway = failure.route.gateway.map { "\($0)" } ?? ""
        var evidence = lookup.cause.evidence
        evidence["resolver"] = .text("\(server)")
        for key in ["interface", "gateway", "neighbor_state", "first_hop"] { evidence[key] = cause.evidence[key] }
        let detail = "the gateway \(gateway), which leads to the name server \(server), does not answer on its link"
        let finding = Finding(Cause(cause.layer, cause.code, detail: detail, evidence: evidence))
        fail(run, finding, Place(interface: failure.route.interface), .other, &turn)
    }
}

extension Cause {
    /// Returns the cause with further evidence. Values that are `nil` are not added.
    fileprivate func adding(_ further: [String: Evidence?]) -> Cause {
        var evidence = evidence
        for (key, value) in further { if let value { evidence[key] = value } }
        return Cause(layer, code, detail: detail, evidence: evidence)
    }
}
